//! The Date header: all answers of a second have the same.

use std::cell::RefCell;
use std::fmt::Write as _;

use holdfast_domain::time::Timestamp;

/// Returns what `look` makes of the time in the form of the header.
pub fn with_date<T>(now: Timestamp, look: impl FnOnce(&str) -> T) -> T {
    thread_local! {
        /// The second of the last answer, and its text.
        static LAST: RefCell<(i64, String)> = const { RefCell::new((0, String::new())) };
    }
    LAST.with_borrow_mut(|(second, text)| {
        let this_second = now.unix_seconds();
        if *second != this_second || text.is_empty() {
            *second = this_second;
            text.clear();
            // Writing to memory does not fail.
            let _ = write!(text, "{}", now.rfc1123());
        }
        look(text)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_date_is_that_of_its_second() {
        for (milliseconds, expected) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (999, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (1000, "Thu, 01 Jan 1970 00:00:01 GMT"),
            (500, "Thu, 01 Jan 1970 00:00:00 GMT"),
        ] {
            let now = Timestamp::from_unix(Duration::from_millis(milliseconds));
            with_date(now, |date| assert_eq!(date, expected, "{milliseconds}"));
        }
    }
}
