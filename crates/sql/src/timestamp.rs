//! Points in time: ISO 8601 in, the parts and formats of the language reference out.

use chrono::{DateTime, Datelike as _, Duration, FixedOffset, Months, NaiveDate, Timelike as _};

use crate::sql::DatePart;

pub type Timestamp = DateTime<FixedOffset>;

/// Any form of the W3C note on dates, from a year to a fraction of a second, with `T` after a date
/// that has no time; without a zone it is UTC.
pub fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, time),
        None => (text, ""),
    };
    let mut parts = date.splitn(3, '-');
    let year = digits(parts.next()?, 4)?;
    let month = parts.next().map_or(Some(1), |part| digits(part, 2))?;
    let day = parts.next().map_or(Some(1), |part| digits(part, 2))?;
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    let (time, zone) = zone(time)?;
    let (hour, minute, second, nanosecond) = time_of_day(time)?;
    let local = date.and_hms_nano_opt(hour, minute, second, nanosecond)?;
    local.and_local_timezone(zone).single()
}

fn digits(text: &str, length: usize) -> Option<u32> {
    let all = text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

fn zone(text: &str) -> Option<(&str, FixedOffset)> {
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return Some((time, FixedOffset::east_opt(0)?));
    }
    let Some(at) = text.find(['+', '-']) else { return Some((text, FixedOffset::east_opt(0)?)) };
    let (hours, minutes) = match text[at + 1..].split_once(':') {
        Some((hours, minutes)) => (digits(hours, 2)?, digits(minutes, 2)?),
        None => (digits(text.get(at + 1..at + 3)?, 2)?, digits(text.get(at + 3..)?, 2)?),
    };
    let seconds = i32::try_from(hours * 3600 + minutes * 60).ok()?;
    let east = if text.as_bytes()[at] == b'+' { seconds } else { -seconds };
    Some((&text[..at], FixedOffset::east_opt(east)?))
}

