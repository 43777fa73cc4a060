//! The formats of the Table service: JSON with more or less metadata.

use crate::error::{Code, Error};
use crate::version::Version;

/// How much metadata the answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    None,
    Minimal,
    Full,
}

impl Level {
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::None => "application/json;odata=nometadata;streaming=true;charset=utf-8",
            Self::Minimal => "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
            Self::Full => "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
        }
    }

    const ALL: [Self; 3] = [Self::None, Self::Minimal, Self::Full];

    /// As written by the official clients.
    const fn media_type(self) -> &'static str {
        match self {
            Self::None => "application/json;odata=nometadata",
            Self::Minimal => "application/json;odata=minimalmetadata",
            Self::Full => "application/json;odata=fullmetadata",
        }
    }

    fn parse(odata: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| {
            let named = level.media_type().rsplit_once('=');
            named.is_some_and(|(_, name)| name.eq_ignore_ascii_case(odata))
        })
    }
}

/// The media types that this service distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Media {
    Json(Level),
    Any,
    /// `application/json;odata=verbose`, which only version 2 of the protocol had.
    JsonVerbose,
    Atom,
    Other,
}

impl Media {
    fn parse(text: &str) -> Self {
        if let Some(level) = Level::ALL.into_iter().find(|level| level.media_type() == text) {
            return Self::Json(level);
        }
        let mut pieces = text.split(';').map(str::trim);
        let kind = pieces.next().unwrap_or_default();
        let odata = pieces.find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("odata").then_some(value.trim())
        });
        let is = |name: &str| kind.eq_ignore_ascii_case(name);
        match odata {
            _ if is("*/*") || is("application/*") => Self::Any,
            _ if is("application/atom+xml") || is("application/atomsvc+xml") => Self::Atom,
            _ if is("application/xml") || is("text/xml") => Self::Atom,
            _ if !is("application/json") => Self::Other,
            None => Self::Json(Level::Minimal),
            Some(odata) if odata.eq_ignore_ascii_case("verbose") => Self::JsonVerbose,
            Some(odata) => Level::parse(odata).map_or(Self::Other, Self::Json),
        }
    }

    /// The refusal of this media type.
    fn refusal(self) -> Code {
        match self {
            Self::Atom => Code::AtomFormatNotSupported,
            Self::JsonVerbose => Code::JsonFormatNotSupported,
            Self::Json(_) | Self::Any | Self::Other => Code::MediaTypeNotSupported,
        }
    }
}

/// The level of the answer: from `$format`, or from the first supported media type in `Accept`.
pub fn accepted(accept: Option<&str>, format: Option<&str>) -> Result<Level, Error> {
    // The plus in atom+xml may have been decoded to a space.
    if let Some(format) = format {
        return match Media::parse(format) {
            Media::Json(level) => Ok(level),
            _ if format.eq_ignore_ascii_case("json") => Ok(Level::Minimal),
            other @ (Media::Any | Media::JsonVerbose | Media::Atom | Media::Other) => {
                Err(other.refusal().into())
            }
        };
    }
    let Some(accept) = accept else { return Ok(Level::Minimal) };
    let mut refusal = None;
    for text in accept.split(',') {
        match Media::parse(text) {
            Media::Json(level) => return Ok(level),
            Media::Any => return Ok(Level::Minimal),
            other @ (Media::JsonVerbose | Media::Atom | Media::Other) => {
                refusal.get_or_insert(other.refusal());
            }
        }
    }
    Err(refusal.unwrap_or(Code::MediaTypeNotSupported).into())
}

/// Whether a body of this type is accepted. Without a type, JSON is assumed.
pub fn check_content_type(content_type: Option<&str>) -> Result<(), Error> {
    match content_type.map(Media::parse) {
        None | Some(Media::Json(_)) => Ok(()),
        Some(other @ (Media::Any | Media::JsonVerbose | Media::Atom | Media::Other)) => {
            Err(other.refusal().into())
        }
    }
}

/// Whether this version of the service supports JSON for these versions of the protocol.
/// MaxDataServiceVersion takes precedence over DataServiceVersion.
pub fn check_versions(
    version: Version,
    spoken: Option<&str>,
    understood: Option<&str>,
) -> Result<(), Error> {
    if version < Version::V2013_08_15 {
        return Err(Code::JsonFormatNotSupported.into());
    }
    let protocol = match (understood, spoken) {
        (Some(text), _) | (None, Some(text)) => Some(protocol_version(text)?),
        (None, None) => None,
    };
    match protocol {
        Some(protocol) if protocol < 3 => Err(Code::JsonFormatNotSupported.into()),
        Some(_) => Ok(()),
        // Since JSON is the only format, it need not be requested.
        None if version >= Version::V2015_12_11 => Ok(()),
        None => Err(Code::JsonFormatNotSupported.into()),
    }
}

/// `3.0`, `3.0;NetFx`
fn protocol_version(text: &str) -> Result<u8, Error> {
    let number = text.split(';').next().unwrap_or_default().trim();
    match number {
        "1.0" => Ok(1),
        "2.0" => Ok(2),
        "3.0" => Ok(3),
        _ => Err(Code::InvalidInput.into()),
    }
}

