//! The operations of the Blob service.

use super::need::{
    ANY_SAS, Actions, Anonymous, CREATE, DELETE, LIST, Letters, NO_SAS, Need, READ, ResourceType,
    WRITE, WRITE_OR_DELETE,
};
use super::row::{Comp, Restype, Row, Scope, Selector, Verbs};
use super::{BlobOperation, Conditions, LeaseHeaders, Operation, SourceCredentials};
use crate::version::Version;

const READ_SERVICE: Actions = &[&["blobServices/read"]];
const WRITE_SERVICE: Actions = &[&["blobServices/write"]];
const READ_CONTAINER: Actions = &[&["blobServices/containers/read"]];
const WRITE_CONTAINER: Actions = &[&["blobServices/containers/write"]];
const DELETE_CONTAINER: Actions = &[&["blobServices/containers/delete"]];
const READ_BLOB: Actions = &[&["blobServices/containers/blobs/read"]];
const WRITE_BLOB: Actions = &[&["blobServices/containers/blobs/write"]];
const DELETE_BLOB: Actions = &[&["blobServices/containers/blobs/delete"]];
const ANY_ROLE: Actions = &[&[]];
const FILTER_BLOBS: Actions = &[&["blobServices/containers/blobs/filter/action"]];
/// `add` is enough to create a blob; replacing one is checked later.
const ADD_BLOB: Actions =
    &[&["blobServices/containers/blobs/write"], &["blobServices/containers/blobs/add/action"]];

const CONTAINER_READ: Need = Need::container(READ, READ_CONTAINER).public(Anonymous::Container);
const CONTAINER_WRITE: Need = Need::container(WRITE, WRITE_CONTAINER);
const CONTAINER_LIST: Need =
    Need::container(LIST, READ_BLOB).with_service_sas().public(Anonymous::Container);
const GET_ACL: Need = Need::container(NO_SAS, &[&["blobServices/containers/getAcl/action"]])
    .role_since(Version::V2025_07_05);
const SET_ACL: Need = Need::container(NO_SAS, &[&["blobServices/containers/setAcl/action"]])
    .role_since(Version::V2025_07_05);
const CONTAINER_LEASE: Need = Need::container(WRITE_OR_DELETE, WRITE_CONTAINER);
const BLOB_READ: Need = Need::object(READ, READ_BLOB);
const BLOB_READ_PUBLIC: Need = BLOB_READ.public(Anonymous::Blob);
const BLOB_WRITE: Need = Need::object(WRITE, WRITE_BLOB);
const BLOB_CREATE: Need = Need::object(CREATE, ADD_BLOB);
const BLOCK_WRITE: Need = BLOB_WRITE.creating_since("2026-06-06");
const BLOB_APPEND: Need = Need::object(&["a", "w"], ADD_BLOB);
const BLOB_HOLD: Need = Need::object(&["i"], WRITE_CONTAINER);
const TAGS: Letters = &["t"];
const FIND: Letters = &["f"];

const ACQUIRE: &[Selector] = &[Selector::HeaderIs("x-ms-lease-action", &["acquire"])];
const RELEASE: &[Selector] = &[Selector::HeaderIs("x-ms-lease-action", &["release"])];
const RENEW: &[Selector] = &[Selector::HeaderIs("x-ms-lease-action", &["renew"])];
const BREAK: &[Selector] = &[Selector::HeaderIs("x-ms-lease-action", &["break"])];
const CHANGE: &[Selector] = &[Selector::HeaderIs("x-ms-lease-action", &["change"])];
const COPY_SOURCE: Selector = Selector::Header("x-ms-copy-source");
const BLOCK_BLOB: Selector = Selector::HeaderIs("x-ms-blob-type", &["BlockBlob"]);
const PAGE_UPDATE: Selector = Selector::HeaderIs("x-ms-page-write", &["update"]);
const ARROW: Selector = Selector::Accepts("application/vnd.apache.arrow.stream");

const FOUR_AND_TAGS: Conditions = Conditions::FOUR_AND_TAGS;
const PAGE_WRITE: Conditions = FOUR_AND_TAGS.union(Conditions::SEQUENCE_NUMBER);
const APPEND: Conditions =
    FOUR_AND_TAGS.union(Conditions::APPEND_POSITION).union(Conditions::MAX_SIZE);
const TAG_CALL: Conditions = Conditions::TAGS.union(Conditions::BLOB);

