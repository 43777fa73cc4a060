//! Authentication and authorization.
//!
//! Everything here is a pure function of what was received, the configured keys and the time: no
//! clock, no I/O, no storage. A request passes through [`authenticate`]; if its signature names a
//! stored access policy, through [`resolve_policy`] with the policy that was read; through
//! [`authorize`] with the [`Need`](crate::operation::Need) of its operation; and, if it came without
//! credentials, through [`check_public_access`] with the level of its container. Status codes of
//! refusals are assigned elsewhere.

mod authorize;
mod bearer;
mod header_order;
mod jwt;
mod keys;
mod permission_letters;
mod refusal;
mod roles;
mod sas;
mod shared_key;
mod stored_policy;
mod string_to_sign;
mod user_delegation;

use std::net::IpAddr;

pub use holdfast_domain::table::KeyRange;
use holdfast_domain::time::Timestamp;

pub use authorize::{
    AnonymousCaller, Granted, RequiredPublicAccess, authorize, authorize_second,
    check_public_access,
};
pub use bearer::{BearerSettings, Principal, TOKEN_SKEW_MAX};
pub use jwt::{InvalidKeySet, KeyRing, KeySet};
pub use keys::{AccountKeys, Accounts, InvalidKey, Key};
pub use permission_letters::Letters;
pub use refusal::AuthRefusal;
pub use roles::{Assignment, AssignmentScope, ClaimTexts, Role};
pub(crate) use sas::PARAMETERS as SAS_PARAMETERS;
pub use sas::{AccountSas, Below, ResponseHeaders, SasScope, ServiceSas, SignedResource};
pub use shared_key::CLOCK_SKEW_MAX;
pub use stored_policy::resolve_policy;
pub use user_delegation::{
    DelegatedUser, KEY_LIFETIME_MAX, KeyFields, KeyRefusal, UserDelegationKey, UserDelegationSas,
    issue_user_delegation_key, key_time,
};

use crate::headers::byte_scan::split_at_byte;
use crate::headers::request_headers::{RequestHeaders, ascii};
use crate::service::Service;
use crate::version::Version;
use sas::Parameters;
use shared_key::Scheme;

/// What authentication sees of a request.
#[derive(Clone, Copy, Debug)]
pub struct Presented<'a> {
    pub method: &'a str,
    /// The path as it was received, still encoded, with the account where it was part of it.
    pub path: &'a str,
    /// The account is the first segment of `path` rather than part of the host name.
    pub path_style: bool,
    /// In order of appearance, decoded. The official clients write a space as `%20` and a plus as
    /// `%2B`, so for them it does not matter what a plus sign is decoded to.
    pub query: &'a [(String, String)],
    pub headers: &'a RequestHeaders,
    /// The version that the request is processed with.
    pub version: Version,
    pub tls: bool,
    pub client_ip: IpAddr,
    pub resource: NamedResource<'a>,
}

/// What the path names, decoded.
#[derive(Clone, Copy, Debug)]
pub struct NamedResource<'a> {
    /// Without `-secondary`.
    pub account: &'a str,
    pub service: Service,
    /// The container, queue, table or share.
    pub container: Option<&'a str>,
    /// The blob, or the path of a directory or file in its share. Not used for queues and tables.
    pub object: Option<&'a str>,
}

/// Who is calling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Holds an account key: may do everything.
    Owner,
    AccountSas(Box<AccountSas>),
    /// May name a stored access policy that is still to be resolved.
    ServiceSas(Box<ServiceSas>),
    UserDelegationSas(Box<UserDelegationSas>),
    /// Presented a token.
    Bearer(Principal),
    /// Gave no credentials.
    Anonymous(AnonymousCaller),
}

impl Identity {
    /// The identity at endpoints without authentication.
    pub fn public() -> Self {
        Self::Anonymous(AnonymousCaller { challenge: None, private_is_hidden: true })
    }
}

