//! Which key the bytes of a blob are encrypted with: the client's own, sent with every request, or
//! a scope. A scope is stored, enforced and returned; it does not change how bytes are stored.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_domain::blob::{Encryption, ScopePolicy};
use holdfast_domain::content::{CustomerKey, Sealing};

use crate::answer::Answer;
use crate::error::{Code, Error};
use crate::request::Call;
use crate::version::Version;

const KEY: &str = "x-ms-encryption-key";
const KEY_SHA256: &str = "x-ms-encryption-key-sha256";
const ALGORITHM: &str = "x-ms-encryption-algorithm";
const SCOPE: &str = "x-ms-encryption-scope";
pub(super) const CONTEXT: &str = "x-ms-encryption-context";
const DEFAULT_SCOPE: &str = "x-ms-default-encryption-scope";
const DENY_OVERRIDE: &str = "x-ms-deny-encryption-scope-override";
/// The scope reported for a container without one.
const ACCOUNT_SCOPE: &str = "$account-encryption-key";

const CONTEXT_CHARACTERS_MAX: usize = 1024;
const SCOPE_CHARACTERS: std::ops::RangeInclusive<usize> = 3..=63;

/// What a write asks for.
#[derive(Clone, Debug)]
pub struct Chosen {
    pub key: Option<CustomerKey>,
    scope: Option<String>,
}

impl Chosen {
    pub fn read(call: &Call<'_>) -> Result<Self, Error> {
        let (key, scope) = (customer_key(call)?, scope(call)?);
        if key.is_some() && scope.is_some() {
            let name = call.header(SCOPE)?.unwrap_or_default();
            return Err(Error::invalid_header(SCOPE, name)
                .detail("Reason", "A customer-provided key is sent too."));
        }
        Ok(Self { key, scope })
    }

    pub fn encryption(&self) -> Encryption {
        match (&self.key, &self.scope) {
            (Some(key), _) => Encryption::CustomerKey { sha256: key.sha256() },
            (None, Some(scope)) => Encryption::Scope(scope.clone()),
            (None, None) => Encryption::Account,
        }
    }

    /// How the bytes that come with the request are to be encrypted.
    pub fn sealing(&self) -> Option<Sealing> {
        let key = self.key.clone()?;
        let (first, second) = (uuid::Uuid::new_v4(), uuid::Uuid::new_v4());
        let mut salt = [0; 32];
        salt[..16].copy_from_slice(first.as_bytes());
        salt[16..].copy_from_slice(second.as_bytes());
        Some(Sealing { key, salt })
    }
}

/// The key that the client sends, checked against its digest.
pub fn customer_key(call: &Call<'_>) -> Result<Option<CustomerKey>, Error> {
    read_key(call, KEY, KEY_SHA256, ALGORITHM)
}

/// The key that the source of a copy is encrypted with.
pub fn source_key(call: &Call<'_>) -> Result<Option<CustomerKey>, Error> {
    read_key(
        call,
        "x-ms-source-encryption-key",
        "x-ms-source-encryption-key-sha256",
        "x-ms-source-encryption-algorithm",
    )
}

fn read_key(
    call: &Call<'_>,
    key_name: &'static str,
    sha256_name: &'static str,
    algorithm_name: &'static str,
) -> Result<Option<CustomerKey>, Error> {
    let (key, sha256) = (call.header(key_name)?, call.header(sha256_name)?);
    let algorithm = call.header(algorithm_name)?;
    let Some(text) = key else {
        return match [sha256, algorithm] {
            [None, None] => Ok(None),
            [Some(_), _] | [_, Some(_)] => Err(Error::missing_header(key_name)),
        };
    };
    // The text itself must not be in the answer.
    let refused = |reason: &str| {
        Error::from(Code::InvalidHeaderValue)
            .detail("HeaderName", key_name)
            .detail("Reason", reason)
    };
    if !call.peer.tls {
        return Err(refused("A key is sent over HTTPS only."));
    }
    match algorithm {
        Some("AES256") => {}
        Some(other) => return Err(Error::invalid_header(algorithm_name, other)),
        None => return Err(Error::missing_header(algorithm_name)),
    }
    let bytes = STANDARD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
    let key = CustomerKey::new(bytes.ok_or_else(|| refused("It is not 32 bytes in Base64."))?);
    match sha256 {
        Some(text) if text == STANDARD.encode(key.sha256()) => Ok(Some(key)),
        Some(text) => Err(Error::invalid_header(sha256_name, text)),
        None => Err(Error::missing_header(sha256_name)),
    }
}

/// The scope that the header or the signature names; they must not differ.
fn scope(call: &Call<'_>) -> Result<Option<String>, Error> {
    let sent = call.header(SCOPE)?;
    if let Some(name) = sent.filter(|name| !is_scope_name(name)) {
        return Err(Error::invalid_header(SCOPE, name));
    }
    match (sent, call.granted.scope().encryption_scope.as_deref()) {
        (Some(sent), Some(signed)) if sent != signed => Err(Error::invalid_header(SCOPE, sent)),
        (Some(scope), _) | (None, Some(scope)) => Ok(Some(scope.to_owned())),
        (None, None) => Ok(None),
    }
}

fn is_scope_name(name: &str) -> bool {
    SCOPE_CHARACTERS.contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// What the client stores with a new blob for its own encryption, since 2021-08-06.
pub fn context(call: &Call<'_>) -> Result<Option<String>, Error> {
    if call.version < Version::V2021_08_06 {
        return Ok(None);
    }
    match call.header(CONTEXT)? {
        Some(text) if text.chars().count() > CONTEXT_CHARACTERS_MAX => {
            Err(Error::invalid_header(CONTEXT, text))
        }
        sent => Ok(sent.filter(|text| !text.is_empty()).map(str::to_owned)),
    }
}

/// What Create Container says about the scopes of its blobs.
pub fn scope_policy(call: &Call<'_>) -> Result<ScopePolicy, Error> {
    let default = match call.header(DEFAULT_SCOPE)? {
        None | Some(ACCOUNT_SCOPE) => None,
        Some(name) if is_scope_name(name) => Some(name.to_owned()),
        Some(name) => return Err(Error::invalid_header(DEFAULT_SCOPE, name)),
    };
    let fixed = match call.header(DENY_OVERRIDE)? {
        None => false,
        Some(text) if text.eq_ignore_ascii_case("false") => false,
        Some(text) if text.eq_ignore_ascii_case("true") => true,
        Some(text) => return Err(Error::invalid_header(DENY_OVERRIDE, text)),
    };
    Ok(ScopePolicy { default, fixed })
}

/// The default scope of blobs in a container.
pub fn default_scope(policy: &ScopePolicy) -> &str {
    policy.default.as_deref().unwrap_or(ACCOUNT_SCOPE)
}

pub fn describe_policy(answer: &mut Answer, policy: &ScopePolicy) {
    answer.header(DEFAULT_SCOPE, default_scope(policy));
    answer.header(DENY_OVERRIDE, if policy.fixed { "true" } else { "false" });
}

/// The headers about encryption on the answers to reads and writes.
pub fn describe(answer: &mut Answer, encryption: &Encryption) {
    match encryption {
        Encryption::Account => {}
        Encryption::CustomerKey { sha256 } => answer.header(KEY_SHA256, STANDARD.encode(sha256)),
        Encryption::Scope(name) => answer.header(SCOPE, name),
    }
}
