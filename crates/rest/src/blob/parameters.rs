//! Which state of a blob a request addresses; and options that the operation does not have, which
//! are refused, since ignoring them would do something else than what was asked.

use holdfast_domain::blob::Which;
use holdfast_domain::time::Timestamp;

use super::{encryption, expiry};
use crate::error::{Code, Error};
use crate::operation::{BlobOperation, Scope};
use crate::request::Call;
use crate::url_query::QueryRefusal;

/// Options of putting a blob that copies do not have.
const NOT_OF_COPIES: [&str; 2] = [encryption::CONTEXT, expiry::OPTION];

const SNAPSHOT: &str = "snapshot";
const VERSION: &str = "versionid";

/// For every operation, before it does anything.
pub fn check(call: &Call<'_>, operation: BlobOperation) -> Result<(), Error> {
    if is_copy(operation) {
        for name in NOT_OF_COPIES {
            if call.header(name)?.is_some() {
                return Err(Error::from(Code::UnsupportedHeader).detail("HeaderName", name));
            }
        }
    }
    check_states(call, operation)
}

/// Refuses a snapshot or version for operations on the current state only.
fn check_states(call: &Call<'_>, operation: BlobOperation) -> Result<(), Error> {
    if call.address.resource.scope() != Scope::Blob {
        return Ok(());
    }
    for (name, takes, code) in [
        (SNAPSHOT, takes_snapshot(operation), Code::InvalidOperation),
        (VERSION, takes_version(operation), Code::UnsupportedQueryParameter),
    ] {
        if let Some(value) = call.query.get_nonempty(name)
            && !takes
        {
            return Err(Error::from(code)
                .detail("QueryParameterName", name)
                .detail("QueryParameterValue", value));
        }
    }
    Ok(())
}

fn is_copy(operation: BlobOperation) -> bool {
    matches!(
        operation,
        BlobOperation::CopyBlob
            | BlobOperation::CopyBlobFromUrl
            | BlobOperation::IncrementalCopyBlob
    )
}

fn takes_snapshot(operation: BlobOperation) -> bool {
    matches!(
        operation,
        BlobOperation::GetBlockList
            | BlobOperation::GetPageRanges
            | BlobOperation::GetPageRangesDiff
            | BlobOperation::QueryBlobContents
    ) || takes_either(operation)
}

fn takes_version(operation: BlobOperation) -> bool {
    operation == BlobOperation::SetBlobTags || takes_either(operation)
}

fn takes_either(operation: BlobOperation) -> bool {
    matches!(
        operation,
        BlobOperation::GetBlob
            | BlobOperation::GetBlobProperties
            | BlobOperation::GetBlobMetadata
            | BlobOperation::DeleteBlob
            | BlobOperation::SetBlobTier
            | BlobOperation::GetBlobTags
            | BlobOperation::SetBlobImmutabilityPolicy
            | BlobOperation::DeleteBlobImmutabilityPolicy
            | BlobOperation::SetBlobLegalHold
    )
}

/// The state of the blob that the request addresses.
pub fn which(call: &Call<'_>) -> Result<Which, Error> {
    let moment = |name| -> Result<Option<Timestamp>, Error> {
        let Some(value) = call.query.get_nonempty(name) else { return Ok(None) };
        let moment = Timestamp::parse_iso8601(value);
        let refusal = || QueryRefusal::InvalidValue { name, value: value.to_owned() };
        Ok(Some(moment.ok_or_else(refusal)?))
    };
    match (moment(SNAPSHOT)?, moment(VERSION)?) {
        (None, None) => Ok(Which::Current),
        (Some(moment), None) => Ok(Which::Snapshot(moment)),
        (None, Some(moment)) => Ok(Which::Version(moment)),
        (Some(_), Some(version)) => {
            let value = version.iso8601().to_string();
            Err(QueryRefusal::InvalidValue { name: VERSION, value }.into())
        }
    }
}
