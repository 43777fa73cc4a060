//! When SMB clients see that a file was written. The new time is shown late, as by other SMB servers:
//! some time after the first write, and for later writes when a handle is flushed or closed. What is
//! stored, and shown by REST, is not late.

use std::time::Duration;

use tokio::time::Instant;

use crate::time::Timestamp;

/// How long after the first write its time is shown.
pub const SHOWN_AFTER: Duration = Duration::from_secs(2);

/// The time of the last write of one file, while it is open.
#[derive(Clone, Copy, Debug, Default)]
pub struct DelayedTime {
    /// As it is stored, if that is known.
    last: Option<Timestamp>,
    /// What is shown instead.
    shown: Option<Timestamp>,
    until: Option<Instant>,
    begun: bool,
}

impl DelayedTime {
    /// Records the stored time, which was just read.
    pub fn know(&mut self, written: Timestamp) {
        self.last.get_or_insert(written);
    }

    pub fn write(&mut self, written: Timestamp, now: Instant) {
        self.expire(now);
        if self.shown.is_none() {
            self.shown = self.last.filter(|last| *last != written);
            self.until = (!self.begun).then(|| now + SHOWN_AFTER);
        }
        self.begun = true;
        self.last = Some(written);
    }

    fn expire(&mut self, now: Instant) {
        if self.until.is_some_and(|until| until <= now) {
            (self.shown, self.until) = (None, None);
        }
    }

    /// From now on the stored time is shown, whatever it is.
    pub fn reveal(&mut self) {
        (self.last, self.shown, self.until) = (None, None, None);
    }

    /// Whether there are writes that only closing the file will show.
    pub fn is_left_to_close(&self) -> bool {
        self.shown.is_some() && self.until.is_none()
    }

    /// What to show for a stored time.
    pub fn seen(&mut self, stored: Timestamp, now: Instant) -> Timestamp {
        self.expire(now);
        match (self.shown, self.last) {
            // REST has written since, which is not delayed.
            (Some(shown), Some(last)) if last == stored => shown,
            (_, _) => stored,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::waiting_time;
    use super::*;

    const fn at(ticks: u64) -> Timestamp {
        Timestamp::from_ticks(ticks)
    }

    #[tokio::test]
    async fn the_first_write_is_shown_a_little_later_and_others_when_revealed() {
        let start = waiting_time::now();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        let mut time = DelayedTime::default();
        time.know(at(1));
        time.write(at(2), start);
        assert_eq!(time.seen(at(2), after(1)), at(1));
        assert_eq!(time.seen(at(2), after(2)), at(2));
        time.write(at(3), after(3));
        assert_eq!(time.seen(at(3), after(100)), at(2));
        assert!(time.is_left_to_close());
        time.reveal();
        assert!(!time.is_left_to_close());
        assert_eq!(time.seen(at(3), after(100)), at(3));
    }

    #[tokio::test]
    async fn writes_before_the_first_is_shown_are_shown_with_it() {
        let start = waiting_time::now();
        let mut time = DelayedTime::default();
        time.know(at(1));
        time.write(at(2), start);
        time.write(at(3), start + Duration::from_secs(1));
        assert_eq!(time.seen(at(3), start + Duration::from_secs(1)), at(1));
        assert_eq!(time.seen(at(3), start + Duration::from_secs(2)), at(3));
    }

    #[tokio::test]
    async fn a_write_over_rest_is_shown_at_once() {
        let now = waiting_time::now();
        let mut time = DelayedTime::default();
        time.know(at(1));
        time.write(at(2), now);
        assert_eq!(time.seen(at(9), now), at(9));
    }
}
