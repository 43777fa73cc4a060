//! Points in time as the services write them. The current time comes from a [`Clock`].

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Where decisions get the time from. It never goes backwards within a process, whatever the wall
/// clock does, so that a deadline that has passed stays passed.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;
}

/// Ticks of 100 ns since the beginning of the year 1, in UTC: the resolution of the services'
/// timestamps, and the number their ETags are made of.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Timestamp(u64);

const TICKS_PER_SECOND: u64 = 10_000_000;
const SECONDS_PER_DAY: u64 = 86_400;
const UNIX_EPOCH_TICKS: u64 = 719_162 * SECONDS_PER_DAY * TICKS_PER_SECOND;

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [[u8; 3]; 12] = [
    *b"Jan", *b"Feb", *b"Mar", *b"Apr", *b"May", *b"Jun", *b"Jul", *b"Aug", *b"Sep", *b"Oct",
    *b"Nov", *b"Dec",
];

impl Timestamp {
    /// The last tick of the year 9999, which the services use for "never".
    pub const MAX: Self = Self(3_652_059 * SECONDS_PER_DAY * TICKS_PER_SECOND - 1);

    pub const fn from_ticks(ticks: u64) -> Self {
        Self(ticks)
    }

    pub const fn ticks(self) -> u64 {
        self.0
    }

    pub fn from_unix(since_epoch: Duration) -> Self {
        let ticks = u64::try_from(since_epoch.as_nanos() / 100).unwrap_or(u64::MAX);
        Self(UNIX_EPOCH_TICKS.saturating_add(ticks)).min(Self::MAX)
    }

    pub fn unix_seconds(self) -> i64 {
        self.0 as i64 / TICKS_PER_SECOND as i64 - (UNIX_EPOCH_TICKS / TICKS_PER_SECOND) as i64
    }

