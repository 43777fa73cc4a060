//! Which block of which segment is unwritten, in use or free. No I/O: callers do that.
//!
//! A segment is *active* while new extents may be placed in it, then *sealed*; one of an earlier
//! run is *inherited* until it is known what is live in it. A block of an active segment is first
//! in a gap, then claimed by a writer, then in use, then free; it is never written again under the
//! same segment number once an extent in it has been named. When all blocks of a sealed segment are
//! free it is *empty*: its file is used again under a new number.

use std::collections::{BTreeMap, BTreeSet};

use super::bitmap::Bitmap;

/// More than one, so that short streams can fill the rest of a segment that is too small for a long
/// one.
const ACTIVE_MAX: usize = 4;

/// Consecutive blocks of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) segment: u64,
    pub(super) start: u64,
    pub(super) blocks: u64,
}

impl Run {
    pub(super) fn end(&self) -> u64 {
        self.start + self.blocks
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Active,
    Sealed,
    Inherited,
}

struct Segment {
    phase: Phase,
    blocks: u64,
    /// Start and end of the ranges that no writer has claimed; empty unless active.
    gaps: BTreeMap<u64, u64>,
    free: Bitmap,
    /// The free blocks that have been given back to the file system.
    punched: Bitmap,
    /// Holes are being punched into the file, so it must not be used again yet.
    being_punched: bool,
    /// Some of its blocks may have been allocated and never written since.
    has_unwritten_blocks: bool,
}

impl Segment {
    fn new(phase: Phase, blocks: u64) -> Self {
        Self {
            phase,
            blocks,
            gaps: BTreeMap::new(),
            free: Bitmap::zeros(blocks),
            punched: Bitmap::zeros(blocks),
            being_punched: false,
            has_unwritten_blocks: true,
        }
    }

    fn is_empty(&self) -> bool {
        self.phase != Phase::Active && self.free.ones() == self.blocks
    }

    /// Blocks that punching would give back. Those of active segments are left alone, and those of
    /// empty ones are about to be written again.
    fn unpunched(&self) -> u64 {
        if self.phase == Phase::Active || self.is_empty() {
            return 0;
        }
        self.free.ones() - self.punched.ones()
    }

    fn gap_blocks(&self) -> u64 {
        self.gaps.iter().map(|(start, end)| end - start).sum()
    }

    fn take_from_gap(&mut self, start: u64, blocks: u64) {
        let end = self.gaps.remove(&start).expect("a gap starts here");
        if start + blocks < end {
            self.gaps.insert(start + blocks, end);
        }
    }

    fn add_gap(&mut self, mut start: u64, mut end: u64) {
        if let Some((before, before_end)) = self.gaps.range(..start).next_back()
            && *before_end == start
        {
            start = *before;
        }
        if let Some(after_end) = self.gaps.remove(&end) {
            end = after_end;
        }
        self.gaps.insert(start, end);
    }
}

#[derive(Default)]
pub(super) struct BlockAllocation {
    segments: BTreeMap<u64, Segment>,
    /// Oldest first.
    active: Vec<u64>,
    empty: BTreeSet<u64>,
    number_max: u64,
    unpunched: u64,
}

impl BlockAllocation {
    pub(super) fn inherit(&mut self, number: u64, blocks: u64) {
        self.number_max = self.number_max.max(number);
        self.segments.insert(number, Segment::new(Phase::Inherited, blocks));
        self.settle(number, 0);
    }

    /// A number that no segment has had.
    pub(super) fn next_number(&mut self) -> u64 {
        self.number_max += 1;
        self.number_max
    }

