//! Whose turn it is to write the tree's manifest.
//!
//! The tree writes the next manifest under the number after the newest that it knows of. When that
//! fails, the number is not used up: another thread's change would write the same file once more,
//! though its sync has failed or `current` names it already, and would then remove tables on the
//! strength of it. So manifests are written one at a time, and none after a change that failed.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use holdfast_sync::{Condvar, Mutex};
use lsm_tree::compaction::filter::Context;
use lsm_tree::compaction::{CompactionFilter, Factory, ItemAccessor, Verdict};

use super::room::Failed;
use crate::engine::Fault;

#[derive(Default)]
pub(super) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    holder: Option<Change>,
    failed: Option<Fault>,
    begun: u64,
    under_way: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Flush,
    Merge,
}

impl Turns {
    /// Flushes, if no change has failed so far.
    pub fn flush(&self, flush: impl FnOnce() -> Result<(), Failed>) -> Result<(), Failed> {
        let turn = self.begin(Change::Flush).map_err(Failed::Broken)?;
        turn.end(flush())
    }

    /// Merges, if no change has failed so far. The tree has to have `between_turns` as its filter:
    /// while tables are read and written, which is long, others have their turns. Should one of
    /// those fail, the merge is abandoned before it writes the manifest.
    pub fn merge(&self, merge: impl FnOnce() -> Result<(), Failed>) -> Result<(), Failed> {
        let turn = self.begin(Change::Merge).map_err(Failed::Broken)?;
        let outcome = catch_unwind(AssertUnwindSafe(merge)).unwrap_or_else(|panic| match panic
            .downcast::<Abandoned>(
        ) {
            Ok(abandoned) => Err(Failed::Broken(abandoned.0)),
            Err(panic) => resume_unwind(panic),
        });
        turn.end(outcome)
    }

    /// Asked by a merge that failed: whether it had come to the manifest, or not even given its turn
    /// away yet.
    pub fn merge_has_turn(&self) -> bool {
        self.state.lock().holder == Some(Change::Merge)
    }

    /// How many changes were begun, if the one that asks is the only one under way: when it gets the
    /// same answer later, it was alone all the time.
    pub fn begun_alone(&self) -> Option<u64> {
        let state = self.state.lock();
        (state.under_way == 1).then_some(state.begun)
    }

    pub fn between_turns(self: &Arc<Self>) -> Arc<dyn Factory> {
        Arc::new(BetweenTurns(AssertUnwindSafe(Arc::clone(self))))
    }

    fn begin(&self, change: Change) -> Result<Turn<'_>, Fault> {
        self.hold(change)?;
        let mut state = self.state.lock();
        state.begun += 1;
        state.under_way += 1;
        Ok(Turn { turns: self, change, ended: false })
    }

    fn hold(&self, change: Change) -> Result<(), Fault> {
        let mut state = self.state.lock();
        loop {
            if let Some(fault) = &state.failed {
                return Err(fault.clone());
            }
            if state.holder.is_none() {
                state.holder = Some(change);
                return Ok(());
            }
            self.changed.wait(&mut state);
        }
    }

    fn end(&self, change: Change, failed: Option<Fault>) {
        self.state.lock().under_way -= 1;
        self.let_go(change, failed);
    }

    fn let_go(&self, change: Change, failed: Option<Fault>) {
        let mut state = self.state.lock();
        if state.holder == Some(change) {
            state.holder = None;
        }
        if state.failed.is_none() {
            state.failed = failed;
        }
        self.changed.notify_all();
    }
}

struct Turn<'a> {
    turns: &'a Turns,
    change: Change,
    ended: bool,
}

impl Turn<'_> {
    /// A failure is known to the others before they can have their turn.
    fn end(mut self, outcome: Result<(), Failed>) -> Result<(), Failed> {
        self.ended = true;
        let broken = match &outcome {
            Err(Failed::Broken(fault)) => Some(fault.clone()),
            Ok(()) | Err(Failed::NoRoom(_) | Failed::NoDescriptors(_)) => None,
        };
        self.turns.end(self.change, broken);
        outcome
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let fault = Fault::new("a change of the tables has panicked");
            self.turns.end(self.change, Some(fault));
        }
    }
}

/// Unwinds a merge: its filter is asked at the right moment, but has no other way to refuse.
struct Abandoned(Fault);

struct BetweenTurns(AssertUnwindSafe<Arc<Turns>>);

impl Factory for BetweenTurns {
    fn name(&self) -> &str {
        "between turns"
    }

