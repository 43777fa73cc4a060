//! Which hosts and addresses may be read from, so that requests cannot use this server to reach
//! hosts that only it can reach (SSRF).
//!
//! A host must match a pattern that the operator gave. Its name is resolved once, and the address
//! is checked, too, since the owner of a name decides where it leads:
//!
//! | Address | is read from if |
//! |---|---|
//! | public | its host matches any pattern |
//! | private | its host is named exactly, or the address itself is |
//! | loopback | the address itself is named, or the host is `localhost` and named |
//! | link-local, and others where clouds give out credentials | the address itself is named |
//! | unspecified, multicast, reserved | never |

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::url::{Host, Scheme, host_and_port};

/// `HOST`, `*.SUFFIX` or `*`, each with an optional `:PORT`. Without a port, the default ports of
/// http and https.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    name: NamePattern,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum NamePattern {
    Any,
    /// Begins with a dot.
    Under(String),
    Exactly(Host),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not HOST[:PORT], *.SUFFIX[:PORT] or *[:PORT]")]
pub struct InvalidHostPattern;

impl FromStr for HostPattern {
    type Err = InvalidHostPattern;

    fn from_str(text: &str) -> Result<Self, InvalidHostPattern> {
        let text = text.trim();
        // The pattern must be a valid name if the star is replaced by a label.
        let (starred, stand_in) = match text.strip_prefix('*') {
            Some(rest) => (true, format!("any{rest}")),
            None => (false, text.to_owned()),
        };
        let (host, port) = host_and_port(&stand_in).ok_or(InvalidHostPattern)?;
        let name = match host {
            host if !starred => NamePattern::Exactly(host),
            Host::Name(name) => match name.strip_prefix("any") {
                Some("") if !text.starts_with("*.") => NamePattern::Any,
                Some(suffix) if suffix.starts_with('.') => NamePattern::Under(suffix.to_owned()),
                Some(_) | None => return Err(InvalidHostPattern),
            },
            Host::Address(_) => return Err(InvalidHostPattern),
        };
        Ok(Self { name, port })
    }
}

impl HostPattern {
    fn is_for(&self, scheme: Scheme, port: u16) -> bool {
        port == self.port.unwrap_or(scheme.default_port())
    }

    fn matches(&self, host: &Host) -> bool {
        match (&self.name, host) {
            (NamePattern::Any, _) => true,
            (NamePattern::Under(suffix), Host::Name(name)) => {
                name.len() > suffix.len() && name.ends_with(suffix.as_str())
            }
            (NamePattern::Under(_), Host::Address(_)) => false,
            (NamePattern::Exactly(named), host) => named == host,
        }
    }

    fn names(&self, host: &Host) -> bool {
        matches!(&self.name, NamePattern::Exactly(named) if named == host)
    }
}

/// Empty unless the operator sets it.
#[derive(Clone, Debug, Default)]
pub struct AllowedHosts(Vec<HostPattern>);

impl FromIterator<HostPattern> for AllowedHosts {
    fn from_iter<I: IntoIterator<Item = HostPattern>>(patterns: I) -> Self {
        Self(patterns.into_iter().collect())
    }
}

impl AllowedHosts {
    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn allows_host(&self, scheme: Scheme, host: &Host, port: u16) -> bool {
        self.at(scheme, port).any(|pattern| pattern.matches(host))
    }

    /// Whether the host, if it is allowed, may lead to this address.
    pub fn allows_address(&self, scheme: Scheme, host: &Host, port: u16, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let names = |host: &Host| self.at(scheme, port).any(|pattern| pattern.names(host));
        let address_named = names(&Host::Address(address));
        match Reach::of(address) {
            Reach::Public => true,
            Reach::Private => address_named || names(host),
            Reach::Loopback => address_named || (is_localhost(host) && names(host)),
            Reach::Link => address_named,
            Reach::Nowhere => false,
        }
    }

    fn at(&self, scheme: Scheme, port: u16) -> impl Iterator<Item = &HostPattern> {
        self.0.iter().filter(move |pattern| pattern.is_for(scheme, port))
    }
}

fn is_localhost(host: &Host) -> bool {
    matches!(host, Host::Name(name) if name == "localhost" || name.ends_with(".localhost"))
}

