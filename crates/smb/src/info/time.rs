//! Times of the wire: units of 100 ns since 1601.

use holdfast_domain::share::FileTimes;
use holdfast_domain::time::Timestamp;

use crate::wire::create::Times;

/// From the year 1 to the year 1601.
const EPOCH_TICKS: u64 = 584_388 * 86_400 * 10_000_000;

/// Times before 1601 become 0, which means none.
pub fn to_wire(time: Timestamp) -> u64 {
    time.ticks().saturating_sub(EPOCH_TICKS)
}

/// `None` past the year 9999.
pub fn from_wire(ticks: u64) -> Option<Timestamp> {
    let time = Timestamp::from_ticks(ticks.checked_add(EPOCH_TICKS)?);
    (time <= Timestamp::MAX).then_some(time)
}

pub fn times(times: &FileTimes) -> Times {
    Times {
        creation: to_wire(times.created),
        last_access: to_wire(times.accessed),
        last_write: to_wire(times.written),
        change: to_wire(times.changed),
    }
}

/// `@GMT-2024.01.31-12.34.56`, by which clients name a snapshot.
pub fn snapshot_token(time: Timestamp) -> String {
    let text = time.iso8601().to_string();
    let (date, clock) = text.split_once('T').unwrap_or((&text, ""));
    let clock: String = clock.chars().take(8).collect();
    format!("@GMT-{}-{}", date.replace('-', "."), clock.replace(':', "."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_from_1601() {
        let time = |text| Timestamp::parse_iso8601(text).expect("a time");
        for (text, ticks) in [
            ("1601-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00Z", 116_444_736_000_000_000),
            ("2024-01-31T12:34:56.1234567Z", 133_511_780_961_234_567),
        ] {
            assert_eq!(to_wire(time(text)), ticks, "{text}");
            assert_eq!(from_wire(ticks), Some(time(text)), "{text}");
        }
        assert_eq!(from_wire(u64::MAX), None);
        assert_eq!(from_wire(i64::MAX as u64), None);
        assert_eq!(snapshot_token(time("2024-01-31T12:34:56.7Z")), "@GMT-2024.01.31-12.34.56");
    }
}
