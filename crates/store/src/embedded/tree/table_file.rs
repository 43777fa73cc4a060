//! One table of rows on disk: an immutable file of the crate lsm-tree, with what is known of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lsm_tree::{Cache, Checksum, DescriptorTable, Table};

use super::levels::{Summarized, Summary};
use super::manifest::Named;
use super::row_sources::Filters;

pub(in crate::embedded) const TABLES_FOLDER: &str = "tables";

pub(super) struct TableFile {
    pub table: Table,
    summary: Summary,
    /// Of a table that was flushed by this process and not merged since: which keys the flush may
    /// contain.
    filters: Option<Filters>,
}

impl Summarized for TableFile {
    fn summary(&self) -> &Summary {
        &self.summary
    }
}

impl TableFile {
    pub fn named(&self) -> Named {
        Named { id: self.summary.id, checksum: self.table.checksum().into_u128() }
    }

    /// Whether no key of this hash was in the flush that it is from.
    pub fn rules_out(&self, hash: u64) -> bool {
        let filters = self.filters.as_ref();
        filters.is_some_and(|filters| !filters.iter().any(|keys| keys.may_have(hash)))
    }

    /// Removes the file when nobody reads it any more.
    pub fn discard(&self) {
        self.table.is_deleted.store(true, Ordering::Release);
    }
}

/// What opening a table needs besides its name.
#[derive(Clone)]
pub(super) struct TableOpener {
    pub folder: PathBuf,
    pub tree_id: u64,
    pub cache: Arc<Cache>,
    pub open_tables: Arc<DescriptorTable>,
}

/// Whether the filter and the index of a table stay in memory. Every lookup asks the flushed tables; for
/// all tables it would take too much memory.
#[derive(Clone, Copy)]
pub(super) enum Pinned {
    Yes,
    No,
}

impl TableOpener {
    pub fn open(
        &self,
        named: Named,
        pinned: Pinned,
        filters: Option<Filters>,
    ) -> lsm_tree::Result<Arc<TableFile>> {
        let is_pinned = matches!(pinned, Pinned::Yes);
        let table = Table::recover(
            self.path(named.id),
            Checksum::from_raw(named.checksum),
            0,
            self.tree_id,
            Arc::clone(&self.cache),
            Some(Arc::clone(&self.open_tables)),
            is_pinned,
            is_pinned,
        )?;
        let known = &table.metadata;
        let summary = Summary {
            id: known.id,
            first_key: Box::from(&**known.key_range.min()),
            last_key: Box::from(&**known.key_range.max()),
            bytes: known.file_size,
            versions: known.item_count,
            tombstones: known.tombstone_count,
            newest: table.get_highest_seqno(),
        };
        Ok(Arc::new(TableFile { table, summary, filters }))
    }

    pub fn path(&self, id: u64) -> PathBuf {
        self.folder.join(TABLES_FOLDER).join(id.to_string())
    }
}

/// The number of the table that a file is, if it is one.
pub(super) fn table_id(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.parse().ok()
}
