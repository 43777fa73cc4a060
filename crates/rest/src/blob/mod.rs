//! The Blob service on HTTP: each operation is parse, call, respond.

mod account;
mod acl;
mod append;
mod batch;
mod block;
mod block_list;
mod container;
mod copy;
pub(crate) mod copy_elsewhere;
mod delete_blob;
pub(crate) mod encryption;
mod expiry;
mod find;
pub(crate) mod get_blob;
pub(crate) mod headers;
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

pub(crate) use copy::elsewhere as copied_from_elsewhere;
pub use headers::kind_name;
pub use tags::parse as parse_tags;

use std::future::ready;

use crate::answer::{Answer, Answering};
use crate::error::{Code, Error};
use crate::operation::Operation;
use crate::request::Call;
use crate::request_body::RequestBody;
use crate::service_operations;

/// Whether bytes are a document that an operation on blobs reads: a list of blocks, tags, a query.
pub(crate) fn can_be_document(bytes: &[u8]) -> bool {
    #[cfg(feature = "query")]
    let query = query::can_be_request(bytes);
    #[cfg(not(feature = "query"))]
    let query = false;
    block_list::can_be_list(bytes) | tags::parse(bytes).is_ok() | query
}

/// Get Blob, or Get Blob Properties if the call says so, for a website.
pub async fn read(call: &Call<'_>) -> Result<Answer, Error> {
    if call.operation == Operation::GetBlobProperties {
        get_blob::get_properties(call).await
    } else {
        get_blob::get(call).await
    }
}

/// Runs an operation of the Blob service that the operation table calls built.
pub async fn dispatch(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    parameters::check(call)?;
    since::check(call)?;
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
        Operation::GetBlobServiceProperties => Box::pin(service_operations::get_properties(call)),
        Operation::SetBlobServiceProperties => {
            Box::pin(service_operations::set_properties(call, body))
        }
        Operation::GetUserDelegationKey => {
            Box::pin(service_operations::user_delegation_key(call, body))
        }
        Operation::GetBlobServiceStats => Box::pin(ready(service_operations::statistics(call))),
        Operation::GetAccountInformation
        | Operation::GetAccountInformationByContainer
        | Operation::GetAccountInformationByBlob => Box::pin(ready(Ok(account::information(call)))),
        Operation::BlobBatch | Operation::BlobBatchInContainer => Box::pin(batch::run(call, body)),
        Operation::ListContainers => Box::pin(list::containers(call)),
        Operation::CreateContainer => Box::pin(container::create(call)),
        Operation::GetContainerProperties => Box::pin(container::get_properties(call)),
        Operation::GetContainerMetadata => Box::pin(container::get_metadata(call)),
        Operation::SetContainerMetadata => Box::pin(container::set_metadata(call)),
        Operation::GetContainerAcl => Box::pin(acl::get(call)),
        Operation::SetContainerAcl => Box::pin(acl::set(call, body)),
        Operation::RestoreContainer => Box::pin(container::restore(call)),
        Operation::RenameContainer => Box::pin(container::rename(call)),
        Operation::DeleteContainer => Box::pin(container::delete(call)),
        Operation::AcquireContainerLease
        | Operation::RenewContainerLease
        | Operation::ChangeContainerLease
        | Operation::ReleaseContainerLease
        | Operation::BreakContainerLease => Box::pin(lease::container(call)),
        Operation::ListBlobs | Operation::ListBlobsByDelimiter => Box::pin(list_blobs::list(call)),
        Operation::ListBlobsAsArrow | Operation::ListBlobsByDelimiterAsArrow => {
            Box::pin(list_blobs_arrow::list(call))
        }
        Operation::PutBlockBlob => Box::pin(put_blob::put(call, body)),
        Operation::PutPageBlob => Box::pin(put_blob::put_page_blob(call)),
        Operation::CopyBlob => Box::pin(copy::copy(call)),
        Operation::CopyBlobFromUrl => Box::pin(copy::copy_from_url(call)),
        Operation::IncrementalCopyBlob => Box::pin(copy::incremental(call)),
        Operation::AbortCopyBlob => Box::pin(copy::abort(call)),
        Operation::PutBlobFromUrl => Box::pin(put_from_url::put(call)),
        Operation::PutAppendBlob => Box::pin(put_blob::put_append_blob(call)),
        Operation::PutBlockFromUrl => Box::pin(block::put_from_url(call)),
        Operation::PutBlock => Box::pin(block::put(call, body)),
        Operation::PutBlockList => Box::pin(block_list::put(call, body)),
        Operation::GetBlockList => Box::pin(block_list::get(call)),
        Operation::AppendBlockFromUrl => Box::pin(append::append_from_url(call)),
        Operation::AppendBlock => Box::pin(append::append(call, body)),
        Operation::SealAppendBlob => Box::pin(append::seal(call)),
        Operation::GetBlob => Box::pin(get_blob::get(call)),
        Operation::GetBlobProperties => Box::pin(get_blob::get_properties(call)),
        Operation::GetBlobMetadata => Box::pin(get_blob::get_metadata(call)),
        Operation::SetBlobMetadata => Box::pin(set_blob::set_metadata(call)),
        Operation::SetBlobProperties
        | Operation::ResizePageBlob
        | Operation::SetPageBlobSequenceNumber => Box::pin(set_blob::set_properties(call)),
        Operation::PutPage => Box::pin(page::put(call, body)),
        Operation::PutPageFromUrl => Box::pin(page::put_from_url(call)),
        Operation::ClearPage => Box::pin(page::clear(call)),
        Operation::GetPageRanges | Operation::GetPageRangesDiff => Box::pin(page::ranges(call)),
        Operation::AcquireBlobLease
        | Operation::RenewBlobLease
        | Operation::ChangeBlobLease
        | Operation::ReleaseBlobLease
        | Operation::BreakBlobLease => Box::pin(lease::blob(call)),
        #[cfg(feature = "query")]
        Operation::QueryBlobContents => Box::pin(query::query(call, body)),
        Operation::FindBlobsByTags => Box::pin(find::in_account(call)),
        Operation::FindBlobsByTagsInContainer => Box::pin(find::in_container(call)),
        Operation::SetBlobExpiry => Box::pin(expiry::set(call)),
        Operation::SetBlobImmutabilityPolicy => Box::pin(immutability::set(call)),
        Operation::DeleteBlobImmutabilityPolicy => Box::pin(immutability::delete(call)),
        Operation::SetBlobLegalHold => Box::pin(immutability::set_legal_hold(call)),
        Operation::SetBlobTier => Box::pin(tier::set(call)),
        Operation::GetBlobTags => Box::pin(tags::get(call)),
        Operation::SetBlobTags => Box::pin(tags::set(call, body)),
        Operation::DeleteBlob => Box::pin(delete_blob::delete(call)),
        Operation::UndeleteBlob => Box::pin(delete_blob::undelete(call)),
        Operation::SnapshotBlob => Box::pin(snapshot::create(call)),
        _ => Box::pin(ready(Err(Code::NotImplemented.into()))),
    }
}