    /// The next tick.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The sum, or [`Timestamp::MAX`].
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let ticks = u64::try_from(duration.as_nanos() / 100).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(ticks)).min(Self::MAX)
    }

    /// How long after `earlier` this is; zero if it is not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0).saturating_mul(100))
    }

    /// The same time with the fraction of its second cut off, as RFC 1123 dates show it.
    #[must_use]
    pub fn whole_seconds(self) -> Self {
        Self(self.0 - self.0 % TICKS_PER_SECOND)
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`
    pub fn rfc1123(self) -> Rfc1123 {
        Rfc1123(self)
    }

    /// `2024-01-31T12:34:56.1234567Z`
    pub fn iso8601(self) -> Iso8601 {
        Iso8601(self)
    }

    /// `2024-01-31T12:34:56.12Z`: as [`Timestamp::iso8601`], without the zeros at the end of the
    /// fraction, which is how the Table service writes times.
    pub fn shortest(self) -> Shortest {
        let mut text = iso8601_text(self);
        let end = match text[20..27].iter().rposition(|digit| *digit != b'0') {
            Some(last) => 20 + last + 1,
            None => 19,
        };
        text[end] = b'Z';
        Shortest { text, length: end + 1 }
    }

    /// Accepts `Sun, 06 Nov 1994 08:49:37 GMT`; the day of the week is not checked.
    pub fn parse_rfc1123(text: &str) -> Option<Self> {
        Self::parse_exact_rfc1123(text.as_bytes()).or_else(|| Self::parse_loose_rfc1123(text))
    }

    /// The form that nearly all clients send, which every request has at least once.
    fn parse_exact_rfc1123(text: &[u8]) -> Option<Self> {
        let fixed = |from: usize, expected: &[u8]| text[from..].starts_with(expected);
        let number = |from: usize, to: usize| {
            text[from..to].iter().try_fold(0, |number: u64, byte| {
                byte.is_ascii_digit().then(|| number * 10 + u64::from(byte - b'0'))
            })
        };
        if text.len() != 29 || !(fixed(3, b", ") && fixed(7, b" ") && fixed(11, b" ")) {
            return None;
        }
        if !(fixed(16, b" ") && fixed(19, b":") && fixed(22, b":") && fixed(25, b" GMT")) {
            return None;
        }
        let name: [u8; 3] = text[8..11].try_into().ok()?;
        let month = MONTHS.iter().position(|month| *month == name)? as u64 + 1;
        let (hour, minute, second) = (number(17, 19)?, number(20, 22)?, number(23, 25)?);
        Self::from_civil(number(12, 16)?, month, number(5, 7)?, hour, minute, second, 0)
    }

    fn parse_loose_rfc1123(text: &str) -> Option<Self> {
        let (_, rest) = text.trim().split_once(',')?;
        let mut fields = rest.split_ascii_whitespace();
        let day = digits(fields.next()?, 1..=2)?;
        let month = fields.next()?;
        let named = |name: &[u8; 3]| name.eq_ignore_ascii_case(month.as_bytes());
        let month = MONTHS.iter().position(named)? as u64 + 1;
        let year = digits(fields.next()?, 4..=4)?;
        let mut clock = fields.next()?.split(':');
        let (hour, minute, second) = (clock.next()?, clock.next()?, clock.next()?);
        let zone = fields.next()?;
        if fields.next().is_some() || clock.next().is_some() || !matches!(zone, "GMT" | "UTC") {
            return None;
        }
        let seconds = [hour, minute, second].map(|field| digits(field, 2..=2));
        Self::from_civil(year, month, day, seconds[0]?, seconds[1]?, seconds[2]?, 0)
    }

    /// Accepts the forms that SAS and entities use: `YYYY-MM-DD`, `YYYY-MM-DDThh:mmZ`,
    /// `YYYY-MM-DDThh:mm:ss[.f]Z`, with up to seven digits of fraction (more are cut) and `Z` or
    /// an offset `+hh:mm`.
    pub fn parse_iso8601(text: &str) -> Option<Self> {
        let (date, time) = match text.split_once('T') {
            Some((date, time)) => (date, Some(time)),
            None => (text, None),
        };
        let mut date = date.split('-');
        let (year, month, day) = (date.next()?, date.next()?, date.next()?);
        if date.next().is_some() {
            return None;
        }
        let (year, month, day) = (digits(year, 4..=4)?, digits(month, 2..=2)?, digits(day, 2..=2)?);
        let Some(time) = time else { return Self::from_civil(year, month, day, 0, 0, 0, 0) };
        let (time, offset_seconds) = split_zone(time)?;
        let (time, fraction) = match time.split_once('.') {
            Some((time, fraction)) => (time, parse_fraction(fraction)?),
            None => (time, 0),
        };
        let mut clock = time.split(':');
        let hour = digits(clock.next()?, 2..=2)?;
        let minute = digits(clock.next()?, 2..=2)?;
        let second = clock.next().map_or(Some(0), |second| digits(second, 2..=2))?;
        if clock.next().is_some() {
            return None;
        }
        let local = Self::from_civil(year, month, day, hour, minute, second, fraction)?;
        let ticks = i64::try_from(local.0).ok()? - offset_seconds * TICKS_PER_SECOND as i64;
        u64::try_from(ticks).ok().map(Self)
    }

    fn from_civil(
        year: u64,
        month: u64,
        day: u64,
        hour: u64,
        minute: u64,
        second: u64,
        fraction: u64,
    ) -> Option<Self> {
        let leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let month_days = match month {
            4 | 6 | 9 | 11 => 30,
            2 if leap => 29,
            2 => 28,
            1..=12 => 31,
            _ => return None,
        };
        if year == 0 || day == 0 || day > month_days || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        // Counting years from March puts the leap day last, so that months have fixed offsets.
        let years = if month <= 2 { year - 1 } else { year };
        let months = (month + 9) % 12;
        let day_of_year = (153 * months + 2) / 5 + day - 1;
        let days = years * 365 + years / 4 - years / 100 + years / 400 + day_of_year - 306;
        let seconds = days * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
        Some(Self(seconds * TICKS_PER_SECOND + fraction))
    }

    fn civil(self) -> Civil {
        let seconds = self.0 / TICKS_PER_SECOND;
        let days = seconds / SECONDS_PER_DAY;
        let shifted = days + 306;
        let era = shifted / 146_097;
        let day_of_era = shifted % 146_097;
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let months = (5 * day_of_year + 2) / 153;
        let month = if months < 10 { months + 3 } else { months - 9 };
        Civil {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month,
            day: day_of_year - (153 * months + 2) / 5 + 1,
            weekday: (days % 7) as usize,
            hour: seconds / 3600 % 24,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            fraction: self.0 % TICKS_PER_SECOND,
        }
    }
}

struct Civil {
    year: u64,
    month: u64,
    day: u64,
    weekday: usize,
    hour: u64,
    minute: u64,
    second: u64,
    fraction: u64,
}

fn digits(text: &str, length: std::ops::RangeInclusive<usize>) -> Option<u64> {
    let plain = length.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

fn split_zone(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix('Z') {
        return Some((time, 0));
    }
    let sign_at = time.rfind(['+', '-'])?;
    let (time, zone) = time.split_at(sign_at);
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = zone[1..].split_once(':')?;
    let (hours, minutes) = (digits(hours, 2..=2)? as i64, digits(minutes, 2..=2)? as i64);
    Some((time, sign * (hours * 3600 + minutes * 60)))
}

fn parse_fraction(fraction: &str) -> Option<u64> {
    digits(fraction, 1..=18)?;
    format!("{fraction:0<7}")[..7].parse().ok()
}

pub struct Rfc1123(Timestamp);

impl fmt::Display for Rfc1123 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Civil { year, month, day, weekday, hour, minute, second, .. } = self.0.civil();
        let mut text = *b"Www, DD Mmm YYYY hh:mm:ss GMT";
        text[..3].copy_from_slice(WEEKDAYS[weekday].as_bytes());
        put_digits(&mut text[5..7], day);
        text[8..11].copy_from_slice(&MONTHS[month as usize - 1]);
        put_digits(&mut text[12..16], year);
        put_digits(&mut text[17..19], hour);
        put_digits(&mut text[20..22], minute);
        put_digits(&mut text[23..25], second);
        write_ascii(formatter, &text)
    }
}

/// The last digits of `number`, as many as there is room for. Every answer has several dates, and
/// the standard library takes ten times as long to format a padded number.
fn put_digits(room: &mut [u8], mut number: u64) {
    for digit in room.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

pub(crate) fn write_ascii(formatter: &mut fmt::Formatter<'_>, text: &[u8]) -> fmt::Result {
    formatter.write_str(std::str::from_utf8(text).map_err(|_| fmt::Error)?)
}

pub struct Iso8601(Timestamp);

impl fmt::Display for Iso8601 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_ascii(formatter, &iso8601_text(self.0))
    }
}

fn iso8601_text(time: Timestamp) -> [u8; 28] {
    let Civil { year, month, day, hour, minute, second, fraction, .. } = time.civil();
    let mut text = *b"YYYY-MM-DDThh:mm:ss.fffffffZ";
    put_digits(&mut text[..4], year);
    put_digits(&mut text[5..7], month);
    put_digits(&mut text[8..10], day);
    put_digits(&mut text[11..13], hour);
    put_digits(&mut text[14..16], minute);
    put_digits(&mut text[17..19], second);
    put_digits(&mut text[20..27], fraction);
    text
}

/// Holds the text itself, since every entity that is read has two of them.
pub struct Shortest {
    text: [u8; 28],
    length: usize,
}

impl Shortest {
    pub fn as_bytes(&self) -> &[u8] {
        &self.text[..self.length]
    }
}

impl fmt::Display for Shortest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_ascii(formatter, self.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc1123_dates_come_back_as_they_went_in() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Thu, 29 Feb 2024 23:59:59 GMT",
            "Fri, 31 Dec 9999 23:59:59 GMT",
            "Mon, 01 Jan 0001 00:00:00 GMT",
            "Thu, 01 Jan 1970 00:00:00 GMT",
            "Wed, 01 Mar 2000 00:00:00 GMT",
        ] {
            let parsed = Timestamp::parse_rfc1123(text).expect(text);
            assert_eq!(parsed.rfc1123().to_string(), text);
        }
    }

    #[test]
    fn every_form_of_iso8601_is_the_same_instant() {
        let expected = Timestamp::parse_rfc1123("Wed, 31 Jan 2024 12:34:00 GMT");
        for text in [
            "2024-01-31T12:34Z",
            "2024-01-31T12:34:00Z",
            "2024-01-31T12:34:00.0Z",
            "2024-01-31T12:34:00.0000000Z",
            "2024-01-31T14:34:00+02:00",
        ] {
            assert_eq!(Timestamp::parse_iso8601(text), expected, "{text}");
        }
        let day = Timestamp::parse_iso8601("2024-01-31").map(|day| day.iso8601().to_string());
        assert_eq!(day.as_deref(), Some("2024-01-31T00:00:00.0000000Z"));
        let exact = "2024-01-31T12:34:56.1234567Z";
        let parsed = Timestamp::parse_iso8601(exact).map(|time| time.iso8601().to_string());
        assert_eq!(parsed.as_deref(), Some(exact));
    }

    #[test]
    fn the_shortest_form_has_no_zeros_at_its_end() {
        for text in [
            "2024-01-31T12:34:56.1234567Z",
            "2024-01-31T12:34:56.12Z",
            "2024-01-31T12:34:56.0000001Z",
            "2024-01-31T12:34:50Z",
            "2024-01-31T00:00:00Z",
        ] {
            let parsed = Timestamp::parse_iso8601(text).map(|time| time.shortest().to_string());
            assert_eq!(parsed.as_deref(), Some(text));
        }
    }

    #[test]
    fn dates_that_do_not_exist_are_refused() {
        for text in [
            "2023-02-29",
            "2024-13-01",
            "2024-00-10",
            "2024-01-31T24:00:00Z",
            "x",
            "",
            "2024-01-31T12:34:56",
            "2024-1-31",
            "0000-01-01",
        ] {
            assert_eq!(Timestamp::parse_iso8601(text), None, "{text}");
        }
        for text in [
            "Sun, 32 Nov 1994 08:49:37 GMT",
            "06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 PST",
        ] {
            assert_eq!(Timestamp::parse_rfc1123(text), None, "{text}");
        }
    }

    #[test]
    fn unix_time_has_the_ticks_of_the_year_1970() {
        let epoch = Timestamp::from_unix(Duration::ZERO);
        assert_eq!(epoch.rfc1123().to_string(), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(Timestamp::from_unix(Duration::from_secs(86_400)).unix_seconds(), 86_400);
        assert_eq!(Timestamp::MAX.iso8601().to_string(), "9999-12-31T23:59:59.9999999Z");
    }
}
