//! The search for an order of operations: the algorithm of Wing and Gong with Lowe's cache of tried states,
//! as in the checker Porcupine. It knows nothing of the operations' meaning.

use std::collections::HashSet;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Something that happened at one instant from `call` to `end`, both included.
pub struct Operation<T> {
    pub call: i64,
    pub end: i64,
    pub step: T,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is an order in which every operation is right.
    Ordered,
    NoOrder,
    /// The time limit was reached before either was known.
    TimedOut,
}

/// The clock is read once in so many steps.
const STEPS_PER_LOOK: u32 = 256;

#[derive(Clone, Copy)]
enum Event {
    Call(usize),
    End,
}

/// Looks for an order in which `step` takes `state` through all operations; it returns the next state,
/// or `None` if the operation is not right in this one.
pub fn search<T, S: Clone + Eq + Hash>(
    operations: &[Operation<T>],
    mut state: S,
    step: impl Fn(&S, &T) -> Option<S>,
    time_max: Duration,
) -> Outcome {
    let deadline = Instant::now() + time_max;
    let mut timeline = Timeline::new(operations);
    let mut ordered = Members::none_of(operations.len());
    let mut tried = HashSet::new();
    let mut order: Vec<(usize, S)> = Vec::new();
    let mut at = timeline.first();
    let mut steps = 0_u32;
    while let Some(event) = timeline.event(at) {
        steps = steps.wrapping_add(1);
        if steps.is_multiple_of(STEPS_PER_LOOK) && Instant::now() >= deadline {
            return Outcome::TimedOut;
        }
        match event {
            Event::Call(index) => {
                ordered.insert(index);
                let next = step(&state, &operations[index].step)
                    .filter(|next| tried.insert((ordered.clone(), next.clone())));
                let Some(next) = next else {
                    ordered.remove(index);
                    at = timeline.next(at);
                    continue;
                };
                order.push((index, std::mem::replace(&mut state, next)));
                timeline.take_out(index);
                at = timeline.first();
            }
            // The rest must come after this end, and no operation that could come before it is
            // right.
            Event::End => {
                let Some((index, before)) = order.pop() else { return Outcome::NoOrder };
                state = before;
                ordered.remove(index);
                at = timeline.put_back(index);
            }
        }
    }
    Outcome::Ordered
}

/// The calls and ends of the operations that are not ordered yet, by their time: a linked list from which
/// they are taken and, in the opposite order, put back.
struct Timeline {
    events: Vec<Event>,
    /// Place 0 is before the first event, and that of an event is one more than its index.
    next: Vec<usize>,
    previous: Vec<usize>,
    calls: Vec<usize>,
    ends: Vec<usize>,
}

impl Timeline {
    fn new<T>(operations: &[Operation<T>]) -> Self {
        let mut events: Vec<(i64, bool, usize)> = Vec::with_capacity(operations.len() * 2);
        for (index, operation) in operations.iter().enumerate() {
            events.push((operation.call, false, index));
            events.push((operation.end, true, index));
        }
        // At one instant calls come first: it belongs to both operations.
        events.sort_unstable();
        let (mut calls, mut ends) = (vec![0; operations.len()], vec![0; operations.len()]);
        for (place, &(_, is_end, index)) in (1..).zip(&events) {
            if is_end { ends[index] = place } else { calls[index] = place }
        }
        let places = events.len() + 1;
        let event = |&(_, is_end, index): &(i64, bool, usize)| {
            if is_end { Event::End } else { Event::Call(index) }
        };
        Self {
            events: events.iter().map(event).collect(),
            next: (0..places).map(|place| (place + 1) % places).collect(),
            previous: (0..places).map(|place| (place + places - 1) % places).collect(),
            calls,
            ends,
        }
    }

    fn first(&self) -> usize {
        self.next[0]
    }

    fn next(&self, place: usize) -> usize {
        self.next[place]
    }

    /// `None` after the last.
    fn event(&self, place: usize) -> Option<Event> {
        place.checked_sub(1).map(|index| self.events[index])
    }

    fn take_out(&mut self, index: usize) {
        for place in [self.calls[index], self.ends[index]] {
            let (previous, next) = (self.previous[place], self.next[place]);
            self.next[previous] = next;
            self.previous[next] = previous;
        }
    }

    /// Returns the place after its call.
    fn put_back(&mut self, index: usize) -> usize {
        for place in [self.ends[index], self.calls[index]] {
            let (previous, next) = (self.previous[place], self.next[place]);
            self.next[previous] = place;
            self.previous[next] = place;
        }
        self.next[self.calls[index]]
    }
}

/// A set of operations.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Members(Vec<u64>);

impl Members {
    fn none_of(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn insert(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }

    fn remove(&mut self, index: usize) {
        self.0[index / 64] &= !(1 << (index % 64));
    }
}

#[cfg(test)]
mod tests {
    use holdfast_random::Random;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[derive(Clone, Copy, Debug)]
    enum Access {
        Write(u64),
        Read(u64),
    }

    fn access(value: &u64, access: &Access) -> Option<u64> {
        match *access {
            Access::Write(written) => Some(written),
            Access::Read(read) => (read == *value).then_some(read),
        }
    }

    /// Tries every order.
    fn is_ordered(left: &[&Operation<Access>], value: u64) -> bool {
        let first_end = left.iter().map(|operation| operation.end).min();
        left.is_empty()
            || left.iter().enumerate().any(|(index, operation)| {
                let mut others = left.to_vec();
                others.remove(index);
                Some(operation.call) <= first_end
                    && access(&value, &operation.step).is_some_and(|next| is_ordered(&others, next))
            })
    }

    #[test]
    fn an_order_is_found_where_trying_all_of_them_finds_one_and_nowhere_else() {
        let mut random = Random::new(7);
        let mut found = [0; 2];
        for round in 0..5000 {
            let operation = |random: &mut Random| {
                let call = random.below(12) as i64;
                let value = random.below(3);
                let step =
                    if random.below(2) == 0 { Access::Write(value) } else { Access::Read(value) };
                Operation { call, end: call + random.below(6) as i64, step }
            };
            let operations: Vec<_> = (0..6).map(|_| operation(&mut random)).collect();
            let is_ordered = is_ordered(&operations.iter().collect::<Vec<_>>(), 0);
            let expected = if is_ordered { Outcome::Ordered } else { Outcome::NoOrder };
            assert_eq!(search(&operations, 0, access, LONG), expected, "round {round}");
            found[usize::from(is_ordered)] += 1;
        }
        assert!(found.iter().all(|count| *count > 500), "both are common: {found:?}");
    }

    #[test]
    fn nothing_is_in_order_and_a_long_search_ends_in_time() {
        assert_eq!(search(&[], 0, access, LONG), Outcome::Ordered);
        let writes = (0..40).map(|value| Operation { call: 0, end: 9, step: Access::Write(value) });
        let read = Operation { call: 10, end: 10, step: Access::Read(99) };
        let operations: Vec<_> = writes.chain([read]).collect();
        assert_eq!(search(&operations, 0, access, Duration::ZERO), Outcome::TimedOut);
    }
}