    /// Lets new extents be placed in a segment.
    pub(super) fn activate(&mut self, number: u64, blocks: u64, has_unwritten_blocks: bool) {
        let mut segment = Segment::new(Phase::Active, blocks);
        segment.has_unwritten_blocks = has_unwritten_blocks;
        segment.gaps.insert(0, blocks);
        self.segments.insert(number, segment);
        self.active.push(number);
        if self.active.len() > ACTIVE_MAX {
            let fullest = self
                .active
                .iter()
                .copied()
                .filter(|other| *other != number)
                .min_by_key(|other| self.segments[other].gap_blocks());
            if let Some(fullest) = fullest {
                self.seal(fullest);
            }
        }
    }

    /// Seals all segments, so that what is free in them can be given back.
    pub(super) fn seal_all(&mut self) {
        for number in std::mem::take(&mut self.active) {
            self.seal(number);
        }
    }

    /// What is left of its gaps is free from now on.
    fn seal(&mut self, number: u64) {
        self.active.retain(|active| *active != number);
        self.change(number, |segment| {
            segment.phase = Phase::Sealed;
            // A few of them cost less than writing zeros everywhere.
            segment.has_unwritten_blocks = segment.gap_blocks() > segment.blocks / 16;
            for (start, end) in std::mem::take(&mut segment.gaps) {
                segment.free.set(start, end);
            }
        });
    }

    /// Claims `wanted` blocks in a row, or the most there are if that is at least `least`.
    pub(super) fn claim(&mut self, wanted: u64, least: u64) -> Option<Run> {
        let mut best: Option<Run> = None;
        'search: for number in &self.active {
            for (start, end) in &self.segments[number].gaps {
                let run =
                    Run { segment: *number, start: *start, blocks: (end - start).min(wanted) };
                if best.is_none_or(|best| best.blocks < run.blocks) {
                    best = Some(run);
                }
                if run.blocks == wanted {
                    break 'search;
                }
            }
        }
        let run = best.filter(|run| run.blocks >= least)?;
        self.take(run);
        Some(run)
    }

    /// Claims the blocks that follow `run`, at most `more`, and returns how many those are.
    pub(super) fn extend(&mut self, run: Run, more: u64) -> u64 {
        let Some(end) = self.segments.get(&run.segment).and_then(|it| it.gaps.get(&run.end()))
        else {
            return 0;
        };
        let blocks = (end - run.end()).min(more);
        self.take(Run { start: run.end(), blocks, ..run });
        blocks
    }

    /// Claims blocks after `run`, to be given back later: never all that are left, which would seal
    /// the segment.
    pub(super) fn borrow_behind(&mut self, run: Run, wanted: u64) -> u64 {
        let gap = self.segments.get(&run.segment).and_then(|it| it.gaps.get(&run.end()));
        let left = gap.map_or(0, |end| end - run.end());
        self.extend(run, wanted.min(left.saturating_sub(1)))
    }

    fn take(&mut self, run: Run) {
        let segment = self.segments.get_mut(&run.segment).expect("an active segment is known");
        segment.take_from_gap(run.start, run.blocks);
        if segment.gaps.is_empty() {
            self.seal(run.segment);
        }
    }

    /// Takes back blocks that no extent was ever named in.
    pub(super) fn give_back(&mut self, run: Run) {
        if run.blocks == 0 {
            return;
        }
        self.change(run.segment, |segment| match segment.phase {
            Phase::Active => segment.add_gap(run.start, run.end()),
            Phase::Sealed | Phase::Inherited => {
                segment.free.set(run.start, run.end());
            }
        });
    }

    /// Returns how many blocks were in use until now; none in a segment that is gone.
    pub(super) fn free(&mut self, run: Run) -> u64 {
        let mut freed = 0;
        self.change(run.segment, |segment| {
            let end = run.end().min(segment.blocks);
            freed = segment.free.set(run.start.min(end), end);
        });
        freed
    }

    fn change(&mut self, number: u64, change: impl FnOnce(&mut Segment)) {
        let Some(segment) = self.segments.get_mut(&number) else { return };
        let unpunched_before = segment.unpunched();
        change(segment);
        self.settle(number, unpunched_before);
    }

