//! Shared access signatures as received: their kinds, their fields, and the checks that all kinds
//! share. The signed text of each kind and version is in [`super::string_to_sign`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use holdfast_domain::table::KeyRange;
use holdfast_domain::time::Timestamp;

use super::keys::{AccountKeys, decode_signature};
use super::permission_letters::Letters;
use super::roles::is_same;
use super::string_to_sign::{self, ResourcePath};
use super::{AuthRefusal, NamedResource, Presented};
use crate::service::Service;

/// The parameters that make up shared access signatures. None of them may be sent twice: which one
/// counts would depend on the reader.
pub(crate) const PARAMETERS: [&str; 39] = [
    "sv",
    "ss",
    "srt",
    "sp",
    "st",
    "se",
    "sip",
    "spr",
    "sr",
    "sdd",
    "si",
    "tn",
    "spk",
    "srk",
    "epk",
    "erk",
    "ses",
    "rscc",
    "rscd",
    "rsce",
    "rscl",
    "rsct",
    "skoid",
    "sktid",
    "skt",
    "ske",
    "sks",
    "skv",
    "saoid",
    "suoid",
    "scid",
    "skdutid",
    "sduoid",
    "srh",
    "srq",
    "sig",
    "snapshot",
    "versionid",
    "api-version",
];

/// Before this version a signature has no `sv` of its own.
pub(super) const FIRST_SIGNED_VERSION: &str = "2012-02-12";
/// The first version of account signatures, of `sip` and `spr`, and of the specific codes for what
/// a signature lacks.
const ACCOUNT_SAS_SINCE: &str = "2015-04-05";
pub(super) const RESPONSE_HEADERS_SINCE: &str = "2013-08-15";
const ENCRYPTION_SCOPE_SINCE: &str = "2020-12-06";
/// The longest validity of a signature without version and policy.
const UNVERSIONED_LIFETIME_MAX: Duration = Duration::from_secs(3600);

/// The parameters of a request that carries a signature.
#[derive(Clone, Copy)]
pub(super) struct Parameters<'a>(&'a [(String, String)]);

impl<'a> Parameters<'a> {
    /// `None` if the request carries no signature.
    pub fn of(request: &Presented<'a>) -> Result<Option<Self>, AuthRefusal> {
        let parameters = Self(request.query);
        match parameters.all("sig").count() {
            0 => return Ok(None),
            1 => {}
            _ => return Err(malformed("sig", "is sent more than once")),
        }
        match PARAMETERS.into_iter().find(|name| parameters.all(name).nth(1).is_some()) {
            Some(name) => Err(AuthRefusal::DuplicateQueryParameter { name }),
            None => Ok(Some(parameters)),
        }
    }

    fn all(self, name: &str) -> impl Iterator<Item = &'a str> {
        let named = move |sent: &&(String, String)| sent.0.eq_ignore_ascii_case(name);
        self.0.iter().filter(named).map(|(_, value)| value.as_str())
    }

    /// The value, or nothing if it is absent or empty: both are signed as an empty line.
    pub fn get(self, name: &str) -> Option<&'a str> {
        self.all(name).next().filter(|value| !value.is_empty())
    }

    /// The value, even if it is empty.
    pub fn sent(self, name: &str) -> Option<&'a str> {
        self.all(name).next()
    }

    pub fn text(self, name: &str) -> &'a str {
        self.get(name).unwrap_or_default()
    }

    pub fn owned(self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    pub fn required(self, name: &'static str) -> Result<&'a str, AuthRefusal> {
        self.get(name).ok_or_else(|| malformed(name, "is mandatory. Cannot be empty"))
    }

    pub fn time(self, name: &'static str) -> Result<Option<Timestamp>, AuthRefusal> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match Timestamp::parse_iso8601(text) {
            Some(time) => Ok(Some(time)),
            None => Err(malformed(name, "is not a valid ISO 8601 time")),
        }
    }

    pub fn letters(self, name: &'static str) -> Result<Option<Letters>, AuthRefusal> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match Letters::parse(text) {
            Some(letters) => Ok(Some(letters)),
            None => Err(malformed(name, "has an unknown or a repeated letter")),
        }
    }

    /// The version the signature was made for; empty before signatures had one.
    pub fn version(self) -> Result<&'a str, AuthRefusal> {
        let version = self.text("sv");
        let digits = |range| {
            version
                .get(range)
                .is_some_and(|text: &str| text.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let well_formed = version.len() == 10
            && digits(0..4)
            && digits(5..7)
            && digits(8..10)
            && version.as_bytes()[4] == b'-'
            && version.as_bytes()[7] == b'-'
            && version >= FIRST_SIGNED_VERSION;
        if version.is_empty() || well_formed {
            Ok(version)
        } else {
            Err(malformed("sv", "is not a version"))
        }
    }
}

