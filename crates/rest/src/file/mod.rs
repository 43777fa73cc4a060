//! The File service on HTTP: each operation is parse, call, respond.

mod attributes;
mod copy;
mod describe;
mod directory;
mod file_lease;
mod get_file;
mod given;
mod handles;
mod lease;
mod link;
mod list_entries;
mod list_ranges;
mod list_shares;
mod node_refusals;
mod nodes;
mod parameters;
mod permission;
mod place;
mod posix;
mod properties;
mod range;
mod refusals;
mod rename;
pub mod rest_call;
mod share;
mod share_headers;
mod whole;

use holdfast_domain::Domain;
use holdfast_domain::access::StoredPolicy;
use holdfast_domain::names::{AccountName, ShareName};
use holdfast_domain::share::SharePath;

use crate::answer::{Answer, Answering};
use crate::body::RequestBody;
use crate::error::Error;
use crate::operation::Operation;
use crate::request::Call;
use crate::service::service_operations;

/// Runs an operation of the File service that the operation table calls built.
pub async fn dispatch(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    parameters::check(call)?;
    operation(call, body).await
}

/// Each in a box of its own: in one future the largest of them would decide what every request
/// takes and moves.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "most operations belong to other services or are not built; test_support_matrix.py \
              calls all that are"
)]
fn operation<'a>(call: &'a Call<'_>, body: RequestBody) -> Answering<'a> {
    match call.operation {
        Operation::GetFileServiceProperties => Box::pin(service_operations::get_properties(call)),
        Operation::SetFileServiceProperties => {
            Box::pin(service_operations::set_properties(call, body))
        }
        Operation::GetFileUserDelegationKey => {
            Box::pin(service_operations::user_delegation_key(call, body))
        }
        Operation::ListShares => Box::pin(list_shares::list(call)),
        Operation::CreateShare => Box::pin(share::create(call)),
        Operation::GetShareProperties => Box::pin(share::get_properties(call)),
        Operation::SetShareProperties => Box::pin(share::set_properties(call)),
        Operation::GetShareMetadata => Box::pin(share::get_metadata(call)),
        Operation::SetShareMetadata => Box::pin(share::set_metadata(call)),
        Operation::GetShareAcl => Box::pin(share::get_acl(call)),
        Operation::SetShareAcl => Box::pin(share::set_acl(call, body)),
        Operation::GetShareStats => Box::pin(share::get_stats(call)),
        Operation::CreatePermission => Box::pin(permission::create(call, body)),
        Operation::GetPermission => Box::pin(permission::get(call)),
        Operation::SnapshotShare => Box::pin(share::snapshot(call)),
        Operation::DeleteShare => Box::pin(share::delete(call)),
        Operation::RestoreShare => Box::pin(share::restore(call)),
        Operation::AcquireShareLease
        | Operation::RenewShareLease
        | Operation::ChangeShareLease
        | Operation::ReleaseShareLease
        | Operation::BreakShareLease => Box::pin(lease::share(call)),
        _ => nodes::operation(call, body),
    }
}

/// The stored access policies of a share; none if it is not there.
pub async fn stored_policies(
    domain: &Domain,
    account: &str,
    share: &str,
) -> Result<Vec<StoredPolicy>, Error> {
    let path = SharePath { account: AccountName::new(account)?, share: ShareName::new(share)? };
    Ok(domain.find_share(&path).await?.map(|share| share.policies).unwrap_or_default())
}
