//! The properties that SMB and NFS clients see, as a request sends them. Which are allowed depends
//! on the operation, which are required also on the version.

use holdfast_domain::share::Attributes;
use holdfast_domain::time::Timestamp;

use super::attributes;
use super::permission::{self, Format, KEY as PERMISSION_KEY};
use crate::error::Error;
use crate::request::Call;
use crate::version::Version;

const ATTRIBUTES: &str = "x-ms-file-attributes";
const CREATED: &str = "x-ms-file-creation-time";
const WRITTEN: &str = "x-ms-file-last-write-time";
const CHANGED: &str = "x-ms-file-change-time";
const PERMISSION: &str = "x-ms-file-permission";
const SEMANTICS: &str = "x-ms-file-property-semantics";

/// A longer descriptor must be sent to Create Permission first.
const PERMISSION_BYTES_MAX: usize = 8 * 1024;

/// The kind of operation that the properties are sent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Create,
    Set,
    Rename,
    Copy,
}

impl Purpose {
    /// Whether `preserve` is allowed.
    fn preserves(self) -> bool {
        matches!(self, Self::Set | Self::Rename)
    }

    /// Whether `source` is allowed.
    fn has_source(self) -> bool {
        self == Self::Copy
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentProperties {
    pub attributes: Option<Sent<Attributes>>,
    pub created: Option<Sent<Time>>,
    pub written: Option<Sent<Time>>,
    pub changed: Option<Sent<Time>>,
    pub permission: Option<Sent<Permission>>,
}

/// A value, or its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent<T> {
    /// Unchanged.
    Preserved,
    /// From the source of a copy.
    OfSource,
    Value(T),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    Now,
    At(Timestamp),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permission {
    /// From the directory that it is in.
    Inherited,
    Key(String),
    Described(String, Format),
}

/// `x-ms-file-property-semantics`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Semantics {
    /// The new node gets the archive attribute and inherits permissions.
    #[default]
    New,
    /// Everything is set as sent.
    Restore,
}

pub fn read(
    call: &Call<'_>,
    purpose: Purpose,
    is_directory: bool,
) -> Result<SentProperties, Error> {
    let first = if purpose == Purpose::Copy { Version::V2019_07_07 } else { Version::V2019_02_02 };
    if call.version < first {
        return Ok(SentProperties::default());
    }
    let time = |name| time_header(call, name, purpose);
    let sent = SentProperties {
        attributes: attributes_header(call, purpose, is_directory)?,
        created: time(CREATED)?,
        written: time(WRITTEN)?,
        changed: if call.version >= Version::V2021_06_08 { time(CHANGED)? } else { None },
        permission: permission_headers(call, purpose)?,
    };
    let required =
        matches!(purpose, Purpose::Create | Purpose::Set) && call.version < Version::V2021_06_08;
    for (name, missing) in [
        (ATTRIBUTES, sent.attributes.is_none()),
        (CREATED, sent.created.is_none()),
        (WRITTEN, sent.written.is_none()),
        (PERMISSION, sent.permission.is_none()),
    ] {
        if required && missing {
            return Err(Error::missing_header(name));
        }
    }
    Ok(sent)
}

pub fn semantics(call: &Call<'_>) -> Result<Semantics, Error> {
    if call.version < Version::V2026_02_06 {
        return Ok(Semantics::New);
    }
    match call.header(SEMANTICS)? {
        None => Ok(Semantics::New),
        Some(text) if text.eq_ignore_ascii_case("New") => Ok(Semantics::New),
        Some(text) if text.eq_ignore_ascii_case("Restore") => Ok(Semantics::Restore),
        Some(text) => Err(Error::invalid_header(SEMANTICS, text)),
    }
}

/// `x-ms-file-last-write-time` of Put Range, which takes two words and no dates: whether the time
/// stays unchanged.
pub fn preserves_written(call: &Call<'_>) -> Result<bool, Error> {
    if call.version < Version::V2021_06_08 {
        return Ok(false);
    }
    match call.header(WRITTEN)? {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("now") => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("preserve") => Ok(true),
        Some(text) => Err(Error::invalid_header(WRITTEN, text)),
    }
}

fn attributes_header(
    call: &Call<'_>,
    purpose: Purpose,
    is_directory: bool,
) -> Result<Option<Sent<Attributes>>, Error> {
    let Some(text) = call.header(ATTRIBUTES)? else { return Ok(None) };
    let value = |text: &str| attributes::parse(text, is_directory);
    parse(text, purpose, value).map(Some).ok_or_else(|| Error::invalid_header(ATTRIBUTES, text))
}

fn time_header(
    call: &Call<'_>,
    name: &'static str,
    purpose: Purpose,
) -> Result<Option<Sent<Time>>, Error> {
    let Some(text) = call.header(name)? else { return Ok(None) };
    parse(text, purpose, time).map(Some).ok_or_else(|| Error::invalid_header(name, text))
}

fn permission_headers(
    call: &Call<'_>,
    purpose: Purpose,
) -> Result<Option<Sent<Permission>>, Error> {
    let key = call.header(PERMISSION_KEY)?;
    let format = match call.version >= Version::V2024_11_04 {
        true => permission::format(call)?.unwrap_or_default(),
        false => Format::default(),
    };
    match (call.header(PERMISSION)?, key) {
        (None, None) => Ok(None),
        (None, Some(key)) => Ok(Some(Sent::Value(Permission::Key(key.to_owned())))),
        // It is ambiguous which of them is meant.
        (Some(_), Some(key)) => Err(Error::invalid_header(PERMISSION_KEY, key)),
        (Some(text), None) if text.len() > PERMISSION_BYTES_MAX => {
            Err(Error::invalid_header(PERMISSION, "longer than 8 KiB"))
        }
        (Some(text), None) => {
            let sent = parse(text, purpose, |text| Some(described(text, format)));
            sent.map(Some).ok_or_else(|| Error::invalid_header(PERMISSION, text))
        }
    }
}

/// One of the two words, if allowed here, or else a value.
fn parse<T>(text: &str, purpose: Purpose, value: impl Fn(&str) -> Option<T>) -> Option<Sent<T>> {
    if text.eq_ignore_ascii_case("preserve") {
        return purpose.preserves().then_some(Sent::Preserved);
    }
    if text.eq_ignore_ascii_case("source") {
        return purpose.has_source().then_some(Sent::OfSource);
    }
    value(text).map(Sent::Value)
}

fn time(text: &str) -> Option<Time> {
    if text.eq_ignore_ascii_case("now") {
        return Some(Time::Now);
    }
    Timestamp::parse_iso8601(text).map(Time::At)
}

fn described(text: &str, format: Format) -> Permission {
    if text.eq_ignore_ascii_case("inherit") {
        Permission::Inherited
    } else {
        Permission::Described(text.to_owned(), format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_something_where_there_is_something_they_mean() {
        let kept = |purpose| parse("preserve", purpose, time).is_some();
        let sourced = |purpose| parse("source", purpose, time).is_some();
        for (purpose, preserves, has_source) in [
            (Purpose::Create, false, false),
            (Purpose::Set, true, false),
            (Purpose::Rename, true, false),
            (Purpose::Copy, false, true),
        ] {
            assert_eq!((kept(purpose), sourced(purpose)), (preserves, has_source), "{purpose:?}");
        }
    }

    #[test]
    fn times_are_now_or_a_date() {
        let at = |text: &str| match time(text) {
            Some(Time::Now) => Some("now".to_owned()),
            Some(Time::At(moment)) => Some(moment.iso8601().to_string()),
            None => None,
        };
        for (text, expected) in [
            ("now", Some("now")),
            ("Now", Some("now")),
            ("2024-01-31T12:34:56.1234567Z", Some("2024-01-31T12:34:56.1234567Z")),
            ("2024-01-31T12:34:56Z", Some("2024-01-31T12:34:56.0000000Z")),
            ("1601-01-01T00:00:00.0000000Z", Some("1601-01-01T00:00:00.0000000Z")),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(at(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_permission_is_inherited_or_described() {
        let sent = |text: &str, format| Permission::Described(text.to_owned(), format);
        for (text, format, expected) in [
            ("inherit", Format::Sddl, Permission::Inherited),
            ("Inherit", Format::Binary, Permission::Inherited),
            ("O:SYG:SYD:", Format::Sddl, sent("O:SYG:SYD:", Format::Sddl)),
            ("AQAUhA==", Format::Binary, sent("AQAUhA==", Format::Binary)),
        ] {
            assert_eq!(described(text, format), expected);
        }
    }
}
