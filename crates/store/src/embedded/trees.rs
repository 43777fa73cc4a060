//! The trees that hold the rows: one for most of them and, where a folder was made so, one for those
//! whose keys begin with [`EngineOptions::apart`]. `docs/design/0007-two-trees.md` says what for.
//!
//! Each has its own files and memtables. They share the log, the sequences, and the moments at which
//! memtables are closed, so that what holds of one tree holds of both: a snapshot of one sequence
//! is the same moment in each.

use std::fs;
use std::io;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use holdfast_sync::Mutex;
use lsm_tree::config::{
    BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry, PinningPolicy,
};
use lsm_tree::{
    AbstractTree, AnyTree, Cache, CompressionType, DescriptorTable, InternalValue,
    SequenceNumberCounter, UserValue, ValueType,
};

use super::engine::EngineOptions;
use super::folder::{DataFolder, OpenFolder, sync_folder};
use super::manifest;
use super::turns::Turns;
use super::view::View;
use crate::engine::{Fault, KeyRange, Write, successor_of_prefix};

pub(super) const ROWS_FOLDER: &str = "rows";
pub(super) const APART_FOLDER: &str = "rows-apart";

/// By level, the last for all below. An index that is written whole at the end of its table keeps
/// the last key of every block until then, and a key keeps the block of the merged table that it
/// was read from: as much memory as the new table has bytes. An index in parts does not.
const INDEX_IN_PARTS: [bool; 2] = [false, true];
/// Likewise. What is soon merged again is not worth the time.
const COMPRESSION: [CompressionType; 3] =
    [CompressionType::None, CompressionType::None, CompressionType::Lz4];
/// Likewise, bits of a table's filter for each of its keys. Whoever looks for a row that is not there
/// asks every flushed table that was there when the tree was opened: at 10 bits one in a hundred answers
/// wrongly and is read in vain, at 16 one in two thousand.
const FILTER_BITS: [f32; 2] = [16.0, 10.0];
/// Commits wait while this many runs of tables lie unmerged: reads look into each of them, and the
/// tree's manifest counts them in one byte.
const UNMERGED_RUNS_MAX: usize = 48;
/// A merge writes what it reads, which is not known before. Where so much is left, it has room unless
/// it is an unusually large one; and if it has not, it fails before it changes anything.
const MERGE_BYTES: u64 = 256 * 1024 * 1024;

pub(super) struct Tree {
    pub rows: AnyTree,
    /// What single rows are read from and written to.
    view: ArcSwap<View>,
    /// Whoever replaces the view has this.
    replacing: Mutex<()>,
    /// What the tree numbers its versions from.
    sequences: SequenceNumberCounter,
    /// Whoever changes the tree's files does it in a turn of these.
    pub turns: Arc<Turns>,
    pub folder: OpenFolder,
    /// The number of a manifest, and the content of `current` that names it.
    named: Mutex<(u64, Vec<u8>)>,
}

impl Tree {
    /// The row as a snapshot sees it that sees the batches before this sequence.
    pub fn get(&self, hash: u64, key: &[u8], before: u64) -> lsm_tree::Result<Option<UserValue>> {
        match self.view.load().get(hash, key, before) {
            Some(found) => Ok(found?.map(|row| row.value)),
            None => self.rows.get(key, before),
        }
    }

    pub fn write(&self, hash: u64, write: Write, sequence: u64) {
        let row = match write {
            Write::Put { key, value } => {
                InternalValue::from_components(key, value, sequence, ValueType::Value)
            }
            Write::Delete { key } => InternalValue::new_tombstone(key, sequence),
        };
        self.view.load().put(hash, row);
    }

    fn close_memtable(&self) {
        let _one_at_a_time = self.replacing.lock();
        if self.rows.rotate_memtable().is_some() {
            let active = self.rows.active_memtable();
            self.view.store(Arc::new(self.view.load().with_memtable(active)));
        }
    }

    /// To be called when memtables may have been flushed or tables merged.
    pub fn look_at_tables(&self) {
        let _one_at_a_time = self.replacing.lock();
        let view = self.view.load().with_tables_of(&self.rows, &self.sequences);
        if let Some(view) = view {
            self.view.store(Arc::new(view));
        }
    }

    /// Learns what names the manifest in force. To be called by who has the turn to change it.
    pub fn learn_manifest(&self) -> io::Result<()> {
        let number = self.rows.current_version().id();
        let mut named = self.named.lock();
        if named.0 != number || named.1.is_empty() {
            let content = manifest::naming(self.folder.path(), number)?;
            *named = (number, content.unwrap_or_default());
        }
        Ok(())
    }

