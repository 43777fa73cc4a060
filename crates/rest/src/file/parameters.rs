//! Checks common to requests to the File service: the share snapshot, and options that the
//! operation does not have.

use holdfast_domain::time::Timestamp;

use crate::error::Error;
use crate::operation::FileOperation;
use crate::request::Call;
use crate::url_query::QueryRefusal;

const SNAPSHOT: &str = "sharesnapshot";
const INTENT: &str = "x-ms-file-request-intent";

/// For every operation, before it does anything.
pub fn check(call: &Call<'_>, operation: FileOperation) -> Result<(), Error> {
    check_intent(call, operation)?;
    if let Some(value) = call.query.get_nonempty(SNAPSHOT)
        && !takes_snapshot(operation)
    {
        return Err(invalid_snapshot(value));
    }
    Ok(())
}

/// A request with a token must have the header that bypasses the permissions of files.
fn check_intent(call: &Call<'_>, operation: FileOperation) -> Result<(), Error> {
    match call.header(INTENT)? {
        Some(intent) if !intent.eq_ignore_ascii_case("backup") => {
            Err(Error::invalid_header(INTENT, intent))
        }
        None if comes_with_token(call, operation) => Err(Error::missing_header(INTENT)),
        Some(_) | None => Ok(()),
    }
}

/// Getting a user delegation key is not an access to files.
fn comes_with_token(call: &Call<'_>, operation: FileOperation) -> bool {
    let by_token = call.granted.principal.is_some() && call.query.get("sig").is_none();
    by_token && operation != FileOperation::GetFileUserDelegationKey
}

/// The moment of the share snapshot that the request addresses, if any.
pub fn snapshot(call: &Call<'_>) -> Result<Option<Timestamp>, Error> {
    let Some(value) = call.query.get_nonempty(SNAPSHOT) else { return Ok(None) };
    Timestamp::parse_iso8601(value).map(Some).ok_or_else(|| invalid_snapshot(value))
}

fn invalid_snapshot(value: &str) -> Error {
    QueryRefusal::InvalidValue { name: SNAPSHOT, value: value.to_owned() }.into()
}

/// The contents of a snapshot are read and never written; the snapshot itself can be leased and
/// deleted.
fn takes_snapshot(operation: FileOperation) -> bool {
    matches!(
        operation,
        FileOperation::GetShareProperties
            | FileOperation::GetShareMetadata
            | FileOperation::DeleteShare
            | FileOperation::AcquireShareLease
            | FileOperation::RenewShareLease
            | FileOperation::ChangeShareLease
            | FileOperation::ReleaseShareLease
            | FileOperation::BreakShareLease
            | FileOperation::GetDirectoryProperties
            | FileOperation::GetDirectoryMetadata
            | FileOperation::ListDirectoriesAndFiles
            | FileOperation::ListHandles
            | FileOperation::ForceCloseHandles
            | FileOperation::GetFile
            | FileOperation::GetFileProperties
            | FileOperation::GetFileMetadata
            | FileOperation::ListRanges
            | FileOperation::GetSymbolicLink
    )
}

/// `true` or `false` in a header, if it is sent.
pub fn boolean(call: &Call<'_>, name: &'static str) -> Result<Option<bool>, Error> {
    match call.header(name)? {
        None => Ok(None),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
        Some(text) => Err(Error::invalid_header(name, text)),
    }
}

/// The number in a header, if it is sent.
pub fn number(call: &Call<'_>, name: &'static str) -> Result<Option<u64>, Error> {
    let Some(text) = call.header(name)? else { return Ok(None) };
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits);
    number.map(Some).ok_or_else(|| Error::invalid_header(name, text))
}

/// One of the names allowed as the value of a header, in any case.
pub fn choice<T: Copy>(
    call: &Call<'_>,
    name: &'static str,
    choices: &[(&str, T)],
) -> Result<Option<T>, Error> {
    let Some(text) = call.header(name)? else { return Ok(None) };
    let found = choices.iter().find(|(choice, _)| choice.eq_ignore_ascii_case(text));
    found.map(|(_, value)| Some(*value)).ok_or_else(|| Error::invalid_header(name, text))
}

/// The name of a value of [`choice`].
pub fn choice_name<T: PartialEq>(choices: &[(&'static str, T)], value: &T) -> &'static str {
    choices.iter().find(|(_, known)| known == value).map_or("", |(name, _)| name)
}
