//! The account of a connection string or of a URL with a shared access signature: the addresses of
//! its services, and its key or signature.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use tokio_rustls::rustls::pki_types::CertificateDer;

/// The account of Azurite, and of `UseDevelopmentStorage=true`, with the key that the service's
/// documentation publishes for it.
pub const DEVELOPMENT_NAME: &str = "devstoreaccount1";
pub const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    Blob,
    Queue,
    Table,
    File,
}

impl Service {
    pub const ALL: [Self; 4] = [Self::Blob, Self::Queue, Self::Table, Self::File];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|service| service.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Queue => "queue",
            Self::Table => "table",
            Self::File => "file",
        }
    }

    fn endpoint_setting(self) -> &'static str {
        match self {
            Self::Blob => "BlobEndpoint",
            Self::Queue => "QueueEndpoint",
            Self::Table => "TableEndpoint",
            Self::File => "FileEndpoint",
        }
    }

    fn development_port(self) -> u16 {
        match self {
            Self::Blob => 10000,
            Self::Queue => 10001,
            Self::Table => 10002,
            Self::File => 10003,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// HTTPS, or HTTP.
    pub is_secure: bool,
    /// Host and port.
    pub authority: String,
    /// The prefix of every path: `/account`, or empty if the host names the account.
    pub path: String,
}

impl Endpoint {
    /// Without a slash at its end.
    pub fn url(&self) -> String {
        let scheme = if self.is_secure { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.path)
    }

    /// Without the port, and without the brackets of an IPv6 address.
    pub fn host(&self) -> &str {
        let host = self.authority.rsplit_once(':').map_or(&*self.authority, |(host, _)| host);
        host.trim_matches(['[', ']'])
    }
}

/// What shows that a request is from the account.
#[derive(Clone)]
pub enum Credential {
    /// Keyed once; a signature starts from a copy.
    Key(Hmac<Sha256>),
    /// A shared access signature: part of the query of every request, as it was given.
    Signature(String),
}

#[derive(Clone)]
pub struct Account {
    pub name: String,
    pub credential: Credential,
    endpoints: [Option<Endpoint>; 4],
    /// Trusted beside those of the public web.
    pub(crate) authorities: Vec<CertificateDer<'static>>,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidConnection {
    #[error("{0:?} in the connection string is not a Name=Value pair")]
    NotAPair(String),
    #[error("the connection string has no {0}")]
    Missing(&'static str),
    #[error("the AccountKey is not Base64")]
    Key,
    #[error("the endpoint {0:?} is not of the form http[s]://HOST[:PORT][/PATH]")]
    Endpoint(String),
    #[error("the URL has no shared access signature: no sig=… in its query")]
    Unsigned,
    #[error(
        "the URL does not say of which service it is: use a connection string with its endpoint"
    )]
    UnknownService,
}

/// What a URL with a shared access signature opens.
pub struct Opened {
    pub account: Account,
    pub service: Service,
    /// The container, queue, table or share, if it is only one.
    pub container: Option<String>,
}

