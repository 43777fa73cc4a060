//! A golden request: read from a file, altered by tests, presented for authentication.
#![allow(dead_code, reason = "each test binary uses the part it needs")]

use std::net::{IpAddr, Ipv4Addr};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdfast_domain::time::Timestamp;
use holdfast_rest::auth::{
    AccountKeys, Accounts, Assignment, AssignmentScope, AuthRefusal, BearerSettings, Identity, Key,
    NamedResource, Presented, Role, authenticate,
};
use holdfast_rest::headers::RequestHeaders;
use holdfast_rest::service::Service;
use holdfast_rest::version::Version;
use percent_encoding::percent_decode_str;
use serde::Deserialize;

#[derive(Deserialize)]
struct File {
    key: String,
    date: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    service: String,
    account: String,
    path_style: bool,
    method: String,
    url: String,
    headers: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    kind: String,
    delegated_user: Option<String>,
    #[serde(default)]
    signed: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Golden {
    pub name: String,
    pub service: String,
    pub account: String,
    pub path_style: bool,
    pub method: String,
    pub path: String,
    pub query: Vec<(String, String)>,
    pub headers: RequestHeaders,
    pub tls: bool,
    pub client_ip: IpAddr,
    pub now: Timestamp,
    /// For signatures: account, service, policy (a service signature that names one), policy and
    /// times (one that also has its own times) or delegation.
    pub kind: String,
    pub delegated_user: Option<String>,
    /// The query parameters that the signature covers, directly or not.
    pub signed: Vec<String>,
    pub bearer: BearerSettings,
    key: String,
    served: String,
}

pub fn rfc1123(text: &str) -> Timestamp {
    Timestamp::parse_rfc1123(text).expect("a valid date")
}

fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8().expect("UTF-8").into_owned()
}

/// A token that only the development mode accepts, valid around `now`.
pub fn unsigned_token(object_id: &str, tenant_id: &str, now: i64) -> String {
    let claims = serde_json::json!({
        "iss": format!("https://sts.windows.net/{tenant_id}/"),
        "aud": "https://storage.azure.com/",
        "nbf": now - 3600,
        "exp": now + 3600,
        "oid": object_id,
        "tid": tenant_id,
    });
    let part = |text: String| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.", part(r#"{"alg":"none"}"#.to_owned()), part(claims.to_string()))
}

/// A role of these actions, in every account, for the holder of an object id.
pub fn assignment(object_id: &str, actions: &[String]) -> Assignment {
    let actions = actions.iter().map(|action| &*action.clone().leak());
    let role = Role { name: "of a test", actions: actions.collect::<Vec<_>>().leak() };
    let who = vec![("oid".to_owned(), object_id.to_owned())];
    Assignment { who, role, scope: AssignmentScope::default() }
}

/// The path of a URL as it was received, and its query, percent-decoded.
pub fn split_url(url: &str) -> (bool, String, Vec<(String, String)>) {
    let (scheme, rest) = url.split_once("://").expect("an absolute URL");
    let (target, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = target.find('/').map_or("/", |at| &target[at..]);
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    });
    (scheme == "https", path.to_owned(), pairs.collect())
}

impl Golden {
    pub fn load(file: &str) -> Vec<Self> {
        let File { key, date, cases } = serde_json::from_str(file).expect("a golden file");
        cases.into_iter().map(|case| Self::of(case, &key, &date)).collect()
    }

    fn of(case: Case, key: &str, date: &str) -> Self {
        let headers = case.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let headers = RequestHeaders::from_iter(headers);
        assert_eq!(headers.len(), case.headers.len(), "all of them are headers");
        let (tls, path, query) = split_url(&case.url);
        Self {
            name: case.name,
            service: case.service,
            served: case.account.clone(),
            account: case.account,
            path_style: case.path_style,
            method: case.method,
            path,
            query,
            headers,
            tls,
            client_ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
            now: rfc1123(date),
            kind: case.kind,
            delegated_user: case.delegated_user,
            signed: case.signed,
            bearer: BearerSettings::off(),
            key: key.to_owned(),
        }
    }

    pub fn service(&self) -> Service {
        match self.service.as_str() {
            "blob" | "dfs" => Service::Blob,
            "queue" => Service::Queue,
            "table" => Service::Table,
            "file" => Service::File,
            other => panic!("no service {other}"),
        }
    }

    /// The version it names, or else one that has all features.
    pub fn version(&self) -> Version {
        let named = self.headers.text("x-ms-version").and_then(|text| Version::parse(text).ok());
        named.unwrap_or(Version::V2021_12_02)
    }

    pub fn serve(&mut self, account: &str) {
        self.served = account.to_owned();
    }

    pub fn header_names(&self) -> Vec<String> {
        let names = self.headers.iter().map(|(name, _)| name);
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    pub fn header(&self, name: &str) -> String {
        self.headers.text(name).expect("a header of the request").to_owned()
    }

    pub fn set_header(&mut self, name: &str, value: &str) {
        self.remove_header(name);
        self.append_header(name, value);
    }

    pub fn append_header(&mut self, name: &str, value: &str) {
        self.headers.append(name, value.as_bytes()).expect("a header");
    }

    pub fn remove_header(&mut self, name: &str) {
        self.headers.keep(&name.to_ascii_lowercase(), 0);
    }

    pub fn authenticate(&self) -> Result<Identity, AuthRefusal> {
        let primary = Key::from_base64(&self.key).expect("a key");
        self.authenticate_by(AccountKeys { primary, secondary: None })
    }

    pub fn authenticate_with_secondary(&self) -> Result<Identity, AuthRefusal> {
        let primary = Key::from_base64("b3RoZXI=").expect("a key");
        let secondary = Some(Key::from_base64(&self.key).expect("a key"));
        self.authenticate_by(AccountKeys { primary, secondary })
    }

    pub fn query_value(&mut self, name: &str) -> &mut String {
        let found = self.query.iter_mut().find(|(sent, _)| sent == name);
        &mut found.expect("a parameter of the request").1
    }

    pub fn remove_query(&mut self, name: &str) {
        self.query.retain(|(sent, _)| sent != name);
    }

    fn authenticate_by(&self, keys: AccountKeys) -> Result<Identity, AuthRefusal> {
        let accounts = Accounts::from_iter([(self.served.clone(), keys)]);
        let path = decode(&self.path);
        let below_account = match self.path_style {
            true => path[1..].split_once('/').map_or("", |(_, below)| below),
            false => &path[1..],
        };
        let (container, object) = below_account.split_once('/').unwrap_or((below_account, ""));
        let container = container.split('(').next().unwrap_or_default();
        let target = NamedResource {
            account: &self.account,
            service: self.service(),
            container: Some(container).filter(|name| !name.is_empty()),
            object: Some(object).filter(|name| !name.is_empty()),
        };
        let presented = Presented {
            method: &self.method,
            path: &self.path,
            path_style: self.path_style,
            query: &self.query,
            headers: &self.headers,
            version: self.version(),
            tls: self.tls,
            client_ip: self.client_ip,
            resource: target,
        };
        authenticate(&presented, &accounts, &self.bearer, self.now)
    }
}
