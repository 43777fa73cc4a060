//! The clock of the process: the wall clock at its start, advanced by the monotonic clock.

use std::time::{Instant, SystemTime};

use holdfast_domain::time::{Clock, Timestamp};

#[derive(Clone, Debug)]
pub struct SteadyClock {
    start: Timestamp,
    started: Instant,
}

impl SteadyClock {
    pub fn new() -> Self {
        // A clock before 1970 counts as 1970.
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { start: Timestamp::from_unix(wall), started: Instant::now() }
    }

    /// The same clock, but never before `floor`: the latest time used by an earlier run. What had
    /// expired then stays expired, even if the wall clock was set back since.
    #[must_use]
    pub fn starting_at_least(self, floor: Timestamp) -> Self {
        if self.now() >= floor {
            return self;
        }
        Self { start: floor, started: Instant::now() }
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        self.start.plus(self.started.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_starts_at_the_wall_clock_and_never_goes_back() {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        let clock = SteadyClock::new();
        let first = clock.now();
        assert!(first.since(Timestamp::from_unix(wall)) < Duration::from_secs(60));
        let mut last = first;
        for _ in 0..1000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
        assert!(last > first);
    }

    #[test]
    fn it_never_starts_before_the_floor() {
        let clock = SteadyClock::new();
        let past = Timestamp::from_ticks(clock.now().ticks() - 1);
        assert!(clock.clone().starting_at_least(past).now().since(past) < Duration::from_secs(60));
        let future = clock.now().plus(Duration::from_secs(3600));
        let moved = clock.starting_at_least(future);
        assert!(moved.now() >= future);
        assert!(moved.now().since(future) < Duration::from_secs(60));
    }
}