impl Account {
    pub fn parse(connection: &str) -> Result<Self, InvalidConnection> {
        let mut settings = Vec::new();
        for pair in connection.split(';').filter(|pair| !pair.trim().is_empty()) {
            let (name, value) =
                pair.split_once('=').ok_or_else(|| InvalidConnection::NotAPair(pair.to_owned()))?;
            settings.push((name.trim(), value.trim()));
        }
        let setting = |wanted: &str| {
            let found = settings.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| *value)
        };
        if setting("UseDevelopmentStorage").is_some_and(|on| on.eq_ignore_ascii_case("true")) {
            return Self::development(|service| {
                Some(format!("http://127.0.0.1:{}/{DEVELOPMENT_NAME}", service.development_port()))
            });
        }
        let suffix = setting("EndpointSuffix").filter(|suffix| !suffix.is_empty());
        let scheme = setting("DefaultEndpointsProtocol").unwrap_or("https");
        let name = setting("AccountName");
        let endpoint = |service: Service| {
            let given = setting(service.endpoint_setting()).map(str::to_owned);
            given.or_else(|| Some(format!("{scheme}://{}.{}.{}", name?, service.name(), suffix?)))
        };
        if let Some(signature) = setting("SharedAccessSignature") {
            let credential = Credential::Signature(signature.trim_start_matches('?').to_owned());
            let endpoints = parse_endpoints(endpoint)?;
            let named = || endpoints.iter().flatten().find_map(account_of);
            let name = name.map(str::to_owned).or_else(named);
            let name = name.ok_or(InvalidConnection::Missing("AccountName"))?;
            return Ok(Self { name, credential, endpoints, authorities: Vec::new() });
        }
        let name = name.ok_or(InvalidConnection::Missing("AccountName"))?;
        let key = setting("AccountKey").ok_or(InvalidConnection::Missing("AccountKey"))?;
        Self::new(name, key, endpoint)
    }

    /// The account of `https://…?…&sig=…`.
    pub fn open(url: &str) -> Result<Opened, InvalidConnection> {
        let (address, query) = url.split_once('?').ok_or(InvalidConnection::Unsigned)?;
        let parameter = |wanted: &str| {
            let found = query.split('&').filter_map(|pair| pair.split_once('='));
            found.into_iter().find(|(name, _)| *name == wanted).map(|(_, value)| value)
        };
        if parameter("sig").is_none() {
            return Err(InvalidConnection::Unsigned);
        }
        let mut endpoint = parse_endpoint(address)?;
        let labels: Vec<&str> = endpoint.host().split('.').collect();
        let of_host = labels.get(1).copied().and_then(Service::named);
        let service = of_host.or_else(|| match (parameter("ss"), parameter("sr")) {
            (Some("b"), _) | (None, Some("b" | "c" | "bs" | "bv" | "d")) => Some(Service::Blob),
            (Some("q"), _) => Some(Service::Queue),
            (Some("t"), _) => Some(Service::Table),
            (Some("f"), _) | (None, Some("s" | "f")) => Some(Service::File),
            _ => parameter("tn").map(|_| Service::Table),
        });
        let service = service.ok_or(InvalidConnection::UnknownService)?;
        let path = std::mem::take(&mut endpoint.path);
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        if of_host.is_none() {
            endpoint.path = parts.next().map(|account| format!("/{account}")).unwrap_or_default();
        }
        let container = parts.next().map(str::to_owned);
        let name = account_of(&endpoint).ok_or(InvalidConnection::UnknownService)?;
        let mut endpoints = [None, None, None, None];
        endpoints[service as usize] = Some(endpoint);
        let credential = Credential::Signature(query.to_owned());
        let account = Self { name, credential, endpoints, authorities: Vec::new() };
        Ok(Opened { account, service, container })
    }

    /// The same, and certificates of these authorities are taken beside those of the public web.
    pub fn trusting(self, authorities: Vec<CertificateDer<'static>>) -> Self {
        Self { authorities, ..self }
    }

    /// The well-known account, with its services at the given addresses.
    pub fn development(
        endpoint: impl Fn(Service) -> Option<String>,
    ) -> Result<Self, InvalidConnection> {
        Self::new(DEVELOPMENT_NAME, DEVELOPMENT_KEY, endpoint)
    }

    fn new(
        name: &str,
        key: &str,
        endpoint: impl Fn(Service) -> Option<String>,
    ) -> Result<Self, InvalidConnection> {
        let key = STANDARD.decode(key).map_err(|_| InvalidConnection::Key)?;
        Ok(Self {
            name: name.to_owned(),
            credential: Credential::Key(
                Hmac::new_from_slice(&key).expect("HMAC takes keys of any length"),
            ),
            endpoints: parse_endpoints(endpoint)?,
            authorities: Vec::new(),
        })
    }

    /// A connection string of the well-known account, for other programs.
    pub fn development_connection(&self) -> String {
        let endpoints = Service::ALL.into_iter().filter_map(|service| {
            let endpoint = self.endpoint(service)?;
            let setting = service.endpoint_setting();
            Some(format!(";{setting}={}", endpoint.url()))
        });
        let start = format!("AccountName={DEVELOPMENT_NAME};AccountKey={DEVELOPMENT_KEY}");
        std::iter::once(start).chain(endpoints).collect()
    }

    pub fn endpoint(&self, service: Service) -> Option<&Endpoint> {
        self.endpoints[service as usize].as_ref()
    }
}

/// The name of the account in an endpoint: its path, or the first label of its host.
fn account_of(endpoint: &Endpoint) -> Option<String> {
    let of_path = endpoint.path.trim_start_matches('/');
    let name = if of_path.is_empty() { endpoint.host().split('.').next()? } else { of_path };
    Some(name.to_owned())
}

fn parse_endpoints(
    url: impl Fn(Service) -> Option<String>,
) -> Result<[Option<Endpoint>; 4], InvalidConnection> {
    let mut endpoints = [None, None, None, None];
    for service in Service::ALL {
        if let Some(url) = url(service) {
            endpoints[service as usize] = Some(parse_endpoint(&url)?);
        }
    }
    Ok(endpoints)
}

