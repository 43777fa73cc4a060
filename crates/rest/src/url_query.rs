//! The query of a request: decoded parameters, looked up without regard to case.

use std::borrow::Cow;

use percent_encoding::percent_decode;

/// More parameters than any client sends; bounds the cost of lookups in one request.
const PARAMETERS_MAX: usize = 256;

#[derive(Clone, Debug, Default)]
pub struct UrlQuery<'a> {
    parameters: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryRefusal {
    /// The query is not percent-encoded UTF-8, or has too many parameters.
    #[error("the query string cannot be read")]
    Unreadable,
    #[error("query parameter {name} is missing")]
    Missing { name: &'static str },
    #[error("query parameter {name} cannot be {value:?}")]
    InvalidValue { name: &'static str, value: String },
    #[error("query parameter {name} is {value}, but is allowed from {minimum} to {maximum}")]
    OutOfRange { name: &'static str, value: String, minimum: i64, maximum: i64 },
}

impl<'a> UrlQuery<'a> {
    /// `raw` is what follows the `?`. A plus sign is a space: SDKs write a space as `%20` and a
    /// plus as `%2B`, form encoders write a space as `+`.
    pub fn parse(raw: &'a str) -> Result<Self, QueryRefusal> {
        let mut parameters = Vec::new();
        for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
            if parameters.len() == PARAMETERS_MAX {
                return Err(QueryRefusal::Unreadable);
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode = |text| decode(text, Plus::IsSpace).ok_or(QueryRefusal::Unreadable);
            parameters.push((decode(name)?, decode(value)?));
        }
        Ok(Self { parameters })
    }

    /// Every parameter in the order sent, decoded, with the case of its name as sent.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parameters.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))
    }

    /// Every parameter, owned.
    pub fn to_pairs(&self) -> Vec<(String, String)> {
        self.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// The first value of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(sent, _)| sent.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The first value of that name, unless it is empty: `prefix=` is the same as no prefix.
    pub fn get_nonempty(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    pub fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.iter().filter(move |(sent, _)| sent.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn required(&self, name: &'static str) -> Result<&str, QueryRefusal> {
        self.get_nonempty(name).ok_or(QueryRefusal::Missing { name })
    }

    /// The whole number of that name, if it is sent.
    pub fn integer(
        &self,
        name: &'static str,
        range: std::ops::RangeInclusive<i64>,
    ) -> Result<Option<i64>, QueryRefusal> {
        let Some(value) = self.get_nonempty(name) else { return Ok(None) };
        let invalid = || QueryRefusal::InvalidValue { name, value: value.to_owned() };
        let number: i64 = value.parse().map_err(|_| invalid())?;
        if !range.contains(&number) {
            return Err(QueryRefusal::OutOfRange {
                name,
                value: value.to_owned(),
                minimum: *range.start(),
                maximum: *range.end(),
            });
        }
        Ok(Some(number))
    }

    /// `true` or `false` of that name, if it is sent.
    pub fn boolean(&self, name: &'static str) -> Result<Option<bool>, QueryRefusal> {
        match self.get_nonempty(name) {
            None => Ok(None),
            Some(value) if value.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(value) if value.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(value) => Err(QueryRefusal::InvalidValue { name, value: value.to_owned() }),
        }
    }

    /// The listing page size: absent is `cap`, and more than `cap` is cut to it.
    pub fn page_size(&self, cap: u32) -> Result<u32, QueryRefusal> {
        let sent = self.integer("maxresults", 1..=i64::from(i32::MAX))?;
        Ok(sent.and_then(|sent| u32::try_from(sent).ok()).map_or(cap, |sent| sent.min(cap)))
    }
}

/// What a plus sign means: itself in a path, a space in a query.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plus {
    IsPlus,
    IsSpace,
}

/// Percent-decodes; `None` if an escape is broken or the result is not UTF-8.
pub(crate) fn decode(text: &str, plus: Plus) -> Option<Cow<'_, str>> {
    let plus_is_space = plus == Plus::IsSpace;
    let bytes = text.as_bytes();
    let coded = match plus {
        Plus::IsPlus => memchr::memchr(b'%', bytes),
        Plus::IsSpace => memchr::memchr2(b'%', b'+', bytes),
    };
    if coded.is_none() {
        return Some(Cow::Borrowed(text));
    }
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%') {
        if !bytes.get(at + 1..at + 3)?.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
    }
    let text = if plus_is_space && bytes.contains(&b'+') {
        Cow::Owned(text.replace('+', " "))
    } else {
        Cow::Borrowed(text)
    };
    String::from_utf8(percent_decode(text.as_bytes()).collect()).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(raw: &str) -> UrlQuery<'_> {
        UrlQuery::parse(raw).expect(raw)
    }

    #[test]
    fn names_are_found_in_any_case_and_values_are_decoded() {
        let query = parsed("Comp=list&PREFIX=a%2Fb%20c&%24filter=x&empty=&flag");
        assert_eq!(query.get("comp"), Some("list"));
        assert_eq!(query.get("prefix"), Some("a/b c"));
        assert_eq!(query.get("$filter"), Some("x"));
        assert_eq!(query.get("empty"), Some(""));
        assert_eq!(query.get_nonempty("empty"), None);
        assert_eq!(query.get("flag"), Some(""));
        assert_eq!(query.get("absent"), None);
    }

    #[test]
    fn a_plus_is_a_space_and_an_encoded_plus_is_a_plus() {
        let query = parsed("a=1+2&b=1%2B2&c=%2B+%2b");
        assert_eq!(query.get("a"), Some("1 2"));
        assert_eq!(query.get("b"), Some("1+2"));
        assert_eq!(query.get("c"), Some("+ +"));
    }

    #[test]
    fn duplicates_keep_their_order_and_the_first_wins() {
        let query = parsed("a=2&A=1&a=2");
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["2", "1", "2"]);
        assert_eq!(query.get("A"), Some("2"));
    }

    #[test]
    fn a_value_may_contain_equal_signs_and_stray_ampersands_are_skipped() {
        let query = parsed("&sig=abc=&&x=1&");
        assert_eq!(query.get("sig"), Some("abc="));
        assert_eq!(query.iter().count(), 2);
    }

    #[test]
    fn broken_escapes_foreign_bytes_and_floods_are_refused() {
        for raw in ["a=%", "a=%4", "a=%zz", "%GG=1", "a=%FF", "a=%C3%28", "a=%é"] {
            assert_eq!(UrlQuery::parse(raw).err(), Some(QueryRefusal::Unreadable), "{raw}");
        }
        let flood = "a&".repeat(PARAMETERS_MAX + 1);
        assert_eq!(UrlQuery::parse(&flood).err(), Some(QueryRefusal::Unreadable));
        assert_eq!(parsed(&"a&".repeat(PARAMETERS_MAX)).iter().count(), PARAMETERS_MAX);
    }

    #[test]
    fn integers_are_refused_outside_their_range_with_its_bounds() {
        let query = parsed("n=33&zero=0&text=ten&huge=99999999999999999999&minus=-1&none=");
        let outside =
            QueryRefusal::OutOfRange { name: "n", value: "33".to_owned(), minimum: 1, maximum: 32 };
        assert_eq!(query.integer("n", 1..=32), Err(outside));
        assert_eq!(query.integer("n", 1..=33), Ok(Some(33)));
        assert_eq!(query.integer("minus", -1..=5), Ok(Some(-1)));
        assert_eq!(query.integer("none", 1..=5), Ok(None));
        for name in ["text", "huge"] {
            let refusal = query.integer(name, 0..=5);
            assert!(matches!(refusal, Err(QueryRefusal::InvalidValue { .. })), "{name}");
        }
    }

    #[test]
    fn page_sizes_default_to_the_cap_are_cut_to_it_and_refuse_zero() {
        assert_eq!(parsed("").page_size(5000), Ok(5000));
        assert_eq!(parsed("maxresults=10").page_size(5000), Ok(10));
        assert_eq!(parsed("maxresults=6000").page_size(5000), Ok(5000));
        for zero in ["maxresults=0", "maxresults=-5"] {
            assert!(matches!(parsed(zero).page_size(5000), Err(QueryRefusal::OutOfRange { .. })));
        }
    }

    #[test]
    fn booleans_are_true_or_false() {
        assert_eq!(parsed("a=TRUE").boolean("a"), Ok(Some(true)));
        assert_eq!(parsed("a=false").boolean("a"), Ok(Some(false)));
        assert_eq!(parsed("a=").boolean("a"), Ok(None));
        assert!(parsed("a=1").boolean("a").is_err());
    }
}