const fn service(operation: BlobOperation, name: &'static str, verbs: Verbs, need: Need) -> Row {
    Row::new(Operation::Blob(operation), name, verbs, Scope::Service, need)
}

const fn container(operation: BlobOperation, name: &'static str, verbs: Verbs, need: Need) -> Row {
    Row::new(Operation::Blob(operation), name, verbs, Scope::Container, need)
        .restype(Restype::Container)
}

const fn container_lease(operation: BlobOperation, name: &'static str) -> Row {
    container(operation, name, Verbs::PUT, CONTAINER_LEASE)
        .comp(Comp::Lease)
        .since(Version::V2012_02_12)
        .conditions(Conditions::DATES)
        .built()
}

const fn list(operation: BlobOperation, name: &'static str) -> Row {
    container(operation, name, Verbs::GET, CONTAINER_LIST).comp(Comp::List)
}

const fn blob(operation: BlobOperation, name: &'static str, verbs: Verbs, need: Need) -> Row {
    Row::new(Operation::Blob(operation), name, verbs, Scope::Blob, need)
}

const fn blob_lease(operation: BlobOperation, name: &'static str, need: Need) -> Row {
    blob(operation, name, Verbs::PUT, need).comp(Comp::Lease).conditions(FOUR_AND_TAGS).built()
}

/// A write that a lease of the blob guards.
const fn write(operation: BlobOperation, name: &'static str, need: Need) -> Row {
    blob(operation, name, Verbs::PUT, need).lease(LeaseHeaders::Id).conditions(FOUR_AND_TAGS)
}

/// Any signature or role is enough, whatever it is for.
const fn account_information(
    operation: BlobOperation,
    name: &'static str,
    scope: Scope,
    resource_type: ResourceType,
) -> Row {
    let need = Need { resource_type, ..Need::object(ANY_SAS, ANY_ROLE) };
    Row::new(Operation::Blob(operation), name, Verbs::GET_OR_HEAD, scope, need)
        .restype(Restype::Account)
        .comp(Comp::Properties)
        .since(Version::V2018_03_28)
        .built()
}

