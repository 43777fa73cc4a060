//! Bearer tokens of a directory: which are accepted, and which roles their holders have.

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::time::Timestamp;

use super::jwt::{Claims, InvalidKeySet, KeyRing, KeySet, Token};
use super::roles::{Assignment, AssignmentScope, ClaimTexts, Role};
use super::{AuthRefusal, NamedResource, Presented};
use crate::service::Service;
use crate::version::Version;

/// How far the clock of the issuer may be from ours.
pub const TOKEN_SKEW_MAX: Duration = Duration::from_secs(5 * 60);
/// The longest id of a user or a tenant. Those of directories are GUIDs.
const ID_BYTES_MAX: usize = 256;
const BEARER_SINCE: Version = Version::V2017_11_09;
/// Storage as a whole, by URL and by application id. Accepted where every token is accepted;
/// elsewhere only configured audiences are.
const STORAGE_AUDIENCES: [&str; 2] =
    ["https://storage.azure.com", "e406a681-f3d4-42a8-90b6-c2b029497af1"];

/// Which tokens are accepted.
#[derive(Clone, Debug)]
pub struct BearerSettings {
    trust: Trust,
    audiences: Vec<String>,
    assignments: Arc<[Assignment]>,
    challenge: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
enum Trust {
    Nobody,
    Issuer {
        issuer: String,
        keys: Arc<KeyRing>,
    },
    /// Any well-formed token, signed or not, over any protocol.
    Anybody,
}

impl BearerSettings {
    /// No token is accepted.
    pub fn off() -> Self {
        let (trust, assignments) = (Trust::Nobody, Arc::default());
        Self { trust, audiences: Vec::new(), assignments, challenge: None }
    }

    /// Tokens of `issuer` (their exact `iss` claim) signed by a key of the set.
    pub fn issuer(issuer: impl Into<String>, key_set_json: &str) -> Result<Self, InvalidKeySet> {
        Ok(Self::issuer_with(issuer, Arc::new(KeyRing::of(KeySet::from_json(key_set_json)?))))
    }

    /// The same with keys that are replaced while the server runs.
    pub fn issuer_with(issuer: impl Into<String>, keys: Arc<KeyRing>) -> Self {
        let issuer = issuer.into();
        let challenge = challenge(&format!("{}/oauth2/authorize", issuer.trim_end_matches('/')));
        Self { trust: Trust::Issuer { issuer, keys }, challenge, ..Self::off() }
    }

    /// For development only: every claimed identity is accepted and, unless roles are assigned, may
    /// do everything.
    pub fn development() -> Self {
        let tenant = "00000000-0000-0000-0000-000000000000";
        let uri = format!("https://login.microsoftonline.com/{tenant}/oauth2/authorize");
        let scope = AssignmentScope::default();
        let everybody = Assignment { who: Vec::new(), role: Role::EVERYTHING, scope };
        let assignments = Arc::new([everybody]);
        Self { trust: Trust::Anybody, challenge: challenge(&uri), assignments, ..Self::off() }
    }

    /// Accepts tokens for this audience.
    #[must_use]
    pub fn with_audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// The role assignments; nothing else is allowed.
    #[must_use]
    pub fn with_assignments(mut self, assignments: Vec<Assignment>) -> Self {
        self.assignments = assignments.into();
        self
    }

    /// Where clients without credentials are told to get a token.
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

    /// Whether tokens of the issuer of these claims are accepted now.
    pub(super) fn believes_issuer_of(&self, claims: &ClaimTexts) -> bool {
        match &self.trust {
            Trust::Nobody => false,
            Trust::Issuer { issuer, .. } => {
                claims.get("iss").is_some_and(|texts| texts.contains(issuer))
            }
            Trust::Anybody => true,
        }
    }

    fn accepts_audience(&self, audience: &str) -> bool {
        let audience = audience.trim_end_matches('/');
        let of_storage = match self.trust {
            Trust::Anybody => STORAGE_AUDIENCES.contains(&audience),
            Trust::Nobody | Trust::Issuer { .. } => false,
        };
        of_storage
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
    /// The claims of the token.
    pub claims: Arc<ClaimTexts>,
    assigned: Arc<[Assignment]>,
}

impl Principal {
    /// A principal of which only the ids are known, without any role.
    pub(super) fn of_object(object_id: String, tenant_id: String) -> Self {
        Self {
            object_id,
            tenant_id: Some(tenant_id),
            name: None,
            claims: Arc::default(),
            assigned: Arc::default(),
        }
    }

    /// What is known without a token.
    pub(super) fn own_claims(&self) -> ClaimTexts {
        let tenant_id = self.tenant_id.iter().map(|id| ("tid".to_owned(), vec![id.clone()]));
        let object_id = ("oid".to_owned(), vec![self.object_id.clone()]);
        tenant_id.chain([object_id]).collect()
    }

    pub(super) fn give_roles(&mut self, settings: &BearerSettings, claims: ClaimTexts) {
        let theirs = settings.assignments.iter().filter(|assignment| assignment.is_for(&claims));
        self.assigned = theirs.cloned().collect();
        self.claims = Arc::new(claims);
    }

    pub(super) fn roles_at(&self, target: &NamedResource<'_>) -> RolesThere {
        let in_account = self
            .assigned
            .iter()
            .filter(|assignment| assignment.scope.is_in_account(target.account));
        RolesThere {
            any_in_account: in_account.clone().next().is_some(),
            roles: in_account
                .filter(|assignment| assignment.scope.covers(target))
                .map(|assignment| assignment.role)
                .collect(),
        }
    }
}

/// The roles of a principal for the resource of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RolesThere {
    /// Also roles for a part of the account only.
    pub any_in_account: bool,
    roles: Vec<Role>,
}

impl RolesThere {
    pub fn may(&self, action: &str) -> bool {
        self.roles.iter().any(|role| role.allows(action))
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
    let claims = believe(token.trim(), settings, now).map_err(|detail| {
        let challenge = settings.challenge(request.resource.service, request.version);
        AuthRefusal::InvalidToken { detail, challenge }
    })?;
    let Some(object_id) = claims.oid.or(claims.sub) else {
        return Err(AuthRefusal::failed("The token names nobody."));
    };
    let tenant_bytes = claims.tid.as_ref().map_or(0, String::len);
    if object_id.len().max(tenant_bytes) > ID_BYTES_MAX {
        return Err(AuthRefusal::failed("The token has an id that is too long."));
    }
    let mut texts = claims.texts;
    texts.insert("oid".to_owned(), vec![object_id.clone()]);
    let mut principal = Principal {
        object_id,
        tenant_id: claims.tid,
        name: claims.upn.or(claims.name),
        claims: Arc::default(),
        assigned: Arc::default(),
    };
    principal.give_roles(settings, texts);
    Ok(principal)
}

fn believe(token: &str, settings: &BearerSettings, now: Timestamp) -> Result<Claims, &'static str> {
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
    let accepted = |audience: &str| settings.accepts_audience(audience);
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
