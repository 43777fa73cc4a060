//! The query parameters of operations on messages, with their ranges by version.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdfast_domain::queue::{PopReceipt, TIME_TO_LIVE_DEFAULT};

use crate::error::{Code, Error};
use crate::url_query::{QueryRefusal, UrlQuery};
use crate::version::Version;

pub const VISIBILITY_TIMEOUT: &str = "visibilitytimeout";
const MESSAGE_COUNT: &str = "numofmessages";
const TIME_TO_LIVE: &str = "messagettl";
const POP_RECEIPT: &str = "popreceipt";

const MESSAGE_COUNT_MAX: i64 = 32;
const SEVEN_DAYS: i64 = 7 * 24 * 60 * 60;
const TWO_HOURS: i64 = 2 * 60 * 60;
const VISIBILITY_TIMEOUT_DEFAULT: i64 = 30;
/// A message that never expires.
const NEVER: i64 = -1;

pub fn message_count(query: &UrlQuery<'_>) -> Result<usize, Error> {
    let sent = query.integer(MESSAGE_COUNT, 1..=MESSAGE_COUNT_MAX)?;
    Ok(sent.and_then(|count| usize::try_from(count).ok()).unwrap_or(1))
}

/// How long messages are invisible after Get Messages.
pub fn visibility_of_got(query: &UrlQuery<'_>, version: Version) -> Result<Duration, Error> {
    let max = if version < Version::V2011_08_18 { TWO_HOURS } else { SEVEN_DAYS };
    let sent = query.integer(VISIBILITY_TIMEOUT, 1..=max)?;
    Ok(seconds(sent.unwrap_or(VISIBILITY_TIMEOUT_DEFAULT)))
}

/// How long a message is invisible after an update.
pub fn visibility_of_updated(query: &UrlQuery<'_>) -> Result<Duration, Error> {
    query.required(VISIBILITY_TIMEOUT)?;
    let sent = query.integer(VISIBILITY_TIMEOUT, 0..=SEVEN_DAYS)?;
    Ok(seconds(sent.unwrap_or(0)))
}

/// How long a new message is invisible, and when it expires.
pub fn times_of_put(
    query: &UrlQuery<'_>,
    version: Version,
) -> Result<(Duration, Option<Duration>), Error> {
    // Before 2011-08-18 a message was visible at once.
    let delay = match query.integer(VISIBILITY_TIMEOUT, 0..=SEVEN_DAYS)? {
        Some(delay) if version >= Version::V2011_08_18 => delay,
        Some(_) | None => 0,
    };
    let time_to_live = match query.integer(TIME_TO_LIVE, i64::MIN..=i64::MAX)? {
        None => TIME_TO_LIVE_DEFAULT.as_secs() as i64,
        Some(_) if version < Version::V2017_07_29 => {
            query.integer(TIME_TO_LIVE, 1..=SEVEN_DAYS)?.unwrap_or(SEVEN_DAYS)
        }
        Some(NEVER) => return Ok((seconds(delay), None)),
        Some(sent) if sent < 1 => {
            let reason = "It must be at least 1, or -1 for a message that never expires.";
            return Err(invalid(TIME_TO_LIVE, sent, reason));
        }
        Some(sent) => sent,
    };
    if delay >= time_to_live {
        return Err(invalid(VISIBILITY_TIMEOUT, delay, "It must be less than messagettl."));
    }
    Ok((seconds(delay), Some(seconds(time_to_live))))
}

pub fn pop_receipt(query: &UrlQuery<'_>) -> Result<PopReceipt, Error> {
    let text = query.required(POP_RECEIPT)?;
    let bytes = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
    let invalid = || QueryRefusal::InvalidValue { name: POP_RECEIPT, value: text.to_owned() };
    Ok(PopReceipt::from_bytes(bytes.ok_or_else(invalid)?))
}

