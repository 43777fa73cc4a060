//! ETags: of blobs, containers, shares and files (`"0x8D…"`), and of table entities (the entity's
//! own timestamp). Clients keep them as opaque text; only this module knows how they are made.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::time::{Timestamp, write_ascii};

/// A number that no other state of the same object has. Shown in quotes, as the services do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ETag(u64);

impl ETag {
    pub const fn from_ticks(ticks: u64) -> Self {
        Self(ticks)
    }

    pub const fn ticks(self) -> u64 {
        self.0
    }

    /// The text without quotes, as listings and the older API versions show it.
    pub fn unquoted(self) -> UnquotedETag {
        UnquotedETag(self)
    }

    /// Reads the text that [`ETag`] is shown as, with or without its quotes. Only that exact text:
    /// `"0x08d"` and `"0x8d"` are not the ETag `"0x8D"`, because ETags are compared as text.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let inner = match text.strip_prefix('"') {
            Some(rest) => rest.strip_suffix('"')?,
            None => text,
        };
        let digits = inner.strip_prefix("0x")?;
        let upper = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'));
        if !upper || (digits.starts_with('0') && digits != "0") {
            return None;
        }
        u64::from_str_radix(digits, 16).ok().map(Self)
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Built piece by piece, the text would be reallocated three times.
        let (mut text, mut start) = ([b'"'; 20], 19);
        let mut rest = self.0;
        loop {
            start -= 1;
            text[start] = b"0123456789ABCDEF"[(rest % 16) as usize];
            rest /= 16;
            if rest == 0 {
                break;
            }
        }
        text[start - 2..start].copy_from_slice(b"0x");
        write_ascii(formatter, &text[start - 3..])
    }
}

pub struct UnquotedETag(ETag);

impl fmt::Display for UnquotedETag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "0x{:X}", self.0.0)
    }
}

/// Gives out ETags that only increase, whatever the clock does.
#[derive(Debug, Default)]
pub struct ETagSource(AtomicU64);

impl ETagSource {
    /// Greater than every ETag given before, also within one tick and when `now` goes back.
    pub fn next(&self, now: Timestamp) -> ETag {
        // No other memory depends on the counter, so relaxed ordering is enough.
        let mut last = self.0.load(Ordering::Relaxed);
        loop {
            let next = now.ticks().max(last + 1);
            match self.0.compare_exchange_weak(last, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return ETag(next),
                Err(current) => last = current,
            }
        }
    }

    /// Makes every later ETag greater than `seen`, for instance the greatest one stored before a
    /// restart.
    pub fn resume_above(&self, seen: ETag) {
        self.0.fetch_max(seen.0, Ordering::Relaxed);
    }
}

/// The ETag of a table entity: `W/"datetime'2024-01-31T12%3A34%3A56.1234567Z'"`, its Timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityETag(Timestamp);

impl EntityETag {
    pub const fn new(timestamp: Timestamp) -> Self {
        Self(timestamp)
    }

    pub const fn timestamp(self) -> Timestamp {
        self.0
    }

    /// Colons may come as they are or escaped, in either case of the escape.
    pub fn parse(text: &str) -> Option<Self> {
        let encoded = text.trim().strip_prefix("W/\"datetime'")?.strip_suffix("'\"")?;
        let plain = encoded.replace("%3A", ":").replace("%3a", ":");
        // A bare day or an offset is a point in time, but never the text of an ETag.
        if !plain.contains('T') || !plain.ends_with('Z') {
            return None;
        }
        Timestamp::parse_iso8601(&plain).map(Self)
    }
}