pub(super) fn malformed(name: &str, problem: &str) -> AuthRefusal {
    AuthRefusal::failed(format!("{name} {problem}."))
}

/// When a signature is valid. Without an expiry, its stored access policy must have one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    pub start: Option<Timestamp>,
    pub expiry: Option<Timestamp>,
}

impl Window {
    pub fn of(parameters: Parameters<'_>) -> Result<Self, AuthRefusal> {
        Ok(Self { start: parameters.time("st")?, expiry: parameters.time("se")? })
    }

    pub fn check(self, now: Timestamp) -> Result<(), AuthRefusal> {
        let Some(expiry) = self.expiry else {
            return Err(AuthRefusal::failed(
                "Signed expiry must be specified in signature or SAS identifier",
            ));
        };
        if now <= expiry && self.start.is_none_or(|start| start <= now) {
            return Ok(());
        }
        // Without a start a signature begins now: the service answers so for an expired one.
        let start = self.start.unwrap_or(now);
        let ends_first = start >= expiry;
        let (start, expiry, now) = (start.rfc1123(), expiry.rfc1123(), now.rfc1123());
        Err(AuthRefusal::failed(if ends_first {
            format!("Signed expiry time [{expiry}] must be after signed start time [{start}]")
        } else {
            format!(
                "Signature not valid in the specified time frame: \
                 Start [{start}] - Expiry [{expiry}] - Current [{now}]"
            )
        }))
    }
}

/// Protocol and address, which every kind of signature can restrict.
pub(super) fn check_origin(
    parameters: Parameters<'_>,
    request: &Presented<'_>,
) -> Result<(), AuthRefusal> {
    match parameters.get("spr") {
        None | Some("https,http" | "http,https") => {}
        Some("https") if request.tls => {}
        Some("https") => return Err(AuthRefusal::ProtocolMismatch),
        Some(_) => return Err(malformed("spr", "is neither https nor https,http")),
    }
    let Some(range) = parameters.get("sip") else { return Ok(()) };
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (Ok(first), Ok(last)) = (first.parse::<IpAddr>(), last.parse::<IpAddr>()) else {
        return Err(malformed("sip", "is not an address or a range of addresses"));
    };
    let inside = match (first, last, request.client_ip.to_canonical()) {
        (IpAddr::V4(first), IpAddr::V4(last), IpAddr::V4(client)) => {
            (u32::from(first)..=u32::from(last)).contains(&Ipv4Addr::to_bits(client))
        }
        (IpAddr::V6(first), IpAddr::V6(last), IpAddr::V6(client)) => {
            (u128::from(first)..=u128::from(last)).contains(&Ipv6Addr::to_bits(client))
        }
        (IpAddr::V4(_) | IpAddr::V6(_), IpAddr::V4(_) | IpAddr::V6(_), _) => false,
    };
    if inside { Ok(()) } else { Err(AuthRefusal::SourceIpMismatch) }
}

fn check_encryption_scope(parameters: Parameters<'_>) -> Result<Option<String>, AuthRefusal> {
    let scope = parameters.owned("ses");
    if scope.is_some() && parameters.text("sv") < ENCRYPTION_SCOPE_SINCE {
        return Err(malformed("ses", "needs version 2020-12-06 or later"));
    }
    Ok(scope)
}

