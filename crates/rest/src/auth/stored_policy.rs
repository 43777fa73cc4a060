//! Stored access policies: fields of a service signature that are stored with its container, queue,
//! table or share.

use holdfast_domain::access::StoredPolicy;
use holdfast_domain::time::Timestamp;

use super::AuthRefusal;
use super::permission_letters::Letters;
use super::sas::{ServiceSas, letters_since};

/// Completes a signature with the policy that it names, which the caller has read. A signature
/// without one is returned unchanged.
pub fn resolve_policy(
    sas: Box<ServiceSas>,
    policy: Option<StoredPolicy>,
    now: Timestamp,
) -> Result<Box<ServiceSas>, AuthRefusal> {
    if sas.policy_id.is_none() {
        return Ok(sas);
    }
    let Some(policy) = policy else { return Err(AuthRefusal::PolicyNotFound) };
    let stored = policy.permissions.filter(|letters| !letters.is_empty());
    let stored = match stored.as_deref().map(Letters::parse) {
        Some(None) => return Err(AuthRefusal::failed("The stored permissions cannot be read.")),
        Some(Some(letters)) => Some(letters_since(letters, &sas.version)),
        None => None,
    };
    let mut resolved = sas;
    resolved.window.start = one_of("st", resolved.window.start, policy.start)?;
    resolved.window.expiry = one_of("se", resolved.window.expiry, policy.expiry)?;
    resolved.permissions = one_of("sp", resolved.permissions, stored)?;
    resolved.policy_id = None;
    resolved.window.check(now)?;
    if resolved.permissions.is_none() {
        return Err(AuthRefusal::failed(
            "Signed permission must be specified in signature or SAS identifier",
        ));
    }
    Ok(resolved)
}

fn one_of<T>(
    name: &'static str,
    token: Option<T>,
    policy: Option<T>,
) -> Result<Option<T>, AuthRefusal> {
    match (token, policy) {
        (Some(_), Some(_)) => Err(AuthRefusal::FieldInPolicyAndToken { name }),
        (token, policy) => Ok(token.or(policy)),
    }
}
