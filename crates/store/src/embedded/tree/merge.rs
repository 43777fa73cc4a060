//! Flushing memtables to tables, and merging tables.

use std::collections::HashSet;
use std::sync::Arc;

use lsm_tree::merge::Merger;
use lsm_tree::{InternalValue, SeqNo};

use super::Tree;
use super::levels::{BOTTOM, Levels, Place, Placed, Summarized};
use super::merge_choice::{Effort, Merge, choose};
use super::row_sources::{FilteredMemtable, Filters};
use super::table_file::{Pinned, TableFile};
use super::table_writer::{Form, NewTables, TableWriter};
use super::versions::{KeptVersions, Verdict};
use crate::embedded::disk_space::{UpkeepError, check_available};
use crate::engine::Fault;

/// What a flush writes beside its rows: filters, indexes and the manifest.
const FLUSH_BYTES_MORE: u64 = 1024 * 1024;
/// A merge writes no more than it reads. With so much left it has enough space unless it is unusually
/// large; and without, it fails before it changes anything.
const MERGE_BYTES: u64 = 256 * 1024 * 1024;

type Versions<'a> = Box<dyn Iterator<Item = lsm_tree::Result<InternalValue>> + 'a>;

impl Tree {
    /// Writes all closed memtables to tables. `oldest` is the lowest bound that a snapshot has or can get.
    pub fn flush(&self, oldest: SeqNo) -> Result<(), UpkeepError> {
        let sources = self.sources.load_full();
        let closed: Vec<FilteredMemtable> = sources.memtables[1..].to_vec();
        if closed.is_empty() {
            return Ok(());
        }
        let bytes: u64 = closed.iter().map(|memtable| memtable.rows.size()).sum();
        check_available(self.path(), bytes + FLUSH_BYTES_MORE)?;
        let flushed = self.write_flushed(&closed, &sources.levels, oldest);
        let (new, added) = flushed.map_err(|why| failed("flushing rows failed", why))?;
        self.replace_tables(new, &[], added, &closed)
    }

