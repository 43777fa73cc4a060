//! The head of a queue, as known in memory: the next visible messages.
//!
//! Without it all consumers would find the same first visible message, and all but one would lose
//! the commit. Here each takes different messages, and their commits go into one group. It also
//! remembers up to where the queue was scanned, so that deleted rows there are not scanned again. It
//! decides nothing: a message is returned only by a commit that expects its row, and a wrong place
//! here costs one read.

use std::collections::BTreeSet;

use super::model::Place;
use crate::time::Timestamp;

/// Places kept at most; more are read when these are used up.
const READY_MAX: usize = 1024;

/// Every committed row up to `seen` is `ready`, or taken by a consumer or a change that has not
/// finished.
#[derive(Debug)]
pub(super) struct Head {
    ready: BTreeSet<Place>,
    /// Taken by consumers that have not finished. A change that put a message here may finish after
    /// the message was found and taken; then it must not become ready again.
    taken: BTreeSet<Place>,
    seen: Place,
    /// When the queue was last empty: nothing ready, and nothing after `seen`.
    empty_at: Timestamp,
    /// While the queue is scanned: places put meanwhile, which the scan may miss.
    put_meanwhile: Option<Vec<Place>>,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            ready: BTreeSet::new(),
            taken: BTreeSet::new(),
            seen: Place::START,
            empty_at: Timestamp::default(),
            put_meanwhile: None,
        }
    }
}

impl Head {
    pub fn ready_count(&self) -> usize {
        self.ready.len()
    }

    pub fn has_seen(&self, place: Place) -> bool {
        self.seen >= place
    }

    /// Whether the queue was empty at some time after `then`. That nothing is ready is not enough:
    /// messages put since the last scan are not ready yet, and some may have been visible all the
    /// time.
    pub fn was_empty_after(&self, then: Timestamp) -> bool {
        self.empty_at > then
    }

    /// Takes the first places, exclusively until they are given back or let go.
    pub fn take(&mut self, count: usize) -> Vec<Place> {
        let places: Vec<Place> =
            std::iter::from_fn(|| self.ready.pop_first()).take(count).collect();
        self.taken.extend(&places);
        places
    }

    pub fn peek(&self, count: usize) -> Vec<Place> {
        self.ready.iter().take(count).copied().collect()
    }

    /// Places that were taken, with their messages still there.
    pub fn give_back(&mut self, places: &[Place]) {
        self.let_go(places);
        places.iter().for_each(|place| self.add(*place));
    }

    /// Places that were taken and have no message any more.
    pub fn let_go(&mut self, places: &[Place]) {
        for place in places {
            self.taken.remove(place);
        }
    }

    /// A message was put at this place, or may have been.
    pub fn put(&mut self, place: Place) {
        if place <= self.seen {
            self.add(place);
        } else if let Some(put) = &mut self.put_meanwhile {
            put.push(place);
        }
    }

    /// There is no message at this place any more.
    pub fn removed(&mut self, place: Place) {
        self.ready.remove(&place);
    }

    /// Begins a scan after the returned place. It must see everything that was finished before.
    /// Nothing is taken from there before its end.
    pub fn begin_look(&mut self) -> Place {
        self.put_meanwhile = Some(Vec::new());
        self.seen
    }

    /// `found` is everything visible between `from` and `through`. Returns whether anything became
    /// ready.
    pub fn end_look(&mut self, from: Place, found: Vec<Place>, through: Place) -> bool {
        let put = self.put_meanwhile.take().unwrap_or_default();
        // It was lowered meanwhile: what is between is unknown.
        if self.seen != from {
            return true;
        }
        self.seen = through;
        let before = self.ready.len();
        for place in found.into_iter().chain(put.into_iter().filter(|place| *place <= through)) {
            self.add(place);
        }
        self.ready.len() > before
    }

    /// Records that nothing was ready then, and nothing after `seen`.
    pub fn was_empty_at(&mut self, then: Timestamp) {
        self.empty_at = self.empty_at.max(then);
    }