fn parse_endpoint(url: &str) -> Result<Endpoint, InvalidConnection> {
    let invalid = || InvalidConnection::Endpoint(url.to_owned());
    let (scheme, rest) = url.split_once("://").ok_or_else(invalid)?;
    let (is_secure, port) = match scheme {
        "http" => (false, 80),
        "https" => (true, 443),
        _ => return Err(invalid()),
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_clean = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    if authority.is_empty() || !is_clean(rest) {
        return Err(invalid());
    }
    let authority = match authority.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => authority.to_owned(),
        Some(_) => return Err(invalid()),
        None => format!("{authority}:{port}"),
    };
    Ok(Endpoint { is_secure, authority, path: path.trim_end_matches('/').to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn development_storage_is_the_four_local_ports() {
        let account = Account::parse("UseDevelopmentStorage=true").expect("it is valid");
        let file = account.endpoint(Service::File).expect("all services are there");
        assert_eq!(file.authority, "127.0.0.1:10003");
        assert_eq!(file.path, "/devstoreaccount1");
    }

    #[test]
    fn endpoints_are_taken_from_the_string_and_others_are_absent() {
        let account = Account::parse(
            "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=a2V5;\
             BlobEndpoint=http://a.blob.localhost:9/;",
        )
        .expect("it is valid");
        let blob = account.endpoint(Service::Blob).expect("it is given");
        assert_eq!(blob.authority, "a.blob.localhost:9");
        assert_eq!(blob.path, "");
        assert_eq!(account.endpoint(Service::Queue), None);
    }

    #[test]
    fn development_connection_is_read_back_as_the_same_endpoints() {
        let account = Account::parse("UseDevelopmentStorage=true").expect("it is valid");
        let again = Account::parse(&account.development_connection()).expect("it is valid");
        assert_eq!(again.name, account.name);
        assert_eq!(again.endpoints, account.endpoints);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let refused = |connection| Account::parse(connection).err().expect("it is invalid");
        assert_eq!(refused("AccountKey=a2V5"), InvalidConnection::Missing("AccountName"));
        assert_eq!(refused("AccountName=a;AccountKey=!"), InvalidConnection::Key);
        assert_eq!(refused("nonsense"), InvalidConnection::NotAPair("nonsense".to_owned()));
        let other = "AccountName=a;AccountKey=a2V5;BlobEndpoint=ftp://a:1/";
        assert_eq!(refused(other), InvalidConnection::Endpoint("ftp://a:1/".to_owned()));
    }

    #[test]
    fn suffix_and_protocol_make_the_endpoints_that_are_not_given() {
        let account = Account::parse(
            "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=a2V5;\
             EndpointSuffix=core.example;TableEndpoint=http://t:1/a",
        )
        .expect("it is valid");
        let url = |service| account.endpoint(service).expect("all are there").url();
        assert_eq!(url(Service::Blob), "https://a.blob.core.example:443");
        assert_eq!(url(Service::Table), "http://t:1/a");
    }

    #[test]
    fn signature_stands_in_for_the_key() {
        let account = Account::parse(
            "BlobEndpoint=https://mine.blob.example/;SharedAccessSignature=?sv=1&sig=a%3D",
        )
        .expect("it is valid");
        assert_eq!(account.name, "mine");
        assert!(matches!(account.credential, Credential::Signature(sas) if sas == "sv=1&sig=a%3D"));
    }

    #[test]
    fn url_with_a_signature_says_service_account_and_container() {
        let cases = [
            ("https://a.blob.example/?sv=1&ss=bfqt&sig=x", "a", Service::Blob, None),
            ("https://a.file.example/team?sr=s&sig=x", "a", Service::File, Some("team")),
            ("http://127.0.0.1:9/b/c?sr=c&sig=x", "b", Service::Blob, Some("c")),
            ("http://127.0.0.1:9/b?ss=q&sig=x", "b", Service::Queue, None),
            ("http://127.0.0.1:9/b/T?tn=T&sig=x", "b", Service::Table, Some("T")),
        ];
        for (url, name, service, container) in cases {
            let opened = Account::open(url).unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!(opened.account.name, name, "{url}");
            assert_eq!(opened.service, service, "{url}");
            assert_eq!(opened.container.as_deref(), container, "{url}");
            assert!(opened.account.endpoint(service).is_some(), "{url}");
        }
        let refused = |url| Account::open(url).err().expect("it is invalid");
        assert_eq!(refused("https://a.blob.example/?sv=1"), InvalidConnection::Unsigned);
        let unclear = "http://127.0.0.1:9/b?ss=bq&sig=x";
        assert_eq!(refused(unclear), InvalidConnection::UnknownService);
    }
}
