//! The facts of `operations.tsv`, and requests that carry each kind of credentials. The signed
//! texts are implemented again here from the reference, not taken from the server.
#![allow(dead_code, reason = "each test binary uses the part it needs")]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use holdfast_domain::time::Timestamp;
use holdfast_rest::address::{Address, HostStyle};
use holdfast_rest::auth::{
    AccountKeys, Accounts, AuthRefusal, BearerSettings, Granted, Identity, Key, Presented,
    authenticate, authorize,
};
use holdfast_rest::headers::RequestHeaders;
use holdfast_rest::operation::{Operation, check_since, route};
use holdfast_rest::service::Service;
use holdfast_rest::url_query::UrlQuery;
use holdfast_rest::version::Version;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::Sha256;

pub const ACCOUNT: &str = "acct";
pub const KEY: &[u8] = b"the key of the account";
pub const DATE: &str = "Sat, 01 Jun 2024 12:00:00 GMT";
pub const EXPIRY: &str = "2024-06-02T00:00:00Z";
/// Has every operation.
pub const VERSION: &str = "2026-10-06";

/// What the reference says about one operation.
#[derive(Clone, Debug)]
pub struct Fact {
    pub service: Service,
    pub operation: String,
    pub methods: Vec<String>,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub key: bool,
    /// The letters of `srt` of which one is needed; `*` for any.
    pub resource_type: String,
    pub letters: AnyOf,
    pub service_sas: bool,
    pub role: AnyOf,
    pub role_since: String,
    pub anonymous: String,
}

/// Alternatives, each of which may need several items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnyOf {
    Nothing,
    Anything,
    Of(Vec<Vec<String>>),
}

impl AnyOf {
    fn parse(text: &str) -> Self {
        match text {
            "-" => Self::Nothing,
            "any" => Self::Anything,
            _ => Self::Of(
                text.split(',').map(|all| all.split('+').map(str::to_owned).collect()).collect(),
            ),
        }
    }

    pub fn is_met(&self, has: impl Fn(&str) -> bool) -> bool {
        match self {
            Self::Nothing => false,
            Self::Anything => true,
            Self::Of(alternatives) => alternatives.iter().any(|all| all.iter().all(|it| has(it))),
        }
    }

    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Nothing | Self::Anything => Vec::new(),
            Self::Of(alternatives) => alternatives.concat(),
        }
    }
}