/// From where an address can be reached, the widest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Public,
    Private,
    Loopback,
    /// The local link, or the platform of the machine: where clouds give out credentials.
    Link,
    Nowhere,
}

/// Services of clouds for their machines, at addresses that look public or private: Azure's
/// 168.63.129.16, Oracle's 192.0.0.192, Alibaba's 100.100.100.200, Amazon's fd00:ec2::254.
const PLATFORM_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(100, 100, 100, 200),
];
const PLATFORM_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

impl Reach {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        let [first, second, ..] = address.octets();
        if PLATFORM_V4.contains(&address) || address.is_link_local() {
            return Self::Link;
        }
        match (first, second) {
            (0 | 224.., _) => Self::Nowhere,
            (127, _) => Self::Loopback,
            (100, 64..=127) | (198, 18..=19) | (192, 0) if address.octets()[..3] != [192, 0, 2] => {
                Self::Private
            }
            _ if address.is_private() => Self::Private,
            _ => Self::Public,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        let segments = address.segments();
        if address == PLATFORM_V6 || address.is_unicast_link_local() {
            return Self::Link;
        }
        if address.is_unspecified() || address.is_multicast() {
            return Self::Nowhere;
        }
        if address.is_loopback() {
            return Self::Loopback;
        }
        match embedded_v4(segments) {
            // A gateway may forward the packet to the embedded address.
            Some(inside) => Self::of_v4(inside).max(Self::Private),
            // Unique local, site-local (deprecated), Teredo, local translation.
            None if address.is_unique_local()
                || segments[0] & 0xffc0 == 0xfec0
                || segments[..2] == [0x2001, 0]
                || segments[..3] == [0x64, 0xff9b, 1] =>
            {
                Self::Private
            }
            None => Self::Public,
        }
    }
}

