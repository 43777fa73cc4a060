//! The range of a download that a request asks for.

use holdfast_domain::content::ReadRange;

use crate::headers::RequestHeaders;

/// 400 `InvalidHeaderValue`
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("header {name} cannot be {value:?}")]
pub struct RangeRefusal {
    pub name: &'static str,
    pub value: String,
}

/// From `x-ms-range`, or else `Range`. Another unit or several ranges are ignored in `Range`, as in
/// HTTP, and refused in `x-ms-range`.
pub fn requested(headers: &RequestHeaders) -> Result<Option<ReadRange>, RangeRefusal> {
    const OWN: &str = "x-ms-range";
    if let Some(sent) = headers.get(OWN) {
        return match parse(sent) {
            Some(range) => Ok(Some(range)),
            None => {
                Err(RangeRefusal { name: OWN, value: String::from_utf8_lossy(sent).into_owned() })
            }
        };
    }
    Ok(headers.get("range").and_then(parse))
}

/// `bytes=first-last` or `bytes=first-`.
pub(crate) fn parse(text: &[u8]) -> Option<ReadRange> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let (unit, range) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    let first = number(first)?;
    let last = if last.trim().is_empty() { None } else { Some(number(last)?) };
    if last.is_some_and(|last| last < first) {
        return None;
    }
    Some(ReadRange { first, last })
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(range: Option<&str>, own: Option<&str>) -> Result<Option<(u64, Option<u64>)>, String> {
        let sent = range.map(|range| ("range", range));
        let headers: RequestHeaders =
            sent.into_iter().chain(own.map(|own| ("x-ms-range", own))).collect();
        match requested(&headers) {
            Ok(range) => Ok(range.map(|range| (range.first, range.last))),
            Err(refusal) => Err(refusal.value),
        }
    }

    #[test]
    fn both_forms_of_a_range_are_read() {
        assert_eq!(asked(None, None), Ok(None));
        assert_eq!(asked(Some("bytes=0-0"), None), Ok(Some((0, Some(0)))));
        assert_eq!(asked(Some("bytes=5-"), None), Ok(Some((5, None))));
        assert_eq!(asked(None, Some("Bytes=5-9")), Ok(Some((5, Some(9)))));
        let widest = format!("bytes=0-{}", u64::MAX);
        assert_eq!(asked(Some(&widest), None), Ok(Some((0, Some(u64::MAX)))));
    }

    #[test]
    fn the_own_header_wins() {
        assert_eq!(asked(Some("bytes=0-1"), Some("bytes=5-9")), Ok(Some((5, Some(9)))));
        assert_eq!(asked(Some("nonsense"), Some("bytes=5-9")), Ok(Some((5, Some(9)))));
    }

    #[test]
    fn what_is_no_range_is_ignored_in_range_and_refused_in_the_own_header() {
        for text in [
            "",
            "bytes",
            "bytes=",
            "bytes=-5",
            "bytes=5",
            "bytes=9-5",
            "bytes=0-1,4-5",
            "bytes=+1-2",
            "bytes=a-b",
            "items=0-1",
            "bytes=18446744073709551616-",
        ] {
            assert_eq!(asked(Some(text), None), Ok(None), "{text}");
            assert_eq!(asked(None, Some(text)), Err(text.to_owned()), "{text}");
        }
    }
}
