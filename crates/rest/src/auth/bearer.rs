//! Bearer tokens of a directory.
//!
//! Who may do what: without a mapping of roles, every principal whose token is accepted may do
//! everything that tokens can do at all. With one, a principal has the actions of each role in the
//! `roles` claim of the token and those given to their object id. A user delegation signature
//! carries no claims, so there only the object id counts.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::time::Timestamp;

use super::authorize::action_matches;
use super::jwt::{Claims, InvalidKeySet, KeySet, Token};
use super::{AuthRefusal, Presented};
use crate::service::Service;
use crate::version::Version;

/// How far the clock of the issuer may be from ours.
pub const TOKEN_SKEW_MAX: Duration = Duration::from_secs(5 * 60);
const BEARER_SINCE: Version = Version::V2017_11_09;
/// Storage as a whole: as an address, and as the application that it is in the directory.
const STORAGE_AUDIENCES: [&str; 2] =
    ["https://storage.azure.com", "e406a681-f3d4-42a8-90b6-c2b029497af1"];

/// Which tokens are accepted.
#[derive(Clone, Debug)]
pub struct BearerSettings {
    trust: Trust,
    audiences: Vec<String>,
    roles: Option<Roles>,
    challenge: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
enum Trust {
    Nobody,
    Issuer {
        issuer: String,
        keys: KeySet,
    },
    /// Any token that looks right, signed or not, over any protocol.
    Anybody,
}

/// From the value of a `roles` claim or an object id to the patterns of actions it allows, such as
/// `Microsoft.Storage/storageAccounts/blobServices/*`.
pub type Roles = HashMap<String, Vec<String>>;

impl BearerSettings {
    /// No token is accepted.
    pub fn off() -> Self {
        Self { trust: Trust::Nobody, audiences: Vec::new(), roles: None, challenge: None }
    }

    /// Tokens of `issuer` (their `iss` claim, exactly) that a key of the set signed.
    pub fn issuer(issuer: impl Into<String>, key_set_json: &str) -> Result<Self, InvalidKeySet> {
        let (issuer, keys) = (issuer.into(), KeySet::from_json(key_set_json)?);
        let challenge = challenge(&format!("{}/oauth2/authorize", issuer.trim_end_matches('/')));
        Ok(Self { trust: Trust::Issuer { issuer, keys }, challenge, ..Self::off() })
    }

    /// For development only: whoever can reach the server is whoever they say they are.
    pub fn development() -> Self {
        let tenant = "00000000-0000-0000-0000-000000000000";
        let uri = format!("https://login.microsoftonline.com/{tenant}/oauth2/authorize");
        Self { trust: Trust::Anybody, challenge: challenge(&uri), ..Self::off() }
    }

    /// Accepts another audience besides storage as a whole and the endpoint of the account.
    #[must_use]
    pub fn with_audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    #[must_use]
    pub fn with_roles(mut self, roles: Roles) -> Self {
        self.roles = Some(roles);
        self
    }

    /// Where clients that give no credentials are sent to get a token.
    #[must_use]
    pub fn with_authorization_uri(mut self, uri: &str) -> Self {
        self.challenge = challenge(uri);
        self
    }

    /// What WWW-Authenticate says, for versions of the service that have it.
    pub fn challenge(&self, service: Service, version: Version) -> Option<Arc<str>> {
        let since = match service {
            Service::Blob | Service::Queue => Version::V2019_12_12,
            Service::Table => Version::V2020_12_06,
            Service::File => Version::V2022_11_02,
        };
        self.challenge.clone().filter(|_| version >= since)
    }

    /// `None` for all.
    pub(super) fn actions(&self, object_id: &str, claimed: &[String]) -> Option<Arc<[String]>> {
        let roles = self.roles.as_ref()?;
        let held = claimed.iter().map(String::as_str).chain([object_id]);
        Some(held.filter_map(|role| roles.get(role)).flatten().cloned().collect())
    }

