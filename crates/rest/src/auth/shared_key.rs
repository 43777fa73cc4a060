//! Shared Key and Shared Key Lite.
//!
//! Clients disagree with the reference, and with each other, on a few details of the text they
//! sign. Each detail has a short list of forms here, the documented one first; a signature over any
//! combination of them is accepted. That weakens nothing: a client that can sign one form can sign
//! all.

use std::borrow::Cow;
use std::time::Duration;

use holdfast_domain::time::Timestamp;

use super::header_order::culture_order;
use super::keys::{AccountKeys, Signature, decode_signature};
use super::{AuthRefusal, Presented};
use crate::headers::RequestHeaders;
use crate::headers::byte_scan::split_at_byte;
use crate::service::Service;
use crate::version::Version;

/// How far the date of a request may be from the server's clock.
pub const CLOCK_SKEW_MAX: Duration = Duration::from_secs(15 * 60);

/// From this version on, a Content-Length of zero is signed as an empty line.
const EMPTY_LENGTH_SINCE: Version = Version::V2015_02_21;
/// From this version on, x-ms- headers with an empty value are signed.
const EMPTY_HEADERS_SINCE: Version = Version::V2016_05_31;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    SharedKey,
    SharedKeyLite,
}

/// Checks `credentials`, the part of the Authorization header after the scheme.
pub(super) fn check(
    scheme: Scheme,
    credentials: &str,
    request: &Presented<'_>,
    keys: &AccountKeys,
    now: Timestamp,
) -> Result<(), AuthRefusal> {
    let Some((account, signature)) = split_at_byte(credentials.trim(), b':') else {
        return Err(AuthRefusal::InvalidAuthenticationInfo {
            detail: "account:signature expected",
        });
    };
    if account != request.resource.account {
        return Err(AuthRefusal::failed("The account in the Authorization header is another one."));
    }
    let headers = SignedHeaders::collect(request.headers, request.version)?;
    check_date(&headers, now)?;
    let candidates = Candidates::new(scheme, request, &headers);
    let matched = decode_signature(signature)
        .is_some_and(|signature| keys.both().any(|key| candidates.verify(key, &signature)));
    if matched {
        return Ok(());
    }
    Err(AuthRefusal::failed(format!(
        "The MAC signature found in the HTTP request is not the same as any computed signature. \
         Server used following string to sign: '{}'.",
        shown_text(scheme, request, &headers)
    )))
}

/// The documented form of the signed text, to help authors of clients, without anything that gives
/// access to other resources.
fn shown_text(scheme: Scheme, request: &Presented<'_>, headers: &SignedHeaders<'_>) -> String {
    const HIDDEN: &str = "***";
    let secret = |name: &[u8]| {
        let name = String::from_utf8_lossy(name);
        name.contains("encryption-key")
            || name.contains("authorization")
            || name.ends_with("copy-source")
            || name.ends_with("rename-source")
    };
    let shown = |&(name, value)| (name, if secret(name) { HIDDEN.as_bytes() } else { value });
    let headers = SignedHeaders { x_ms: headers.x_ms.iter().map(shown).collect(), ..*headers };
    let mut query = request.query.to_vec();
    for (name, value) in &mut query {
        if name.eq_ignore_ascii_case("sig") {
            HIDDEN.clone_into(value);
        }
    }
    let request = Presented { query: &query, ..*request };
    Candidates::new(scheme, &request, &headers).documented_form()
}

fn check_date(headers: &SignedHeaders<'_>, now: Timestamp) -> Result<(), AuthRefusal> {
    let date = headers.x_ms_date.or(headers.date());
    let Some(date) = date else {
        return Err(AuthRefusal::failed("Request date header not specified."));
    };
    let parsed = std::str::from_utf8(date).ok().and_then(Timestamp::parse_rfc1123);
    let Some(date) = parsed else {
        return Err(AuthRefusal::failed("Request date header is not a valid RFC 1123 date."));
    };
    if now.since(date) > CLOCK_SKEW_MAX || date.since(now) > CLOCK_SKEW_MAX {
        return Err(AuthRefusal::failed(format!(
            "Request date header too old: '{}'",
            date.rfc1123()
        )));
    }
    Ok(())
}

