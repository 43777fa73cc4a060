//! The File service on HTTP: each operation is parse, call, respond.

mod attributes;
mod copy;
mod directory;
mod file_lease;
mod get_file;
mod handles;
mod link;
mod list_entries;
mod list_ranges;
mod list_shares;
mod node_address;
mod node_headers;
mod node_refusals;
mod parameters;
mod permission;
mod posix_headers;
mod property_headers;
mod put_range;
mod refusals;
mod regular_file;
mod rename;
mod requested_properties;
pub mod rest_call;
mod share;
mod share_headers;
mod share_lease;

use std::future::ready;

use holdfast_domain::Domain;
use holdfast_domain::access::StoredPolicy;
use holdfast_domain::names::{AccountName, ShareName};
use holdfast_domain::share::SharePath;

use crate::answer::{Answer, Answering};
use crate::body::RequestBody;
use crate::error::{Code, Error};
use crate::operation::FileOperation;
use crate::request::Call;
use crate::service::service_operations;

/// Runs an operation of the File service that is marked as built.
pub async fn dispatch(
    call: &Call<'_>,
    operation: FileOperation,
    body: RequestBody,
) -> Result<Answer, Error> {
    parameters::check(call, operation)?;
    handle(call, operation, body).await
}

/// Each is boxed: otherwise the largest future would set the size of every request.
fn handle<'a>(call: &'a Call<'_>, operation: FileOperation, body: RequestBody) -> Answering<'a> {
    match operation {
        FileOperation::GetFileServiceProperties => {
            Box::pin(service_operations::get_properties(call))
        }
        FileOperation::SetFileServiceProperties => {
            Box::pin(service_operations::set_properties(call, body))
        }
        FileOperation::GetFileUserDelegationKey => {
            Box::pin(service_operations::user_delegation_key(call, body))
        }
        FileOperation::ListShares => Box::pin(list_shares::list(call)),
        FileOperation::CreateShare => Box::pin(share::create(call)),
        FileOperation::GetShareProperties => Box::pin(share::get_properties(call)),
        FileOperation::SetShareProperties => Box::pin(share::set_properties(call)),
        FileOperation::GetShareMetadata => Box::pin(share::get_metadata(call)),
        FileOperation::SetShareMetadata => Box::pin(share::set_metadata(call)),
        FileOperation::GetShareAcl => Box::pin(share::get_acl(call)),
        FileOperation::SetShareAcl => Box::pin(share::set_acl(call, body)),
        FileOperation::GetShareStats => Box::pin(share::get_stats(call)),
        FileOperation::CreatePermission => Box::pin(permission::create(call, body)),
        FileOperation::GetPermission => Box::pin(permission::get(call)),
        FileOperation::SnapshotShare => Box::pin(share::snapshot(call)),
        FileOperation::DeleteShare => Box::pin(share::delete(call)),
        FileOperation::RestoreShare => Box::pin(share::restore(call)),
        FileOperation::AcquireShareLease
        | FileOperation::RenewShareLease
        | FileOperation::ChangeShareLease
        | FileOperation::ReleaseShareLease
        | FileOperation::BreakShareLease => Box::pin(share_lease::share(call)),
        FileOperation::CreateDirectory => Box::pin(directory::create(call)),
        FileOperation::GetDirectoryProperties => Box::pin(directory::get_properties(call)),
        FileOperation::GetDirectoryMetadata => Box::pin(directory::get_metadata(call)),
        FileOperation::SetDirectoryProperties => Box::pin(directory::set_properties(call)),
        FileOperation::SetDirectoryMetadata => Box::pin(directory::set_metadata(call)),
        FileOperation::DeleteDirectory => Box::pin(directory::delete(call)),
        FileOperation::ListDirectoriesAndFiles => Box::pin(list_entries::list(call)),
        FileOperation::CreateFile => Box::pin(regular_file::create(call, body)),
        FileOperation::GetFile => Box::pin(get_file::get(call)),
        FileOperation::GetFileProperties => Box::pin(regular_file::get_properties(call)),
        FileOperation::GetFileMetadata => Box::pin(regular_file::get_metadata(call)),
        FileOperation::SetFileProperties => Box::pin(regular_file::set_properties(call)),
        FileOperation::SetFileMetadata => Box::pin(regular_file::set_metadata(call)),
        FileOperation::DeleteFile => Box::pin(regular_file::delete(call)),
        FileOperation::PutRange => Box::pin(put_range::put(call, body)),
        FileOperation::PutRangeFromUrl => Box::pin(put_range::put_from_url(call, body)),
        FileOperation::ListRanges => Box::pin(list_ranges::list(call)),
        FileOperation::AcquireFileLease
        | FileOperation::ChangeFileLease
        | FileOperation::ReleaseFileLease
        | FileOperation::BreakFileLease => Box::pin(file_lease::lease(call)),
        FileOperation::CopyFile => Box::pin(copy::copy(call)),
        FileOperation::AbortCopyFile => Box::pin(copy::abort(call)),
        FileOperation::RenameFile | FileOperation::RenameDirectory => {
            Box::pin(rename::rename(call))
        }
        FileOperation::CreateSymbolicLink => Box::pin(link::create_symbolic(call)),
        FileOperation::GetSymbolicLink => Box::pin(link::get_symbolic(call)),
        FileOperation::CreateHardLink => Box::pin(link::create_hard(call)),
        FileOperation::ListHandles => Box::pin(handles::list(call)),
        FileOperation::ForceCloseHandles => Box::pin(handles::force_close(call)),
        // The front end answers it before authentication.
        FileOperation::PreflightFileRequest => Box::pin(ready(Err(Code::NotImplemented.into()))),
    }
}

/// The stored access policies of a share; none if it does not exist.
pub async fn stored_policies(
    domain: &Domain,
    account: &str,
    share: &str,
) -> Result<Vec<StoredPolicy>, Error> {
    let path = SharePath { account: AccountName::new(account)?, share: ShareName::new(share)? };
    Ok(domain.find_share(&path).await?.map(|share| share.policies).unwrap_or_default())
}
