//! Limits the cost of a query. Every value that an expression computes costs steps, by its length and by
//! the work to find it. The query ends when a record exceeds its limit, when all records together do, or
//! when its client is gone.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::value::Problem;

/// The limit for one record. A step is one or two nanoseconds; the longest possible record may take
/// five hundred steps per byte.
const RECORD_STEPS_MAX: u64 = 1 << 31;
/// The limit for all records of a blob: that of one record, plus this for each byte of the blob.
const STEPS_PER_BYTE: u64 = 1 << 12;
/// The time of a step, before others run.
const STEP_TIME: Duration = Duration::from_millis(50);
/// The time limit for one record, for a slow or busy machine.
const RECORD_TIME_MAX: Duration = Duration::from_secs(30);
/// How often the clock and the client are checked.
const STEPS_BETWEEN_LOOKS: u64 = 1 << 20;

/// Whether the client is gone.
#[derive(Clone, Debug, Default)]
pub struct GivenUp(Arc<AtomicBool>);

impl GivenUp {
    pub fn give_up(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_given_up(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

pub struct Work {
    /// The steps of this record.
    steps: Cell<u64>,
    /// The steps left for all further records.
    left: Cell<u64>,
    /// When the turn began, if the clock was read since.
    turn_since: Cell<Option<Instant>>,
    turn_is_over: Cell<bool>,
    /// The steps until the next check.
    until_look: Cell<u64>,
    /// The first check during this record.
    since: Cell<Option<Instant>>,
    given_up: GivenUp,
}

impl Work {
    /// For a blob of this length.
    pub fn new(given_up: GivenUp, blob_bytes: u64) -> Self {
        let left = RECORD_STEPS_MAX.saturating_add(blob_bytes.saturating_mul(STEPS_PER_BYTE));
        Self {
            steps: Cell::default(),
            left: Cell::new(left),
            turn_since: Cell::default(),
            turn_is_over: Cell::default(),
            until_look: Cell::default(),
            since: Cell::default(),
            given_up,
        }
    }

    pub fn begin_turn(&self) {
        self.turn_since.set(None);
        self.turn_is_over.set(false);
    }

    /// Whether to yield to others, between two records.
    pub fn turn_is_over(&self) -> bool {
        self.turn_is_over.get()
    }

    pub fn begin_record(&self) {
        self.steps.set(0);
        self.since.set(None);
    }

    pub fn spend(&self, steps: u64) -> Result<(), Problem> {
        let spent = self.steps.get().saturating_add(steps);
        self.steps.set(spent);
        let Some(left) = self.left.get().checked_sub(steps) else {
            return Err(Problem::TooMuchWork);
        };
        self.left.set(left);
        if spent > RECORD_STEPS_MAX {
            return Err(Problem::TooMuchWork);
        }
        match self.until_look.get().checked_sub(steps) {
            Some(left) => {
                self.until_look.set(left);
                Ok(())
            }
            None => {
                self.until_look.set(STEPS_BETWEEN_LOOKS);
                self.look()
            }
        }
    }

    fn look(&self) -> Result<(), Problem> {
        if self.given_up.is_given_up() {
            return Err(Problem::GivenUp);
        }
        let now = Instant::now();
        let since = self.since.get().unwrap_or(now);
        self.since.set(Some(since));
        let turn_since = self.turn_since.get().unwrap_or(now);
        self.turn_since.set(Some(turn_since));
        if now - turn_since > STEP_TIME {
            self.turn_is_over.set(true);
        }
        if now - since > RECORD_TIME_MAX { Err(Problem::TooMuchWork) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_may_cost_so_much_and_the_next_as_much_again() {
        let work = Work::new(GivenUp::default(), 1 << 30);
        for _ in 0..3 {
            work.begin_record();
            assert_eq!(work.spend(RECORD_STEPS_MAX), Ok(()));
        }
        assert_eq!(work.spend(1), Err(Problem::TooMuchWork));
        work.begin_record();
        assert_eq!(work.spend(u64::MAX), Err(Problem::TooMuchWork));
    }

    #[test]
    fn all_records_together_may_cost_so_much_for_each_byte_of_the_blob() {
        let work = Work::new(GivenUp::default(), 100);
        for _ in 0..100 {
            work.begin_record();
            assert_eq!(work.spend(STEPS_PER_BYTE), Ok(()));
        }
        work.begin_record();
        assert_eq!(work.spend(RECORD_STEPS_MAX), Ok(()));
        work.begin_record();
        assert_eq!(work.spend(1), Err(Problem::TooMuchWork));
    }

    #[test]
    fn turn_is_over_after_its_time_and_the_next_begins_anew() {
        let work = Work::new(GivenUp::default(), 1 << 40);
        let begun = Instant::now();
        while !work.turn_is_over() {
            assert!(begun.elapsed() < Duration::from_secs(60));
            assert_eq!(work.spend(STEPS_BETWEEN_LOOKS), Ok(()));
            work.begin_record();
        }
        assert!(begun.elapsed() >= STEP_TIME);
        work.begin_turn();
        assert_eq!(work.spend(2 * STEPS_BETWEEN_LOOKS), Ok(()));
        assert!(!work.turn_is_over());
    }

    #[test]
    fn work_ends_soon_after_it_is_given_up() {
        let given_up = GivenUp::default();
        let work = Work::new(given_up.clone(), 0);
        assert_eq!(work.spend(1), Ok(()));
        given_up.give_up();
        let steps = (0..=STEPS_BETWEEN_LOOKS).find(|_| work.spend(1) == Err(Problem::GivenUp));
        assert!(steps.is_some());
    }
}