fn time_of_day(text: &str) -> Option<(u32, u32, u32, u32)> {
    if text.is_empty() {
        return Some((0, 0, 0, 0));
    }
    let mut parts = text.splitn(3, ':');
    let hour = digits(parts.next()?, 2)?;
    let minute = digits(parts.next()?, 2)?;
    let Some(seconds) = parts.next() else { return Some((hour, minute, 0, 0)) };
    let (second, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanosecond = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    Some((hour, minute, digits(second, 2)?, nanosecond))
}

pub fn text(time: Timestamp) -> String {
    let pattern = match (time.nanosecond() == 0, time.offset().local_minus_utc() == 0) {
        (true, true) => "%Y-%m-%dT%H:%M:%SZ",
        (true, false) => "%Y-%m-%dT%H:%M:%S%:z",
        (false, true) => "%Y-%m-%dT%H:%M:%S%.3fZ",
        (false, false) => "%Y-%m-%dT%H:%M:%S%.3f%:z",
    };
    time.format(pattern).to_string()
}

pub fn extract(part: DatePart, time: Timestamp) -> i64 {
    let offset = i64::from(time.offset().local_minus_utc());
    match part {
        DatePart::Year => i64::from(time.year()),
        DatePart::Month => i64::from(time.month()),
        DatePart::Day => i64::from(time.day()),
        DatePart::Hour => i64::from(time.hour()),
        DatePart::Minute => i64::from(time.minute()),
        DatePart::Second => i64::from(time.second()),
        DatePart::TimezoneHour => offset / 3600,
        DatePart::TimezoneMinute => offset / 60 % 60,
    }
}

/// `None` beyond the calendar.
pub fn add(part: DatePart, quantity: i64, time: Timestamp) -> Option<Timestamp> {
    let seconds = match part {
        DatePart::Year => return add_months(quantity.checked_mul(12)?, time),
        DatePart::Month => return add_months(quantity, time),
        DatePart::Day => 86400,
        DatePart::Hour | DatePart::TimezoneHour => 3600,
        DatePart::Minute | DatePart::TimezoneMinute => 60,
        DatePart::Second => 1,
    };
    time.checked_add_signed(Duration::try_seconds(quantity.checked_mul(seconds)?)?)
}

fn add_months(months: i64, time: Timestamp) -> Option<Timestamp> {
    let count = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
    if months < 0 { time.checked_sub_months(count) } else { time.checked_add_months(count) }
}

/// How many whole units lie between the two; negative if the second is earlier.
pub fn difference(part: DatePart, from: Timestamp, to: Timestamp) -> i64 {
    let seconds = (to - from).num_seconds();
    match part {
        DatePart::Year => months_between(from, to) / 12,
        DatePart::Month => months_between(from, to),
        DatePart::Day => seconds / 86400,
        DatePart::Hour | DatePart::TimezoneHour => seconds / 3600,
        DatePart::Minute | DatePart::TimezoneMinute => seconds / 60,
        DatePart::Second => seconds,
    }
}

fn months_between(from: Timestamp, to: Timestamp) -> i64 {
    if to < from {
        return -months_between(to, from);
    }
    let (from, to) = (from.naive_utc(), to.naive_utc());
    let months =
        i64::from(to.year() - from.year()) * 12 + i64::from(to.month()) - i64::from(from.month());
    let into_month = |time: chrono::NaiveDateTime| (time.day(), time.time());
    if into_month(to) < into_month(from) { months - 1 } else { months }
}

/// Formats the time by the letters of the language reference; other characters, and text in single
/// quotes, are copied. `None` for a run of letters without a meaning.
pub fn format(time: Timestamp, pattern: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = pattern;
    while let Some(letter) = rest.chars().next() {
        if letter == '\'' {
            let (quoted, behind) = rest[1..].split_once('\'')?;
            text.push_str(if quoted.is_empty() { "'" } else { quoted });
            rest = behind;
            continue;
        }
        let run = rest.len() - rest.trim_start_matches(letter).len();
        if letter.is_ascii_alphabetic() {
            text.push_str(&part(time, &rest[..run])?);
        } else {
            text.push_str(&rest[..run]);
        }
        rest = &rest[run..];
    }
    Some(text)
}

fn part(time: Timestamp, letters: &str) -> Option<String> {
    let milliseconds = time.nanosecond() / 1_000_000;
    let strftime = |format: &str| time.format(format).to_string();
    Some(match letters {
        "yy" => strftime("%y"),
        "y" | "yyyy" => strftime("%Y"),
        "M" => strftime("%-m"),
        "MM" => strftime("%m"),
        "MMM" => strftime("%b"),
        "MMMM" => strftime("%B"),
        "d" => strftime("%-d"),
        "dd" => strftime("%d"),
        "a" => strftime("%p"),
        "h" => strftime("%-I"),
        "hh" => strftime("%I"),
        "H" => strftime("%-H"),
        "HH" => strftime("%H"),
        "m" => strftime("%-M"),
        "mm" => strftime("%M"),
        "s" => strftime("%-S"),
        "ss" => strftime("%S"),
        "S" => (milliseconds / 100).to_string(),
        "SS" => format!("{:02}", milliseconds / 10),
        "SSS" => format!("{milliseconds:03}"),
        "X" | "XX" | "XXX" | "XXXX" | "XXXXX" if time.offset().local_minus_utc() == 0 => {
            "Z".to_owned()
        }
        "X" | "x" => strftime("%z").get(..3)?.to_owned(),
        "XX" | "XXXX" | "xx" | "xxxx" => strftime("%z"),
        "XXX" | "XXXXX" | "xxx" | "xxxxx" => strftime("%:z"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn every_length_of_the_note_on_dates_is_read() {
        for (short, full) in [
            ("2007", "2007-01-01T00:00:00Z"),
            ("2007T", "2007-01-01T00:00:00Z"),
            ("2010-03", "2010-03-01T00:00:00Z"),
            ("2010-01-01T", "2010-01-01T00:00:00Z"),
            ("1969-07-20T20:18Z", "1969-07-20T20:18:00Z"),
            ("1994-11-05 08:15:30-05:00", "1994-11-05T08:15:30-05:00"),
            ("2017-01-02T03:04:05.006Z", "2017-01-02T03:04:05.006Z"),
            ("2017-01-02T03:04:05+0530", "2017-01-02T03:04:05+05:30"),
        ] {
            assert_eq!(text(time(short)), full, "{short}");
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "7",
            "2010-13",
            "2010-02-30",
            "2010-01-01T25:00",
            "2010-01-01T1",
            "pizza",
            "2010-01-01T10:00:00.",
            "2010-01-01T10:00+99",
            "2010-01-01T10:00+9é",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn parts_are_added_within_the_calendar() {
        let start = time("2017-01-31T03:04:05.006Z");
        let added = |part, quantity| add(part, quantity, start).map(text);
        assert_eq!(added(DatePart::Minute, 1).as_deref(), Some("2017-01-31T03:05:05.006Z"));
        assert_eq!(added(DatePart::Month, 1).as_deref(), Some("2017-02-28T03:04:05.006Z"));
        assert_eq!(added(DatePart::Year, -1).as_deref(), Some("2016-01-31T03:04:05.006Z"));
        assert_eq!(added(DatePart::Day, i64::MAX), None);
        assert_eq!(added(DatePart::Year, i64::MAX), None);
    }

    #[test]
    fn a_difference_counts_whole_units() {
        let count = |part, from, to| difference(part, time(from), time(to));
        let (from, to) = ("2018-11-09T00:00+05:30", "2018-11-09T01:00:23-08:00");
        assert_eq!(count(DatePart::Hour, from, to), 14);
        assert_eq!(count(DatePart::Day, "2010-01-01T23:00", "2010-01-02T01:00"), 0);
        assert_eq!(count(DatePart::Month, "2010T", "2011T"), 12);
        assert_eq!(count(DatePart::Year, "2010-06T", "2010-01T"), 0);
        assert_eq!(count(DatePart::Month, "2010-06T", "2010-01T"), -5);
    }

    #[test]
    fn the_letters_of_a_format_stand_for_parts() {
        let moon = time("1969-07-20T20:18:04.5-07:00");
        for (pattern, expected) in [
            ("MMMM d, y", "July 20, 1969"),
            ("MMM dd yy", "Jul 20 69"),
            ("h:mm a", "8:18 PM"),
            ("HH:mm:ss.SSS", "20:18:04.500"),
            ("X XX XXX", "-07 -0700 -07:00"),
            ("'on' M", "on 7"),
        ] {
            assert_eq!(format(moon, pattern).as_deref(), Some(expected), "{pattern}");
        }
        assert_eq!(format(moon, "qq"), None);
        assert_eq!(format(moon, "'open"), None);
    }

    #[test]
    fn a_zone_has_parts() {
        let india = time("2018-11-09T00:00+05:30");
        assert_eq!(extract(DatePart::TimezoneHour, india), 5);
        assert_eq!(extract(DatePart::TimezoneMinute, india), 30);
        assert_eq!(extract(DatePart::Hour, india), 0);
    }
}
