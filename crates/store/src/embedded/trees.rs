//! The trees that hold the rows: one for most of them and, where a folder was made so, one for those
//! whose keys begin with [`EngineOptions::apart`]. `docs/design/0007-two-trees.md` says what for.
//!
//! Each has its own files and memtables. They share the log, the sequences, and the moments at which
//! memtables are closed, so a snapshot of one sequence is the same moment in both.

use std::fs;
use std::io;
use std::iter;
use std::path::Path;
use std::sync::Arc;

use lsm_tree::{Cache, DescriptorTable};

use super::engine::EngineOptions;
use super::folder::{DataFolder, sync_folder};
use super::tree::{self, Common, Tree};
use crate::engine::{Fault, KeyRange, successor_of_prefix};

pub(super) const ROWS_FOLDER: &str = "rows";
pub(super) const APART_FOLDER: &str = "rows-apart";

pub(super) struct Trees {
    most: Tree,
    apart: Option<Apart>,
}

struct Apart {
    tree: Tree,
    range: KeyRange,
    /// The keys of the other tree, on both sides.
    before: KeyRange,
    behind: Option<KeyRange>,
}

impl Apart {
    fn new(tree: Tree, prefix: &'static [u8]) -> Self {
        let behind = successor_of_prefix(prefix).map(|end| KeyRange::all().starting_at(end));
        let before = KeyRange::all().ending_before(prefix);
        Self { tree, range: KeyRange::prefix(prefix), before, behind }
    }
}

impl Trees {
    pub fn open(folder: &DataFolder, options: &EngineOptions) -> Result<Self, Fault> {
        let common = Common {
            options,
            cache: Arc::new(Cache::with_capacity_bytes(options.cache_bytes)),
            open_tables: Arc::new(DescriptorTable::new(options.open_tables_max)),
        };
        convert(folder)?;
        let open = |name, id| {
            let path = folder.subfolder(name)?;
            remove_drafts(&path)
                .map_err(|why| Fault::because(format!("clean {}", path.display()), why))?;
            Tree::open(&common, &path, id)
        };
        let apart_is_there = folder.path().join(APART_FOLDER).exists();
        let is_new = !folder.path().join(ROWS_FOLDER).exists();
        let apart = match options.apart {
            // A folder that was made without the second tree stays without it.
            Some(prefix) if is_new || apart_is_there => {
                Some(Apart::new(open(APART_FOLDER, 1)?, prefix))
            }
            None if apart_is_there => {
                let path = folder.path().join(APART_FOLDER);
                return Err(Fault::new(format!("nobody knows which rows {} has", path.display())));
            }
            Some(_) | None => None,
        };
        Ok(Self { most: open(ROWS_FOLDER, 0)?, apart })
    }

    pub fn all(&self) -> impl Iterator<Item = &Tree> {
        iter::once(&self.most).chain(self.apart.iter().map(|apart| &apart.tree))
    }

    /// The tree that has the row, if there is one.
    pub fn of(&self, key: &[u8]) -> &Tree {
        match &self.apart {
            Some(apart) if apart.range.contains(key) => &apart.tree,
            Some(_) | None => &self.most,
        }
    }

    /// The parts of the range that lie in one tree each, in the order of their keys.
    pub fn parts_of(&self, range: &KeyRange) -> Vec<(&Tree, KeyRange)> {
        let Some(apart) = &self.apart else {
            return vec![(&self.most, range.clone())];
        };
        let parts = [
            (&self.most, Some(&apart.before)),
            (&apart.tree, Some(&apart.range)),
            (&self.most, apart.behind.as_ref()),
        ];
        let mut found = Vec::with_capacity(parts.len());
        for (tree, part) in parts {
            let part = part.map(|part| range.intersection(part));
            found.extend(part.filter(|part| !part.is_empty()).map(|part| (tree, part)));
        }
        found
    }

    /// Closes the memtables, to be flushed.
    pub fn close_memtables(&self) {
        self.all().for_each(Tree::close_memtable);
    }

    pub fn approximate_len(&self) -> u64 {
        self.all().map(Tree::approximate_len).sum()
    }
}

/// Brings the rows of an older folder to the newest format. The folder gets its new number last; until
/// then an older version of the program still opens it.
fn convert(folder: &DataFolder) -> Result<(), Fault> {
    if folder.has_newest_format()? {
        return Ok(());
    }
    let paths = [ROWS_FOLDER, APART_FOLDER].map(|name| folder.path().join(name));
    let there = || paths.iter().filter(|path| path.is_dir());
    there().try_for_each(|path| tree::convert_lsm_tree(path))?;
    folder.set_newest_format()?;
    there().try_for_each(|path| tree::remove_lsm_tree(path))
}

/// A crash may leave the draft by which a tree replaces its manifest.
fn remove_drafts(folder: &Path) -> io::Result<()> {
    let mut removed = false;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(".tmp") {
            fs::remove_file(entry.path())?;
            removed = true;
        }
    }
    if removed { sync_folder(folder) } else { Ok(()) }
}