    fn settle(&mut self, number: u64, unpunched_before: u64) {
        let segment = &self.segments[&number];
        self.unpunched = self.unpunched - unpunched_before + segment.unpunched();
        if segment.is_empty() && !segment.being_punched {
            self.empty.insert(number);
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.segments.len() as u64
    }

    pub(super) fn inherited(&self) -> Vec<u64> {
        let inherited = self.segments.iter().filter(|(_, it)| it.phase == Phase::Inherited);
        inherited.map(|(number, _)| *number).collect()
    }

    /// Ends the inheritance of a segment: returns the runs in use that touch no block of `live`
    /// (start and length in blocks).
    pub(super) fn settle_inheritance(&mut self, number: u64, live: &[(u64, u64)]) -> Vec<Run> {
        let Some(segment) = self.segments.get_mut(&number) else { return Vec::new() };
        if segment.phase != Phase::Inherited {
            return Vec::new();
        }
        segment.phase = Phase::Sealed;
        let mut kept = Bitmap::zeros(segment.blocks);
        for (start, blocks) in live {
            let end = start.saturating_add(*blocks).min(segment.blocks);
            kept.set((*start).min(end), end);
        }
        let garbage = kept.runs(|block| !kept.get(block) && !segment.free.get(block));
        garbage
            .into_iter()
            .map(|(start, end)| Run { segment: number, start, blocks: end - start })
            .collect()
    }

    /// Takes an empty segment out, for its file to be used again under another number. Also returns
    /// whether it has unwritten blocks.
    pub(super) fn take_empty(&mut self) -> Option<(u64, bool)> {
        let number = self.empty.pop_last()?;
        let segment = self.segments.remove(&number)?;
        Some((number, segment.has_unwritten_blocks))
    }

    /// Whether some blocks of a segment may have been allocated and never written since.
    pub(super) fn has_unwritten_blocks(&self, number: u64) -> bool {
        self.segments.get(&number).is_some_and(|segment| segment.has_unwritten_blocks)
    }

    pub(super) fn is_active(&self, number: u64) -> bool {
        self.active.contains(&number)
    }

    /// Whether a claim of this many blocks would find them.
    pub(super) fn has_gap(&self, blocks: u64) -> bool {
        let mut gaps = self.active.iter().flat_map(|number| &self.segments[number].gaps);
        gaps.any(|(start, end)| end - start >= blocks)
    }

    /// Whether there is something to delete or to punch.
    pub(super) fn has_chores(&self, kept: usize, slack: u64) -> bool {
        let can_shrink = || kept == 0 && self.kept_at_length().is_some();
        self.empty.len() > kept.max(1) || self.unpunched > slack || can_shrink()
    }

    /// The empty segment that stays for its number, if it still takes up space.
    fn kept_at_length(&self) -> Option<u64> {
        let number = self.empty.last()?;
        (self.segments[number].blocks > 0).then_some(*number)
    }

    /// Takes out that empty segment; its file is to be truncated to 0 bytes.
    /// [`BlockAllocation::put_back_empty`] must follow.
    pub(super) fn take_to_shrink(&mut self) -> Option<u64> {
        let number = self.kept_at_length()?;
        self.empty.remove(&number);
        self.segments.remove(&number);
        Some(number)
    }

    /// Puts back what [`BlockAllocation::take_empty`] gave, because its file could not be used, or what
    /// [`BlockAllocation::take_to_shrink`] gave. Its length no longer matters.
    pub(super) fn put_back_empty(&mut self, number: u64) {
        self.segments.insert(number, Segment::new(Phase::Sealed, 0));
        self.empty.insert(number);
    }

    /// Takes out an empty segment beyond the `kept` that stay for reuse; its file is to be deleted.
    /// At least one stays, and it is the youngest: so the highest number in the folder never
    /// disappears, and after a restart no number is given twice.
    pub(super) fn take_surplus(&mut self, kept: usize) -> Option<u64> {
        if self.empty.len() <= kept.max(1) {
            return None;
        }
        let number = self.empty.pop_first()?;
        self.segments.remove(&number);
        Some(number)
    }

    /// If more than `slack` free blocks still take up space on disk: those of the segment that has
    /// most of them. [`BlockAllocation::has_punched`] must follow.
    pub(super) fn next_to_punch(&mut self, slack: u64) -> Option<(u64, Vec<Run>)> {
        if self.unpunched <= slack {
            return None;
        }
        let (number, segment) =
            self.segments.iter_mut().max_by_key(|(_, segment)| segment.unpunched())?;
        segment.being_punched = true;
        let runs = segment.free.runs(|bit| segment.free.get(bit) && !segment.punched.get(bit));
        let run = |(start, end)| Run { segment: *number, start, blocks: end - start };
        Some((*number, runs.into_iter().map(run).collect()))
    }

    /// The holes are punched, or cannot be: either way not tried again.
    pub(super) fn has_punched(&mut self, number: u64, runs: &[Run]) {
        self.change(number, |segment| {
            segment.being_punched = false;
            segment.has_unwritten_blocks = true;
            for run in runs {
                segment.punched.set(run.start, run.end());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(segment: u64, start: u64, blocks: u64) -> Run {
        Run { segment, start, blocks }
    }

    fn with_active(count: u64, blocks: u64) -> BlockAllocation {
        let mut space = BlockAllocation::default();
        for _ in 0..count {
            let number = space.next_number();
            space.activate(number, blocks, true);
        }
        space
    }

    #[test]
    fn claims_follow_each_other_without_holes() {
        let mut space = with_active(1, 10);
        assert_eq!(space.claim(3, 3), Some(run(1, 0, 3)));
        assert_eq!(space.claim(4, 4), Some(run(1, 3, 4)));
        assert_eq!(space.claim(4, 4), None);
        assert_eq!(space.claim(4, 2), Some(run(1, 7, 3)));
        assert_eq!(space.claim(1, 1), None, "the segment is full");
    }

    #[test]
    fn what_is_given_back_is_claimed_again_and_joins_its_neighbours() {
        let mut space = with_active(1, 10);
        let (first, second) = (space.claim(3, 3).unwrap(), space.claim(3, 3).unwrap());
        space.give_back(first);
        space.give_back(second);
        assert_eq!(space.claim(10, 10), Some(run(1, 0, 10)));
    }

    #[test]
    fn a_claim_grows_only_into_the_gap_behind_it() {
        let mut space = with_active(1, 10);
        let first = space.claim(2, 2).unwrap();
        assert_eq!(space.extend(first, 3), 3);
        let grown = run(1, 0, 5);
        let _second = space.claim(1, 1).unwrap();
        assert_eq!(space.extend(grown, 3), 0);
        assert_eq!(space.extend(run(1, 5, 1), 100), 4);
    }

    #[test]
    fn borrowing_all_that_is_left_does_not_seal_a_segment() {
        let mut space = with_active(1, 10);
        let first = space.claim(2, 2).unwrap();
        assert_eq!(space.borrow_behind(first, 100), 7);
        assert_eq!(space.borrow_behind(run(1, 0, 9), 100), 0);
        space.give_back(run(1, 2, 7));
        assert_eq!(space.claim(8, 8), Some(run(1, 2, 8)));
    }

    #[test]
    fn what_is_free_can_be_given_back_once_all_are_sealed() {
        let mut space = with_active(2, 10);
        let first = space.claim(4, 4).unwrap();
        let _kept = space.claim(2, 2).unwrap();
        space.free(first);
        assert!(space.next_to_punch(0).is_none(), "both are active");
        space.seal_all();
        assert!(!space.has_gap(1));
        let (segment, runs) = space.next_to_punch(0).expect("something to punch");
        assert_eq!((segment, runs), (1, vec![run(1, 0, 4), run(1, 6, 4)]));
        assert_eq!(space.take_empty().map(|(number, _)| number), Some(2));
    }

    #[test]
    fn a_segment_is_empty_only_when_sealed_and_all_free() {
        let mut space = with_active(1, 10);
        let first = space.claim(4, 4).unwrap();
        assert_eq!(space.free(first), 4);
        assert_eq!(space.take_empty(), None, "it is active");
        let rest = space.claim(6, 6).unwrap();
        assert_eq!(space.take_empty(), None, "the rest is claimed");
        assert_eq!(space.free(rest), 6);
        assert_eq!(space.take_empty(), Some((1, false)), "all of it was written");
        assert_eq!(space.free(rest), 0, "the segment is gone");
    }

    #[test]
    fn freeing_twice_counts_once() {
        let mut space = with_active(1, 10);
        let first = space.claim(4, 4).unwrap();
        assert_eq!(space.free(first), 4);
        assert_eq!(space.free(first), 0);
    }

    #[test]
    fn the_fullest_segment_is_sealed_when_there_are_too_many() {
        let mut space = with_active(ACTIVE_MAX as u64, 10);
        let tail_of_second = Run { segment: 2, start: 0, blocks: 9 };
        space.take(tail_of_second);
        let number = space.next_number();
        space.activate(number, 10, true);
        assert_eq!(space.active.len(), ACTIVE_MAX);
        assert!(!space.active.contains(&2));
        assert_eq!(space.free(tail_of_second), 9);
        assert_eq!(space.take_empty(), Some((2, true)), "its gap was freed when it was sealed");
    }

    #[test]
    fn garbage_of_an_inherited_segment_is_neither_live_nor_already_free() {
        let mut space = BlockAllocation::default();
        space.inherit(7, 10);
        assert_eq!(space.next_number(), 8);
        assert_eq!(space.free(run(7, 2, 2)), 2);
        let garbage = space.settle_inheritance(7, &[(0, 1), (2, 2), (5, 3)]);
        assert_eq!(garbage, [run(7, 1, 1), run(7, 4, 1), run(7, 8, 2)]);
        assert_eq!(space.inherited(), [] as [u64; 0]);
        assert_eq!(space.settle_inheritance(7, &[]), [], "only once");
    }

    #[test]
    fn surplus_never_takes_the_youngest() {
        let mut space = BlockAllocation::default();
        for number in [3, 5, 9] {
            space.inherit(number, 4);
            space.free(run(number, 0, 4));
        }
        assert_eq!(space.take_surplus(0), Some(3));
        assert_eq!(space.take_surplus(0), Some(5));
        assert_eq!(space.take_surplus(0), None);
    }

    #[test]
    fn the_youngest_is_shrunk_once_when_nothing_is_to_be_kept() {
        let mut space = BlockAllocation::default();
        space.inherit(3, 4);
        space.free(run(3, 0, 4));
        assert!(!space.has_chores(1, 0));
        assert!(space.has_chores(0, 0));
        assert_eq!(space.take_to_shrink(), Some(3));
        space.put_back_empty(3);
        assert!(!space.has_chores(0, 0));
        assert_eq!(space.take_to_shrink(), None);
        assert_eq!(space.take_empty(), Some((3, true)));
    }

    #[test]
    fn a_segment_is_not_reused_while_holes_are_punched_into_it() {
        let mut space = BlockAllocation::default();
        space.inherit(1, 10);
        space.free(run(1, 0, 6));
        assert!(space.next_to_punch(6).is_none());
        let (number, runs) = space.next_to_punch(5).unwrap();
        assert_eq!((number, runs.as_slice()), (1, [run(1, 0, 6)].as_slice()));
        space.free(run(1, 6, 4));
        assert_eq!(space.take_empty(), None);
        space.has_punched(1, &runs);
        assert_eq!(space.take_empty(), Some((1, true)));
        assert_eq!(space.unpunched, 0);
    }
}