impl fmt::Display for EntityETag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Built piece by piece, the text would be reallocated six times.
        let mut text = *b"W/\"datetime'YYYY-MM-DDThh%3Amm%3Ass.fffffffZ'\"";
        let time = self.0.shortest();
        let (hour, minute, second) =
            (&time.as_bytes()[..13], &time.as_bytes()[14..16], &time.as_bytes()[17..]);
        text[12..25].copy_from_slice(hour);
        text[28..30].copy_from_slice(minute);
        let end = 33 + second.len();
        text[33..end].copy_from_slice(second);
        text[end..end + 2].copy_from_slice(b"'\"");
        write_ascii(formatter, &text[..end + 2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etags_are_read_back_with_and_without_quotes() {
        for (ticks, text) in [
            (0x8DC_221A_BCDE_F123, "0x8DC221ABCDEF123"),
            (0, "0x0"),
            (u64::MAX, "0xFFFFFFFFFFFFFFFF"),
        ] {
            let etag = ETag::from_ticks(ticks);
            assert_eq!(etag.unquoted().to_string(), text);
            assert_eq!(etag.to_string(), format!("\"{text}\""));
            assert_eq!(ETag::parse(text), Some(etag), "{text}");
            assert_eq!(ETag::parse(&etag.to_string()), Some(etag), "{text}");
            assert_eq!(ETag::parse(&format!(" {etag} ")), Some(etag), "spaces around {text}");
        }
    }

    #[test]
    fn text_that_is_no_etag_of_ours_is_not_read() {
        for text in [
            "",
            "*",
            "\"\"",
            "0x",
            "\"0x8D",
            "0x8D\"",
            "\"0x8d\"",
            "\"0x08D\"",
            "0x+8D",
            "8D",
            "\"abc\"",
            "W/\"0x8D\"",
            "0x10000000000000000",
        ] {
            assert_eq!(ETag::parse(text), None, "{text}");
        }
    }

    #[test]
    fn each_etag_is_greater_than_the_last_whatever_the_clock_does() {
        let source = ETagSource::default();
        let mut last = source.next(Timestamp::from_ticks(1000));
        assert_eq!(last, ETag::from_ticks(1000));
        for (case, now) in [
            ("the same tick", 1000),
            ("the clock went back", 10),
            ("still behind", 1001),
            ("the clock moved on", 5000),
            ("the same tick again", 5000),
        ] {
            let next = source.next(Timestamp::from_ticks(now));
            assert!(next > last, "{case}");
            last = next;
        }
        assert_eq!(last, ETag::from_ticks(5001));
    }

    #[test]
    fn a_resumed_source_stays_above_what_was_given_before_the_restart() {
        let source = ETagSource::default();
        source.resume_above(ETag::from_ticks(900));
        assert_eq!(source.next(Timestamp::from_ticks(5)), ETag::from_ticks(901));
        source.resume_above(ETag::from_ticks(3));
        assert_eq!(source.next(Timestamp::from_ticks(5)), ETag::from_ticks(902));
    }

    #[test]
    fn threads_never_get_the_same_etag() {
        let source = ETagSource::default();
        let mut all: Vec<ETag> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..2000).map(|_| source.next(Timestamp::from_ticks(7))).collect::<Vec<_>>()
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("thread")).collect()
        });
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 8000);
    }

    #[test]
    fn entity_etags_are_the_encoded_timestamp() {
        let text = "W/\"datetime'2024-01-31T12%3A34%3A56.1234567Z'\"";
        let timestamp = Timestamp::parse_iso8601("2024-01-31T12:34:56.1234567Z").expect("time");
        let etag = EntityETag::new(timestamp);
        assert_eq!(etag.to_string(), text);
        for form in [
            text,
            "W/\"datetime'2024-01-31T12%3a34%3a56.1234567Z'\"",
            "W/\"datetime'2024-01-31T12:34:56.1234567Z'\"",
        ] {
            assert_eq!(EntityETag::parse(form).map(EntityETag::timestamp), Some(timestamp));
        }
        let whole = EntityETag::new(timestamp.whole_seconds()).to_string();
        assert_eq!(whole, "W/\"datetime'2024-01-31T12%3A34%3A56Z'\"");
        for bad in [
            "",
            "*",
            "\"0x8D\"",
            "W/\"0x8D\"",
            "W/\"datetime''\"",
            "W/\"datetime'2024-01-31'\"",
            "W/\"datetime'2024-01-31T12%3A34%3A56.1234567+00:00'\"",
            "datetime'2024-01-31T12%3A34%3A56.1234567Z'",
        ] {
            assert_eq!(EntityETag::parse(bad), None, "{bad}");
        }
    }
}
