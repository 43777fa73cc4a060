//! What a request asks of features that are not built. To pass over it would be to do something else
//! than what was asked: it is refused.

use holdfast_domain::time::Timestamp;

use crate::error::{Code, Error};
use crate::operation::{Operation, Scope};
use crate::query::QueryRefusal;
use crate::request::Call;

/// Headers of features that are not built, with the value that asks for nothing, if there is one.
const NOT_BUILT: [(&str, Option<&str>); 12] = [
    ("x-ms-encryption-key", None),
    ("x-ms-encryption-key-sha256", None),
    ("x-ms-encryption-algorithm", None),
    ("x-ms-encryption-scope", None),
    ("x-ms-default-encryption-scope", Some("$account-encryption-key")),
    ("x-ms-deny-encryption-scope-override", Some("false")),
    ("x-ms-encryption-context", None),
    ("x-ms-immutability-policy-until-date", None),
    ("x-ms-immutability-policy-mode", None),
    ("x-ms-legal-hold", Some("false")),
    ("x-ms-expiry-option", None),
    ("x-ms-expiry-time", None),
];

const VERSIONS: [&str; 2] = ["snapshot", "versionid"];

/// For every operation, before it does anything.
pub fn check(call: &Call<'_>) -> Result<(), Error> {
    for (name, nothing) in NOT_BUILT {
        let asked = call.header(name)?;
        let asks =
            |value: &str| !nothing.is_some_and(|nothing| nothing.eq_ignore_ascii_case(value));
        if asked.is_some_and(asks) {
            return Err(Error::from(Code::NotImplemented).detail("HeaderName", name));
        }
    }
    let writes = matches!(call.operation, Operation::PutBlockBlob | Operation::SetBlobMetadata);
    if writes && call.granted.encryption_scope.is_some() {
        return Err(Error::from(Code::NotImplemented).detail("QueryParameterName", "ses"));
    }
    let takes_versions = matches!(
        call.operation,
        Operation::GetBlob
            | Operation::GetBlobProperties
            | Operation::GetBlobMetadata
            | Operation::DeleteBlob
    );
    if takes_versions || call.address.resource.scope() != Scope::Blob {
        return Ok(());
    }
    for name in VERSIONS {
        if let Some(value) = call.query.get_nonempty(name) {
            return Err(QueryRefusal::InvalidValue { name, value: value.to_owned() }.into());
        }
    }
    Ok(())
}

/// Snapshots and versions come with their own operations; without any, none can be found.
pub fn only_base_blob_exists(call: &Call<'_>) -> Result<(), Error> {
    let mut asked = None;
    for name in VERSIONS {
        let Some(value) = call.query.get_nonempty(name) else { continue };
        let exclusive = asked.replace(name).is_none();
        if !exclusive || Timestamp::parse_iso8601(value).is_none() {
            return Err(QueryRefusal::InvalidValue { name, value: value.to_owned() }.into());
        }
    }
    if asked.is_some() { Err(Code::BlobNotFound.into()) } else { Ok(()) }
}
