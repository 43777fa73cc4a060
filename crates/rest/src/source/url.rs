//! The URL of a source, parsed so strictly that no other parser can find another host in it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hyper::http::uri::PathAndQuery;
use percent_encoding::percent_decode_str;

use crate::auth::SAS_PARAMETERS;

/// §12 of the notes on the protocol.
pub const URL_BYTES_MAX: usize = 2048;
/// The maximum length of a DNS name.
const HOST_BYTES_MAX: usize = 253;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A host in canonical form: addresses as numbers, names in lower case and without a dot at the
/// end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// An IPv4 address that is written as an IPv6 one is an IPv4 address.
    Address(IpAddr),
    Name(String),
}

impl Host {
    /// Names of this machine that need no resolver. Users treat them as equal, even if the kernel
    /// does not.
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Address(address) => address.is_loopback() || address.is_unspecified(),
            Self::Name(name) => name == "localhost" || name.ends_with(".localhost"),
        }
    }

    /// `None` if it is not a host, and for numbers that some resolvers take for an address and
    /// others for a name (`127.1`, `0x7f.0.0.1`, `2130706433`).
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(inside) = text.strip_prefix('[') {
            let address: Ipv6Addr = inside.strip_suffix(']')?.parse().ok()?;
            return Some(Self::Address(IpAddr::V6(address).to_canonical()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Some(Self::Address(IpAddr::V4(address)));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let is_label = |label: &str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            !label.is_empty() && label.len() <= 63 && label.bytes().all(plain)
        };
        if name.len() > HOST_BYTES_MAX || !name.split('.').all(is_label) {
            return None;
        }
        let last = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        if last.starts_with(|first: char| first.is_ascii_digit()) && is_number(&last) {
            return None;
        }
        Some(Self::Name(name.to_ascii_lowercase()))
    }
}

fn is_number(label: &str) -> bool {
    match label.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(IpAddr::V4(address)) => address.fmt(formatter),
            Self::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]"),
            Self::Name(name) => formatter.write_str(name),
        }
    }
}

/// `host[:port]` as in a URL or a Host header.
pub fn host_and_port(text: &str) -> Option<(Host, Option<u16>)> {
    let at = match text.rfind(']') {
        Some(end) => text[end..].find(':').map(|at| end + at),
        None => text.find(':'),
    };
    let Some(at) = at else { return Some((Host::parse(text)?, None)) };
    let digits = &text[at + 1..];
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let port: u16 = digits.parse().ok().filter(|port| *port != 0)?;
    Some((Host::parse(&text[..at])?, Some(port)))
}

/// The value of `x-ms-copy-source`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceUrl {
    pub scheme: Scheme,
    pub host: Host,
    pub port: u16,
    /// Encoded, as in a request line.
    pub target: PathAndQuery,
}

/// 400 `InvalidHeaderValue`
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the URL of a source")]
pub struct InvalidSourceUrl;

impl SourceUrl {
    /// The same with another parameter, which is encoded already.
    pub fn with_parameter(&self, parameter: &str) -> Option<Self> {
        let separator = if self.target.query().is_some() { '&' } else { '?' };
        let target = format!("{}{separator}{parameter}", self.target).parse().ok()?;
        Some(Self { target, ..self.clone() })
    }

    pub fn parse(text: &str) -> Result<Self, InvalidSourceUrl> {
        Self::read(text).ok_or(InvalidSourceUrl)
    }

    fn read(text: &str) -> Option<Self> {
        // A fragment is never sent, and some parsers take a backslash for a slash.
        let foreign = |byte: u8| byte <= b' ' || byte == 0x7f || byte == b'#' || byte == b'\\';
        if text.len() > URL_BYTES_MAX || text.bytes().any(foreign) {
            return None;
        }
        let (scheme, rest) = text.split_once("://")?;
        let scheme = [Scheme::Http, Scheme::Https]
            .into_iter()
            .find(|known| known.name().eq_ignore_ascii_case(scheme))?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        // User information (`http://allowed@other`) is refused like every other character that is
        // not valid in a host.
        let (host, port) = host_and_port(authority)?;
        let rooted = if target.starts_with('/') { "" } else { "/" };
        let target: PathAndQuery = format!("{rooted}{}", ascii(target)).parse().ok()?;
        Some(Self { scheme, host, port: port.unwrap_or(scheme.default_port()), target })
    }

    /// The target of a redirection: a whole URL, or a path on the same host.
    pub fn join(&self, location: &str) -> Result<Self, InvalidSourceUrl> {
        match location {
            _ if location.starts_with("//") => {
                Self::parse(&format!("{}:{location}", self.scheme.name()))
            }
            _ if location.starts_with('/') => {
                let (scheme, host, port) = (self.scheme.name(), &self.host, self.port);
                Self::parse(&format!("{scheme}://{host}:{port}{location}"))
            }
            _ => Self::parse(location),
        }
    }

    pub fn same_origin(&self, other: &Self) -> bool {
        (self.scheme, &self.host, self.port) == (other.scheme, &other.host, other.port)
    }

    /// The Host header of a request for it.
    pub fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    pub fn path(&self) -> &str {
        self.target.path()
    }

    pub fn query(&self) -> &str {
        self.target.query().unwrap_or_default()
    }