/// Authenticates by the Authorization header or the query.
pub fn authenticate(
    request: &Presented<'_>,
    accounts: &Accounts,
    bearer: &BearerSettings,
    now: Timestamp,
) -> Result<Identity, AuthRefusal> {
    let Some(keys) = accounts.get(request.resource.account) else {
        return Err(AuthRefusal::ResourceNotFound);
    };
    let authorization = authorization(request.headers)?;
    let parameters = Parameters::of(request)?;
    match (parameters, authorization) {
        (Some(parameters), None) => by_signature(parameters, request, keys, bearer, now),
        // The only signature that needs a token, too: it is valid for one user.
        (Some(parameters), Some(("Bearer", token))) if parameters.get("sduoid").is_some() => {
            let identity = by_signature(parameters, request, keys, bearer, now)?;
            let principal = bearer::check(token, request, bearer, now)?;
            delegated_to(identity, &principal)
        }
        (_, Some((scheme, credentials))) => {
            let scheme = match scheme {
                "SharedKey" => Scheme::SharedKey,
                "SharedKeyLite" => Scheme::SharedKeyLite,
                "Bearer" => {
                    let principal = bearer::check(credentials, request, bearer, now)?;
                    return Ok(Identity::Bearer(principal));
                }
                _ => {
                    return Err(AuthRefusal::InvalidAuthenticationInfo {
                        detail: "unknown scheme",
                    });
                }
            };
            shared_key::check(scheme, credentials, request, keys, now)?;
            Ok(Identity::Owner)
        }
        (None, None) => Ok(Identity::Anonymous(AnonymousCaller {
            challenge: bearer.challenge(request.resource.service, request.version),
            private_is_hidden: request.resource.service == Service::Blob
                && request.version < Version::V2019_12_12,
        })),
    }
}

/// The scheme of the Authorization header, and what follows it.
fn authorization(headers: &RequestHeaders) -> Result<Option<(&str, &str)>, AuthRefusal> {
    const NAME: &str = "authorization";
    let mut sent = headers.all(NAME);
    let Some(value) = sent.next() else { return Ok(None) };
    if sent.next().is_some() {
        return Err(AuthRefusal::DuplicateHeader { name: NAME.to_owned() });
    }
    match ascii(value).and_then(|text| split_at_byte(text.trim(), b' ')) {
        Some(scheme_and_rest) => Ok(Some(scheme_and_rest)),
        None => Err(AuthRefusal::InvalidAuthenticationInfo { detail: "scheme and value expected" }),
    }
}

fn by_signature(
    parameters: Parameters<'_>,
    request: &Presented<'_>,
    keys: &AccountKeys,
    bearer: &BearerSettings,
    now: Timestamp,
) -> Result<Identity, AuthRefusal> {
    if parameters.get("ss").is_some() || parameters.get("srt").is_some() {
        return sas::account(parameters, request, keys, now)
            .map(|sas| Identity::AccountSas(Box::new(sas)));
    }
    if parameters.get("skoid").is_some() {
        let mut sas = user_delegation::check(parameters, request, keys, now)?;
        sas.give_roles(bearer, None);
        return Ok(Identity::UserDelegationSas(Box::new(sas)));
    }
    sas::service(parameters, request, keys, now).map(|sas| Identity::ServiceSas(Box::new(sas)))
}

/// Turns a signature for one user, who has shown a token, into one that is valid as it is.
fn delegated_to(identity: Identity, principal: &Principal) -> Result<Identity, AuthRefusal> {
    let Identity::UserDelegationSas(mut sas) = identity else {
        return Err(AuthRefusal::failed("sduoid belongs to user delegation signatures."));
    };
    let same_user = sas.delegated_user.take().is_some_and(|user| {
        user.object_id == principal.object_id
            && user.tenant_id.is_none_or(|tenant| principal.tenant_id == Some(tenant))
    });
    if !same_user {
        return Err(AuthRefusal::failed("The token is not that of the user the signature is for."));
    }
    Ok(Identity::UserDelegationSas(sas))
}
