//! What a disk could hold after a power cut.
//!
//! The model is harsher than any file system: of what was not synced, each write and each change of
//! a name may be there or not, whatever the others do, a write may be there in part, and the last
//! one may be torn at any byte. A synced file does not sync its name. Only a rename is atomic.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use holdfast_store::contract::Random;

use super::disk::{FileId, Op};

const SECTOR_BYTES: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survivors {
    /// Only what was synced.
    None,
    /// Everything, except the end of the last write to each file.
    All,
    /// Any subset.
    Some,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Folder,
    File(FileId),
}

#[derive(Default)]
struct Content {
    durable: Vec<u8>,
    pending: Vec<Change>,
    /// Written before a sync that failed: no later sync makes these durable.
    doubtful: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Resize { length: usize },
}

/// The disk after a first part of a record.
#[derive(Default)]
pub struct Disk {
    names: BTreeMap<PathBuf, Node>,
    /// By the folder in which names have changed since it was synced.
    pending_names: BTreeMap<PathBuf, Vec<Op>>,
    files: HashMap<FileId, Content>,
}

impl Disk {
    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::MakeFolder { path } | Op::Link { path, .. } | Op::Unlink { path } => {
                self.pending_names.entry(parent(path)).or_default().push(op.clone());
            }
            Op::Rename { from, to, .. } => {
                assert_eq!(from.parent(), to.parent(), "a rename into another folder");
                self.pending_names.entry(parent(from)).or_default().push(op.clone());
            }
            Op::Write { file, offset, bytes } => {
                let change = Change::Write { offset: *offset as usize, bytes: bytes.clone() };
                self.content(*file).pending.push(change);
            }
            Op::Resize { file, length } => {
                self.content(*file).pending.push(Change::Resize { length: *length as usize });
            }
            Op::SyncFile { file } => {
                let content = self.content(*file);
                for change in std::mem::take(&mut content.pending) {
                    apply_change(&mut content.durable, &change);
                }
            }
            Op::SyncFailed { file } => {
                let content = self.content(*file);
                let lost = std::mem::take(&mut content.pending);
                content.doubtful.extend(lost);
            }
            Op::SyncFolder { path } => {
                for op in self.pending_names.remove(path).unwrap_or_default() {
                    apply_name(&mut self.names, &op);
                }
            }
            Op::Mark(_) => {}
        }
    }

    /// Everything reaches the disk.
    pub fn settle(&mut self) {
        for op in std::mem::take(&mut self.pending_names).into_values().flatten() {
            apply_name(&mut self.names, &op);
        }
        for content in self.files.values_mut() {
            for change in std::mem::take(&mut content.pending) {
                apply_change(&mut content.durable, &change);
            }
        }
    }

    fn content(&mut self, file: FileId) -> &mut Content {
        self.files.entry(file).or_default()
    }

    /// Makes in `target` what the disk could hold now of `root`.
    pub fn rebuild(&self, root: &Path, target: &Path, survivors: Survivors, random: &mut Random) {
        let mut names = self.names.clone();
        for op in self.pending_names.values().flatten() {
            if survives(survivors, random) {
                apply_name(&mut names, op);
            }
        }
        std::fs::create_dir_all(target).unwrap();
        // In order, so that a folder comes before what is in it; what lost its folder is lost.
        for (path, node) in &names {
            let Ok(inside) = path.strip_prefix(root) else { continue };
            let path = target.join(inside);
            match node {
                Node::Folder => {
                    let _ = std::fs::create_dir(&path);
                }
                Node::File(file) => {
                    let content = match self.files.get(file) {
                        Some(content) => content.surviving(survivors, random),
                        None => Vec::new(),
                    };
                    if path.parent().is_some_and(Path::is_dir) {
                        std::fs::write(&path, content).unwrap();
                    }
                }
            }
        }
    }
}

impl Content {
    fn surviving(&self, survivors: Survivors, random: &mut Random) -> Vec<u8> {
        let mut content = self.durable.clone();
        // A sync that failed may have lost anything, even if everything else survives.
        for change in &self.doubtful {
            if random.one_in(2) {
                apply_change(&mut content, change);
            }
        }
        let kept: Vec<&Change> =
            self.pending.iter().filter(|_| survives(survivors, random)).collect();
        let count = kept.len();
        for (index, change) in kept.into_iter().enumerate() {
            match change {
                Change::Write { offset, bytes } if index + 1 == count && random.one_in(2) => {
                    let torn = bytes[..random.within(0..bytes.len() + 1)].to_vec();
                    apply_change(&mut content, &Change::Write { offset: *offset, bytes: torn });
                }
                Change::Write { offset, bytes }
                    if survivors == Survivors::Some && random.one_in(3) =>
                {
                    apply_sectors(&mut content, *offset, bytes, random);
                }
                Change::Write { .. } | Change::Resize { .. } => apply_change(&mut content, change),
            }
        }
        content
    }
}

fn survives(survivors: Survivors, random: &mut Random) -> bool {
    match survivors {
        Survivors::None => false,
        Survivors::All => true,
        Survivors::Some => random.one_in(2),
    }
}

fn apply_change(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { offset, bytes } => {
            let end = offset + bytes.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            content[*offset..end].copy_from_slice(bytes);
        }
        Change::Resize { length } => content.resize(*length, 0),
    }
}

/// Any of the sectors of one write.
fn apply_sectors(content: &mut Vec<u8>, offset: usize, bytes: &[u8], random: &mut Random) {
    for (index, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
        if random.one_in(2) {
            let offset = offset + index * SECTOR_BYTES;
            apply_change(content, &Change::Write { offset, bytes: sector.to_vec() });
        }
    }
}

fn apply_name(names: &mut BTreeMap<PathBuf, Node>, op: &Op) {
    match op {
        Op::MakeFolder { path } => {
            names.insert(path.clone(), Node::Folder);
        }
        Op::Link { path, file } => {
            names.insert(path.clone(), Node::File(*file));
        }
        Op::Rename { from, to, file } => {
            names.remove(from);
            names.insert(to.clone(), Node::File(*file));
        }
        Op::Unlink { path } => {
            names.remove(path);
        }
        Op::Write { .. }
        | Op::Resize { .. }
        | Op::SyncFile { .. }
        | Op::SyncFailed { .. }
        | Op::SyncFolder { .. }
        | Op::Mark(_) => {}
    }
}

fn parent(path: &Path) -> PathBuf {
    path.parent().expect("a recorded path has a parent").to_path_buf()
}
