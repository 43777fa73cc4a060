//! Authorization of an operation, and the restrictions that the operation itself must check.

use std::sync::Arc;

use holdfast_domain::access::PublicAccess;

use super::bearer::RolesThere;
use super::permission_letters::Letters;
use super::sas::SasScope;
use super::{AuthRefusal, Identity, NamedResource, Principal};
use crate::operation::{ACTION_PREFIX, Anonymous, Need, NeededActions};
use crate::version::Version;

/// Before this version a signature without the permission hides the resource.
const PERMISSION_MISMATCH_SINCE: &str = "2015-04-05";

/// The restrictions of an authorized caller that only the operation itself can check.
#[derive(Clone, Debug)]
pub struct Granted {
    /// The caller may create but not replace. Operations that create blobs or files refuse with
    /// `UnauthorizedBlobOverwrite` if there is one already; all others ignore it.
    pub create_only: bool,
    /// For callers without credentials: the level that the container must have. See
    /// [`check_public_access`].
    pub public_access: Option<RequiredPublicAccess>,
    /// The answer may contain the tags of a blob, or their number.
    pub may_read_tags: bool,
    /// The request may set tags.
    pub may_write_tags: bool,
    /// The caller, if it is a user of a directory.
    pub principal: Option<Box<Principal>>,
    /// Boxed, as everything that requests with an account key, nearly all of them, do not have.
    scope: Option<Box<SasScope>>,
    rights: Rights,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rights {
    All,
    /// The letters of a signature, and the roles of its maker.
    Letters {
        letters: Letters,
        delegator: Option<RolesThere>,
    },
    Roles(RolesThere),
    /// What the public may read.
    Public,
}

impl Granted {
    fn of(rights: Rights) -> Self {
        Self {
            may_read_tags: rights.cover('t', "blobServices/containers/blobs/tags/read"),
            may_write_tags: rights.cover('t', "blobServices/containers/blobs/tags/write"),
            create_only: false,
            public_access: None,
            principal: None,
            scope: None,
            rights,
        }
    }

    /// For endpoints without authentication: only reading.
    pub fn public() -> Self {
        Self::of(Rights::Public)
    }

    fn scoped(rights: Rights, scope: SasScope) -> Self {
        Self { scope: Some(Box::new(scope)), ..Self::of(rights) }
    }

    /// The resource that the caller is limited to, and overrides of answer headers.
    pub fn scope(&self) -> &SasScope {
        self.scope.as_deref().unwrap_or(SasScope::WHOLE)
    }