    /// The URL without its signature, which may be stored with the destination and shown to its
    /// readers.
    pub fn without_signature(&self) -> String {
        let mut shown = format!("{}://{}{}", self.scheme.name(), self.authority(), self.path());
        let is_secret = |pair: &&str| {
            let name = pair.split('=').next().unwrap_or_default();
            // A percent-encoded name means the same to a server that checks the signature.
            let name = &*percent_decode_str(name).decode_utf8_lossy();
            let kept = ["snapshot", "versionid"];
            SAS_PARAMETERS.iter().any(|known| known.eq_ignore_ascii_case(name))
                && !kept.iter().any(|kept| kept.eq_ignore_ascii_case(name))
        };
        let pairs = self.query().split('&').filter(|pair| !pair.is_empty() && !is_secret(pair));
        for (index, pair) in pairs.enumerate() {
            shown.push(if index == 0 { '?' } else { '&' });
            shown.push_str(pair);
        }
        shown
    }
}

/// UTF-8 in the header is accepted, as in a request line.
fn ascii(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii() {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(percent_encoding::percent_encode_byte(byte));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(text: &str) -> Option<String> {
        let url = SourceUrl::parse(text).ok()?;
        Some(format!("{} {} {}", url.scheme.name(), url.host, url.port))
    }

    #[test]
    fn a_host_has_one_spelling() {
        for (text, expected) in [
            ("http://example.org/a", "http example.org 80"),
            ("https://example.org", "https example.org 443"),
            ("HTTPS://Example.ORG:8443/a", "https example.org 8443"),
            ("http://example.org./a", "http example.org 80"),
            ("http://127.0.0.1:10000/a", "http 127.0.0.1 10000"),
            ("http://[::1]:10000/a", "http [::1] 10000"),
            ("http://[0:0:0:0:0:0:0:1]/a", "http [::1] 80"),
            ("http://[::ffff:127.0.0.1]/a", "http 127.0.0.1 80"),
            ("http://[::FFFF:A9FE:A9FE]/a", "http 169.254.169.254 80"),
            ("http://host_1?x=1", "http host_1 80"),
            ("http://a.1x/", "http a.1x 80"),
        ] {
            assert_eq!(origin(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for text in [
            "",
            "example.org/a",
            "/account/container/blob",
            "ftp://example.org/a",
            "file:///etc/passwd",
            "http:/example.org/a",
            "http:///a",
            "http://allowed.example@evil.example/a",
            "http://allowed.example:80@evil.example/a",
            "http://allowed.example%40evil.example/a",
            "http://evil.example\\@allowed.example/a",
            "http://allowed.example#@evil.example/a",
            "http://allowed.example /a",
            "http://allowed.example/a b",
            "http://allowed.example/a\tb",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.0.0.1/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://127.0.0.1./",
            "http://127.0.0.256/",
            "http://[::1/",
            "http://::1/",
            "http://[fe80::1%25eth0]/",
            "http://[127.0.0.1]/",
            "http://host:/",
            "http://host:0/",
            "http://host:65536/",
            "http://host:+80/",
            "http://host:80:80/",
            "http://[::1]x/",
            "http://a..b/",
            "http://.a/",
            "http://höst/",
            "http://ｅxample.org/",
        ] {
            assert_eq!(origin(text), None, "{text}");
        }
        let long = format!("http://h/{}", "a".repeat(URL_BYTES_MAX));
        assert_eq!(origin(&long), None);
        assert!(origin(&long[..URL_BYTES_MAX]).is_some());
    }

    #[test]
    fn the_target_stays_as_it_was_encoded() {
        let url = SourceUrl::parse("http://h/a/c/b%20c%2Fd+é?sig=a%2Bb&snapshot=x").expect("a URL");
        assert_eq!(url.path(), "/a/c/b%20c%2Fd+%C3%A9");
        assert_eq!(url.query(), "sig=a%2Bb&snapshot=x");
    }

    #[test]
    fn an_encoded_name_does_not_show_the_signature() {
        let url = SourceUrl::parse("http://h/c/b?s%69g=secret&%53ig=secret&a=1").expect("a URL");
        assert_eq!(url.without_signature(), "http://h/c/b?a=1");
    }

    #[test]
    fn the_signature_is_not_shown() {
        for (text, expected) in [
            ("http://h/a/c/b?sv=1&sig=x&se=y&snapshot=z", "http://h/a/c/b?snapshot=z"),
            ("https://h:443/a/c/b?SIG=x", "https://h/a/c/b"),
            ("http://h:81/a/c/b?versionid=v&other=1", "http://h:81/a/c/b?versionid=v&other=1"),
        ] {
            let url = SourceUrl::parse(text).expect(text);
            assert_eq!(url.without_signature(), expected, "{text}");
        }
    }

    #[test]
    fn redirections_are_whole_or_on_the_same_host() {
        let url = SourceUrl::parse("https://h:8443/a?x").expect("a URL");
        for (location, expected) in [
            ("/b?y", Some("https h 8443")),
            ("//other/b", Some("https other 443")),
            ("http://other/b", Some("http other 80")),
            ("b", None),
            ("https:b", None),
            ("javascript:alert(1)", None),
        ] {
            let joined = url.join(location).ok();
            let shown =
                joined.map(|url| format!("{} {} {}", url.scheme.name(), url.host, url.port));
            assert_eq!(shown.as_deref(), expected, "{location}");
        }
    }
}
