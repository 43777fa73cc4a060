//! The account of a connection string: the addresses of its services and its key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

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
    /// Host and port.
    pub authority: String,
    /// The prefix of every path: `/account`, or empty if the host names the account.
    pub path: String,
}

#[derive(Clone)]
pub struct Account {
    pub name: String,
    /// Keyed once; a signature starts from a copy.
    pub key: Hmac<Sha256>,
    endpoints: [Option<Endpoint>; 4],
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidConnection {
    #[error("{0:?} in the connection string is not a Name=Value pair")]
    NotAPair(String),
    #[error("the connection string has no {0}")]
    Missing(&'static str),
    #[error("the AccountKey is not Base64")]
    Key,
    #[error("the endpoint {0:?} is not of the form http://HOST[:PORT][/PATH]")]
    Endpoint(String),
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
        let name = setting("AccountName").ok_or(InvalidConnection::Missing("AccountName"))?;
        let key = setting("AccountKey").ok_or(InvalidConnection::Missing("AccountKey"))?;
        Self::new(name, key, |service| setting(service.endpoint_setting()).map(str::to_owned))
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
        let mut endpoints = [None, None, None, None];
        for service in Service::ALL {
            if let Some(url) = endpoint(service) {
                endpoints[service as usize] = Some(parse_endpoint(&url)?);
            }
        }
        Ok(Self {
            name: name.to_owned(),
            key: Hmac::new_from_slice(&key).expect("HMAC takes keys of any length"),
            endpoints,
        })
    }

    /// A connection string of the well-known account, for other programs.
    pub fn development_connection(&self) -> String {
        let endpoints = Service::ALL.into_iter().filter_map(|service| {
            let endpoint = self.endpoint(service)?;
            let setting = service.endpoint_setting();
            Some(format!(";{setting}=http://{}{}", endpoint.authority, endpoint.path))
        });
        let start = format!("AccountName={DEVELOPMENT_NAME};AccountKey={DEVELOPMENT_KEY}");
        std::iter::once(start).chain(endpoints).collect()
    }

    pub fn endpoint(&self, service: Service) -> Option<&Endpoint> {
        self.endpoints[service as usize].as_ref()
    }
}

fn parse_endpoint(url: &str) -> Result<Endpoint, InvalidConnection> {
    let invalid = || InvalidConnection::Endpoint(url.to_owned());
    let rest = url.strip_prefix("http://").ok_or_else(invalid)?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if authority.is_empty() {
        return Err(invalid());
    }
    let authority = match authority.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => authority.to_owned(),
        Some(_) => return Err(invalid()),
        None => format!("{authority}:80"),
    };
    Ok(Endpoint { authority, path: path.trim_end_matches('/').to_owned() })
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
        let tls = "AccountName=a;AccountKey=a2V5;BlobEndpoint=https://a:1/";
        assert_eq!(refused(tls), InvalidConnection::Endpoint("https://a:1/".to_owned()));
    }
}