pub fn pop_receipt_text(receipt: PopReceipt) -> String {
    URL_SAFE_NO_PAD.encode(receipt.to_bytes())
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

fn invalid(name: &'static str, value: i64, reason: &str) -> Error {
    Error::from(Code::InvalidQueryParameterValue)
        .detail("QueryParameterName", name)
        .detail("QueryParameterValue", value.to_string())
        .detail("Reason", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Version = Version::V2009_09_19;
    const BEFORE_ENDLESS: Version = Version::V2016_05_31;
    const NEW: Version = Version::V2019_02_02;

    fn query(raw: &str) -> UrlQuery<'_> {
        UrlQuery::parse(raw).expect(raw)
    }

    fn code<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Code {
        outcome.expect_err("it is refused").code
    }

    #[test]
    fn counts_and_visibility_have_their_ranges() {
        let out = Code::OutOfRangeQueryParameterValue;
        assert_eq!(message_count(&query("")).expect("the default"), 1);
        assert_eq!(message_count(&query("numofmessages=32")).expect("the most"), 32);
        for raw in ["numofmessages=0", "numofmessages=33", "numofmessages=-1"] {
            assert_eq!(code(message_count(&query(raw))), out, "5 {raw}");
        }
        let invalid = Code::InvalidQueryParameterValue;
        assert_eq!(code(message_count(&query("numofmessages=x"))), invalid);
        for (cell, version, sent, expected) in [
            ("5 default", NEW, "", Ok(30)),
            ("5 least", NEW, "visibilitytimeout=1", Ok(1)),
            ("5 too little", NEW, "visibilitytimeout=0", Err(out)),
            ("5 seven days", NEW, "visibilitytimeout=604800", Ok(604_800)),
            ("5 more", NEW, "visibilitytimeout=604801", Err(out)),
            ("5 two hours, old", OLD, "visibilitytimeout=7200", Ok(7200)),
            ("5 more, old", OLD, "visibilitytimeout=7201", Err(out)),
        ] {
            let got = visibility_of_got(&query(sent), version);
            let got = got.map(|time| time.as_secs()).map_err(|error| error.code);
            assert_eq!(got, expected, "{cell}");
        }
    }

    #[test]
    fn an_update_names_its_visibility() {
        let missing = Code::MissingRequiredQueryParameter;
        assert_eq!(code(visibility_of_updated(&query(""))), missing);
        let zero = visibility_of_updated(&query("visibilitytimeout=0")).expect("visible at once");
        assert_eq!(zero, Duration::ZERO);
        let out = Code::OutOfRangeQueryParameterValue;
        for raw in ["visibilitytimeout=-1", "visibilitytimeout=604801"] {
            assert_eq!(code(visibility_of_updated(&query(raw))), out, "{raw}");
        }
    }

    #[test]
    fn a_message_lives_as_long_as_its_version_lets_it() {
        let out = Code::OutOfRangeQueryParameterValue;
        let invalid = Code::InvalidQueryParameterValue;
        for (cell, version, raw, expected) in [
            ("5 default", NEW, "", Ok((0, Some(604_800)))),
            ("5 never expires", NEW, "messagettl=-1", Ok((0, None))),
            ("5 any positive number", NEW, "messagettl=9999999999", Ok((0, Some(9_999_999_999)))),
            ("5 zero", NEW, "messagettl=0", Err(invalid)),
            ("5 negative", NEW, "messagettl=-2", Err(invalid)),
            ("5 no number", NEW, "messagettl=week", Err(invalid)),
            ("5 old, seven days", BEFORE_ENDLESS, "messagettl=604800", Ok((0, Some(604_800)))),
            ("5 old, more", BEFORE_ENDLESS, "messagettl=604801", Err(out)),
            ("5 old, never", BEFORE_ENDLESS, "messagettl=-1", Err(out)),
            ("5 delay", NEW, "visibilitytimeout=5&messagettl=6", Ok((5, Some(6)))),
            ("5 delay as long", NEW, "visibilitytimeout=6&messagettl=6", Err(invalid)),
            ("5 delay of seven days", NEW, "visibilitytimeout=604800", Err(invalid)),
            (
                "5 delay of seven days, endless",
                NEW,
                "visibilitytimeout=604800&messagettl=-1",
                Ok((604_800, None)),
            ),
            ("5 delay, too long", NEW, "visibilitytimeout=604801&messagettl=-1", Err(out)),
            ("5 delay, oldest", OLD, "visibilitytimeout=5", Ok((0, Some(604_800)))),
        ] {
            let times = times_of_put(&query(raw), version);
            let times = times
                .map(|(delay, ttl)| (delay.as_secs(), ttl.map(|ttl| ttl.as_secs())))
                .map_err(|error| error.code);
            assert_eq!(times, expected, "{cell}");
        }
    }

    #[test]
    fn receipts_are_read_as_they_were_written() {
        let text = pop_receipt_text(PopReceipt::from_bytes([251; PopReceipt::BYTES]));
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
        let raw = format!("popreceipt={text}");
        let receipt = pop_receipt(&query(&raw)).expect("a receipt");
        assert_eq!(receipt.to_bytes(), [251; PopReceipt::BYTES]);
        assert_eq!(code(pop_receipt(&query(""))), Code::MissingRequiredQueryParameter);
        for raw in ["popreceipt=abc", "popreceipt=AAAA", "popreceipt=%20"] {
            assert_eq!(code(pop_receipt(&query(raw))), Code::InvalidQueryParameterValue, "{raw}");
        }
    }
}
