//! A log-structured tree of rows: memtables, tables, and the merging of tables. The files of tables are
//! those of the crate lsm-tree; which tables there are and which are merged is decided here
//! (`docs/design/0008-tree.md` says why).
//!
//! A reader names a sequence and sees what is below it.

mod levels;
pub(super) mod manifest;
mod merge;
mod merge_choice;
mod row_sources;
mod table_file;
mod table_writer;
#[cfg(test)]
mod tests;
mod versions;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use holdfast_sync::Mutex;
use lsm_tree::{Cache, DescriptorTable, InternalValue, UserValue, ValueType};

use self::levels::{Levels, Placed, Run, Summarized};
use self::manifest::{Manifest, Named};
use self::merge_choice::MergeOptions;
use self::row_sources::{FilteredMemtable, RowSources};
use self::table_file::{Pinned, TableFile, TableOpener, table_id};
use self::table_writer::{NewTables, TableLimits};
use super::disk_space::UpkeepError;
use super::engine::EngineOptions;
use super::folder::{OpenFolder, create_folder};
use crate::engine::{Fault, KeyRange, Order, Write};

pub(super) use self::merge_choice::Effort;
pub(super) use self::row_sources::{Scanned, hash_of};
pub(super) use self::table_file::TABLES_FOLDER;

/// Commits wait while this many runs of tables lie unmerged: reads look into each of them.
const UNMERGED_RUNS_MAX: usize = 48;

pub(super) struct Tree {
    sources: ArcSwap<RowSources>,
    /// Held while the sources or the manifest are replaced.
    changing: Mutex<()>,
    opener: TableOpener,
    next_id: Arc<AtomicU64>,
    folder: OpenFolder,
    table_limits: TableLimits,
    merge_options: MergeOptions,
    /// Rows after all others become tables of the bottom level if they have so many bytes.
    appended_bytes_min: u64,
}

/// What trees have in common.
pub(super) struct Common<'a> {
    pub options: &'a EngineOptions,
    pub cache: Arc<Cache>,
    pub open_tables: Arc<DescriptorTable>,
}