/// The standard headers that are signed, in order.
const STANDARD: [&str; 11] = [
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
];
const ENCODING: usize = 0;
const LANGUAGE: usize = 1;
const LENGTH: usize = 2;
const MD5: usize = 3;
const TYPE: usize = 4;
const DATE: usize = 5;

/// The headers of a request that can be part of the signed text.
struct SignedHeaders<'a> {
    standard: [Option<&'a [u8]>; STANDARD.len()],
    x_ms_date: Option<&'a [u8]>,
    /// Sorted as the service sorts.
    x_ms: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> SignedHeaders<'a> {
    fn collect(headers: &'a RequestHeaders, version: Version) -> Result<Self, AuthRefusal> {
        let mut standard = [None; STANDARD.len()];
        let mut x_ms = Vec::with_capacity(headers.len());
        let mut x_ms_date = None;
        let keep_empty = version >= EMPTY_HEADERS_SINCE;
        for (name, value) in headers.iter() {
            if name.starts_with(b"x-ms-") {
                if name == b"x-ms-date" && !value.is_empty() {
                    x_ms_date = Some(value);
                }
                if keep_empty || !value.is_empty() {
                    x_ms.push((name, value));
                }
            } else if let Some(at) =
                STANDARD.iter().position(|standard| standard.as_bytes() == name)
                && standard[at].replace(value).is_some()
            {
                return Err(duplicate(name));
            }
        }
        if standard[LENGTH] == Some(b"0") && version >= EMPTY_LENGTH_SINCE {
            standard[LENGTH] = None;
        }
        x_ms.sort_unstable_by(|left, right| culture_order(left.0, right.0));
        if let Some(pair) = x_ms.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(duplicate(pair[0].0));
        }
        Ok(Self { standard, x_ms_date, x_ms })
    }

    fn value(&self, at: usize) -> &'a [u8] {
        self.standard[at].unwrap_or_default()
    }

    fn date(&self) -> Option<&'a [u8]> {
        self.standard[DATE]
    }
}

fn duplicate(name: &[u8]) -> AuthRefusal {
    AuthRefusal::DuplicateHeader { name: String::from_utf8_lossy(name).into_owned() }
}

/// The forms of the signed text: one of each list, in this order.
struct Candidates<'a> {
    heads: Vec<Vec<u8>>,
    headers: Vec<Vec<u8>>,
    account: &'a str,
    paths: Paths<'a>,
    query: Vec<u8>,
}

impl<'a> Candidates<'a> {
    fn new(scheme: Scheme, request: &Presented<'a>, headers: &SignedHeaders<'_>) -> Self {
        let full = scheme == Scheme::SharedKey && request.resource.service != Service::Table;
        let signs_headers = request.resource.service != Service::Table;
        Self {
            heads: match (scheme, request.resource.service) {
                (Scheme::SharedKey, Service::Table) => table_heads(request.method, headers),
                (Scheme::SharedKeyLite, Service::Table) => table_lite_heads(headers),
                (Scheme::SharedKey, Service::Blob | Service::Queue | Service::File) => {
                    full_heads(request.method, headers)
                }
                (Scheme::SharedKeyLite, Service::Blob | Service::Queue | Service::File) => {
                    lite_heads(request.method, headers)
                }
            },
            headers: if signs_headers { canonical_headers(&headers.x_ms) } else { vec![vec![]] },
            account: request.resource.account,
            paths: Paths::of(request),
            query: if full { full_query(request.query) } else { lite_query(request.query) },
        }
    }