fn check_signature(
    parameters: Parameters<'_>,
    text: &str,
    keys: &AccountKeys,
) -> Result<(), AuthRefusal> {
    let signature = decode_signature(parameters.text("sig"));
    let matched = signature.is_some_and(|signature| {
        keys.both().any(|key| key.verifies(&[text.as_bytes()], &signature))
    });
    if matched { Ok(()) } else { Err(mismatch(text)) }
}

pub(super) fn mismatch(text: &str) -> AuthRefusal {
    AuthRefusal::failed(format!("Signature did not match. String to sign used was {text}"))
}

/// The letters that have a meaning in that version. §14.16 of the notes on the protocol: sources
/// differ on the first version of some; this uses the earlier one.
pub(super) fn letters_since(letters: Letters, version: &str) -> Letters {
    const SINCE: [(&str, &str); 4] =
        [("2019-10-10", "xy"), ("2019-12-12", "tf"), ("2020-02-10", "meo"), ("2020-06-12", "i")];
    let newer = SINCE.into_iter().filter(|(since, _)| version < *since);
    newer.fold(letters, |letters, (_, unknown)| letters.without(unknown))
}

/// A signature for services and types of resources of the whole account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountSas {
    pub(super) services: Letters,
    pub(super) version: String,
    pub resource_types: Letters,
    pub permissions: Letters,
    pub encryption_scope: Option<String>,
}

pub(super) fn account(
    parameters: Parameters<'_>,
    request: &Presented<'_>,
    keys: &AccountKeys,
    now: Timestamp,
) -> Result<AccountSas, AuthRefusal> {
    let version = parameters.version()?;
    if version < ACCOUNT_SAS_SINCE {
        return Err(malformed("sv", "is before the first version of account signatures"));
    }
    for name in ["sp", "se", "ss", "srt"] {
        parameters.required(name)?;
    }
    let text = string_to_sign::account(parameters, request.resource.account);
    check_signature(parameters, &text, keys)?;
    Window::of(parameters)?.check(now)?;
    check_origin(parameters, request)?;
    let services = parameters.letters("ss")?.unwrap_or_default();
    if !services.contains(request.resource.service.sas_letter()) {
        return Err(AuthRefusal::ServiceMismatch);
    }
    let permissions = parameters.letters("sp")?.unwrap_or_default();
    Ok(AccountSas {
        services,
        version: version.to_owned(),
        resource_types: parameters.letters("srt")?.unwrap_or_default(),
        permissions: letters_since(permissions, version),
        encryption_scope: check_encryption_scope(parameters)?,
    })
}

/// A signature for one resource and its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSas {
    /// The stored access policy that completes the signature. Until [`super::resolve_policy`] has
    /// removed it, the signature allows nothing.
    pub policy_id: Option<String>,
    pub(super) window: Window,
    pub(super) permissions: Option<Letters>,
    pub(super) version: String,
    pub scope: SasScope,
}

/// The fields of a signature for one resource besides times and permissions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SasScope {
    /// `None` if the caller is not limited to a resource.
    pub resource: Option<SignedResource>,
    pub encryption_scope: Option<String>,
    pub response_headers: ResponseHeaders,
    pub key_range: Option<KeyRange>,
    /// The table that the signature is for, if the address does not name it.
    pub table: Option<String>,
}

impl SasScope {
    /// Whether the signature is also for `target`, which is not what the request came with.
    pub(super) fn covers(&self, target: &NamedResource<'_>) -> bool {
        self.resource.as_ref().is_some_and(|resource| resource.covers(target))
    }

    /// For a caller without such a signature.
    pub(super) const WHOLE: &Self = &Self {
        resource: None,
        encryption_scope: None,
        response_headers: ResponseHeaders {
            cache_control: None,
            content_disposition: None,
            content_encoding: None,
            content_language: None,
            content_type: None,
        },
        key_range: None,
        table: None,
    };
}

/// The resource that a signature is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedResource {
    pub service: Service,
    pub container: String,
    pub below: Below,
}

/// Which part of its container, queue, table or share a signature is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Below {
    Everything,
    /// A directory and its contents, without slashes at either end; empty for the root.
    Directory(String),
    Object(String),
    /// One snapshot or version of a blob.
    PastState,
}

