//! The Blob service on HTTP: each operation is parse, call, respond.

mod account_information;
mod append;
mod batch;
mod block;
mod block_list;
mod container;
mod container_acl;
mod copy;
mod delete_blob;
pub(crate) mod encryption;
mod expiry;
mod find_blobs_by_tags;
mod get_blob;
mod header_value_versions;
mod headers;
mod immutability;
mod lease;
mod list_blobs;
mod list_blobs_arrow;
mod list_containers;
mod listed_blob;
mod page;
mod parameters;
mod put_blob;
mod put_blob_from_url;
#[cfg(feature = "query")]
mod query_blob_contents;
mod set_blob_properties;
mod snapshot;
mod tags;
mod tier;

pub use headers::kind_name;
pub use tags::parse as parse_tags;

use std::future::ready;

use crate::answer::{Answer, Answering};
use crate::body::RequestBody;
use crate::error::{Code, Error};
use crate::operation::BlobOperation;
use crate::request::Call;
use crate::service::service_operations;

/// Whether the bytes are a valid list of blocks, tags or query.
pub(crate) fn can_be_document(bytes: &[u8]) -> bool {
    #[cfg(feature = "query")]
    let query = query_blob_contents::can_be_request(bytes);
    #[cfg(not(feature = "query"))]
    let query = false;
    block_list::can_be_list(bytes) | tags::parse(bytes).is_ok() | query
}

/// Get Blob or Get Blob Properties, for a website.
pub async fn read(call: &Call<'_>, operation: BlobOperation) -> Result<Answer, Error> {
    if operation == BlobOperation::GetBlobProperties {
        get_blob::get_properties(call).await
    } else {
        get_blob::get(call).await
    }
}

/// Runs an operation of the Blob service that is marked as built.
pub async fn dispatch(
    call: &Call<'_>,
    operation: BlobOperation,
    body: RequestBody,
) -> Result<Answer, Error> {
    parameters::check(call, operation)?;
    header_value_versions::check(call)?;
    handle(call, operation, body).await
}

