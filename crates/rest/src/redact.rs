//! Redacts requests for the log. It lists what is shown, not what is hidden: unknown parameters and
//! headers stay out of the log.

use std::fmt::Write as _;

use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName};

const HIDDEN: &str = "REDACTED";

/// Parameters that describe the request. Those of a SAS (above all `sig`) are not in the list.
const SHOWN_PARAMETERS: [&str; 34] = [
    "$filter",
    "$select",
    "$top",
    "blockid",
    "blocklisttype",
    "comp",
    "copyid",
    "delimiter",
    "endfrom",
    "include",
    "marker",
    "maxresults",
    "messagettl",
    "nextpartitionkey",
    "nextrowkey",
    "nexttablename",
    "numofmessages",
    "peekonly",
    "prefix",
    "prevsharesnapshot",
    "prevsnapshot",
    "recursive",
    "restype",
    "sharesnapshot",
    "showonly",
    "snapshot",
    "startfrom",
    "timeout",
    "upn",
    "versionid",
    "visibilitytimeout",
    "where",
    "deletetype",
    "action",
];

const SHOWN_HEADERS: [&str; 38] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "dataserviceversion",
    "expect",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
    "maxdataserviceversion",
    "origin",
    "prefer",
    "range",
    "transfer-encoding",
    "user-agent",
    "x-ms-access-tier",
    "x-ms-blob-content-length",
    "x-ms-blob-public-access",
    "x-ms-blob-type",
    "x-ms-client-request-id",
    "x-ms-content-crc64",
    "x-ms-date",
    "x-ms-delete-snapshots",
    "x-ms-lease-action",
    "x-ms-lease-duration",
    "x-ms-page-write",
    "x-ms-range",
    "x-ms-return-client-request-id",
    "x-ms-structured-body",
    "x-ms-type",
    "x-ms-version",
    "x-ms-write",
];

/// Headers whose value is a URL, possibly with a SAS.
const URL_HEADERS: [&str; 4] =
    ["referer", "x-ms-copy-source", "x-ms-file-rename-source", "x-ms-rename-source"];

/// A URL, or the path and query of one, with only harmless parameters left as they are.
pub fn url(text: &str) -> String {
    let text = text.split_once('#').map_or(text, |(text, _)| text);
    let (place, query) = match text.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (text, None),
    };
    let mut shown = without_user(place);
    let Some(query) = query else { return shown };
    for (index, parameter) in query.split('&').enumerate() {
        shown.push(if index == 0 { '?' } else { '&' });
        match parameter.split_once('=') {
            Some((name, _)) if !is_shown_parameter(name) => {
                let _ = write!(shown, "{}={HIDDEN}", name_of(name));
            }
            Some(_) => shown.push_str(parameter),
            // A token pasted without parameter names is one value.
            None if !parameter.is_empty() && !is_shown_parameter(parameter) => {
                shown.push_str(HIDDEN);
            }
            None => shown.push_str(parameter),
        }
    }
    shown
}

/// The URI of the request line; see [`url`].
pub fn uri(uri: &Uri) -> String {
    url(&uri.to_string())
}

/// `name: value` pairs with only harmless values shown, separated by `; `.
pub fn headers(map: &HeaderMap) -> String {
    let mut shown = String::new();
    for (name, value) in map {
        if !shown.is_empty() {
            shown.push_str("; ");
        }
        let value = match value.to_str() {
            Ok(value) if URL_HEADERS.contains(&name.as_str()) => url(value),
            Ok(value) if is_shown_header(name) => value.to_owned(),
            Ok(value) if name == hyper::header::AUTHORIZATION => scheme_of(value),
            Ok(_) | Err(_) => HIDDEN.to_owned(),
        };
        let _ = write!(shown, "{name}: {value}");
    }
    shown
}

fn is_shown_parameter(name: &str) -> bool {
    SHOWN_PARAMETERS.iter().any(|shown| shown.eq_ignore_ascii_case(name))
}

fn is_shown_header(name: &HeaderName) -> bool {
    SHOWN_HEADERS.contains(&name.as_str())
}

/// The name of a hidden parameter is shown, unless the name itself is unexpected.
fn name_of(name: &str) -> &str {
    let plain = name.len() <= 24 && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if plain { name } else { HIDDEN }
}

/// Which kind of credentials was presented: `SharedKey REDACTED`.
fn scheme_of(authorization: &str) -> String {
    let scheme = authorization.split(' ').next().unwrap_or_default();
    match ["SharedKey", "SharedKeyLite", "Bearer"].into_iter().find(|known| *known == scheme) {
        Some(known) => format!("{known} {HIDDEN}"),
        None => HIDDEN.to_owned(),
    }
}

fn without_user(place: &str) -> String {
    let Some((scheme, rest)) = place.split_once("://") else { return place.to_owned() };
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{HIDDEN}@{host}{path}"),
        None => place.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn urls_keep_what_is_asked_for_and_lose_the_token() {
        for (text, expected) in [
            ("/account/c/b", "/account/c/b"),
            ("/account?comp=list&prefix=a%2Fb", "/account?comp=list&prefix=a%2Fb"),
            (
                "/account/c/b?sv=2024-11-04&sr=b&sig=aGk%3D&se=2030-01-01&comp=metadata",
                "/account/c/b?sv=REDACTED&sr=REDACTED&sig=REDACTED&se=REDACTED&comp=metadata",
            ),
            ("/a?SIG=x&Comp=list", "/a?SIG=REDACTED&Comp=list"),
            ("/a?%73ig=x", "/a?REDACTED=REDACTED"),
            ("/a?sig=x=y=z", "/a?sig=REDACTED"),
            ("/a?c2VjcmV0", "/a?REDACTED"),
            ("/a?comp=list#sig=x", "/a?comp=list"),
            ("/a?", "/a?"),
            ("https://user:pass@host/a?sig=x", "https://REDACTED@host/a?sig=REDACTED"),
            ("http://host:10000/a/b@c", "http://host:10000/a/b@c"),
        ] {
            assert_eq!(url(text), expected);
            if let Ok(parsed) = text.parse::<Uri>()
                && !text.contains('#')
            {
                assert_eq!(uri(&parsed), expected);
            }
        }
    }

    #[test]
    fn headers_show_nothing_that_opens_a_door() {
        let mut map = HeaderMap::new();
        for (name, value) in [
            ("authorization", "SharedKey account:c2VjcmV0"),
            ("x-ms-copy-source-authorization", "Bearer secret"),
            ("x-ms-encryption-key", "secret"),
            ("x-ms-lease-id", "secret"),
            ("x-ms-meta-password", "secret"),
            ("cookie", "secret"),
            ("x-ms-copy-source", "https://h/a?sig=secret&snapshot=s"),
            ("x-ms-version", "2024-11-04"),
        ] {
            map.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let shown = headers(&map);
        for part in [
            "authorization: SharedKey REDACTED",
            "x-ms-lease-id: REDACTED",
            "x-ms-copy-source: https://h/a?sig=REDACTED&snapshot=s",
            "x-ms-version: 2024-11-04",
        ] {
            assert!(shown.contains(part), "{shown}");
        }
        for secret in ["c2VjcmV0", "secret"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }

    #[test]
    fn a_credential_of_unknown_form_is_hidden_whole() {
        for (value, expected) in [
            ("Bearer abc", "Bearer REDACTED"),
            ("SharedKeyLite a:b", "SharedKeyLite REDACTED"),
            ("c2VjcmV0", "REDACTED"),
            ("", "REDACTED"),
        ] {
            assert_eq!(scheme_of(value), expected);
        }
    }
}