    /// Undoes the beginning of a manifest that the tree does not know of. To be called likewise.
    pub fn take_manifest_back(&self) -> io::Result<()> {
        let number = self.rows.current_version().id();
        if !self.folder.path().join(manifest::file_name(number + 1)).try_exists()? {
            return Ok(());
        }
        let named = self.named.lock();
        if named.0 != number || named.1.is_empty() {
            return Err(io::Error::other("nobody knows what named the manifest before"));
        }
        manifest::take_back_next(&self.folder, number, &named.1)
    }

    /// Whether commits wait for tables to be merged.
    pub fn merges_are_awaited(&self) -> bool {
        self.view.load().unmerged_runs() >= UNMERGED_RUNS_MAX
    }

    /// What a merge may take up.
    pub fn merge_bytes(&self) -> u64 {
        self.rows.disk_space().min(MERGE_BYTES)
    }
}

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
    pub fn open(
        folder: &DataFolder,
        options: &EngineOptions,
        sequences: &SequenceNumberCounter,
    ) -> Result<Self, Fault> {
        let common = Common {
            cache: Arc::new(Cache::with_capacity_bytes(options.cache_bytes)),
            open_tables: Arc::new(DescriptorTable::new(options.open_tables_max)),
            sequences,
        };
        let apart_is_there = folder.path().join(APART_FOLDER).exists();
        let is_new = !folder.path().join(ROWS_FOLDER).exists();
        let apart = match options.apart {
            // A folder that was made without it goes on without it.
            Some(prefix) if is_new || apart_is_there => {
                Some(Apart::new(common.open(folder.subfolder(APART_FOLDER)?)?, prefix))
            }
            None if apart_is_there => {
                let path = folder.path().join(APART_FOLDER);
                return Err(Fault::new(format!("nobody knows which rows {} has", path.display())));
            }
            Some(_) | None => None,
        };
        Ok(Self { most: common.open(folder.subfolder(ROWS_FOLDER)?)?, apart })
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
    pub fn parts_of(&self, range: &KeyRange) -> Vec<(&AnyTree, KeyRange)> {
        let Some(apart) = &self.apart else {
            return vec![(&self.most.rows, range.clone())];
        };
        let parts = [
            (&self.most, Some(&apart.before)),
            (&apart.tree, Some(&apart.range)),
            (&self.most, apart.behind.as_ref()),
        ];
        let mut found = Vec::with_capacity(parts.len());
        for (tree, part) in parts {
            let part = part.map(|part| range.intersection(part));
            found.extend(part.filter(|part| !part.is_empty()).map(|part| (&tree.rows, part)));
        }
        found
    }

    /// Closes the memtables, to be flushed.
    pub fn close_memtables(&self) {
        self.all().for_each(Tree::close_memtable);
    }

    pub fn approximate_len(&self) -> u64 {
        self.all().map(|tree| tree.rows.approximate_len() as u64).sum()
    }
}

/// What the trees have in common.
struct Common<'a> {
    cache: Arc<Cache>,
    open_tables: Arc<DescriptorTable>,
    sequences: &'a SequenceNumberCounter,
}

impl Common<'_> {
    fn open(&self, folder: PathBuf) -> Result<Tree, Fault> {
        remove_drafts(&folder)
            .map_err(|why| Fault::because(format!("clean {}", folder.display()), why))?;
        manifest::check(&folder)?;
        let turns = Arc::new(Turns::default());
        // The tree raises its own idea of what is visible when its files change. Ours is `Snapshots`.
        let visible = SequenceNumberCounter::new(1);
        let rows = lsm_tree::Config::new(&folder, self.sequences.clone(), visible)
            .use_cache(Arc::clone(&self.cache))
            .index_block_partitioning_policy(PinningPolicy::new(INDEX_IN_PARTS))
            .data_block_compression_policy(CompressionPolicy::new(COMPRESSION))
            .filter_policy(FilterPolicy::new(FILTER_BITS.map(filter_with_bits)))
            .with_compaction_filter_factory(Some(turns.between_turns()))
            .use_descriptor_table(Some(Arc::clone(&self.open_tables)))
            .open()
            .map_err(|why| {
                Fault::because(format!("open the tables in {}", folder.display()), why)
            })?;
        let unopened = |why| Fault::because(format!("open {}", folder.display()), why);
        let opened = OpenFolder::open(&folder).map_err(unopened)?;
        Ok(Tree {
            view: ArcSwap::from_pointee(View::new(&rows)),
            replacing: Mutex::new(()),
            sequences: self.sequences.clone(),
            rows,
            turns,
            folder: opened,
            named: Mutex::default(),
        })
    }
}

fn filter_with_bits(bits: f32) -> FilterPolicyEntry {
    FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(bits))
}

/// The tree replaces its manifest by way of a draft that a crash leaves behind.
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
