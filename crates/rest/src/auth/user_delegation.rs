//! User delegation keys, and the signatures made with them.
//!
//! A key is derived from the account key and its own fields, so nothing is stored: a signature
//! brings the fields, and the key is derived again. Replacing the account keys ends all of them.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_domain::delegator::DelegationKey;
use holdfast_domain::time::Timestamp;

use super::keys::{AccountKeys, Key, decode_signature};
use super::permission_letters::Letters;
use super::sas::{
    Parameters, SasScope, Window, check_origin, letters_since, malformed, mismatch, scope,
};
use super::string_to_sign::{self, ResourcePath};
use super::{AuthRefusal, BearerSettings, ClaimTexts, Presented, Principal};
use crate::service::Service;

/// How long a key may be valid, counted from the request for it.
pub const KEY_LIFETIME_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// The first version with such keys, for blobs and for the other services.
const BLOB_SINCE: &str = "2018-11-09";
const QUEUE_AND_FILE_SINCE: &str = "2025-07-05";
/// The first version that signs `saoid` and `suoid`.
const AGENTS_SINCE: &str = "2020-02-10";

/// Separates keys from everything else that is signed with the account key. No request or signature
/// can begin with it: methods, account names and permissions have no space.
const PURPOSE: &str = "user delegation key\n";

/// The fields of a key, named as in the answer to Get User Delegation Key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFields {
    pub signed_oid: String,
    pub signed_tid: String,
    pub signed_start: Timestamp,
    pub signed_expiry: Timestamp,
    /// The letter of the service that has issued it.
    pub signed_service: String,
    pub signed_version: String,
    pub signed_delegated_user_tid: Option<String>,
}

impl KeyFields {
    /// The identity of the key.
    pub fn identity(&self) -> DelegationKey<'_> {
        let start = key_time(self.signed_start);
        let tenant = self.signed_delegated_user_tid.as_deref().unwrap_or_default();
        DelegationKey {
            tenant_id: &self.signed_tid,
            object_id: &self.signed_oid,
            expiry: self.signed_expiry,
            other_fields: [&*start, &self.signed_service, &self.signed_version, tenant].join("\n"),
        }
    }
}

/// A key for a client.
#[derive(Clone, PartialEq, Eq)]
pub struct UserDelegationKey {
    pub fields: KeyFields,
    /// In Base64.
    pub value: String,
}

impl std::fmt::Debug for UserDelegationKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("UserDelegationKey")
            .field("fields", &self.fields)
            .finish_non_exhaustive()
    }
}

/// Why no key is issued: 400 `InvalidXmlNodeValue` in each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyRefusal {
    #[error("the expiry is not after the start, or has passed")]
    Expired,
    #[error("the start or the expiry is more than seven days away")]
    TooLong,
}

/// Issues a key. Times are cut to whole seconds, since clients repeat no fractions.
pub fn issue_user_delegation_key(
    mut fields: KeyFields,
    keys: &AccountKeys,
    now: Timestamp,
) -> Result<UserDelegationKey, KeyRefusal> {
    fields.signed_start = fields.signed_start.whole_seconds();
    fields.signed_expiry = fields.signed_expiry.whole_seconds();
    if fields.signed_expiry <= fields.signed_start || fields.signed_expiry <= now {
        return Err(KeyRefusal::Expired);
    }
    let latest = now.plus(KEY_LIFETIME_MAX);
    if fields.signed_start > latest || fields.signed_expiry > latest {
        return Err(KeyRefusal::TooLong);
    }
    let value = STANDARD.encode(derive(&keys.primary, &fields));
    Ok(UserDelegationKey { fields, value })
}

/// `2024-01-31T12:34:56Z`, the form of the times of a key.
pub fn key_time(time: Timestamp) -> String {
    let mut text = time.iso8601().to_string();
    text.truncate("2024-01-31T12:34:56".len());
    text.push('Z');
    text
}

fn derive(key: &Key, fields: &KeyFields) -> [u8; 32] {
    let (start, expiry) = (key_time(fields.signed_start), key_time(fields.signed_expiry));
    let texts = [
        fields.signed_oid.as_str(),
        &fields.signed_tid,
        &start,
        &expiry,
        &fields.signed_service,
        &fields.signed_version,
        fields.signed_delegated_user_tid.as_deref().unwrap_or_default(),
    ];
    // The length before each field keeps different sets of fields from having the same text.
    let text: String = texts.iter().map(|text| format!("{}:{text}\n", text.len())).collect();
    key.sign(&[PURPOSE.as_bytes(), text.as_bytes()])
}