pub fn facts() -> Vec<Fact> {
    let lines = include_str!("operations.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.skip(1).map(Fact::parse).collect()
}

impl Fact {
    fn parse(line: &str) -> Self {
        let columns: Vec<&str> = line.split('\t').collect();
        let [
            service,
            operation,
            methods,
            target,
            headers,
            key,
            types,
            letters,
            sas,
            role,
            since,
            anonymous,
        ] = columns[..]
        else {
            panic!("twelve columns: {line}")
        };
        let header = |pair: &str| {
            let (name, value) = pair.split_once(": ").expect("a header");
            (name.to_owned(), value.to_owned())
        };
        let is = |text: &str| match text {
            "yes" => true,
            "no" => false,
            _ => panic!("yes or no: {line}"),
        };
        Self {
            service: Service::from_name(service).expect("a service"),
            operation: operation.to_owned(),
            methods: methods.split(',').map(str::to_owned).collect(),
            target: target.to_owned(),
            headers: headers.split("; ").filter(|pair| !pair.is_empty()).map(header).collect(),
            key: is(key),
            resource_type: types.to_owned(),
            letters: AnyOf::parse(letters),
            service_sas: is(sas),
            role: AnyOf::parse(role),
            role_since: since.to_owned(),
            anonymous: anonymous.to_owned(),
        }
    }

    /// Whether the path names the account, a container or an object.
    pub fn depth(&self) -> usize {
        let path = self.target.split('?').next().unwrap_or_default();
        path.split('/').skip(2).count().min(2)
    }

    pub fn request(&self, method: &str) -> Request {
        let mut headers: BTreeMap<String, String> = self.headers.iter().cloned().collect();
        headers.insert("x-ms-version".to_owned(), VERSION.to_owned());
        headers.insert("x-ms-date".to_owned(), DATE.to_owned());
        Request {
            service: self.service,
            method: method.to_owned(),
            target: self.target.clone(),
            headers,
            bearer: BearerSettings::off(),
        }
    }
}

/// A request to be authorized.
#[derive(Clone, Debug)]
pub struct Request {
    pub service: Service,
    pub method: String,
    pub target: String,
    pub headers: BTreeMap<String, String>,
    pub bearer: BearerSettings,
}

#[derive(Debug)]
pub struct Decided {
    pub operation: Operation,
    pub identity: Result<Identity, AuthRefusal>,
    pub granted: Result<Granted, AuthRefusal>,
}

pub fn hmac(key: &[u8], text: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    mac.update(text.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

impl Request {
    /// Routes, authenticates and authorizes it as the server does.
    pub fn decide(&self) -> Decided {
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let query = UrlQuery::parse(query).expect("a readable query");
        let headers: RequestHeaders =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let address = Address::parse(self.service, None, HostStyle::Recognized, path, &query);
        let address = address.unwrap_or_else(|_| panic!("an address: {path}"));
        let scope = address.resource.scope();
        let operation = route(self.service, &self.method, scope, &query, &headers)
            .unwrap_or_else(|refusal| panic!("{} {}: {refusal}", self.method, self.target));
        let version = Version::parse(&self.headers["x-ms-version"]).expect("a version");
        let known = check_since(operation, version, &query, &headers);
        assert!(known.is_ok() || self.headers["x-ms-version"] != VERSION, "{known:?}");
        let pairs = query.to_pairs();
        let presented = Presented {
            method: &self.method,
            path,
            path_style: true,
            query: &pairs,
            headers: &headers,
            version,
            tls: true,
            client_ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
            resource: address.named_resource(self.service),
        };
        let keys = AccountKeys { primary: Key::from_bytes(KEY), secondary: None };
        let accounts = Accounts::from_iter([(ACCOUNT.to_owned(), keys)]);
        let now = Timestamp::parse_rfc1123(DATE).expect("a date");
        let identity = authenticate(&presented, &accounts, &self.bearer, now);
        let need = operation.need(&query);
        let granted = identity
            .clone()
            .and_then(|identity| authorize(&identity, &need, version, &presented.resource));
        Decided { operation, identity, granted }
    }

    pub fn is_allowed(&self) -> bool {
        self.decide().granted.is_ok()
    }

    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    #[must_use]
    pub fn with_query(mut self, pairs: &[(&str, &str)]) -> Self {
        for (name, value) in pairs {
            self.target.push(if self.target.contains('?') { '&' } else { '?' });
            self.target.push_str(name);
            self.target.push('=');
            self.target.extend(utf8_percent_encode(value, NON_ALPHANUMERIC));
        }
        self
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    fn canonical_headers(&self) -> String {
        let own = self.headers.iter().filter(|(name, _)| name.starts_with("x-ms-"));
        own.map(|(name, value)| format!("{name}:{value}\n")).collect()
    }

    fn path_and_pairs(&self) -> (&str, BTreeMap<String, String>) {
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let pairs = UrlQuery::parse(query).expect("a query").to_pairs();
        (path, pairs.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect())
    }

    pub fn shared_key_text(&self) -> String {
        let (path, pairs) = self.path_and_pairs();
        if self.service == Service::Table {
            let comp = pairs.get("comp").map(|comp| format!("?comp={comp}")).unwrap_or_default();
            let content_type = self.header("content-type");
            return format!("{}\n\n{content_type}\n{DATE}\n/{ACCOUNT}{path}{comp}", self.method);
        }
        let mut text = format!("{}\n", self.method);
        for name in [
            "content-encoding",
            "content-language",
            "content-length",
            "content-md5",
            "content-type",
            "date",
            "if-modified-since",
            "if-match",
            "if-none-match",
            "if-unmodified-since",
            "range",
        ] {
            text.push_str(self.header(name));
            text.push('\n');
        }
        text.push_str(&self.canonical_headers());
        text.push_str(&format!("/{ACCOUNT}{path}"));
        for (name, value) in pairs {
            text.push_str(&format!("\n{name}:{value}"));
        }
        text
    }

    pub fn shared_key_lite_text(&self) -> String {
        let (path, pairs) = self.path_and_pairs();
        let comp = pairs.get("comp").map(|comp| format!("?comp={comp}")).unwrap_or_default();
        let resource = format!("/{ACCOUNT}{path}{comp}");
        if self.service == Service::Table {
            return format!("{DATE}\n{resource}");
        }
        let content_type = self.header("content-type");
        let headers = self.canonical_headers();
        format!("{}\n\n{content_type}\n\n{headers}{resource}", self.method)
    }

    pub fn by_shared_key(self) -> Self {
        let signature = hmac(KEY, &self.shared_key_text());
        self.with_header("authorization", &format!("SharedKey {ACCOUNT}:{signature}"))
    }

    pub fn by_shared_key_lite(self) -> Self {
        let signature = hmac(KEY, &self.shared_key_lite_text());
        self.with_header("authorization", &format!("SharedKeyLite {ACCOUNT}:{signature}"))
    }

    pub fn by_account_sas(self, services: &str, types: &str, letters: &str) -> Self {
        let version = "2022-11-02";
        let text =
            format!("{ACCOUNT}\n{letters}\n{services}\n{types}\n\n{EXPIRY}\n\n\n{version}\n\n");
        let signature = hmac(KEY, &text);
        self.with_query(&[
            ("sv", version),
            ("ss", services),
            ("srt", types),
            ("sp", letters),
            ("se", EXPIRY),
            ("sig", &signature),
        ])
    }

    /// `resource` is what is signed: `/blob/acct/container` and so on.
    pub fn by_service_sas(self, kind: &str, resource: &str, letters: &str) -> Self {
        let version = "2022-11-02";
        let common = format!("{letters}\n\n{EXPIRY}\n{resource}\n\n\n\n{version}");
        let text = match self.service {
            Service::Blob => format!("{common}\n{kind}\n\n\n\n\n\n\n"),
            Service::File => format!("{common}\n\n\n\n\n"),
            Service::Queue => common,
            Service::Table => format!("{common}\n\n\n\n"),
        };
        let signature = hmac(KEY, &text);
        let named = self.with_query(&[
            ("sv", version),
            ("sp", letters),
            ("se", EXPIRY),
            ("sig", &signature),
        ]);
        named.of_kind(kind, resource)
    }

    fn of_kind(self, kind: &str, resource: &str) -> Self {
        match (self.service, kind) {
            (Service::Queue, _) => self,
            (Service::Table, _) => {
                let table = resource.rsplit('/').next().unwrap_or_default().to_owned();
                self.with_query(&[("tn", &table)])
            }
            (Service::Blob | Service::File, "d") => self.with_query(&[("sr", "d"), ("sdd", "1")]),
            (Service::Blob | Service::File, kind) => self.with_query(&[("sr", kind)]),
        }
    }

    /// Signed with `key`, the value of a user delegation key whose fields are `fields`.
    pub fn by_delegation(
        self,
        key: &[u8],
        fields: &[(&str, String)],
        kind: &str,
        resource: &str,
        letters: &str,
    ) -> Self {
        let lines: String = fields.iter().map(|(_, value)| format!("{value}\n")).collect();
        let (version, text) = match self.service {
            Service::Blob => {
                let version = "2022-11-02";
                let end = format!("\n\n\n\n\n{version}\n{kind}\n\n\n\n\n\n\n");
                (version, format!("{letters}\n\n{EXPIRY}\n{resource}\n{lines}{end}"))
            }
            Service::Queue | Service::File | Service::Table => {
                let version = "2025-07-05";
                let headers = if self.service == Service::File { "\n\n\n\n\n" } else { "" };
                let end = format!("\n\n\n\n{version}{headers}");
                (version, format!("{letters}\n\n{EXPIRY}\n{resource}\n{lines}{end}"))
            }
        };
        let signature = hmac(key, &text);
        let mut pairs = vec![("sv", version), ("sp", letters), ("se", EXPIRY), ("sig", &signature)];
        pairs.extend(fields.iter().map(|(name, value)| (*name, value.as_str())));
        self.with_query(&pairs).of_kind(kind, resource)
    }

    pub fn by_token(mut self, token: &str, bearer: &BearerSettings) -> Self {
        self.bearer = bearer.clone();
        self.with_header("authorization", &format!("Bearer {token}"))
    }
}
