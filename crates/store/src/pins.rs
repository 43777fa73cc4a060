//! Delays the reclaim of freed ranges that may still be read, for every implementation of extents.
//! Knows neither files nor buffers: ranges go in, and come out when no pin holds them back.

use std::collections::{BTreeMap, VecDeque};

use crate::extents::ExtentId;

/// A freed range of a segment, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FreedRange {
    pub(crate) id: ExtentId,
    pub(crate) length: u64,
}

/// A reader pins everything, reads the row that names its extents, pins those, and lets go of
/// everything. A range freed at any time after the first step must wait for both: first in
/// `behind_all`, until every older pin of everything is gone, then in `waiting` of a pinned extent
/// inside it.
#[derive(Default)]
pub(crate) struct Pins {
    /// Advances with a free that has to wait, so that later pins of everything do not delay it too.
    epoch: u64,
    /// How many pins of everything are held, by the epoch they were taken in.
    all: BTreeMap<u64, usize>,
    /// Oldest first: each range waits for the pins of everything taken in its epoch or before.
    behind_all: VecDeque<(u64, FreedRange)>,
    extents: BTreeMap<ExtentId, Pinned>,
}

#[derive(Default)]
struct Pinned {
    count: usize,
    waiting: Vec<FreedRange>,
}

impl Pins {
    pub(crate) fn pin_all(&mut self) -> u64 {
        *self.all.entry(self.epoch).or_default() += 1;
        self.epoch
    }

    /// Returns the ranges that can be reclaimed now.
    #[must_use]
    pub(crate) fn unpin_all(&mut self, epoch: u64) -> Vec<FreedRange> {
        if let Some(count) = self.all.get_mut(&epoch) {
            *count -= 1;
            if *count == 0 {
                self.all.remove(&epoch);
            }
        }
        let oldest_held = self.all.keys().next().copied().unwrap_or(u64::MAX);
        let mut released = Vec::new();
        while self.behind_all.front().is_some_and(|(epoch, _)| *epoch < oldest_held) {
            let Some((_, freed)) = self.behind_all.pop_front() else { break };
            released.extend(self.unless_pinned(freed));
        }
        released
    }

    pub(crate) fn pin(&mut self, extents: &[ExtentId]) {
        for id in extents {
            self.extents.entry(*id).or_default().count += 1;
        }
    }

    #[must_use]
    pub(crate) fn unpin(&mut self, extents: &[ExtentId]) -> Vec<FreedRange> {
        let mut released = Vec::new();
        for id in extents {
            let Some(pinned) = self.extents.get_mut(id) else { continue };
            pinned.count -= 1;
            if pinned.count == 0 {
                let waiting = std::mem::take(&mut pinned.waiting);
                self.extents.remove(id);
                for freed in waiting {
                    released.extend(self.unless_pinned(freed));
                }
            }
        }
        released
    }

    /// Returns the range if it can be reclaimed at once.
    #[must_use]
    pub(crate) fn free(&mut self, freed: FreedRange) -> Option<FreedRange> {
        if self.all.is_empty() {
            return self.unless_pinned(freed);
        }
        self.behind_all.push_back((self.epoch, freed));
        self.epoch += 1;
        None
    }

    /// Any pin inside the range counts, because the garbage of an earlier run is freed by whole
    /// ranges whose extents nobody knows.
    fn unless_pinned(&mut self, freed: FreedRange) -> Option<FreedRange> {
        let end =
            ExtentId { offset: freed.id.offset.saturating_add(freed.length.max(1)), ..freed.id };
        match self.extents.range_mut(freed.id..end).next() {
            Some((_, pinned)) => {
                pinned.waiting.push(freed);
                None
            }
            None => Some(freed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(offset: u64, length: u64) -> FreedRange {
        FreedRange { id: ExtentId { segment: 1, offset }, length }
    }

    #[test]
    fn a_free_waits_for_older_pins_of_all_and_not_for_younger_ones() {
        let mut pins = Pins::default();
        let first = pins.pin_all();
        assert_eq!(pins.free(range(0, 10)), None);
        let second = pins.pin_all();
        assert_eq!(pins.free(range(10, 10)), None);
        assert_eq!(pins.unpin_all(first), [range(0, 10)]);
        assert_eq!(pins.unpin_all(second), [range(10, 10)]);
    }

    #[test]
    fn an_older_pin_of_all_holds_back_what_a_younger_one_releases() {
        let mut pins = Pins::default();
        let first = pins.pin_all();
        let second = pins.pin_all();
        assert_eq!(pins.free(range(0, 10)), None);
        assert_eq!(pins.unpin_all(second), []);
        assert_eq!(pins.unpin_all(first), [range(0, 10)]);
    }

    #[test]
    fn a_range_waits_for_every_pin_inside_it() {
        let mut pins = Pins::default();
        let ids = [0, 4, 9].map(|offset| ExtentId { segment: 1, offset });
        pins.pin(&ids);
        assert_eq!(pins.free(range(0, 10)), None);
        assert_eq!(pins.free(range(10, 10)), Some(range(10, 10)));
        assert_eq!(pins.unpin(&ids[1..2]), []);
        assert_eq!(pins.unpin(&ids[2..]), []);
        assert_eq!(pins.unpin(&ids[..1]), [range(0, 10)]);
    }

    #[test]
    fn a_pin_taken_under_a_pin_of_all_takes_over_from_it() {
        let mut pins = Pins::default();
        let all = pins.pin_all();
        assert_eq!(pins.free(range(0, 10)), None);
        pins.pin(&[range(0, 10).id]);
        assert_eq!(pins.unpin_all(all), []);
        assert_eq!(pins.unpin(&[range(0, 10).id]), [range(0, 10)]);
    }
}
