//! What a query may cost. Every value that an expression has for a record is paid for, by its length and
//! by what it took to find it. A record that costs more than it may ends the query, and so does a client
//! who has gone.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::value::Problem;

/// For one record. A step is a nanosecond or two; the longest record there can be may take five hundred
/// of them for each of its bytes.
const RECORD_STEPS_MAX: u64 = 1 << 31;
/// The same for a machine that is slow, or has much else to do.
const RECORD_TIME_MAX: Duration = Duration::from_secs(30);
/// How often it is looked at the clock, and whether anybody still waits.
const STEPS_BETWEEN_LOOKS: u64 = 1 << 20;

/// Whether nobody waits for the answer any more.
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

#[derive(Default)]
pub struct Work {
    /// For this record.
    steps: Cell<u64>,
    /// Of all records, until it is looked again.
    until_look: Cell<u64>,
    /// The first look during this record.
    since: Cell<Option<Instant>>,
    given_up: GivenUp,
}

impl Work {
    pub fn new(given_up: GivenUp) -> Self {
        Self { given_up, ..Self::default() }
    }

    pub fn begin_record(&self) {
        self.steps.set(0);
        self.since.set(None);
    }

    pub fn spend(&self, steps: u64) -> Result<(), Problem> {
        let spent = self.steps.get().saturating_add(steps);
        self.steps.set(spent);
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
        if now - since > RECORD_TIME_MAX { Err(Problem::TooMuchWork) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_may_cost_so_much_and_the_next_as_much_again() {
        let work = Work::default();
        for _ in 0..3 {
            work.begin_record();
            assert_eq!(work.spend(RECORD_STEPS_MAX), Ok(()));
        }
        assert_eq!(work.spend(1), Err(Problem::TooMuchWork));
        work.begin_record();
        assert_eq!(work.spend(u64::MAX), Err(Problem::TooMuchWork));
    }

    #[test]
    fn work_ends_soon_after_it_is_given_up() {
        let given_up = GivenUp::default();
        let work = Work::new(given_up.clone());
        assert_eq!(work.spend(1), Ok(()));
        given_up.give_up();
        let steps = (0..=STEPS_BETWEEN_LOOKS).find(|_| work.spend(1) == Err(Problem::GivenUp));
        assert!(steps.is_some());
    }
}