    fn write_flushed(
        &self,
        closed: &[FilteredMemtable],
        levels: &Levels<TableFile>,
        oldest: SeqNo,
    ) -> lsm_tree::Result<(NewTables, Vec<Placed<TableFile>>)> {
        let mut writer = self.table_writer(Form::Flushed);
        let memtables = closed.iter().map(|it| Box::new(it.rows.iter().map(Ok)) as Versions<'_>);
        let mut kept = KeptVersions::new(oldest);
        let mut last_key = levels.last_key();
        let mut appended_from = None;
        for version in Merger::new(memtables.collect()) {
            let version = version?;
            let verdict = kept.judge(&version, |key| !levels.is_covered(key));
            let Verdict::Keep { is_new_key } = verdict else { continue };
            // Rows after all others get their own tables, which no merge needs to touch.
            if appended_from.is_none()
                && last_key.is_none_or(|last| version.key.user_key[..] > *last)
            {
                appended_from = Some(writer.cut(Form::Upper)?);
                last_key = None;
            }
            writer.write(version, is_new_key)?;
        }
        let new = writer.finish()?;
        let filters: Filters = closed.iter().map(|memtable| Arc::clone(&memtable.keys)).collect();
        let mut newest = Vec::new();
        let mut appended = Vec::new();
        for (number, named) in new.named.iter().enumerate() {
            if appended_from.is_some_and(|from| number >= from) {
                let table = self.opener.open(*named, Pinned::No, None)?;
                if table.summary().bytes >= self.appended_bytes_min {
                    appended.push(table);
                    continue;
                }
            }
            newest.push(self.opener.open(*named, Pinned::Yes, Some(Arc::clone(&filters)))?);
        }
        let mut added = vec![(Place::Level(BOTTOM), appended)];
        if !newest.is_empty() {
            added.push((Place::Newest, newest));
        }
        Ok((new, added))
    }

    /// Does one merge if one is due; returns whether it did.
    pub fn merge_once(&self, oldest: SeqNo, effort: Effort) -> Result<bool, UpkeepError> {
        let levels = Arc::clone(&self.sources.load().levels);
        let Some(merge) = choose(&levels, self.merge_options, effort, oldest) else {
            return Ok(false);
        };
        let removed: Vec<Arc<TableFile>> = merge.inputs.iter().flatten().cloned().collect();
        if merge.is_move {
            return self.move_tables(&removed, merge.level).map(|()| true);
        }
        check_available(self.path(), self.merge_bytes_needed())?;
        let merged = self.write_merged(&merge, &levels, oldest);
        let (new, added) = merged.map_err(|why| failed("merging tables failed", why))?;
        self.replace_tables(new, &removed, vec![(Place::Level(merge.level), added)], &[])?;
        removed.iter().for_each(|table| table.discard());
        Ok(true)
    }

    /// What must be free for a merge to be begun.
    pub fn merge_bytes_needed(&self) -> u64 {
        self.bytes().min(MERGE_BYTES)
    }

    /// Moves tables to a level; their files do not change.
    fn move_tables(&self, tables: &[Arc<TableFile>], level: usize) -> Result<(), UpkeepError> {
        let place = vec![(Place::Level(level), tables.to_vec())];
        self.replace_tables(NewTables::none(), tables, place, &[])
    }

    fn write_merged(
        &self,
        merge: &Merge<TableFile>,
        levels: &Levels<TableFile>,
        oldest: SeqNo,
    ) -> lsm_tree::Result<(NewTables, Vec<Arc<TableFile>>)> {
        let form = if merge.level == BOTTOM { Form::Lower } else { Form::Upper };
        let mut writer = self.table_writer(form);
        let mut kept = KeptVersions::new(oldest);
        let mut fences = Fences::new(merge, levels);
        for version in Merger::new(merge.inputs.iter().map(|run| versions_of(run)).collect()) {
            let version = version?;
            let hides_nothing = |key: &[u8]| !levels.is_covered_below(merge.level, key);
            let Verdict::Keep { is_new_key } = kept.judge(&version, hides_nothing) else {
                continue;
            };
            if fences.pass(&version.key.user_key) {
                writer.cut(form)?;
            }
            writer.write(version, is_new_key)?;
        }
        let new = writer.finish()?;
        let open = |named: &_| self.opener.open(*named, Pinned::No, None);
        let tables = new.named.iter().map(open).collect::<lsm_tree::Result<_>>()?;
        Ok((new, tables))
    }

    fn table_writer(&self, form: Form) -> TableWriter {
        TableWriter::new(self.opener.clone(), Arc::clone(&self.next_id), form, self.table_limits)
    }
}

/// The rows of tables that do not overlap, past the cache.
fn versions_of(run: &[Arc<TableFile>]) -> Versions<'_> {
    Box::new(run.iter().flat_map(|table| -> Versions<'_> {
        match table.table.scan() {
            Ok(scanner) => Box::new(scanner),
            Err(why) => Box::new(std::iter::once(Err(why))),
        }
    }))
}

/// Tables of the target level that are not merged: no new table may overlap one.
struct Fences(std::iter::Peekable<std::vec::IntoIter<Box<[u8]>>>);

impl Fences {
    fn new(merge: &Merge<TableFile>, levels: &Levels<TableFile>) -> Self {
        let merged: HashSet<u64> =
            merge.inputs.iter().flatten().map(|table| table.summary().id).collect();
        let others = levels.level(merge.level).tables().iter().map(|table| table.summary());
        let others = others.filter(|summary| !merged.contains(&summary.id));
        let fences: Vec<_> = others.map(|summary| summary.first_key.clone()).collect();
        Self(fences.into_iter().peekable())
    }

    /// Whether a fence lies between the previous key and this one.
    fn pass(&mut self, key: &[u8]) -> bool {
        let mut passed = false;
        while self.0.next_if(|fence| **fence < *key).is_some() {
            passed = true;
        }
        passed
    }
}

fn failed(what: &'static str, why: lsm_tree::Error) -> UpkeepError {
    if let lsm_tree::Error::Io(why) = why {
        UpkeepError::because(what, why)
    } else {
        UpkeepError::Broken(Fault::because(what, why))
    }
}
