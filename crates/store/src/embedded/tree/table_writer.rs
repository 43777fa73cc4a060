//! Writes rows in their order into new tables, and decides where one ends and the next begins.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, mem};

use lsm_tree::config::BloomConstructionPolicy;
use lsm_tree::table::Writer;
use lsm_tree::{CompressionType, InternalValue};

use super::manifest::Named;
use super::table_file::TableOpener;

/// When tables end.
#[derive(Clone, Copy)]
pub(super) struct TableLimits {
    bytes: u64,
    /// So many tombstones in a row get tables of their own: they can then be merged with just what they
    /// delete, and tables that nothing is deleted from are left alone.
    tombstones_apart: u64,
    /// What they delete is merged with them at once.
    tombstones: u64,
}

impl TableLimits {
    pub fn new(table_bytes: u64) -> Self {
        let tombstones_apart = (table_bytes / (16 * 1024)).max(1);
        Self { bytes: table_bytes, tombstones_apart, tombstones: tombstones_apart * 32 }
    }
}

/// How tables are written.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// Soon merged again: not worth compressing, and its index is kept in memory.
    Flushed,
    /// Lies close to the flushed ones.
    Upper,
    Lower,
}

impl Form {
    fn compression(self) -> CompressionType {
        match self {
            Self::Flushed | Self::Upper => CompressionType::None,
            Self::Lower => CompressionType::Lz4,
        }
    }

    /// Bits of the filter for each key. Looking for a missing row asks every flushed table that existed
    /// when the tree was opened: at 10 bits one in a hundred answers wrongly and is read in vain, at 16
    /// one in two thousand.
    fn filter_bits(self) -> f32 {
        match self {
            Self::Flushed => 16.0,
            Self::Upper | Self::Lower => 10.0,
        }
    }

    /// An index written at the end of its table holds the last key of every block until then, and each
    /// key keeps the block of the merged table it was read from in memory: in all as much as the new
    /// table. A partitioned index does not.
    fn has_index_in_parts(self) -> bool {
        match self {
            Self::Flushed => false,
            Self::Upper | Self::Lower => true,
        }
    }
}

/// Its files are removed when it is dropped before it is finished.
pub(super) struct TableWriter {
    opener: TableOpener,
    next_id: Arc<AtomicU64>,
    form: Form,
    limits: TableLimits,
    current: Option<Current>,
    /// Tombstones that are not written yet: it is not known if they get a table of their own.
    held_back: Vec<InternalValue>,
    begun: Vec<PathBuf>,
    finished: Vec<Named>,
}

struct Current {
    writer: Writer,
    /// Approximate: blocks add some, and may be compressed.
    bytes: u64,
    tombstones: u64,
    has_only_tombstones: bool,
}

impl TableWriter {
    pub fn new(
        opener: TableOpener,
        next_id: Arc<AtomicU64>,
        form: Form,
        limits: TableLimits,
    ) -> Self {
        Self {
            opener,
            next_id,
            form,
            limits,
            current: None,
            held_back: Vec::new(),
            begun: Vec::new(),
            finished: Vec::new(),
        }
    }

    /// Versions come in the order of their keys, the newest of a key first. `is_new_key`: the version
    /// before was of another row.
    pub fn write(&mut self, version: InternalValue, is_new_key: bool) -> lsm_tree::Result<()> {
        if version.is_tombstone() && is_new_key && !self.is_among_tombstones() {
            self.held_back.push(version);
            if self.held_back.len() as u64 == self.limits.tombstones_apart {
                self.end_table()?;
                self.write_held_back()?;
            }
            return Ok(());
        }
        if !self.held_back.is_empty() {
            self.write_held_back()?;
        }
        let has_enough = self.current.as_ref().is_some_and(|current| {
            current.bytes >= self.limits.bytes || current.tombstones >= self.limits.tombstones
        });
        let is_end = has_enough || (self.is_among_tombstones() && !version.is_tombstone());
        // All versions of a row are in one table: a reader looks for it in one of each run.
        if is_end && is_new_key {
            self.end_table()?;
        }
        self.put(version)
    }

    fn is_among_tombstones(&self) -> bool {
        self.current.as_ref().is_some_and(|current| {
            current.has_only_tombstones && current.tombstones >= self.limits.tombstones_apart
        })
    }

    fn write_held_back(&mut self) -> lsm_tree::Result<()> {
        mem::take(&mut self.held_back).into_iter().try_for_each(|version| self.put(version))
    }

    fn put(&mut self, version: InternalValue) -> lsm_tree::Result<()> {
        let current = match &mut self.current {
            Some(current) => current,
            None => {
                let begun = self.begin()?;
                self.current.insert(begun)
            }
        };
        current.bytes += (version.key.user_key.len() + version.value.len()) as u64;
        current.tombstones += u64::from(version.is_tombstone());
        current.has_only_tombstones &= version.is_tombstone();
        current.writer.write(version)
    }

    fn begin(&mut self) -> lsm_tree::Result<Current> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let path = self.opener.path(id);
        let bits = BloomConstructionPolicy::BitsPerKey(self.form.filter_bits());
        let writer = Writer::new(path.clone(), id, 0);
        // Even a file whose creation failed may have left its name.
        self.begun.push(path);
        let mut writer =
            writer?.use_bloom_policy(bits).use_data_block_compression(self.form.compression());
        if self.form.has_index_in_parts() {
            writer = writer.use_partitioned_index();
        }
        Ok(Current { writer, bytes: 0, tombstones: 0, has_only_tombstones: true })
    }

    fn end_table(&mut self) -> lsm_tree::Result<()> {
        if let Some(current) = self.current.take()
            && let Some((id, checksum)) = current.writer.finish()?
        {
            self.finished.push(Named { id, checksum: checksum.into_u128() });
        }
        Ok(())
    }

    /// Ends the table, with the tombstones that were held back. What follows is written in this form;
    /// returns how many tables there are so far.
    pub fn cut(&mut self, form: Form) -> lsm_tree::Result<usize> {
        self.write_held_back()?;
        self.end_table()?;
        self.form = form;
        Ok(self.finished.len())
    }

    /// The tables, which are durable, in the order of their keys. The files go with what is returned.
    pub fn finish(mut self) -> lsm_tree::Result<NewTables> {
        self.cut(self.form)?;
        Ok(NewTables { named: mem::take(&mut self.finished), files: mem::take(&mut self.begun) })
    }
}

impl Drop for TableWriter {
    fn drop(&mut self) {
        remove(&self.begun);
    }
}

/// Durable tables, which are removed on drop unless `keep` is called.
pub(super) struct NewTables {
    pub named: Vec<Named>,
    files: Vec<PathBuf>,
}

impl NewTables {
    pub fn none() -> Self {
        Self { named: Vec::new(), files: Vec::new() }
    }

    /// A manifest names them, or may do so.
    pub fn keep(mut self) {
        self.files.clear();
    }
}

impl Drop for NewTables {
    fn drop(&mut self) {
        remove(&self.files);
    }
}

fn remove(files: &[PathBuf]) {
    for path in files {
        match fs::remove_file(path) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(path = %path.display(), %why, "a table that is not used cannot be removed");
            }
            _ => {}
        }
    }
}
