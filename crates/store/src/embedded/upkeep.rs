//! The two threads behind the committing one: one flushes memtables so that the log can be used
//! again, one merges tables so that reads stay cheap.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lsm_tree::compaction::CompactionStrategy;
use lsm_tree::{AbstractTree, AnyTree};

use super::commit::PoisonOnPanic;
use super::log::{Fill, SealedSegment, Spare};
use super::manifest;
use super::room::{Failed, RETRY, Room, check_available};
use super::shared::Shared;
use super::trees::Tree;
use crate::engine::Fault;

/// Segments kept ready: one to go on in, one for when the next is needed before this work is done.
pub(super) const SPARES_MAX: usize = 2;
/// What a flush writes beside its rows: filters, indexes and the manifest.
const FLUSH_BYTES_MORE: u64 = 1024 * 1024;
const TABLES_FOLDER: &str = "tables";

pub(super) struct Flusher {
    pub shared: Arc<Shared>,
    pub segment_bytes: u64,
    pub next_file: Arc<AtomicU64>,
}

enum FlusherWork {
    MakeSpare,
    Flush { segments: usize },
    RestoreReserve,
    Stop,
}

impl Flusher {
    pub fn run(self) {
        let guard = PoisonOnPanic(Arc::clone(&self.shared));
        loop {
            let done = match self.next_work() {
                FlusherWork::Stop => break,
                FlusherWork::MakeSpare => self.make_spare(),
                FlusherWork::Flush { segments } => self.flush(segments),
                FlusherWork::RestoreReserve => {
                    // Somebody else may have taken the room just now: then it is tried again.
                    if let Err(why) = self.shared.restore_reserve() {
                        tracing::warn!(%why, "the reserve cannot be restored yet");
                    }
                    continue;
                }
            };
            match done {
                Ok(()) => self.shared.note_progress(),
                Err(Failed::NoRoom(fault)) => self.shared.note_no_room(fault),
                Err(Failed::NoDescriptors(fault)) => self.shared.note_no_descriptors(fault),
                Err(Failed::Broken(fault)) => {
                    self.shared.poison(fault);
                    break;
                }
            }
        }
        drop(guard);
    }

    fn next_work(&self) -> FlusherWork {
        let mut upkeep = self.shared.upkeep.lock();
        loop {
            if upkeep.stopping || self.shared.poison.get().is_some() {
                return FlusherWork::Stop;
            }
            let standstill = upkeep.room.standstill().is_some();
            if standstill {
                self.shared.upkeep_changed.wait_for(&mut upkeep, RETRY);
            }
            // A segment to go on in comes first: without one, commits wait. Where there is no room
            // for one, flushing gives one back.
            let can_flush = !upkeep.sealed.is_empty();
            if upkeep.spares.is_empty() && !(standstill && can_flush) {
                return FlusherWork::MakeSpare;
            }
            if can_flush {
                return FlusherWork::Flush { segments: upkeep.sealed.len() };
            }
            match upkeep.room {
                // Nobody waits for what was not done; unless for merging, which tells itself.
                Room::NoDescriptors(_) if !self.shared.merges_are_awaited() => {
                    upkeep.descriptors_are_back();
                }
                Room::Enough | Room::NoDescriptors(_) => {
                    self.shared.upkeep_changed.wait(&mut upkeep);
                }
                Room::Reserve(_) | Room::None(_) => {
                    self.shared.upkeep_changed.wait_for(&mut upkeep, RETRY);
                    if !upkeep.stopping {
                        return FlusherWork::RestoreReserve;
                    }
                }
            }
        }
    }

    fn make_spare(&self) -> Result<(), Failed> {
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        let spare = Spare::create(&self.shared.log_folder, number, self.segment_bytes, Fill::Zeros)
            .map_err(|why| Failed::because("making a segment of the log failed", why))?;
        self.shared.upkeep.lock().spares.push_back(spare);
        self.shared.upkeep_changed.notify_all();
        Ok(())
    }