pub(super) const ROWS: &[Row] = &[
    service(
        BlobOperation::SetBlobServiceProperties,
        "Set Blob Service Properties",
        Verbs::PUT,
        Need::service(WRITE, WRITE_SERVICE),
    )
    .restype(Restype::Service)
    .comp(Comp::Properties)
    .success(&[202])
    .built(),
    service(
        BlobOperation::GetBlobServiceProperties,
        "Get Blob Service Properties",
        Verbs::GET,
        Need::service(READ, READ_SERVICE),
    )
    .restype(Restype::Service)
    .comp(Comp::Properties)
    .built(),
    service(
        BlobOperation::GetBlobServiceStats,
        "Get Blob Service Stats",
        Verbs::GET,
        Need::service(READ, READ_SERVICE),
    )
    .restype(Restype::Service)
    .comp(Comp::Stats)
    .since(Version::V2013_08_15)
    .built(),
    service(
        BlobOperation::ListContainers,
        "List Containers",
        Verbs::GET,
        Need::service(LIST, READ_CONTAINER),
    )
    .comp(Comp::List)
    .built(),
    service(
        BlobOperation::GetUserDelegationKey,
        "Get User Delegation Key",
        Verbs::POST,
        Need::service(NO_SAS, &[&["blobServices/generateUserDelegationKey/action"]]).token_only(),
    )
    .restype(Restype::Service)
    .comp(Comp::UserDelegationKey)
    .since(Version::V2018_11_09)
    .built(),
    account_information(
        BlobOperation::GetAccountInformation,
        "Get Account Information (service URL)",
        Scope::Service,
        ResourceType::Service,
    ),
    service(
        BlobOperation::BlobBatch,
        "Blob Batch (account)",
        Verbs::POST,
        Need::object(ANY_SAS, WRITE_CONTAINER).without_service_sas(),
    )
    .in_parts()
    .comp(Comp::Batch)
    .since(Version::V2018_11_09)
    .success(&[202])
    .built(),
    service(
        BlobOperation::FindBlobsByTags,
        "Find Blobs by Tags",
        Verbs::GET,
        Need::object(FIND, FILTER_BLOBS).without_service_sas(),
    )
    .comp(Comp::Blobs)
    .since(Version::V2019_12_12)
    .built(),
    container(
        BlobOperation::CreateContainer,
        "Create Container",
        Verbs::PUT,
        Need::container(CREATE, WRITE_CONTAINER),
    )
    .success(&[201])
    .built(),
    container(
        BlobOperation::GetContainerProperties,
        "Get Container Properties",
        Verbs::GET_OR_HEAD,
        CONTAINER_READ,
    )
    .lease(LeaseHeaders::Id)
    .built(),
    container(
        BlobOperation::DeleteContainer,
        "Delete Container",
        Verbs::DELETE,
        Need::container(DELETE, DELETE_CONTAINER),
    )
    .success(&[202])
    .conditions(Conditions::DATES)
    .lease(LeaseHeaders::Id)
    .built(),
    container(
        BlobOperation::SetContainerMetadata,
        "Set Container Metadata",
        Verbs::PUT,
        CONTAINER_WRITE,
    )
    .comp(Comp::Metadata)
    .conditions(Conditions::IF_MODIFIED_SINCE)
    .lease(LeaseHeaders::Id)
    .built(),
    container(BlobOperation::GetContainerAcl, "Get Container ACL", Verbs::GET_OR_HEAD, GET_ACL)
        .comp(Comp::Acl)
        .lease(LeaseHeaders::Id)
        .built(),
    container(BlobOperation::SetContainerAcl, "Set Container ACL", Verbs::PUT, SET_ACL)
        .comp(Comp::Acl)
        .conditions(Conditions::DATES)
        .lease(LeaseHeaders::Id)
        .built(),
    container(BlobOperation::RestoreContainer, "Restore Container", Verbs::PUT, CONTAINER_WRITE)
        .uses(CONTAINER_WRITE)
        .comp(Comp::Undelete)
        .when(&[Selector::Header("x-ms-deleted-container-name")])
        .since(Version::V2019_12_12)
        .success(&[201])
        .built(),
    container(BlobOperation::RenameContainer, "Rename Container", Verbs::PUT, CONTAINER_WRITE)
        .uses(CONTAINER_WRITE)
        .comp(Comp::Rename)
        .when(&[Selector::Header("x-ms-source-container-name")])
        .since(Version::V2020_06_12)
        .lease(LeaseHeaders::SourceId)
        .built(),
    container(
        BlobOperation::BlobBatchInContainer,
        "Blob Batch (container)",
        Verbs::POST,
        Need::object(ANY_SAS, WRITE_CONTAINER),
    )
    .in_parts()
    .comp(Comp::Batch)
    .since(Version::V2020_04_08)
    .success(&[202])
    .built(),
    container(
        BlobOperation::FindBlobsByTagsInContainer,
        "Find Blobs by Tags in Container",
        Verbs::GET,
        Need { resource_type: ResourceType::ContainerOrObject, ..Need::object(FIND, FILTER_BLOBS) },
    )
    .comp(Comp::Blobs)
    .since(Version::V2021_04_10)
    .built(),
    container_lease(BlobOperation::AcquireContainerLease, "Lease Container: acquire")
        .when(ACQUIRE)
        .success(&[201])
        .lease(LeaseHeaders::ProposedId),
    container_lease(BlobOperation::ReleaseContainerLease, "Lease Container: release")
        .when(RELEASE)
        .lease(LeaseHeaders::IdRequired),
    container_lease(BlobOperation::RenewContainerLease, "Lease Container: renew")
        .when(RENEW)
        .lease(LeaseHeaders::IdRequired),
    container_lease(BlobOperation::BreakContainerLease, "Lease Container: break")
        .when(BREAK)
        .success(&[202]),
    container_lease(BlobOperation::ChangeContainerLease, "Lease Container: change")
        .when(CHANGE)
        .lease(LeaseHeaders::IdAndProposedIdRequired),
    list(BlobOperation::ListBlobs, "List Blobs (flat)").built(),
    list(BlobOperation::ListBlobsByDelimiter, "List Blobs (delimiter)")
        .when(&[Selector::Query("delimiter")])
        .built(),
    account_information(
        BlobOperation::GetAccountInformationByContainer,
        "Get Account Information (container URL)",
        Scope::Container,
        ResourceType::Container,
    ),
    blob(BlobOperation::GetBlob, "Get Blob", Verbs::GET, BLOB_READ_PUBLIC)
        .success(&[200, 206])
        .conditions(FOUR_AND_TAGS)
        .lease(LeaseHeaders::Id)
        .built(),
    blob(BlobOperation::GetBlobProperties, "Get Blob Properties", Verbs::HEAD, BLOB_READ_PUBLIC)
        .conditions(FOUR_AND_TAGS)
        .lease(LeaseHeaders::Id)
        .built(),
    blob(
        BlobOperation::DeleteBlob,
        "Delete Blob",
        Verbs::DELETE,
        Need::object(DELETE, DELETE_BLOB),
    )
    .success(&[202])
    .conditions(FOUR_AND_TAGS.union(Conditions::ACCESS_TIER))
    .lease(LeaseHeaders::Id)
    .built(),
    write(BlobOperation::PutPageBlob, "Put Blob (page blob)", BLOB_CREATE)
        .when(&[Selector::HeaderIs("x-ms-blob-type", &["PageBlob"])])
        .success(&[201])
        .built(),
    write(BlobOperation::PutAppendBlob, "Put Blob (append blob)", BLOB_CREATE)
        .when(&[Selector::HeaderIs("x-ms-blob-type", &["AppendBlob"])])
        .since(Version::V2015_02_21)
        .success(&[201])
        .built(),
    write(BlobOperation::PutBlockBlob, "Put Blob (block blob)", BLOB_CREATE)
        .when(&[BLOCK_BLOB])
        .success(&[201])
        .built(),
    write(BlobOperation::PutBlobFromUrl, "Put Blob From URL", BLOB_CREATE)
        .reads(SourceCredentials::Own)
        .when(&[BLOCK_BLOB, COPY_SOURCE])
        .since(Version::V2020_04_08)
        .success(&[201])
        .conditions(FOUR_AND_TAGS.union(Conditions::SOURCE).union(Conditions::SOURCE_TAGS))
        .built(),
    blob(
        BlobOperation::UndeleteBlob,
        "Undelete Blob",
        Verbs::PUT,
        Need::object(WRITE, WRITE_CONTAINER),
    )
    .comp(Comp::Undelete)
    .since(Version::V2017_07_29)
    .built(),
    blob(
        BlobOperation::SetBlobExpiry,
        "Set Blob Expiry (hierarchical namespace)",
        Verbs::PUT,
        BLOB_WRITE,
    )
    .comp(Comp::Expiry)
    .since(Version::V2020_02_10)
    .built(),
    write(BlobOperation::SetBlobProperties, "Set Blob Properties", BLOB_WRITE)
        .comp(Comp::Properties)
        .built(),
    blob(
        BlobOperation::SetBlobImmutabilityPolicy,
        "Set Blob Immutability Policy",
        Verbs::PUT,
        BLOB_HOLD,
    )
    .comp(Comp::ImmutabilityPolicies)
    .since(Version::V2020_06_12)
    .conditions(Conditions::IF_UNMODIFIED_SINCE)
    .built(),
    blob(
        BlobOperation::DeleteBlobImmutabilityPolicy,
        "Delete Blob Immutability Policy",
        Verbs::DELETE,
        BLOB_HOLD,
    )
    .comp(Comp::ImmutabilityPolicies)
    .since(Version::V2020_06_12)
    .built(),
    blob(BlobOperation::SetBlobLegalHold, "Set Blob Legal Hold", Verbs::PUT, BLOB_HOLD)
        .comp(Comp::LegalHold)
        .since(Version::V2020_06_12)
        .built(),
    write(BlobOperation::SetBlobMetadata, "Set Blob Metadata", BLOB_WRITE)
        .comp(Comp::Metadata)
        .built(),
    blob_lease(BlobOperation::AcquireBlobLease, "Lease Blob: acquire", BLOB_WRITE)
        .when(ACQUIRE)
        .success(&[201])
        .lease(LeaseHeaders::ProposedId),
    blob_lease(BlobOperation::ReleaseBlobLease, "Lease Blob: release", BLOB_WRITE)
        .when(RELEASE)
        .lease(LeaseHeaders::IdRequired),
    blob_lease(BlobOperation::RenewBlobLease, "Lease Blob: renew", BLOB_WRITE)
        .when(RENEW)
        .lease(LeaseHeaders::IdRequired),
    blob_lease(BlobOperation::ChangeBlobLease, "Lease Blob: change", BLOB_WRITE)
        .when(CHANGE)
        .since(Version::V2012_02_12)
        .lease(LeaseHeaders::IdAndProposedIdRequired),
    blob_lease(
        BlobOperation::BreakBlobLease,
        "Lease Blob: break",
        Need::object(WRITE_OR_DELETE, WRITE_BLOB),
    )
    .when(BREAK)
    .success(&[202]),
    write(BlobOperation::SnapshotBlob, "Snapshot Blob", BLOB_CREATE)
        .comp(Comp::Snapshot)
        .success(&[201])
        .built(),
    write(BlobOperation::CopyBlob, "Copy Blob (asynchronous)", BLOB_CREATE)
        .reads(SourceCredentials::OwnOrOfAccount)
        .when(&[COPY_SOURCE])
        .success(&[202])
        .conditions(FOUR_AND_TAGS.union(Conditions::SOURCE).union(Conditions::SOURCE_TAGS))
        .built(),
    write(BlobOperation::CopyBlobFromUrl, "Copy Blob From URL (synchronous)", BLOB_CREATE)
        .reads(SourceCredentials::Own)
        .when(&[COPY_SOURCE, Selector::HeaderIs("x-ms-requires-sync", &["true"])])
        .since(Version::V2018_03_28)
        .success(&[202])
        .conditions(FOUR_AND_TAGS.union(Conditions::SOURCE))
        .built(),
    blob(BlobOperation::AbortCopyBlob, "Abort Copy Blob", Verbs::PUT, BLOB_WRITE)
        .comp(Comp::Copy)
        .when(&[Selector::HeaderIs("x-ms-copy-action", &["abort"])])
        .since(Version::V2012_02_12)
        .success(&[204])
        .lease(LeaseHeaders::Id)
        .built(),
    write(BlobOperation::SetBlobTier, "Set Blob Tier", BLOB_WRITE)
        .comp(Comp::Tier)
        .since(Version::V2017_04_17)
        .success(&[200, 202])
        .conditions(Conditions::TAGS)
        .built(),
    account_information(
        BlobOperation::GetAccountInformationByBlob,
        "Get Account Information (blob URL)",
        Scope::Blob,
        ResourceType::Object,
    ),
    write(BlobOperation::PutBlock, "Put Block", BLOCK_WRITE)
        .comp(Comp::Block)
        .success(&[201])
        .conditions(Conditions::empty())
        .built(),
    write(BlobOperation::PutBlockFromUrl, "Put Block From URL", BLOB_WRITE)
        .reads(SourceCredentials::Own)
        .comp(Comp::Block)
        .when(&[COPY_SOURCE])
        .since(Version::V2018_03_28)
        .success(&[201])
        .conditions(Conditions::SOURCE)
        .built(),
    write(BlobOperation::PutBlockList, "Put Block List", BLOCK_WRITE)
        .comp(Comp::BlockList)
        .success(&[201])
        .built(),
    blob(BlobOperation::GetBlockList, "Get Block List", Verbs::GET, BLOB_READ_PUBLIC)
        .comp(Comp::BlockList)
        .conditions(Conditions::TAGS)
        .lease(LeaseHeaders::Id)
        .built(),
    write(BlobOperation::PutPage, "Put Page: update", BLOB_WRITE)
        .comp(Comp::Page)
        .when(&[PAGE_UPDATE])
        .success(&[201])
        .conditions(PAGE_WRITE)
        .built(),
    write(BlobOperation::ClearPage, "Put Page: clear", BLOB_WRITE)
        .comp(Comp::Page)
        .when(&[Selector::HeaderIs("x-ms-page-write", &["clear"])])
        .success(&[201])
        .conditions(PAGE_WRITE)
        .built(),
    write(BlobOperation::PutPageFromUrl, "Put Page From URL", BLOB_WRITE)
        .reads(SourceCredentials::Own)
        .comp(Comp::Page)
        .when(&[PAGE_UPDATE, COPY_SOURCE])
        .since(Version::V2018_11_09)
        .success(&[201])
        .conditions(PAGE_WRITE.union(Conditions::SOURCE))
        .built(),
    blob(BlobOperation::GetPageRanges, "Get Page Ranges", Verbs::GET, BLOB_READ_PUBLIC)
        .comp(Comp::PageList)
        .conditions(FOUR_AND_TAGS)
        .lease(LeaseHeaders::Id)
        .built(),
    blob(BlobOperation::GetPageRangesDiff, "Get Page Ranges (diff)", Verbs::GET, BLOB_READ_PUBLIC)
        .comp(Comp::PageList)
        .when(&[Selector::QueryOrHeader("prevsnapshot", "x-ms-previous-snapshot-url")])
        .since(Version::V2015_07_08)
        .conditions(FOUR_AND_TAGS)
        .lease(LeaseHeaders::Id)
        .built(),
    write(BlobOperation::ResizePageBlob, "Set Blob Properties (page blob resize)", BLOB_WRITE)
        .comp(Comp::Properties)
        .when(&[Selector::Header("x-ms-blob-content-length")])
        .built(),
    write(
        BlobOperation::SetPageBlobSequenceNumber,
        "Set Blob Properties (page blob sequence number)",
        BLOB_WRITE,
    )
    .comp(Comp::Properties)
    .when(&[Selector::Header("x-ms-sequence-number-action")])
    .built(),
    blob(BlobOperation::IncrementalCopyBlob, "Incremental Copy Blob", Verbs::PUT, BLOB_CREATE)
        .reads(SourceCredentials::OwnOrOfAccount)
        .comp(Comp::IncrementalCopy)
        .since(Version::V2016_05_31)
        .success(&[202])
        .conditions(FOUR_AND_TAGS)
        .built(),
    write(BlobOperation::AppendBlock, "Append Block", BLOB_APPEND)
        .comp(Comp::AppendBlock)
        .since(Version::V2015_02_21)
        .success(&[201])
        .conditions(APPEND)
        .built(),
    write(BlobOperation::AppendBlockFromUrl, "Append Block From URL", BLOB_APPEND)
        .reads(SourceCredentials::Own)
        .comp(Comp::AppendBlock)
        .when(&[COPY_SOURCE])
        .since(Version::V2018_11_09)
        .success(&[201])
        .conditions(APPEND.union(Conditions::SOURCE))
        .built(),
    write(BlobOperation::SealAppendBlob, "Append Blob Seal", BLOB_WRITE)
        .comp(Comp::Seal)
        .since(Version::V2019_12_12)
        .conditions(Conditions::ALL_FOUR.union(Conditions::APPEND_POSITION))
        .built(),
    blob(BlobOperation::QueryBlobContents, "Query Blob Contents", Verbs::POST, BLOB_READ)
        .comp(Comp::Query)
        .since(Version::V2019_12_12)
        .success(&[200, 206])
        .conditions(FOUR_AND_TAGS)
        .lease(LeaseHeaders::Id)
        .built_with(cfg!(feature = "query")),
    blob(
        BlobOperation::GetBlobTags,
        "Get Blob Tags",
        Verbs::GET,
        Need::object(TAGS, &[&["blobServices/containers/blobs/tags/read"]]),
    )
    .comp(Comp::Tags)
    .since(Version::V2019_12_12)
    .conditions(TAG_CALL)
    .lease(LeaseHeaders::Id)
    .built(),
    blob(
        BlobOperation::SetBlobTags,
        "Set Blob Tags",
        Verbs::PUT,
        Need::object(TAGS, &[&["blobServices/containers/blobs/tags/write"]]),
    )
    .comp(Comp::Tags)
    .since(Version::V2019_12_12)
    .success(&[204])
    .conditions(TAG_CALL)
    .lease(LeaseHeaders::Id)
    .built(),
    list(BlobOperation::ListBlobsAsArrow, "List Blobs (flat, Apache Arrow body)")
        .when(&[ARROW])
        .since(Version::V2026_10_06)
        .built(),
    list(BlobOperation::ListBlobsByDelimiterAsArrow, "List Blobs (delimiter, Apache Arrow body)")
        .when(&[ARROW, Selector::Query("delimiter")])
        .since(Version::V2026_10_06)
        .built(),
    container(
        BlobOperation::GetContainerMetadata,
        "Get Container Metadata",
        Verbs::GET_OR_HEAD,
        CONTAINER_READ,
    )
    .comp(Comp::Metadata)
    .lease(LeaseHeaders::Id)
    .built(),
    blob(BlobOperation::GetBlobMetadata, "Get Blob Metadata", Verbs::GET_OR_HEAD, BLOB_READ_PUBLIC)
        .comp(Comp::Metadata)
        .conditions(FOUR_AND_TAGS)
        .lease(LeaseHeaders::Id)
        .built(),
    Row::new(
        Operation::Blob(BlobOperation::PreflightBlobRequest),
        "Preflight Blob Request",
        Verbs::OPTIONS,
        Scope::Any,
        Need::NOTHING,
    )
    .since(Version::V2013_08_15)
    .built(),
];