impl Tree {
    /// `id` must differ between trees that share a cache.
    pub fn open(common: &Common<'_>, path: &Path, id: u64) -> Result<Self, Fault> {
        let broken = |why: std::io::Error| Fault::because(format!("open {}", path.display()), why);
        let tables = path.join(TABLES_FOLDER);
        create_folder(&tables).map_err(broken)?;
        let manifest = match Manifest::load(path)? {
            Some(manifest) => manifest,
            None if table_files(&tables).map_err(broken)?.is_empty() => {
                store(Manifest::default(), path)?
            }
            None => {
                let what = format!("{} has tables and no list of them", path.display());
                return Err(Fault::new(what));
            }
        };
        remove_unnamed(&tables, &manifest).map_err(broken)?;
        let opener = TableOpener {
            folder: path.to_path_buf(),
            tree_id: id,
            cache: Arc::clone(&common.cache),
            open_tables: Arc::clone(&common.open_tables),
        };
        let levels = open_tables(&opener, &manifest)?;
        let EngineOptions { table_bytes, log_segment_bytes, .. } = *common.options;
        Ok(Self {
            sources: ArcSwap::from_pointee(RowSources::new(levels)),
            changing: Mutex::new(()),
            opener,
            next_id: Arc::new(AtomicU64::new(manifest.next_id)),
            folder: OpenFolder::open(path).map_err(broken)?,
            table_limits: TableLimits::new(table_bytes),
            merge_options: MergeOptions::new(table_bytes),
            appended_bytes_min: log_segment_bytes / 4,
        })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The row as seen by a snapshot of the batches before this sequence.
    pub fn get(&self, hash: u64, key: &[u8], before: u64) -> lsm_tree::Result<Option<UserValue>> {
        Ok(self.sources.load().get(hash, key, before)?.map(|row| row.value))
    }

    /// Some of the rows of a range, likewise; see [`RowSources::scan`].
    pub fn scan(
        &self,
        range: &KeyRange,
        order: Order,
        before: u64,
        limit: usize,
        steps: usize,
    ) -> lsm_tree::Result<Scanned> {
        self.sources.load_full().scan(range, order, before, limit, steps)
    }

    pub fn write(&self, hash: u64, write: Write, sequence: u64) {
        let row = match write {
            Write::Put { key, value } => {
                InternalValue::from_components(key, value, sequence, ValueType::Value)
            }
            Write::Delete { key } => InternalValue::new_tombstone(key, sequence),
        };
        self.sources.load().put(hash, row);
    }

    /// Begins a new memtable.
    pub fn close_memtable(&self) {
        let _one_at_a_time = self.changing.lock();
        let sources = self.sources.load();
        if sources.memtables.first().is_none_or(|active| active.rows.is_empty()) {
            return;
        }
        let mut next = RowSources::clone(&sources);
        next.memtables.insert(0, FilteredMemtable::default());
        self.sources.store(Arc::new(next));
    }

    /// Whether commits wait for tables to be merged.
    pub fn merges_are_awaited(&self) -> bool {
        self.sources.load().levels.flushed.len() >= UNMERGED_RUNS_MAX
    }

    /// Tombstones in the open memtable, where no merge can remove them.
    pub fn tombstones_in_memory(&self) -> u64 {
        let sources = self.sources.load();
        let active = sources.memtables.first();
        active.map_or(0, |it| it.tombstones.load(Ordering::Relaxed))
    }

    pub fn bytes(&self) -> u64 {
        self.sources.load().levels.bytes()
    }

    /// Versions of rows that are kept.
    pub fn approximate_len(&self) -> u64 {
        let sources = self.sources.load();
        let in_tables: u64 = sources.levels.tables().map(|it| it.summary().versions).sum();
        in_tables + sources.memtables.iter().map(|it| it.rows.len() as u64).sum::<u64>()
    }

    /// Replaces the tables, durably and then for readers, and drops memtables that are in them now.
    fn replace_tables(
        &self,
        new: NewTables,
        removed: &[Arc<TableFile>],
        added: Vec<Placed<TableFile>>,
        flushed: &[FilteredMemtable],
    ) -> Result<(), UpkeepError> {
        let _one_at_a_time = self.changing.lock();
        let sources = self.sources.load_full();
        let levels = sources.levels.changed(removed, added);
        match self.manifest_of(&levels).store(&self.folder) {
            Ok(()) => new.keep(),
            Err(UpkeepError::Broken(fault)) => {
                // The manifest may be valid all the same.
                new.keep();
                return Err(UpkeepError::Broken(fault));
            }
            Err(passing @ (UpkeepError::NoRoom(_) | UpkeepError::NoDescriptors(_))) => {
                return Err(passing);
            }
        }
        let is_left = |memtable: &&FilteredMemtable| {
            !flushed.iter().any(|it| Arc::ptr_eq(&it.rows, &memtable.rows))
        };
        let memtables = sources.memtables.iter().filter(is_left).cloned().collect();
        self.sources.store(Arc::new(RowSources { memtables, levels: Arc::new(levels) }));
        Ok(())
    }

    fn manifest_of(&self, levels: &Levels<TableFile>) -> Manifest {
        let named = |run: &Run<TableFile>| run.tables().iter().map(|it| it.named()).collect();
        Manifest {
            next_id: self.next_id.load(Ordering::Relaxed),
            flushed: levels.flushed.iter().map(named).collect(),
            levels: std::array::from_fn(|number| named(levels.level(number))),
        }
    }
}

/// Brings a folder of formats 1 and 2 to the format of this module, if it has anything. It can be called
/// again after a crash in between.
pub(super) fn convert_lsm_tree(path: &Path) -> Result<(), Fault> {
    match manifest::lsm_tree_files::load(path)? {
        Some(manifest) => store(manifest, path).map(|_| ()),
        None => Ok(()),
    }
}

/// For a tree that is not open.
fn store(manifest: Manifest, path: &Path) -> Result<Manifest, Fault> {
    let broken = |why| Fault::because(format!("open {}", path.display()), why);
    let folder = OpenFolder::open(path).map_err(broken)?;
    manifest.store(&folder).map_err(|failed| match failed {
        UpkeepError::NoRoom(fault)
        | UpkeepError::NoDescriptors(fault)
        | UpkeepError::Broken(fault) => fault,
    })?;
    Ok(manifest)
}

/// Removes what is not needed any more once the converted manifest is valid.
pub(super) fn remove_lsm_tree(path: &Path) -> Result<(), Fault> {
    let remove = || manifest::lsm_tree_files::remove(&OpenFolder::open(path)?);
    remove().map_err(|why| Fault::because(format!("clean {}", path.display()), why))
}

fn open_tables(opener: &TableOpener, manifest: &Manifest) -> Result<Levels<TableFile>, Fault> {
    let open = |named: &[Named], pinned| -> Result<Run<TableFile>, Fault> {
        let table = |named: &Named| {
            let path = opener.path(named.id);
            opener.open(*named, pinned, None).map_err(|why| {
                Fault::because(format!("open the table of rows {}", path.display()), why)
            })
        };
        Ok(Run::new(named.iter().map(table).collect::<Result<_, _>>()?))
    };
    let flushed = manifest.flushed.iter().map(|run| open(run, Pinned::Yes));
    let flushed = flushed.collect::<Result<_, _>>()?;
    let mut levels = <[Run<TableFile>; levels::LEVELS]>::default();
    for (run, named) in levels.iter_mut().zip(&manifest.levels) {
        *run = open(named, Pinned::No)?;
    }
    Ok(Levels::new(flushed, levels))
}

fn table_files(tables: &Path) -> std::io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(tables)? {
        let path = entry?.path();
        found.extend(table_id(&path).map(|id| (id, path)));
    }
    Ok(found)
}

/// A crash may leave tables that were unfinished, or already merged.
fn remove_unnamed(tables: &Path, manifest: &Manifest) -> std::io::Result<()> {
    let named: HashSet<u64> = manifest.tables().map(|named| named.id).collect();
    for (id, path) in table_files(tables)? {
        if !named.contains(&id) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