    fn accepts_audience(&self, audience: &str, request: &Presented<'_>) -> bool {
        let audience = audience.trim_end_matches('/');
        let (account, service) = (request.account, request.service.name());
        STORAGE_AUDIENCES.contains(&audience)
            || audience == format!("https://{account}.{service}.core.windows.net")
            || self.audiences.iter().any(|accepted| accepted.trim_end_matches('/') == audience)
    }
}

impl Default for BearerSettings {
    fn default() -> Self {
        Self::off()
    }
}

fn challenge(authorization_uri: &str) -> Option<Arc<str>> {
    let resource = "https://storage.azure.com";
    Some(format!("Bearer authorization_uri={authorization_uri} resource_id={resource}").into())
}

/// A user or application of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    pub object_id: String,
    pub tenant_id: Option<String>,
    pub name: Option<String>,
    actions: Option<Arc<[String]>>,
}

impl Principal {
    /// Someone of whom only the ids are known.
    pub(super) fn of_object(object_id: String, tenant_id: String) -> Self {
        Self { object_id, tenant_id: Some(tenant_id), name: None, actions: None }
    }

    pub(super) fn restrict(&mut self, settings: &BearerSettings) {
        self.actions = settings.actions(&self.object_id, &[]);
    }

    pub(super) fn may(&self, action: &str) -> bool {
        match &self.actions {
            None => true,
            Some(patterns) => patterns.iter().any(|pattern| action_matches(pattern, action)),
        }
    }
}

/// Checks the token of a request.
pub(super) fn check(
    token: &str,
    request: &Presented<'_>,
    settings: &BearerSettings,
    now: Timestamp,
) -> Result<Principal, AuthRefusal> {
    let development = match settings.trust {
        Trust::Nobody => {
            return Err(AuthRefusal::failed("Authentication scheme Bearer is not supported."));
        }
        Trust::Issuer { .. } => false,
        Trust::Anybody => true,
    };
    if !request.tls && !development {
        return Err(AuthRefusal::failed("Authentication scheme Bearer is not allowed with HTTP."));
    }
    if request.version < BEARER_SINCE {
        return Err(AuthRefusal::failed(
            "Authentication scheme Bearer is not supported in this version.",
        ));
    }
    let claims = believe(token.trim(), request, settings, now).map_err(|detail| {
        let challenge = settings.challenge(request.service, request.version);
        AuthRefusal::InvalidToken { detail, challenge }
    })?;
    let Some(object_id) = claims.oid.or(claims.sub) else {
        return Err(AuthRefusal::failed("The token names nobody."));
    };
    Ok(Principal {
        actions: settings.actions(&object_id, &claims.roles),
        object_id,
        tenant_id: claims.tid,
        name: claims.upn.or(claims.name),
    })
}

fn believe(
    token: &str,
    request: &Presented<'_>,
    settings: &BearerSettings,
    now: Timestamp,
) -> Result<Claims, &'static str> {
    let token = Token::parse(token).ok_or("The token cannot be read.")?;
    let issued_by = token.claims.iss.as_deref().filter(|issuer| !issuer.is_empty());
    match (&settings.trust, issued_by) {
        (Trust::Issuer { issuer, keys }, Some(issued_by)) => {
            if !keys.verifies(&token) {
                return Err("Signature validation failed.");
            }
            if issued_by != issuer {
                return Err("Issuer validation failed.");
            }
        }
        (Trust::Anybody, Some(issued_by)) if issued_by.starts_with("https://") => {}
        (Trust::Nobody | Trust::Issuer { .. } | Trust::Anybody, _) => {
            return Err("Issuer validation failed.");
        }
    }
    let claims = token.claims;
    let accepted = |audience: &str| settings.accepts_audience(audience, request);
    if !claims.aud.as_ref().is_some_and(|audience| audience.iter().any(accepted)) {
        return Err("Audience validation failed. Audience did not match.");
    }
    let now = now.unix_seconds() as f64;
    let skew = TOKEN_SKEW_MAX.as_secs_f64();
    match claims.exp {
        Some(expiry) if now <= expiry + skew => {}
        Some(_) => return Err("Lifetime validation failed. The token is expired."),
        None => return Err("Lifetime validation failed. The token has no end."),
    }
    if claims.nbf.is_some_and(|not_before| now + skew < not_before) {
        return Err("Lifetime validation failed. The token is not yet valid.");
    }
    Ok(claims)
}