    pub fn break_off_look(&mut self) {
        self.put_meanwhile = None;
    }

    fn add(&mut self, place: Place) {
        if self.taken.contains(&place) {
            return;
        }
        self.ready.insert(place);
        if self.ready.len() > READY_MAX
            && let Some(last) = self.ready.pop_last()
        {
            self.seen = self.seen.min(last.before());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn place(ticks: u64) -> Place {
        Place { visible: Timestamp::from_ticks(ticks), sequence: 1 }
    }

    fn places<const COUNT: usize>(ticks: [u64; COUNT]) -> Vec<Place> {
        ticks.map(place).to_vec()
    }

    fn looked(head: &mut Head, found: Vec<Place>, through: Place) {
        let from = head.begin_look();
        head.end_look(from, found, through);
    }

    #[test]
    fn consumers_take_different_places_in_order() {
        let mut head = Head::default();
        looked(&mut head, places([1, 2, 3]), place(9));
        assert_eq!(head.take(2), places([1, 2]));
        assert_eq!(head.take(2), places([3]));
        assert_eq!(head.take(2), []);
        head.give_back(&places([2, 1]));
        assert_eq!(head.peek(5), places([1, 2]));
        assert_eq!(head.take(1), places([1]));
    }

    #[test]
    fn a_place_that_is_taken_does_not_become_ready_by_a_late_notice() {
        let mut head = Head::default();
        looked(&mut head, places([1]), place(9));
        assert_eq!(head.take(1), places([1]));
        head.put(place(1));
        assert_eq!(head.take(1), []);
        head.give_back(&places([1]));
        assert_eq!(head.take(2), places([1]));
        head.let_go(&places([1]));
        head.put(place(1));
        assert_eq!(head.take(2), places([1]), "it may hold something again");
    }

    #[test]
    fn what_is_put_where_it_was_looked_is_known() {
        let mut head = Head::default();
        looked(&mut head, vec![], place(9));
        head.put(place(8));
        head.put(place(10));
        assert_eq!(head.take(9), places([8]), "the other one is still to be found");
    }

    #[test]
    fn what_is_put_during_a_look_is_not_missed() {
        let mut head = Head::default();
        let from = head.begin_look();
        head.put(place(5));
        head.put(place(20));
        head.end_look(from, places([3]), place(9));
        assert_eq!(head.take(9), places([3, 5]));
        let from = head.begin_look();
        assert_eq!(from, place(9));
        head.end_look(from, places([20]), place(30));
        assert_eq!(head.take(9), places([20]));
    }

    #[test]
    fn what_is_removed_is_not_taken() {
        let mut head = Head::default();
        looked(&mut head, places([1, 2]), place(9));
        head.removed(place(1));
        assert_eq!(head.take(9), places([2]));
    }

    #[test]
    fn what_there_is_no_room_for_is_looked_for_again() {
        let mut head = Head::default();
        looked(&mut head, vec![], place(9_999_999));
        let all: Vec<Place> = (1..=READY_MAX as u64 + 10).map(place).collect();
        for place in all.iter().rev() {
            head.put(*place);
        }
        assert_eq!(head.take(usize::MAX), all[..READY_MAX]);
        let from = head.begin_look();
        assert!(from >= all[READY_MAX - 1] && from < all[READY_MAX]);
        head.end_look(from, all[READY_MAX..].to_vec(), place(9_999_999));
        assert_eq!(head.take(usize::MAX), all[READY_MAX..]);
    }

    #[test]
    fn a_look_does_not_pass_over_what_was_dropped_meanwhile() {
        let mut head = Head::default();
        let all: Vec<Place> = (1..=READY_MAX as u64).map(place).collect();
        looked(&mut head, all.clone(), place(5000));
        let from = head.begin_look();
        // Earlier than all others, so that the last of them is dropped.
        head.put(Place { visible: Timestamp::from_ticks(1), sequence: 0 });
        head.end_look(from, vec![], place(9000));
        assert!(!head.has_seen(all[READY_MAX - 1]));
    }
}