    /// Flushes the memtables of the oldest `segments` segments, and then lets those be used again.
    fn flush(&self, segments: usize) -> Result<(), Failed> {
        for tree in self.shared.trees.all() {
            tree.turns.flush(|| {
                let bytes = segments as u64 * self.segment_bytes + FLUSH_BYTES_MORE;
                check_available(tree.folder.path(), bytes)?;
                let begun = || true;
                change_tables(&self.shared, tree, "flushing rows failed", begun, |rows| {
                    let lock = rows.get_flush_lock();
                    rows.flush(&lock, self.shared.oldest_visible()).map(|_| ())
                })
            })?;
        }
        let newest = {
            let mut upkeep = self.shared.upkeep.lock();
            upkeep.compaction_is_due = true;
            upkeep.sealed[..segments].last().map(|segment| segment.checkpoint)
        };
        // The tables are durable by now. The checkpoint is durable before any segment it releases
        // is written again: whatever a crash leaves, the log from the checkpoint on is whole. Where
        // there is no room for it, the old one is still there, and the segments are still sealed.
        if let Some(checkpoint) = newest {
            checkpoint
                .store(&self.shared.log_folder)
                .map_err(|why| Failed::because("storing the checkpoint failed", why))?;
        }
        let released: Vec<SealedSegment> =
            self.shared.upkeep.lock().sealed.drain(..segments).collect();
        let reused: Vec<_> = released.into_iter().map(|it| self.reuse(it.spare)).collect();
        self.shared.upkeep_changed.notify_all();
        let reused: io::Result<()> = reused.into_iter().collect();
        reused.map_err(|why| Failed::because("releasing a segment of the log failed", why))
    }

    fn reuse(&self, spare: Spare) -> io::Result<()> {
        if spare.capacity == self.segment_bytes {
            let mut upkeep = self.shared.upkeep.lock();
            if upkeep.spares.len() < SPARES_MAX {
                upkeep.spares.push_back(spare);
                return Ok(());
            }
        }
        fs::remove_file(&spare.path)?;
        self.shared.log_folder.sync()
    }
}

pub(super) struct Compactor {
    pub shared: Arc<Shared>,
    pub strategy: Arc<dyn CompactionStrategy + Send + Sync>,
}

impl Compactor {
    pub fn run(self) {
        let guard = PoisonOnPanic(Arc::clone(&self.shared));
        while self.wait_until_due() {
            match self.shared.trees.all().try_for_each(|tree| self.compact_once(tree)) {
                Ok(()) => self.shared.upkeep.lock().descriptors_are_back(),
                Err(Failed::NoDescriptors(fault)) => {
                    if self.shared.merges_are_awaited() {
                        self.shared.note_no_descriptors(fault);
                    }
                    self.wait_for_room();
                }
                Err(Failed::NoRoom(fault)) => {
                    // Merging can wait, and there may be room enough for all the rest. Only when
                    // commits wait for it, it is worth the reserve.
                    if self.shared.merges_are_awaited() {
                        self.shared.note_no_room(fault);
                    }
                    self.wait_for_room();
                }
                Err(Failed::Broken(fault)) => {
                    self.shared.poison(fault);
                    break;
                }
            }
        }
        drop(guard);
    }

    /// Merging is due again after a while.
    fn wait_for_room(&self) {
        let mut upkeep = self.shared.upkeep.lock();
        upkeep.compaction_is_due = true;
        if !upkeep.stopping {
            self.shared.upkeep_changed.wait_for(&mut upkeep, RETRY);
        }
    }

    fn wait_until_due(&self) -> bool {
        let mut upkeep = self.shared.upkeep.lock();
        loop {
            if upkeep.stopping || self.shared.poison.get().is_some() {
                return false;
            }
            if upkeep.compaction_is_due {
                upkeep.compaction_is_due = false;
                return true;
            }
            self.shared.upkeep_changed.wait(&mut upkeep);
        }
    }