impl SignedResource {
    /// Whether the signature is also for `target`, which is not what the request came with.
    pub(super) fn covers(&self, target: &NamedResource<'_>) -> bool {
        let same_container =
            target.container.is_some_and(|name| is_same(self.service, name, &self.container));
        let inside = match (&self.below, target.object) {
            (Below::Everything, _) => true,
            (Below::Directory(path), Some(object)) => {
                path.is_empty()
                    || object
                        .strip_prefix(path.as_str())
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            (Below::Object(path), Some(object)) => path == object,
            (Below::PastState, _) | (Below::Directory(_) | Below::Object(_), None) => false,
        };
        self.service == target.service && same_container && inside
    }
}

/// Headers that replace those of the blob or file in the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseHeaders {
    pub cache_control: Option<String>,
    pub content_disposition: Option<String>,
    pub content_encoding: Option<String>,
    pub content_language: Option<String>,
    pub content_type: Option<String>,
}

pub(super) fn service(
    parameters: Parameters<'_>,
    request: &Presented<'_>,
    keys: &AccountKeys,
    now: Timestamp,
) -> Result<ServiceSas, AuthRefusal> {
    let version = parameters.version()?;
    let resource = ResourcePath::of(parameters, request)?;
    let text =
        string_to_sign::service(parameters, request.resource.service, version, &resource.path);
    check_signature(parameters, &text, keys)?;
    let window = Window::of(parameters)?;
    let permissions = parameters.letters("sp")?;
    let policy_id = parameters.owned("si");
    if policy_id.is_none() {
        window.check(now)?;
        check_unversioned_lifetime(version, window, now)?;
        parameters.required("sp")?;
    }
    check_origin(parameters, request)?;
    Ok(ServiceSas {
        policy_id,
        window,
        permissions: permissions.map(|letters| letters_since(letters, version)),
        version: version.to_owned(),
        scope: scope(parameters, request.resource.service, resource.resource)?,
    })
}

fn check_unversioned_lifetime(
    version: &str,
    window: Window,
    now: Timestamp,
) -> Result<(), AuthRefusal> {
    let Some(expiry) = window.expiry.filter(|_| version.is_empty()) else { return Ok(()) };
    if expiry.since(window.start.unwrap_or(now)) <= UNVERSIONED_LIFETIME_MAX {
        return Ok(());
    }
    Err(AuthRefusal::failed(
        "Access without signed identifier cannot have time window more than 1 hour.",
    ))
}

pub(super) fn scope(
    parameters: Parameters<'_>,
    service: Service,
    resource: SignedResource,
) -> Result<SasScope, AuthRefusal> {
    let key_range = KeyRange {
        start_partition: parameters.owned("spk"),
        start_row: parameters.owned("srk"),
        end_partition: parameters.owned("epk"),
        end_row: parameters.owned("erk"),
    };
    // A row key alone has no meaning, and ignoring it would allow more than intended.
    if key_range.start_partition.is_none() && key_range.start_row.is_some() {
        return Err(malformed("srk", "needs spk"));
    }
    if key_range.end_partition.is_none() && key_range.end_row.is_some() {
        return Err(malformed("erk", "needs epk"));
    }
    // If the version does not sign them, anyone could have added them.
    let headers_signed = matches!(service, Service::Blob | Service::File)
        && parameters.text("sv") >= RESPONSE_HEADERS_SINCE;
    let header = |name| parameters.owned(name).filter(|_| headers_signed);
    Ok(SasScope {
        table: match service {
            Service::Table => parameters.owned("tn"),
            Service::Blob | Service::Queue | Service::File => None,
        },
        resource: Some(resource),
        encryption_scope: match service {
            Service::Blob => check_encryption_scope(parameters)?,
            Service::Queue | Service::Table | Service::File => None,
        },
        response_headers: ResponseHeaders {
            cache_control: header("rscc"),
            content_disposition: header("rscd"),
            content_encoding: header("rsce"),
            content_language: header("rscl"),
            content_type: header("rsct"),
        },
        key_range: (service == Service::Table && key_range != KeyRange::default())
            .then_some(key_range),
    })
}