    fn verify(&self, key: &super::Key, signature: &Signature) -> bool {
        let verify = |head: &[u8], headers: &[u8], [slash, account, path]: [&str; 3]| {
            let parts = [
                head,
                headers,
                b"/".as_slice(),
                self.account.as_bytes(),
                slash.as_bytes(),
                account.as_bytes(),
                path.as_bytes(),
                &self.query,
            ];
            key.verifies(&parts, signature)
        };
        self.paths.forms(self.account).any(|path| {
            self.headers
                .iter()
                .any(|headers| self.heads.iter().any(|head| verify(head, headers, path)))
        })
    }

    fn documented_form(&self) -> String {
        let first = |forms: &[Vec<u8>]| match forms.first() {
            Some(form) => String::from_utf8_lossy(form).into_owned(),
            None => String::new(),
        };
        let (head, headers) = (first(&self.heads), first(&self.headers));
        let query = String::from_utf8_lossy(&self.query);
        format!("{head}{headers}/{}{}{query}", self.account, self.paths.received)
    }
}

/// The path as it was received, and the part after the account if that is its first segment.
struct Paths<'a> {
    received: &'a str,
    after_account: Option<&'a str>,
    secondary: bool,
}

impl<'a> Paths<'a> {
    fn of(request: &Presented<'a>) -> Self {
        let received = if request.path.is_empty() { "/" } else { request.path };
        let after_account = match request.path_style {
            true => received
                .strip_prefix('/')
                .and_then(|path| path.strip_prefix(request.resource.account)),
            false => None,
        };
        let primary = after_account.map(|path| path.strip_prefix("-secondary").unwrap_or(path));
        Self { received, after_account: primary, secondary: primary != after_account }
    }

    /// Emulator-style addresses have the account in the path, and so twice in the signed text.
    /// Some clients omit it there; for a secondary address some sign the name without its suffix.
    fn forms(&self, account: &'a str) -> impl Iterator<Item = [&'a str; 3]> {
        let after_account = self.after_account;
        let once = after_account.map(|path| if path.is_empty() { "/" } else { path });
        let primary = after_account.filter(|_| self.secondary);
        std::iter::once(["", "", self.received])
            .chain(primary.map(|path| ["/", account, path]))
            .chain(once.map(|path| ["", "", path]))
    }
}

fn line(text: &mut Vec<u8>, value: &[u8]) {
    text.extend_from_slice(value);
    text.push(b'\n');
}

fn full_heads(method: &str, headers: &SignedHeaders<'_>) -> Vec<Vec<u8>> {
    let form = |order: &[usize; STANDARD.len()], sign_date: bool| {
        let mut text = Vec::with_capacity(160);
        line(&mut text, method.as_bytes());
        for &at in order {
            let signed = at != DATE || sign_date;
            line(&mut text, if signed { headers.value(at) } else { b"" });
        }
        text
    };
    let order = std::array::from_fn(|at| at);
    let mut swapped = order;
    swapped.swap(ENCODING, LANGUAGE);
    let swap_matters = headers.value(ENCODING) != headers.value(LANGUAGE);
    let both_dates = headers.x_ms_date.is_some() && headers.date().is_some();
    let sign_date = headers.x_ms_date.is_none();
    let mut forms = vec![form(&order, sign_date)];
    // JavaScript clients sign Content-Language before Content-Encoding.
    if swap_matters {
        forms.push(form(&swapped, sign_date));
    }
    // Several clients sign Date even though they send x-ms-date as well.
    if both_dates {
        forms.push(form(&order, true));
    }
    if swap_matters && both_dates {
        forms.push(form(&swapped, true));
    }
    forms
}

fn lite_heads(method: &str, headers: &SignedHeaders<'_>) -> Vec<Vec<u8>> {
    let form = |date: &[u8]| {
        let mut text = Vec::with_capacity(96);
        line(&mut text, method.as_bytes());
        line(&mut text, headers.value(MD5));
        line(&mut text, headers.value(TYPE));
        line(&mut text, date);
        text
    };
    match (headers.x_ms_date, headers.date()) {
        (Some(_), Some(date)) => vec![form(b""), form(date)],
        (Some(_), None) => vec![form(b"")],
        (None, date) => vec![form(date.unwrap_or_default())],
    }
}