    /// The tables to merge are chosen. The tree holds locks here, so nothing may wait.
    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        self.0.let_go(Change::Merge, None);
        Box::new(Merging(Arc::clone(&self.0)))
    }
}

struct Merging(Arc<Turns>);

impl CompactionFilter for Merging {
    fn filter_item(&mut self, _: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        Ok(Verdict::Keep)
    }

    /// Every row is merged. The tree holds no locks here, and takes those for the manifest next.
    fn finish(self: Box<Self>) {
        if let Err(fault) = self.0.hold(Change::Merge) {
            resume_unwind(Box::new(Abandoned(fault)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use lsm_tree::compaction::Leveled;
    use lsm_tree::{AbstractTree, AnyTree, SequenceNumberCounter};

    use super::*;

    /// As if a flush came between, at a moment when the merge has just let go.
    struct FlushBetween {
        turns: AssertUnwindSafe<Arc<Turns>>,
        outcome: AssertUnwindSafe<Result<(), Fault>>,
    }

    impl Factory for FlushBetween {
        fn name(&self) -> &str {
            "flush between"
        }

        fn make_filter(&self, context: &Context) -> Box<dyn CompactionFilter> {
            let filter = BetweenTurns(AssertUnwindSafe(Arc::clone(&self.turns)));
            let filter = filter.make_filter(context);
            let flushed = self.turns.flush(|| self.outcome.0.clone().map_err(Failed::Broken));
            assert_eq!(flushed.is_ok(), self.outcome.is_ok());
            filter
        }
    }

    fn tree_with_two_tables(folder: &Path, between: FlushBetween) -> AnyTree {
        let sequences = SequenceNumberCounter::new(1);
        let visible = SequenceNumberCounter::new(1);
        let tree = lsm_tree::Config::new(folder, sequences.clone(), visible)
            .with_compaction_filter_factory(Some(Arc::new(between)))
            .open()
            .unwrap();
        for value in ["first", "second"] {
            tree.insert("key", value, sequences.next());
            tree.flush_active_memtable(0).unwrap();
        }
        tree
    }

    fn merge_with_flush_between(outcome: Result<(), Fault>) -> (Result<(), Failed>, bool) {
        let folder = tempfile::tempdir().unwrap();
        let turns = Arc::new(Turns::default());
        let between = FlushBetween {
            turns: AssertUnwindSafe(Arc::clone(&turns)),
            outcome: AssertUnwindSafe(outcome),
        };
        let tree = tree_with_two_tables(folder.path(), between);
        let next_manifest = folder.path().join(format!("v{}", tree.current_version().id() + 1));
        let strategy = Arc::new(Leveled::default().with_l0_threshold(2));
        let merged = turns.merge(|| {
            let merged = tree.compact(strategy, 0);
            merged.map_err(|why| Failed::Broken(Fault::because("merging failed", why)))
        });
        let value = tree.get("key", u64::MAX >> 1).unwrap().unwrap();
        assert_eq!(&*value, b"second");
        (merged, next_manifest.exists())
    }

    #[test]
    fn merge_goes_on_after_a_flush_between() {
        let (merged, wrote_manifest) = merge_with_flush_between(Ok(()));
        assert!(merged.is_ok(), "{merged:?}");
        assert!(wrote_manifest);
    }

    #[test]
    fn merge_writes_no_manifest_after_a_flush_that_failed_between() {
        let (merged, wrote_manifest) = merge_with_flush_between(Err(Fault::new("no space")));
        assert!(format!("{merged:?}").contains("no space"), "{merged:?}");
        assert!(!wrote_manifest);
    }

    #[test]
    fn nobody_has_a_turn_after_a_failure() {
        let turns = Turns::default();
        assert!(turns.merge(|| Ok(())).is_ok());
        assert!(turns.merge(|| Err(Failed::Broken(Fault::new("no space")))).is_err());
        assert!(turns.flush(|| panic!("must not begin")).is_err());
        assert!(turns.merge(|| panic!("must not begin")).is_err());
    }

    #[test]
    fn others_go_on_after_one_that_found_no_room() {
        let turns = Turns::default();
        assert!(turns.flush(|| Err(Failed::NoRoom(Fault::new("no space")))).is_err());
        assert!(turns.flush(|| Ok(())).is_ok());
    }

    #[test]
    fn panic_counts_as_a_failure() {
        let turns = Turns::default();
        let panicked =
            catch_unwind(AssertUnwindSafe(|| turns.merge(|| resume_unwind(Box::new("a panic")))));
        assert!(panicked.is_err());
        assert!(turns.flush(|| Ok(())).is_err());
    }
}