/// The IPv4 address inside an address of 6to4, NAT64 or the old compatible form.
fn embedded_v4(segments: [u16; 8]) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match segments {
        [0x2002, high, low, ..] => Some(join(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0, 0, 0, 0, 0, 0, high, low] => {
            Some(join(high, low))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(patterns: &[&str]) -> AllowedHosts {
        patterns.iter().map(|text| text.parse::<HostPattern>().expect(text)).collect()
    }

    fn host(text: &str) -> Host {
        Host::parse(text).expect(text)
    }

    #[test]
    fn patterns_match_whole_hosts_at_their_port() {
        use Scheme::{Http, Https};
        let allowed = hosts(&[
            "a.example",
            "B.example.:8080",
            "*.c.example",
            "192.0.2.1",
            "[2001:db8::1]:81",
        ]);
        for (scheme, text, port, expected) in [
            (Http, "a.example", 80, true),
            (Https, "a.example", 443, true),
            (Https, "A.EXAMPLE.", 443, true),
            (Http, "a.example", 443, false),
            (Http, "a.example", 8080, false),
            (Http, "b.example", 8080, true),
            (Http, "b.example", 80, false),
            (Http, "x.a.example", 80, false),
            (Http, "xa.example", 80, false),
            (Http, "a.example.evil", 80, false),
            (Http, "x.c.example", 80, true),
            (Http, "x.y.c.example", 80, true),
            (Http, "c.example", 80, false),
            (Http, "xc.example", 80, false),
            (Http, "192.0.2.1", 80, true),
            (Http, "[::ffff:192.0.2.1]", 80, true),
            (Http, "192.0.2.2", 80, false),
            (Http, "[2001:db8:0::1]", 81, true),
        ] {
            assert_eq!(allowed.allows_host(scheme, &host(text), port), expected, "{text}:{port}");
        }
        assert!(!AllowedHosts::default().allows_host(Http, &host("a.example"), 80));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in [
            "",
            "*a.example",
            "a.*.example",
            "*.",
            "*.*",
            "http://a.example",
            "a.example/x",
            "u@a.example",
            "a.example:",
            "a.example:x",
            "127.1",
            "10.0.0.0/8",
            "*.1.2.3",
            "::1",
        ] {
            assert_eq!(text.parse::<HostPattern>(), Err(InvalidHostPattern), "{text}");
        }
    }

    #[test]
    fn every_address_has_its_reach() {
        for (text, expected) in [
            ("93.184.216.34", Reach::Public),
            ("2606:4700::1111", Reach::Public),
            ("10.0.0.1", Reach::Private),
            ("172.16.0.1", Reach::Private),
            ("172.32.0.1", Reach::Public),
            ("192.168.1.1", Reach::Private),
            ("100.64.0.1", Reach::Private),
            ("198.18.0.1", Reach::Private),
            ("192.0.0.1", Reach::Private),
            ("fd12::1", Reach::Private),
            ("fec0::1", Reach::Private),
            ("2001::1", Reach::Private),
            ("2002:0a00:0001::1", Reach::Private),
            ("64:ff9b::10.0.0.1", Reach::Private),
            ("64:ff9b:1::1", Reach::Private),
            ("127.0.0.1", Reach::Loopback),
            ("127.255.255.254", Reach::Loopback),
            ("::1", Reach::Loopback),
            ("::ffff:127.0.0.1", Reach::Loopback),
            ("2002:7f00:0001::1", Reach::Loopback),
            ("64:ff9b::127.0.0.1", Reach::Loopback),
            ("::127.0.0.1", Reach::Loopback),
            ("169.254.169.254", Reach::Link),
            ("::ffff:169.254.169.254", Reach::Link),
            ("64:ff9b::169.254.169.254", Reach::Link),
            ("2002:a9fe:a9fe::1", Reach::Link),
            ("fe80::1", Reach::Link),
            ("fd00:ec2::254", Reach::Link),
            ("168.63.129.16", Reach::Link),
            ("192.0.0.192", Reach::Link),
            ("100.100.100.200", Reach::Link),
            ("0.0.0.0", Reach::Nowhere),
            ("0.1.2.3", Reach::Nowhere),
            ("::", Reach::Nowhere),
            ("::ffff:0.0.0.0", Reach::Nowhere),
            ("224.0.0.1", Reach::Nowhere),
            ("ff02::1", Reach::Nowhere),
            ("240.0.0.1", Reach::Nowhere),
            ("255.255.255.255", Reach::Nowhere),
        ] {
            assert_eq!(Reach::of(text.parse().expect(text)), expected, "{text}");
        }
    }

    #[test]
    fn an_address_needs_the_permission_of_its_reach() {
        let lan = "backup.lan";
        for (case, patterns, name, address, expected) in [
            ("public, any", &["*"][..], lan, "93.184.216.34", true),
            ("public, suffix", &["*.lan"], lan, "93.184.216.34", true),
            ("private, any", &["*"], lan, "10.0.0.1", false),
            ("private, suffix", &["*.lan"], lan, "10.0.0.1", false),
            ("private, suffix and address", &["*.lan", "10.0.0.1"], lan, "10.0.0.1", true),
            ("private, named", &[lan], lan, "10.0.0.1", true),
            ("private, named at another port", &["*", "backup.lan:81"], lan, "10.0.0.1", false),
            ("private, address is the host", &["10.0.0.1"], "10.0.0.1", "10.0.0.1", true),
            ("loopback, named", &[lan], lan, "127.0.0.1", false),
            ("loopback, named as mapped", &[lan], lan, "::ffff:127.0.0.1", false),
            ("loopback, localhost", &["localhost"], "localhost", "127.0.0.1", true),
            ("loopback, localhost by star", &["*"], "localhost", "127.0.0.1", false),
            ("loopback, address", &[lan, "127.0.0.1"], lan, "127.0.0.1", true),
            ("metadata, named", &[lan], lan, "169.254.169.254", false),
            ("metadata, named, IPv6", &[lan], lan, "fd00:ec2::254", false),
            ("metadata, address", &["169.254.169.254"], "169.254.169.254", "169.254.169.254", true),
            ("unspecified, address", &["0.0.0.0"], "0.0.0.0", "0.0.0.0", false),
        ] {
            let allowed = hosts(patterns);
            let address = address.parse().expect(address);
            let decided = allowed.allows_address(Scheme::Http, &host(name), 80, address);
            assert_eq!(decided, expected, "{case}");
        }
    }
}