/// A signature made with a user delegation key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserDelegationSas {
    /// The user who got the key: the signature allows no more than that user may do.
    pub delegator: Principal,
    pub key: KeyFields,
    pub permissions: Letters,
    pub(super) version: String,
    pub scope: SasScope,
    /// `saoid`: acts for this user, whose rights were checked by the maker of the signature.
    pub authorized_object_id: Option<String>,
    /// `suoid`: acts for this user, whose rights are still to be checked.
    pub unauthorized_object_id: Option<String>,
    /// `sduoid`: valid only together with a token of this user.
    pub delegated_user: Option<DelegatedUser>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelegatedUser {
    pub object_id: String,
    pub tenant_id: Option<String>,
}

impl UserDelegationSas {
    /// Gives the delegator the assigned roles, by the stored claims of the token that got the key,
    /// or else by the ids. If tokens of that issuer are no longer accepted, there are none.
    pub fn give_roles(&mut self, bearer: &BearerSettings, known: Option<ClaimTexts>) {
        let claims = match known {
            Some(claims) if bearer.believes_issuer_of(&claims) => claims,
            Some(_) => ClaimTexts::default(),
            None => self.delegator.own_claims(),
        };
        self.delegator.give_roles(bearer, claims);
    }

    /// The principal that acts: what is created belongs to it.
    pub(super) fn acting_principal(&self) -> Principal {
        let agent = self.authorized_object_id.as_ref().or(self.unauthorized_object_id.as_ref());
        let mut principal = self.delegator.clone();
        if let Some(agent) = agent {
            principal.object_id.clone_from(agent);
        }
        principal
    }
}

/// Checks everything except the rights of the delegator and the token of a delegated user.
pub(super) fn check(
    parameters: Parameters<'_>,
    request: &Presented<'_>,
    keys: &AccountKeys,
    now: Timestamp,
) -> Result<UserDelegationSas, AuthRefusal> {
    let version = parameters.version()?;
    let since = match request.resource.service {
        Service::Blob => BLOB_SINCE,
        Service::Queue | Service::File => QUEUE_AND_FILE_SINCE,
        Service::Table => return Err(malformed("skoid", "is not for tables")),
    };
    if version < since {
        return Err(malformed("sv", "is before the first version of user delegation signatures"));
    }
    let fields = key_fields(parameters)?;
    let resource = ResourcePath::of(parameters, request)?;
    let text = string_to_sign::user_delegation(parameters, request, version, &resource.path)?;
    let signature = decode_signature(parameters.text("sig"));
    let matched = signature.is_some_and(|signature| {
        keys.both().any(|key| {
            Key::from_bytes(&derive(key, &fields)).verifies(&[text.as_bytes()], &signature)
        })
    });
    if !matched {
        return Err(mismatch(&text));
    }
    let key_window =
        Window { start: Some(fields.signed_start), expiry: Some(fields.signed_expiry) };
    key_window.check(now)?;
    Window::of(parameters)?.check(now)?;
    check_origin(parameters, request)?;
    if !fields.signed_service.contains(request.resource.service.sas_letter()) {
        return Err(AuthRefusal::ServiceMismatch);
    }
    // If these two are not part of the signed text, anyone could have added them.
    let agents = request.resource.service == Service::Blob && version >= AGENTS_SINCE;
    let agent = |name| parameters.owned(name).filter(|_| agents);
    let (authorized, unauthorized) = (agent("saoid"), agent("suoid"));
    if authorized.is_some() && unauthorized.is_some() {
        return Err(malformed("saoid", "excludes suoid"));
    }
    let permissions = parameters.letters("sp")?.unwrap_or_default();
    Ok(UserDelegationSas {
        delegator: Principal::of_object(fields.signed_oid.clone(), fields.signed_tid.clone()),
        key: fields,
        permissions: letters_since(permissions, version),
        version: version.to_owned(),
        scope: scope(parameters, request.resource.service, resource.resource)?,
        authorized_object_id: authorized,
        unauthorized_object_id: unauthorized,
        delegated_user: parameters
            .owned("sduoid")
            .map(|object_id| DelegatedUser { object_id, tenant_id: parameters.owned("skdutid") }),
    })
}

fn key_fields(parameters: Parameters<'_>) -> Result<KeyFields, AuthRefusal> {
    for name in ["sp", "se"] {
        parameters.required(name)?;
    }
    let time = |name| match parameters.time(name) {
        Ok(Some(time)) => Ok(time),
        Ok(None) => Err(malformed(name, "is mandatory. Cannot be empty")),
        Err(refusal) => Err(refusal),
    };
    Ok(KeyFields {
        signed_oid: parameters.required("skoid")?.to_owned(),
        signed_tid: parameters.required("sktid")?.to_owned(),
        signed_start: time("skt")?,
        signed_expiry: time("ske")?,
        signed_service: parameters.required("sks")?.to_owned(),
        signed_version: parameters.required("skv")?.to_owned(),
        signed_delegated_user_tid: parameters.owned("skdutid"),
    })
}