    /// One step of merging. As long as a step changes something, another is due.
    fn compact_once(&self, tree: &Tree) -> Result<(), Failed> {
        let before = tree.rows.current_version().id();
        tree.turns.merge(|| {
            check_available(tree.folder.path(), tree.merge_bytes())?;
            let begun = || tree.turns.merge_has_turn();
            change_tables(&self.shared, tree, "merging tables failed", begun, |rows| {
                rows.compact(Arc::clone(&self.strategy) as Arc<_>, self.shared.oldest_visible())
            })
        })?;
        if tree.rows.current_version().id() != before {
            self.shared.upkeep.lock().compaction_is_due = true;
            self.shared.upkeep_changed.notify_all();
        }
        Ok(())
    }
}

/// Changes the tables. If there was no room for it, and the change had not come to the manifest, then
/// nothing has happened: tables that nobody knows of are removed, and it can be tried again. If there
/// was no descriptor, that holds even if it had come to the manifest, since no sync has failed.
/// `may_have_begun` says whether the manifest can have been begun at all.
fn change_tables(
    shared: &Shared,
    tree: &Tree,
    what: &'static str,
    may_have_begun: impl Fn() -> bool,
    change: impl FnOnce(&AnyTree) -> lsm_tree::Result<()>,
) -> Result<(), Failed> {
    let alone = tree.turns.begun_alone();
    let before = tree.learn_manifest().and_then(|()| table_files(tree));
    let before = before.map_err(|why| Failed::because(what, why))?;
    let failed = match change(&tree.rows) {
        Ok(()) => {
            tree.look_at_tables();
            // If it cannot be read now, it is before the next change.
            let _ = tree.learn_manifest();
            return Ok(());
        }
        Err(lsm_tree::Error::Io(why)) => Failed::because(what, why),
        Err(why) => Failed::Broken(Fault::because(what, why)),
    };
    match &failed {
        Failed::Broken(_) => return Err(failed),
        Failed::NoDescriptors(fault) if may_have_begun() => {
            take_manifest_back(shared, tree, fault)?
        }
        Failed::NoRoom(fault) if may_have_begun() && next_manifest_exists(tree) => {
            return Err(Failed::Broken(fault.clone()));
        }
        Failed::NoRoom(_) | Failed::NoDescriptors(_) => {}
    }
    // Of two changes at once nobody can tell whose a file is; then it stays until the next opening.
    if alone.is_some() && alone == tree.turns.begun_alone() {
        // What cannot be listed stays as well.
        let after = table_files(tree).unwrap_or_default();
        for name in after.difference(&before) {
            if let Err(why) = fs::remove_file(tree.folder.path().join(TABLES_FOLDER).join(name)) {
                tracing::warn!(?name, %why, "a table that was not finished cannot be removed");
            }
        }
    }
    Err(failed)
}

fn next_manifest_exists(tree: &Tree) -> bool {
    let next = manifest::file_name(tree.rows.current_version().id() + 1);
    tree.folder.path().join(next).exists()
}

/// Until there are descriptors for it; meanwhile no other change is begun.
fn take_manifest_back(shared: &Shared, tree: &Tree, lack: &Fault) -> Result<(), Failed> {
    loop {
        let taken_back = tree.take_manifest_back();
        match taken_back.map_err(|why| Failed::because("taking a manifest back failed", why)) {
            Err(Failed::NoDescriptors(_) | Failed::NoRoom(_)) => {
                shared.note_no_descriptors(lack.clone());
                if !shared.waits_a_while() {
                    // Whichever manifest counts at the next opening, it is whole and so are its
                    // tables.
                    return Err(Failed::Broken(lack.clone()));
                }
            }
            other => return other,
        }
    }
}

/// An error is not an empty list: everything that is not in it may be removed.
fn table_files(tree: &Tree) -> io::Result<BTreeSet<OsString>> {
    let entries = fs::read_dir(tree.folder.path().join(TABLES_FOLDER))?;
    entries.map(|entry| Ok(entry?.file_name())).collect()
}