/// Each is boxed: otherwise the largest future would set the size of every request.
fn handle<'a>(call: &'a Call<'_>, operation: BlobOperation, body: RequestBody) -> Answering<'a> {
    match operation {
        BlobOperation::GetBlobServiceProperties => {
            Box::pin(service_operations::get_properties(call))
        }
        BlobOperation::SetBlobServiceProperties => {
            Box::pin(service_operations::set_properties(call, body))
        }
        BlobOperation::GetUserDelegationKey => {
            Box::pin(service_operations::user_delegation_key(call, body))
        }
        BlobOperation::GetBlobServiceStats => Box::pin(ready(service_operations::statistics(call))),
        BlobOperation::GetAccountInformation
        | BlobOperation::GetAccountInformationByContainer
        | BlobOperation::GetAccountInformationByBlob => {
            Box::pin(ready(Ok(account_information::information(call))))
        }
        BlobOperation::BlobBatch | BlobOperation::BlobBatchInContainer => {
            Box::pin(batch::run(call, body))
        }
        BlobOperation::ListContainers => Box::pin(list_containers::containers(call)),
        BlobOperation::CreateContainer => Box::pin(container::create(call)),
        BlobOperation::GetContainerProperties => Box::pin(container::get_properties(call)),
        BlobOperation::GetContainerMetadata => Box::pin(container::get_metadata(call)),
        BlobOperation::SetContainerMetadata => Box::pin(container::set_metadata(call)),
        BlobOperation::GetContainerAcl => Box::pin(container_acl::get(call)),
        BlobOperation::SetContainerAcl => Box::pin(container_acl::set(call, body)),
        BlobOperation::RestoreContainer => Box::pin(container::restore(call)),
        BlobOperation::RenameContainer => Box::pin(container::rename(call)),
        BlobOperation::DeleteContainer => Box::pin(container::delete(call)),
        BlobOperation::AcquireContainerLease
        | BlobOperation::RenewContainerLease
        | BlobOperation::ChangeContainerLease
        | BlobOperation::ReleaseContainerLease
        | BlobOperation::BreakContainerLease => Box::pin(lease::container(call)),
        BlobOperation::ListBlobs | BlobOperation::ListBlobsByDelimiter => {
            Box::pin(list_blobs::list(call))
        }
        BlobOperation::ListBlobsAsArrow | BlobOperation::ListBlobsByDelimiterAsArrow => {
            Box::pin(list_blobs_arrow::list(call))
        }
        BlobOperation::PutBlockBlob => Box::pin(put_blob::put(call, body)),
        BlobOperation::PutPageBlob => Box::pin(put_blob::put_page_blob(call)),
        BlobOperation::CopyBlob => Box::pin(copy::copy(call)),
        BlobOperation::CopyBlobFromUrl => Box::pin(copy::copy_from_url(call)),
        BlobOperation::IncrementalCopyBlob => Box::pin(copy::incremental(call)),
        BlobOperation::AbortCopyBlob => Box::pin(copy::abort(call)),
        BlobOperation::PutBlobFromUrl => Box::pin(put_blob_from_url::put(call)),
        BlobOperation::PutAppendBlob => Box::pin(put_blob::put_append_blob(call)),
        BlobOperation::PutBlockFromUrl => Box::pin(block::put_from_url(call)),
        BlobOperation::PutBlock => Box::pin(block::put(call, body)),
        BlobOperation::PutBlockList => Box::pin(block_list::put(call, body)),
        BlobOperation::GetBlockList => Box::pin(block_list::get(call)),
        BlobOperation::AppendBlockFromUrl => Box::pin(append::append_from_url(call)),
        BlobOperation::AppendBlock => Box::pin(append::append(call, body)),
        BlobOperation::SealAppendBlob => Box::pin(append::seal(call)),
        BlobOperation::GetBlob => Box::pin(get_blob::get(call)),
        BlobOperation::GetBlobProperties => Box::pin(get_blob::get_properties(call)),
        BlobOperation::GetBlobMetadata => Box::pin(get_blob::get_metadata(call)),
        BlobOperation::SetBlobMetadata => Box::pin(set_blob_properties::set_metadata(call)),
        BlobOperation::SetBlobProperties
        | BlobOperation::ResizePageBlob
        | BlobOperation::SetPageBlobSequenceNumber => {
            Box::pin(set_blob_properties::set_properties(call))
        }
        BlobOperation::PutPage => Box::pin(page::put(call, body)),
        BlobOperation::PutPageFromUrl => Box::pin(page::put_from_url(call)),
        BlobOperation::ClearPage => Box::pin(page::clear(call)),
        BlobOperation::GetPageRanges | BlobOperation::GetPageRangesDiff => {
            Box::pin(page::ranges(call))
        }
        BlobOperation::AcquireBlobLease
        | BlobOperation::RenewBlobLease
        | BlobOperation::ChangeBlobLease
        | BlobOperation::ReleaseBlobLease
        | BlobOperation::BreakBlobLease => Box::pin(lease::blob(call)),
        #[cfg(feature = "query")]
        BlobOperation::QueryBlobContents => Box::pin(query_blob_contents::query(call, body)),
        #[cfg(not(feature = "query"))]
        BlobOperation::QueryBlobContents => Box::pin(ready(Err(Code::NotImplemented.into()))),
        BlobOperation::FindBlobsByTags => Box::pin(find_blobs_by_tags::in_account(call)),
        BlobOperation::FindBlobsByTagsInContainer => {
            Box::pin(find_blobs_by_tags::in_container(call))
        }
        BlobOperation::SetBlobExpiry => Box::pin(expiry::set(call)),
        BlobOperation::SetBlobImmutabilityPolicy => Box::pin(immutability::set(call)),
        BlobOperation::DeleteBlobImmutabilityPolicy => Box::pin(immutability::delete(call)),
        BlobOperation::SetBlobLegalHold => Box::pin(immutability::set_legal_hold(call)),
        BlobOperation::SetBlobTier => Box::pin(tier::set(call)),
        BlobOperation::GetBlobTags => Box::pin(tags::get(call)),
        BlobOperation::SetBlobTags => Box::pin(tags::set(call, body)),
        BlobOperation::DeleteBlob => Box::pin(delete_blob::delete(call)),
        BlobOperation::UndeleteBlob => Box::pin(delete_blob::undelete(call)),
        BlobOperation::SnapshotBlob => Box::pin(snapshot::create(call)),
        // The front end answers it before authentication.
        BlobOperation::PreflightBlobRequest => Box::pin(ready(Err(Code::NotImplemented.into()))),
    }
}