/// Only the date that is checked for skew is accepted here: no other header is signed, so a request
/// signed over Date could be replayed forever with a new x-ms-date.
fn table_heads(method: &str, headers: &SignedHeaders<'_>) -> Vec<Vec<u8>> {
    let mut text = Vec::with_capacity(96);
    line(&mut text, method.as_bytes());
    line(&mut text, headers.value(MD5));
    line(&mut text, headers.value(TYPE));
    line(&mut text, headers.x_ms_date.or(headers.date()).unwrap_or_default());
    vec![text]
}

fn table_lite_heads(headers: &SignedHeaders<'_>) -> Vec<Vec<u8>> {
    let mut text = Vec::with_capacity(32);
    line(&mut text, headers.x_ms_date.or(headers.date()).unwrap_or_default());
    vec![text]
}

fn canonical_headers(sorted: &[(&[u8], &[u8])]) -> Vec<Vec<u8>> {
    let size = sorted.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    let form = |headers: &[(&[u8], &[u8])], fold: bool| {
        let mut text = Vec::with_capacity(size);
        for (name, value) in headers {
            text.extend_from_slice(name);
            text.push(b':');
            let value = if fold { Cow::Owned(folded(value)) } else { Cow::Borrowed(*value) };
            line(&mut text, &value);
        }
        text
    };
    let mut forms = vec![form(sorted, false)];
    let fold_matters = sorted.iter().any(|(_, value)| has_runs_of_space(value));
    if fold_matters {
        forms.push(form(sorted, true));
    }
    if !sorted.is_sorted_by_key(|(name, _)| *name) {
        let mut ordinal = sorted.to_vec();
        ordinal.sort_unstable_by_key(|(name, _)| *name);
        forms.push(form(&ordinal, false));
        if fold_matters {
            forms.push(form(&ordinal, true));
        }
    }
    forms
}

fn has_runs_of_space(value: &[u8]) -> bool {
    value.contains(&b'\t') || value.windows(2).any(|pair| pair == b"  ")
}

/// The value with each run of white space outside double quotes replaced by one space.
fn folded(value: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(value.len());
    let mut quoted = false;
    for &byte in value {
        quoted ^= byte == b'"';
        let space = matches!(byte, b' ' | b'\t') && !quoted;
        if !space {
            text.push(byte);
        } else if text.last() != Some(&b' ') {
            text.push(b' ');
        }
    }
    text
}

fn full_query(query: &[(String, String)]) -> Vec<u8> {
    let mut pairs: Vec<(Cow<'_, str>, &str)> =
        query.iter().map(|(name, value)| (lower(name), value.as_str())).collect();
    pairs.sort_unstable();
    let mut text = Vec::with_capacity(query.iter().map(|(n, v)| n.len() + v.len() + 2).sum());
    let mut previous: Option<&str> = None;
    for (name, value) in &pairs {
        if previous == Some(name) {
            text.push(b',');
        } else {
            text.push(b'\n');
            text.extend_from_slice(name.as_bytes());
            text.push(b':');
        }
        text.extend_from_slice(value.as_bytes());
        previous = Some(name);
    }
    text
}

fn lower(name: &str) -> Cow<'_, str> {
    match name.bytes().any(|byte| byte.is_ascii_uppercase()) || !name.is_ascii() {
        true => Cow::Owned(name.to_lowercase()),
        false => Cow::Borrowed(name),
    }
}

fn lite_query(query: &[(String, String)]) -> Vec<u8> {
    let comp = query.iter().find(|(name, _)| name.eq_ignore_ascii_case("comp"));
    comp.map_or_else(Vec::new, |(_, value)| format!("?comp={value}").into_bytes())
}
