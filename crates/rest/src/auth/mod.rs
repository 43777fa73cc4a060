//! Who is calling, and what they may do.
//!
//! Everything here is a pure function of what was received, the configured keys and the time: no
//! clock, no I/O, no storage. Status codes are given to refusals elsewhere.

mod header_order;
mod keys;
mod refusal;
mod shared_key;

use std::net::IpAddr;

use holdfast_domain::time::Timestamp;
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;

pub use keys::{AccountKeys, Accounts, InvalidKey, Key};
pub use refusal::AuthRefusal;
pub use shared_key::CLOCK_SKEW_MAX;

use crate::service::Service;
use shared_key::Scheme;

/// What authentication sees of a request.
#[derive(Clone, Copy, Debug)]
pub struct Presented<'a> {
    pub method: &'a str,
    /// The path as it was received, still encoded, with the account where it was part of it.
    pub path: &'a str,
    /// The account is the first segment of `path` rather than part of the host name.
    pub path_style: bool,
    /// Without `-secondary`.
    pub account: &'a str,
    /// In order of appearance, percent-decoded; a plus sign may be left as it is.
    pub query: &'a [(String, String)],
    pub headers: &'a HeaderMap,
    pub service: Service,
    /// The version that the request is processed with, as text.
    pub version: &'a str,
    pub tls: bool,
    pub client_ip: IpAddr,
    pub target: Target<'a>,
}

/// What the path names, decoded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Target<'a> {
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
    /// Gave no credentials.
    Anonymous,
}

/// Finds out who is calling, from the Authorization header or the query.
pub fn authenticate(
    request: &Presented<'_>,
    accounts: &Accounts,
    now: Timestamp,
) -> Result<Identity, AuthRefusal> {
    let Some(keys) = accounts.get(request.account) else {
        return Err(AuthRefusal::ResourceNotFound);
    };
    let mut authorizations = request.headers.get_all(AUTHORIZATION).iter();
    let Some(authorization) = authorizations.next() else {
        return Ok(Identity::Anonymous);
    };
    if authorizations.next().is_some() {
        return Err(AuthRefusal::DuplicateHeader { name: AUTHORIZATION.as_str().to_owned() });
    }
    let scheme_and_rest = authorization.to_str().ok().and_then(|text| text.split_once(' '));
    let Some((scheme, credentials)) = scheme_and_rest else {
        return Err(AuthRefusal::InvalidAuthenticationInfo { detail: "no scheme" });
    };
    let scheme = match scheme {
        "SharedKey" => Scheme::SharedKey,
        "SharedKeyLite" => Scheme::SharedKeyLite,
        _ => return Err(AuthRefusal::InvalidAuthenticationInfo { detail: "unknown scheme" }),
    };
    shared_key::check(scheme, credentials, request, keys, now)?;
    Ok(Identity::Owner)
}
