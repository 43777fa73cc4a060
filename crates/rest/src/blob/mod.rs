//! The Blob service on HTTP: each operation is parse, call, respond.

mod account;
mod acl;
mod append;
mod batch;
mod block;
mod block_list;
mod container;
mod copy;
mod copy_elsewhere;
mod delete_blob;
pub(crate) mod encryption;
mod expiry;
mod find;
mod get_blob;
mod headers;
mod immutability;
mod lease;
mod list;
mod list_blobs;
mod list_blobs_arrow;
mod listed_blob;
mod page;
mod parameters;
mod put_blob;
mod put_from_url;
#[cfg(feature = "query")]
mod query;
mod set_blob;
mod since;
mod snapshot;
mod tags;
mod tier;

pub use copy_elsewhere::COPIES_MAX;
pub use headers::kind_name;

use crate::answer::Answer;
use crate::error::{Code, Error};
use crate::operation::Operation;
use crate::request::Call;
use crate::request_body::RequestBody;
use crate::service_operations;

/// Get Blob, or Get Blob Properties if the call says so, for a website.
pub async fn read(call: &Call<'_>) -> Result<Answer, Error> {
    if call.operation == Operation::GetBlobProperties {
        get_blob::get_properties(call).await
    } else {
        get_blob::get(call).await
    }
}

/// Runs an operation of the Blob service that the operation table calls built.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "most operations belong to other services or are not built; test_support_matrix.py \
              calls all that are"
)]
pub async fn dispatch(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    parameters::check(call)?;
    since::check(call)?;
    match call.operation {
        Operation::GetBlobServiceProperties => service_operations::get_properties(call).await,
        Operation::SetBlobServiceProperties => service_operations::set_properties(call, body).await,
        Operation::GetUserDelegationKey => {
            service_operations::user_delegation_key(call, body).await
        }
        Operation::GetBlobServiceStats => account::statistics(call),
        Operation::GetAccountInformation
        | Operation::GetAccountInformationByContainer
        | Operation::GetAccountInformationByBlob => Ok(account::information(call)),
        Operation::BlobBatch | Operation::BlobBatchInContainer => batch::run(call, body).await,
        Operation::ListContainers => list::containers(call).await,
        Operation::CreateContainer => container::create(call).await,
        Operation::GetContainerProperties => container::get_properties(call).await,
        Operation::GetContainerMetadata => container::get_metadata(call).await,
        Operation::SetContainerMetadata => container::set_metadata(call).await,
        Operation::GetContainerAcl => acl::get(call).await,
        Operation::SetContainerAcl => acl::set(call, body).await,
        Operation::RestoreContainer => container::restore(call).await,
        Operation::RenameContainer => container::rename(call).await,
        Operation::DeleteContainer => container::delete(call).await,
        Operation::AcquireContainerLease
        | Operation::RenewContainerLease
        | Operation::ChangeContainerLease
        | Operation::ReleaseContainerLease
        | Operation::BreakContainerLease => lease::container(call).await,
        Operation::ListBlobs | Operation::ListBlobsByDelimiter => list_blobs::list(call).await,
        Operation::ListBlobsAsArrow | Operation::ListBlobsByDelimiterAsArrow => {
            list_blobs_arrow::list(call).await
        }
        Operation::PutBlockBlob => put_blob::put(call, body).await,
        Operation::PutPageBlob => put_blob::put_page_blob(call).await,
        Operation::CopyBlob => copy::copy(call).await,
        Operation::CopyBlobFromUrl => copy::copy_from_url(call).await,
        Operation::IncrementalCopyBlob => copy::incremental(call).await,
        Operation::AbortCopyBlob => copy::abort(call).await,
        Operation::PutBlobFromUrl => put_from_url::put(call).await,
        Operation::PutAppendBlob => put_blob::put_append_blob(call).await,
        Operation::PutBlockFromUrl => block::put_from_url(call).await,
        Operation::PutBlock => block::put(call, body).await,
        Operation::PutBlockList => block_list::put(call, body).await,
        Operation::GetBlockList => block_list::get(call).await,
        Operation::AppendBlockFromUrl => append::append_from_url(call).await,
        Operation::AppendBlock => append::append(call, body).await,
        Operation::SealAppendBlob => append::seal(call).await,
        Operation::GetBlob => get_blob::get(call).await,
        Operation::GetBlobProperties => get_blob::get_properties(call).await,
        Operation::GetBlobMetadata => get_blob::get_metadata(call).await,
        Operation::SetBlobMetadata => set_blob::set_metadata(call).await,
        Operation::SetBlobProperties
        | Operation::ResizePageBlob
        | Operation::SetPageBlobSequenceNumber => set_blob::set_properties(call).await,
        Operation::PutPage => page::put(call, body).await,
        Operation::PutPageFromUrl => page::put_from_url(call).await,
        Operation::ClearPage => page::clear(call).await,
        Operation::GetPageRanges | Operation::GetPageRangesDiff => page::ranges(call).await,
        Operation::AcquireBlobLease
        | Operation::RenewBlobLease
        | Operation::ChangeBlobLease
        | Operation::ReleaseBlobLease
        | Operation::BreakBlobLease => lease::blob(call).await,
        #[cfg(feature = "query")]
        Operation::QueryBlobContents => query::query(call, body).await,
        Operation::FindBlobsByTags => find::in_account(call).await,
        Operation::FindBlobsByTagsInContainer => find::in_container(call).await,
        Operation::SetBlobExpiry => expiry::set(call).await,
        Operation::SetBlobImmutabilityPolicy => immutability::set(call).await,
        Operation::DeleteBlobImmutabilityPolicy => immutability::delete(call).await,
        Operation::SetBlobLegalHold => immutability::set_legal_hold(call).await,
        Operation::SetBlobTier => tier::set(call).await,
        Operation::GetBlobTags => tags::get(call).await,
        Operation::SetBlobTags => tags::set(call, body).await,
        Operation::DeleteBlob => delete_blob::delete(call).await,
        Operation::UndeleteBlob => delete_blob::undelete(call).await,
        Operation::SnapshotBlob => snapshot::create(call).await,
        _ => Err(Code::NotImplemented.into()),
    }
}