/// Whether the answer contains the created entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    Content,
    NoContent,
}

impl Preference {
    /// The header `Prefer`; other preferences are ignored, as HTTP allows.
    pub fn parse(prefer: Option<&str>) -> Option<Self> {
        prefer?.split(',').find_map(|preference| match preference.trim() {
            "return-content" => Some(Self::Content),
            "return-no-content" => Some(Self::NoContent),
            _ => None,
        })
    }

    /// For the header `Preference-Applied`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Content => "return-content",
            Self::NoContent => "return-no-content",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(result: Result<T, Error>) -> Result<T, Code> {
        result.map_err(|error| error.code)
    }

    #[test]
    fn the_level_comes_from_the_first_type_that_can_be_given() {
        use Level::{Full, Minimal, None as No};
        let atom = Err(Code::AtomFormatNotSupported);
        let other = Err(Code::MediaTypeNotSupported);
        for (accept, format, expected) in [
            (None, None, Ok(Minimal)),
            (Some("application/json"), None, Ok(Minimal)),
            (Some("application/json;odata=nometadata"), None, Ok(No)),
            (Some("application/json; odata=NoMetadata; charset=utf-8"), None, Ok(No)),
            (Some("application/json;odata=minimalmetadata"), None, Ok(Minimal)),
            (Some("application/json;odata=fullmetadata"), None, Ok(Full)),
            (Some("Application/JSON;OData=fullmetadata"), None, Ok(Full)),
            (Some("*/*"), None, Ok(Minimal)),
            (Some("application/*"), None, Ok(Minimal)),
            (Some("application/atom+xml,application/json;odata=nometadata"), None, Ok(No)),
            (Some("text/html, */*; q=0.8"), None, Ok(Minimal)),
            (Some("application/atom+xml"), None, atom),
            (Some("application/atom+xml,application/xml"), None, atom),
            (Some("application/xml"), None, atom),
            (Some("text/html"), None, other),
            (Some("application/json;odata=verbose"), None, Err(Code::JsonFormatNotSupported)),
            (Some("application/json;odata=some"), None, other),
            (Some("text/html"), Some("application/json;odata=nometadata"), Ok(No)),
            (Some("application/json"), Some("application/atom+xml"), atom),
            (None, Some("json"), Ok(Minimal)),
            (None, Some("atom"), other),
        ] {
            assert_eq!(code(accepted(accept, format)), expected, "4.1, 4.3 {accept:?} {format:?}");
        }
    }

    #[test]
    fn only_json_is_taken_in() {
        for (content_type, expected) in [
            (None, Ok(())),
            (Some("application/json"), Ok(())),
            (Some("application/json; charset=utf-8"), Ok(())),
            (Some("application/json;odata=nometadata"), Ok(())),
            (Some("application/atom+xml"), Err(Code::AtomFormatNotSupported)),
            (Some("application/atom+xml; charset=utf-8"), Err(Code::AtomFormatNotSupported)),
            (Some("application/json;odata=verbose"), Err(Code::JsonFormatNotSupported)),
            (Some("text/plain"), Err(Code::MediaTypeNotSupported)),
        ] {
            assert_eq!(code(check_content_type(content_type)), expected, "4.1 {content_type:?}");
        }
    }

    #[test]
    fn json_takes_a_version_of_the_service_and_of_the_protocol_that_has_it() {
        let refused = Err(Code::JsonFormatNotSupported);
        for (version, spoken, understood, expected) in [
            (Version::V2012_02_12, Some("3.0"), None, refused),
            (Version::V2013_08_15, Some("3.0;NetFx"), None, Ok(())),
            (Version::V2013_08_15, Some("3.0"), Some("3.0;NetFx"), Ok(())),
            (Version::V2013_08_15, Some("1.0;NetFx"), Some("3.0;NetFx"), Ok(())),
            (Version::V2013_08_15, None, Some("3.0"), Ok(())),
            (Version::V2013_08_15, Some("2.0;NetFx"), None, refused),
            (Version::V2013_08_15, Some("3.0"), Some("2.0"), refused),
            (Version::V2013_08_15, None, None, refused),
            (Version::V2015_12_11, None, None, Ok(())),
            (Version::V2019_02_02, None, None, Ok(())),
            (Version::V2019_02_02, Some("1.0"), None, refused),
            (Version::V2019_02_02, Some("4.0"), None, Err(Code::InvalidInput)),
            (Version::V2019_02_02, Some("new"), None, Err(Code::InvalidInput)),
        ] {
            let checked = code(check_versions(version, spoken, understood));
            assert_eq!(checked, expected, "4.1 {version} {spoken:?} {understood:?}");
        }
    }

    #[test]
    fn preferences_are_found_among_others() {
        for (prefer, expected) in [
            (None, None),
            (Some("return-content"), Some(Preference::Content)),
            (Some("return-no-content"), Some(Preference::NoContent)),
            (Some("respond-async, return-no-content"), Some(Preference::NoContent)),
            (Some("other"), None),
        ] {
            assert_eq!(Preference::parse(prefer), expected, "4.4 {prefer:?}");
        }
    }
}
