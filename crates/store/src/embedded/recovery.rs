//! Opening: finds the log files that are needed and puts their records back into the tree.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::log::{
    BLOCK_BYTES, Checkpoint, SealedSegment, SegmentHeader, SegmentReader, Spare, decode_writes,
};
use super::{Damage, Durability, engine_state::EngineState};
use crate::engine::Fault;

/// What the log folder holds.
pub(super) struct FoundLog {
    checkpoint: Checkpoint,
    /// Needed, in the order they were written.
    live: Vec<(SegmentHeader, PathBuf)>,
    /// Unused, to be written again or removed.
    unused: Vec<PathBuf>,
    /// No file has this number or a higher one.
    pub next_file: u64,
}

impl FoundLog {
    pub fn look(folder: &Path) -> Result<Self, Fault> {
        let broken = |why: io::Error| {
            Fault::because(format!("look for the log in {}", folder.display()), why)
        };
        let checkpoint = Checkpoint::load(folder).map_err(broken)?;
        let mut found = Self { checkpoint, live: Vec::new(), unused: Vec::new(), next_file: 1 };
        for entry in fs::read_dir(folder).map_err(broken)? {
            let path = entry.map_err(broken)?.path();
            let Some(number) = file_number(&path) else { continue };
            found.next_file = found.next_file.max(number + 1);
            match read_header(&path).map_err(broken)? {
                Some(header) if header.incarnation > checkpoint.incarnation => {
                    found.live.push((header, path));
                }
                Some(_) | None => found.unused.push(path),
            }
        }
        found.live.sort_by_key(|(header, _)| header.incarnation);
        found.check_chain(folder)?;
        Ok(found)
    }

    /// Every incarnation since the checkpoint must be there: a missing one held acknowledged rows.
    fn check_chain(&self, folder: &Path) -> Result<(), Fault> {
        for (expected, (header, _)) in (self.checkpoint.incarnation + 1..).zip(&self.live) {
            if header.incarnation != expected {
                return Err(Fault::new(format!(
                    "the log in {} lacks its segment {expected}",
                    folder.display()
                )));
            }
        }
        Ok(())
    }

    /// What is damaged in the segments that are needed; they are only read.
    pub fn damages(&self) -> Vec<Damage> {
        let mut found = Vec::new();
        for (index, (header, path)) in self.live.iter().enumerate() {
            let damage = |offset, what: String| Damage { file: path.clone(), offset, what };
            let content = match fs::read(path) {
                Ok(content) => content,
                Err(why) => {
                    found.push(damage(None, why.to_string()));
                    continue;
                }
            };
            let mut reader = SegmentReader::new(Bytes::from(content), *header);
            let whole = reader.by_ref().all(|(_, payload)| decode_writes(&payload).is_some());
            let ends_early = match self.live.get(index + 1) {
                Some((next, _)) => next.base_sequence != reader.last_sequence(),
                None => header.durability == Durability::Fsync && reader.later_group_exists(),
            };
            if !whole || ends_early {
                let what = "a segment of the log is not what was written".to_owned();
                found.push(damage(Some(reader.position() as u64), what));
            }
        }
        found
    }

    pub fn last_incarnation(&self) -> u64 {
        self.live.last().map_or(self.checkpoint.incarnation, |(header, _)| header.incarnation)
    }

    /// Puts every record into the tree, one memtable for each segment. Returns the sequence of the
    /// last record and the segments, to be released when their memtables are flushed.
    pub fn replay(&self, shared: &EngineState) -> Result<(u64, Vec<SealedSegment>), Fault> {
        let mut last_sequence = self.checkpoint.sequence;
        let mut sealed = Vec::with_capacity(self.live.len());
        for (index, (header, path)) in self.live.iter().enumerate() {
            if header.base_sequence != last_sequence {
                return Err(Fault::new(format!(
                    "the log is damaged before {}: it ends at record {last_sequence}, not {}",
                    path.display(),
                    header.base_sequence
                )));
            }
            let is_newest = index + 1 == self.live.len();
            last_sequence = replay_segment(shared, *header, path, is_newest)?;
            shared.trees.close_memtables();
            let spare = Spare::open(path.clone())
                .map_err(|why| Fault::because(format!("open {}", path.display()), why))?;
            let checkpoint =
                Checkpoint { incarnation: header.incarnation, sequence: last_sequence };
            sealed.push(SealedSegment { spare, checkpoint });
        }
        Ok((last_sequence, sealed))
    }

    /// The unused files of the usual size, opened; the others are removed.
    pub fn into_spares(self, capacity: u64, spares_max: usize) -> io::Result<VecDeque<Spare>> {
        let mut spares = VecDeque::new();
        for path in self.unused {
            let spare = Spare::open(path)?;
            if spare.capacity == capacity && spares.len() < spares_max {
                spares.push_back(spare);
            } else {
                fs::remove_file(&spare.path)?;
            }
        }
        Ok(spares)
    }
}

fn replay_segment(
    shared: &EngineState,
    header: SegmentHeader,
    path: &Path,
    is_newest: bool,
) -> Result<u64, Fault> {
    let content =
        fs::read(path).map_err(|why| Fault::because(format!("read {}", path.display()), why))?;
    let mut reader = SegmentReader::new(Bytes::from(content), header);
    for (sequence, payload) in reader.by_ref() {
        let writes = decode_writes(&payload).ok_or_else(|| {
            Fault::new(format!("record {sequence} in {} cannot be decoded", path.display()))
        })?;
        shared.apply(sequence, writes);
    }
    if is_newest && header.durability == Durability::Fsync && reader.later_group_exists() {
        return Err(Fault::new(format!(
            "the log is damaged: {} is unreadable at byte {} but goes on after it",
            path.display(),
            reader.position()
        )));
    }
    Ok(reader.last_sequence())
}

fn file_number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_suffix(".log")?.parse().ok()
}

fn read_header(path: &Path) -> io::Result<Option<SegmentHeader>> {
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    File::open(path)?.take(BLOCK_BYTES as u64).read_to_end(&mut block)?;
    Ok(SegmentHeader::decode(&block))
}