    /// Whether the caller may also do a part of the request: with a signature that has `letter`, or
    /// a role that has `action` (without [`ACTION_PREFIX`]).
    pub fn may(&self, letter: char, action: &str) -> bool {
        self.rights.cover(letter, action)
    }
}

impl Rights {
    fn cover(&self, letter: char, action: &str) -> bool {
        match self {
            Self::All => true,
            Self::Letters { letters, delegator } => {
                letters.contains(letter)
                    && delegator.as_ref().is_none_or(|delegator| delegator.may(action))
            }
            Self::Roles(roles) => roles.may(action),
            Self::Public => false,
        }
    }
}

/// Decides on the credentials of a request. `version` is the one that it is processed with,
/// `target` its resource: signatures have been verified for it already, roles have not.
pub fn authorize(
    identity: &Identity,
    need: &Need,
    version: Version,
    target: &NamedResource<'_>,
) -> Result<Granted, AuthRefusal> {
    if let (false, Identity::Owner | Identity::AccountSas(_) | Identity::ServiceSas(_)) =
        (need.shared_key, identity)
    {
        return Err(AuthRefusal::failed("Only authentication scheme Bearer is supported."));
    }
    match identity {
        Identity::Owner => Ok(Granted::of(Rights::All)),
        Identity::AccountSas(sas) => {
            if need.letters.is_empty() {
                return Err(AuthRefusal::AuthorizationFailure);
            }
            let mut fitting = need.resource_type.letters().chars();
            let type_fits = fitting.any(|letter| sas.resource_types.contains(letter));
            if !type_fits && need.letters != [""] {
                return Err(AuthRefusal::ResourceTypeMismatch);
            }
            let create_only = check_letters(sas.permissions, &sas.version, need, false)?;
            let rights = Rights::Letters { letters: sas.permissions, delegator: None };
            let encryption_scope = sas.encryption_scope.clone();
            let scope = SasScope { encryption_scope, ..SasScope::default() };
            Ok(Granted { create_only, ..Granted::scoped(rights, scope) })
        }
        Identity::ServiceSas(sas) => {
            // Without its policy a signature may lack an expiry and permissions.
            let (None, Some(letters)) = (&sas.policy_id, sas.permissions) else {
                return Err(AuthRefusal::PolicyNotFound);
            };
            if !need.service_sas || need.letters.is_empty() {
                return Err(AuthRefusal::AuthorizationFailure);
            }
            let hidden = sas.version.as_str() < PERMISSION_MISMATCH_SINCE;
            let create_only = check_letters(letters, &sas.version, need, hidden)?;
            let rights = Rights::Letters { letters, delegator: None };
            Ok(Granted { create_only, ..Granted::scoped(rights, sas.scope.clone()) })
        }
        Identity::UserDelegationSas(sas) => {
            if !need.service_sas || need.letters.is_empty() || !need.shared_key {
                return Err(AuthRefusal::AuthorizationFailure);
            }
            if sas.delegated_user.is_some() {
                return Err(AuthRefusal::failed("The signature needs the token of its user."));
            }
            let letters = sas.permissions;
            let by_letters = check_letters(letters, &sas.version, need, false)?;
            let roles = sas.delegator.roles_at(target);
            let by_role = check_roles(&roles, need, version)?;
            let rights = Rights::Letters { letters, delegator: Some(roles) };
            let mut granted = Granted::scoped(rights, sas.scope.clone());
            granted.create_only = by_letters || by_role;
            granted.principal = Some(Box::new(sas.acting_principal()));
            Ok(granted)
        }
        Identity::Bearer(principal) => {
            let roles = principal.roles_at(target);
            let create_only = check_roles(&roles, need, version)?;
            let principal = Some(Box::new(principal.clone()));
            Ok(Granted { create_only, principal, ..Granted::of(Rights::Roles(roles)) })
        }
        Identity::Anonymous(caller) => authorize_anonymous(caller, need),
    }
}

/// Decides on another resource that the request names besides `own`: the source of a rename, the
/// target of a link, the resource of a part of a batch. The caller must have been authenticated,
/// and the credentials must cover that resource, too.
pub fn authorize_second(
    identity: &Identity,
    need: &Need,
    version: Version,
    own: &NamedResource<'_>,
    second: &NamedResource<'_>,
) -> Result<Granted, AuthRefusal> {
    if own.account != second.account {
        return Err(AuthRefusal::AuthorizationFailure);
    }
    let covered = match identity {
        Identity::Owner | Identity::Bearer(_) => true,
        Identity::AccountSas(sas) => sas.services.contains(second.service.sas_letter()),
        Identity::ServiceSas(sas) => sas.scope.covers(second),
        Identity::UserDelegationSas(sas) => sas.scope.covers(second),
        Identity::Anonymous(_) => false,
    };
    if !covered {
        return Err(AuthRefusal::AuthorizationFailure);
    }
    authorize(identity, need, version, second)
}

/// Whether the letters are sufficient, and if so, whether only for creating.
fn check_letters(
    letters: Letters,
    signature_version: &str,
    need: &Need,
    hidden: bool,
) -> Result<bool, AuthRefusal> {
    let creates = need.create_since.is_some_and(|since| signature_version >= since);
    if !need.letters.iter().any(|all_of| letters.contains_all(all_of)) {
        return match creates && letters.contains('c') {
            true => Ok(true),
            false => Err(AuthRefusal::PermissionMismatch { hidden }),
        };
    }
    Ok(need.letters.contains(&"c") && need.letters.contains(&"w") && !letters.contains('w'))
}

/// Whether the roles are sufficient, and if so, whether only for creating.
fn check_roles(roles: &RolesThere, need: &Need, version: Version) -> Result<bool, AuthRefusal> {
    let NeededActions { any_of, since } = need.actions;
    if version < since {
        return Err(AuthRefusal::AuthorizationFailure);
    }
    let may = |all_of: &&&[&str]| all_of.iter().all(|action| roles.may(action));
    if !roles.any_in_account || !any_of.iter().any(|all_of| may(&all_of)) {
        return Err(AuthRefusal::PermissionMismatch { hidden: false });
    }
    let replaces = |all_of: &&&[&str]| all_of.iter().any(|action| action.ends_with("/blobs/write"));
    Ok(any_of.iter().find(replaces).is_some_and(|all_of| !may(&all_of)))
}

/// A caller without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnonymousCaller {
    /// What to answer in WWW-Authenticate, for versions that know it.
    pub(super) challenge: Option<Arc<str>>,
    /// Older versions answer that a private resource does not exist.
    pub(super) private_is_hidden: bool,
}

impl AnonymousCaller {
    fn refusal(&self) -> AuthRefusal {
        match self.private_is_hidden {
            true => AuthRefusal::ResourceNotFound,
            false => AuthRefusal::NoAuthenticationInformation { challenge: self.challenge.clone() },
        }
    }
}

/// The level that a container must have for this caller, and the answer otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredPublicAccess {
    level: PublicAccess,
    caller: AnonymousCaller,
}

fn authorize_anonymous(caller: &AnonymousCaller, need: &Need) -> Result<Granted, AuthRefusal> {
    let level = match need.anonymous {
        Anonymous::Never => return Err(caller.refusal()),
        Anonymous::Always => return Ok(Granted::of(Rights::Public)),
        Anonymous::Blob => PublicAccess::Blob,
        Anonymous::Container => PublicAccess::Container,
    };
    let required = RequiredPublicAccess { level, caller: caller.clone() };
    Ok(Granted { public_access: Some(required), ..Granted::of(Rights::Public) })
}

/// The rest of the decision on a caller without credentials, once the container has been read.
/// A container that does not exist is as private as any.
pub fn check_public_access(
    granted: &Granted,
    container: Option<PublicAccess>,
    account_allows: bool,
) -> Result<(), AuthRefusal> {
    let Some(required) = &granted.public_access else { return Ok(()) };
    if !account_allows {
        return Err(AuthRefusal::PublicAccessNotPermitted);
    }
    match container {
        Some(level) if level >= required.level => Ok(()),
        Some(_) | None => Err(required.caller.refusal()),
    }
}

/// Whether an action, written in full or with `*` for any part, covers `action`.
pub(super) fn action_matches(pattern: &str, action: &str) -> bool {
    let pattern = match pattern.get(..ACTION_PREFIX.len()) {
        Some(prefix) if prefix.eq_ignore_ascii_case(ACTION_PREFIX) => &pattern[prefix.len()..],
        Some(_) | None => pattern,
    };
    let (pattern, action) = (pattern.to_ascii_lowercase(), action.to_ascii_lowercase());
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| action.strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}
