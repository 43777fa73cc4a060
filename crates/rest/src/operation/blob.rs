//! The operations of the Blob service.

use super::need::{
    ANY_SAS, Actions, Anonymous, CREATE, DELETE, LIST, Letters, NO_SAS, Need, READ, ResourceType,
    WRITE, WRITE_OR_DELETE,
};
use super::row::{Comp, Restype, Row, Scope, Selector, Verbs};
use super::{Conditions, LeaseHeaders, Operation, SourceCredentials};
use crate::service::Service;
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
/// Adding is enough to make a blob that is not there; replacing one is found out later.
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
const PAGE_WRITE: Conditions = FOUR_AND_TAGS.and(Conditions::SEQUENCE_NUMBER);
const APPEND: Conditions = FOUR_AND_TAGS.and(Conditions::APPEND_POSITION).and(Conditions::MAX_SIZE);
const TAG_CALL: Conditions = Conditions::TAGS.and(Conditions::BLOB);

const fn service(operation: Operation, name: &'static str, verbs: Verbs, need: Need) -> Row {
    Row::new(operation, Service::Blob, name, verbs, Scope::Service, need)
}

const fn container(operation: Operation, name: &'static str, verbs: Verbs, need: Need) -> Row {
    Row::new(operation, Service::Blob, name, verbs, Scope::Container, need)
        .restype(Restype::Container)
}

const fn container_lease(operation: Operation, name: &'static str) -> Row {
    container(operation, name, Verbs::PUT, CONTAINER_LEASE)
        .comp(Comp::Lease)
        .since(Version::V2012_02_12)
        .conditions(Conditions::DATES)
        .built()
}

const fn list(operation: Operation, name: &'static str) -> Row {
    container(operation, name, Verbs::GET, CONTAINER_LIST).comp(Comp::List)
}

const fn blob(operation: Operation, name: &'static str, verbs: Verbs, need: Need) -> Row {
    Row::new(operation, Service::Blob, name, verbs, Scope::Blob, need)
}

const fn blob_lease(operation: Operation, name: &'static str, need: Need) -> Row {
    blob(operation, name, Verbs::PUT, need).comp(Comp::Lease).conditions(FOUR_AND_TAGS).built()
}

/// A write that the lease of the blob protects against.
const fn write(operation: Operation, name: &'static str, need: Need) -> Row {
    blob(operation, name, Verbs::PUT, need).lease(LeaseHeaders::Id).conditions(FOUR_AND_TAGS)
}

/// Anybody with a signature or a role may ask, whatever it is for.
const fn account_information(
    operation: Operation,
    name: &'static str,
    scope: Scope,
    resource_type: ResourceType,
) -> Row {
    let need = Need { resource_type, ..Need::object(ANY_SAS, ANY_ROLE) };
    Row::new(operation, Service::Blob, name, Verbs::GET_OR_HEAD, scope, need)
        .restype(Restype::Account)
        .comp(Comp::Properties)
        .since(Version::V2018_03_28)
        .built()
}

pub(super) const ROWS: &[Row] = &[
    service(
        Operation::SetBlobServiceProperties,
        "Set Blob Service Properties",
        Verbs::PUT,
        Need::service(WRITE, WRITE_SERVICE),
    )
    .restype(Restype::Service)
    .comp(Comp::Properties)
    .success(&[202])
    .built(),
    service(
        Operation::GetBlobServiceProperties,
        "Get Blob Service Properties",
        Verbs::GET,
        Need::service(READ, READ_SERVICE),
    )
    .restype(Restype::Service)
    .comp(Comp::Properties)
    .built(),
    service(
        Operation::GetBlobServiceStats,
        "Get Blob Service Stats",
        Verbs::GET,
        Need::service(READ, READ_SERVICE),
    )
    .restype(Restype::Service)
    .comp(Comp::Stats)
    .since(Version::V2013_08_15)
    .built(),
    service(
        Operation::ListContainers,
        "List Containers",
        Verbs::GET,
        Need::service(LIST, READ_CONTAINER),
    )
    .comp(Comp::List)
    .built(),
    service(
        Operation::GetUserDelegationKey,
        "Get User Delegation Key",
        Verbs::POST,
        Need::service(NO_SAS, &[&["blobServices/generateUserDelegationKey/action"]]).token_only(),
    )
    .restype(Restype::Service)
    .comp(Comp::UserDelegationKey)
    .since(Version::V2018_11_09)
    .built(),
    account_information(
        Operation::GetAccountInformation,
        "Get Account Information (service URL)",
        Scope::Service,
        ResourceType::Service,
    ),
    service(
        Operation::BlobBatch,
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
        Operation::FindBlobsByTags,
        "Find Blobs by Tags",
        Verbs::GET,
        Need::object(FIND, FILTER_BLOBS).without_service_sas(),
    )
    .comp(Comp::Blobs)
    .since(Version::V2019_12_12)
    .built(),
    container(
        Operation::CreateContainer,
        "Create Container",
        Verbs::PUT,
        Need::container(CREATE, WRITE_CONTAINER),
    )
    .success(&[201])
    .built(),
    container(
        Operation::GetContainerProperties,
        "Get Container Properties",
        Verbs::GET_OR_HEAD,
        CONTAINER_READ,
    )
    .lease(LeaseHeaders::Id)
    .built(),
    container(
        Operation::DeleteContainer,
        "Delete Container",
        Verbs::DELETE,
        Need::container(DELETE, DELETE_CONTAINER),
    )
    .success(&[202])
    .conditions(Conditions::DATES)
    .lease(LeaseHeaders::Id)
    .built(),
    container(
        Operation::SetContainerMetadata,
        "Set Container Metadata",
        Verbs::PUT,
        CONTAINER_WRITE,
    )
    .comp(Comp::Metadata)
    .conditions(Conditions::IF_MODIFIED_SINCE)
    .lease(LeaseHeaders::Id)
    .built(),
    container(Operation::GetContainerAcl, "Get Container ACL", Verbs::GET_OR_HEAD, GET_ACL)
        .comp(Comp::Acl)
        .lease(LeaseHeaders::Id)
        .built(),
    container(Operation::SetContainerAcl, "Set Container ACL", Verbs::PUT, SET_ACL)
        .comp(Comp::Acl)
        .conditions(Conditions::DATES)
        .lease(LeaseHeaders::Id)
        .built(),
    container(Operation::RestoreContainer, "Restore Container", Verbs::PUT, CONTAINER_WRITE)
        .uses(CONTAINER_WRITE)
        .comp(Comp::Undelete)
        .when(&[Selector::Header("x-ms-deleted-container-name")])
        .since(Version::V2019_12_12)
        .success(&[201])
        .built(),
    container(Operation::RenameContainer, "Rename Container", Verbs::PUT, CONTAINER_WRITE)
        .uses(CONTAINER_WRITE)
        .comp(Comp::Rename)
        .when(&[Selector::Header("x-ms-source-container-name")])
        .since(Version::V2020_06_12)
        .lease(LeaseHeaders::SourceId)
        .built(),
    container(
        Operation::BlobBatchInContainer,
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
        Operation::FindBlobsByTagsInContainer,
        "Find Blobs by Tags in Container",
        Verbs::GET,
        Need { resource_type: ResourceType::ContainerOrObject, ..Need::object(FIND, FILTER_BLOBS) },
    )
    .comp(Comp::Blobs)
    .since(Version::V2021_04_10)
    .built(),
    container_lease(Operation::AcquireContainerLease, "Lease Container: acquire")
        .when(ACQUIRE)
        .success(&[201])
        .lease(LeaseHeaders::ProposedId),
    container_lease(Operation::ReleaseContainerLease, "Lease Container: release")
        .when(RELEASE)
        .lease(LeaseHeaders::IdRequired),
    container_lease(Operation::RenewContainerLease, "Lease Container: renew")
        .when(RENEW)
        .lease(LeaseHeaders::IdRequired),
    container_lease(Operation::BreakContainerLease, "Lease Container: break")
        .when(BREAK)
        .success(&[202]),
    container_lease(Operation::ChangeContainerLease, "Lease Container: change")
        .when(CHANGE)
        .lease(LeaseHeaders::IdAndProposedIdRequired),
    list(Operation::ListBlobs, "List Blobs (flat)").built(),
    list(Operation::ListBlobsByDelimiter, "List Blobs (delimiter)")
        .when(&[Selector::Query("delimiter")])
        .built(),
    account_information(
        Operation::GetAccountInformationByContainer,
        "Get Account Information (container URL)",
        Scope::Container,
        ResourceType::Container,
    ),
    blob(Operation::GetBlob, "Get Blob", Verbs::GET, BLOB_READ_PUBLIC)
        .success(&[200, 206])
        .conditions(FOUR_AND_TAGS)
        .lease(LeaseHeaders::Id)
        .built(),
    blob(Operation::GetBlobProperties, "Get Blob Properties", Verbs::HEAD, BLOB_READ_PUBLIC)
        .conditions(FOUR_AND_TAGS)
        .lease(LeaseHeaders::Id)
        .built(),
    blob(Operation::DeleteBlob, "Delete Blob", Verbs::DELETE, Need::object(DELETE, DELETE_BLOB))
        .success(&[202])
        .conditions(FOUR_AND_TAGS.and(Conditions::ACCESS_TIER))
        .lease(LeaseHeaders::Id)
        .built(),
    write(Operation::PutPageBlob, "Put Blob (page blob)", BLOB_CREATE)
        .when(&[Selector::HeaderIs("x-ms-blob-type", &["PageBlob"])])
        .success(&[201])
        .built(),
    write(Operation::PutAppendBlob, "Put Blob (append blob)", BLOB_CREATE)
        .when(&[Selector::HeaderIs("x-ms-blob-type", &["AppendBlob"])])
        .since(Version::V2015_02_21)
        .success(&[201])
        .built(),
    write(Operation::PutBlockBlob, "Put Blob (block blob)", BLOB_CREATE)
        .when(&[BLOCK_BLOB])
        .success(&[201])
        .built(),
    write(Operation::PutBlobFromUrl, "Put Blob From URL", BLOB_CREATE)
        .reads(SourceCredentials::Own)
        .when(&[BLOCK_BLOB, COPY_SOURCE])
        .since(Version::V2020_04_08)
        .success(&[201])
        .conditions(FOUR_AND_TAGS.and(Conditions::SOURCE).and(Conditions::SOURCE_TAGS))
        .built(),
    blob(
        Operation::UndeleteBlob,
        "Undelete Blob",
        Verbs::PUT,
        Need::object(WRITE, WRITE_CONTAINER),
    )
    .comp(Comp::Undelete)
    .since(Version::V2017_07_29)
    .built(),
    blob(
        Operation::SetBlobExpiry,
        "Set Blob Expiry (hierarchical namespace)",
        Verbs::PUT,
        BLOB_WRITE,
    )
    .comp(Comp::Expiry)
    .since(Version::V2020_02_10)
    .built(),
    write(Operation::SetBlobProperties, "Set Blob Properties", BLOB_WRITE)
        .comp(Comp::Properties)
        .built(),
    blob(
        Operation::SetBlobImmutabilityPolicy,
        "Set Blob Immutability Policy",
        Verbs::PUT,
        BLOB_HOLD,
    )
    .comp(Comp::ImmutabilityPolicies)
    .since(Version::V2020_06_12)
    .conditions(Conditions::IF_UNMODIFIED_SINCE)
    .built(),
    blob(
        Operation::DeleteBlobImmutabilityPolicy,
        "Delete Blob Immutability Policy",
        Verbs::DELETE,
        BLOB_HOLD,
    )
    .comp(Comp::ImmutabilityPolicies)
    .since(Version::V2020_06_12)
    .built(),
    blob(Operation::SetBlobLegalHold, "Set Blob Legal Hold", Verbs::PUT, BLOB_HOLD)
        .comp(Comp::LegalHold)
        .since(Version::V2020_06_12)
        .built(),
    write(Operation::SetBlobMetadata, "Set Blob Metadata", BLOB_WRITE).comp(Comp::Metadata).built(),
    blob_lease(Operation::AcquireBlobLease, "Lease Blob: acquire", BLOB_WRITE)
        .when(ACQUIRE)
        .success(&[201])
        .lease(LeaseHeaders::ProposedId),
    blob_lease(Operation::ReleaseBlobLease, "Lease Blob: release", BLOB_WRITE)
        .when(RELEASE)
        .lease(LeaseHeaders::IdRequired),
    blob_lease(Operation::RenewBlobLease, "Lease Blob: renew", BLOB_WRITE)
        .when(RENEW)
        .lease(LeaseHeaders::IdRequired),
    blob_lease(Operation::ChangeBlobLease, "Lease Blob: change", BLOB_WRITE)
        .when(CHANGE)
        .since(Version::V2012_02_12)
        .lease(LeaseHeaders::IdAndProposedIdRequired),
    blob_lease(
        Operation::BreakBlobLease,
        "Lease Blob: break",
        Need::object(WRITE_OR_DELETE, WRITE_BLOB),
    )
    .when(BREAK)
    .success(&[202]),
    write(Operation::SnapshotBlob, "Snapshot Blob", BLOB_CREATE)
        .comp(Comp::Snapshot)
        .success(&[201])
        .built(),
    write(Operation::CopyBlob, "Copy Blob (asynchronous)", BLOB_CREATE)
        .reads(SourceCredentials::OwnOrOfAccount)
        .when(&[COPY_SOURCE])
        .success(&[202])
        .conditions(FOUR_AND_TAGS.and(Conditions::SOURCE).and(Conditions::SOURCE_TAGS))
        .built(),
    write(Operation::CopyBlobFromUrl, "Copy Blob From URL (synchronous)", BLOB_CREATE)
        .reads(SourceCredentials::Own)
        .when(&[COPY_SOURCE, Selector::HeaderIs("x-ms-requires-sync", &["true"])])
        .since(Version::V2018_03_28)
        .success(&[202])
        .conditions(FOUR_AND_TAGS.and(Conditions::SOURCE))
        .built(),
    blob(Operation::AbortCopyBlob, "Abort Copy Blob", Verbs::PUT, BLOB_WRITE)
        .comp(Comp::Copy)
        .when(&[Selector::HeaderIs("x-ms-copy-action", &["abort"])])
        .since(Version::V2012_02_12)
        .success(&[204])
        .lease(LeaseHeaders::Id)
        .built(),
    write(Operation::SetBlobTier, "Set Blob Tier", BLOB_WRITE)
        .comp(Comp::Tier)
        .since(Version::V2017_04_17)
        .success(&[200, 202])
        .conditions(Conditions::TAGS)
        .built(),
    account_information(
        Operation::GetAccountInformationByBlob,
        "Get Account Information (blob URL)",
        Scope::Blob,
        ResourceType::Object,
    ),
    write(Operation::PutBlock, "Put Block", BLOCK_WRITE)
        .comp(Comp::Block)
        .success(&[201])
        .conditions(Conditions::NONE)
        .built(),
    write(Operation::PutBlockFromUrl, "Put Block From URL", BLOB_WRITE)
        .reads(SourceCredentials::Own)
        .comp(Comp::Block)
        .when(&[COPY_SOURCE])
        .since(Version::V2018_03_28)
        .success(&[201])
        .conditions(Conditions::SOURCE)
        .built(),
    write(Operation::PutBlockList, "Put Block List", BLOCK_WRITE)
        .comp(Comp::BlockList)
        .success(&[201])
        .built(),
    blob(Operation::GetBlockList, "Get Block List", Verbs::GET, BLOB_READ_PUBLIC)
        .comp(Comp::BlockList)
        .conditions(Conditions::TAGS)
        .lease(LeaseHeaders::Id)
        .built(),
    write(Operation::PutPage, "Put Page: update", BLOB_WRITE)
        .comp(Comp::Page)
        .when(&[PAGE_UPDATE])
        .success(&[201])
        .conditions(PAGE_WRITE)
        .built(),
    write(Operation::ClearPage, "Put Page: clear", BLOB_WRITE)
        .comp(Comp::Page)
        .when(&[Selector::HeaderIs("x-ms-page-write", &["clear"])])
        .success(&[201])
        .conditions(PAGE_WRITE)
        .built(),
    write(Operation::PutPageFromUrl, "Put Page From URL", BLOB_WRITE)
        .reads(SourceCredentials::Own)
        .comp(Comp::Page)
        .when(&[PAGE_UPDATE, COPY_SOURCE])
        .since(Version::V2018_11_09)
        .success(&[201])
        .conditions(PAGE_WRITE.and(Conditions::SOURCE))
        .built(),
    blob(Operation::GetPageRanges, "Get Page Ranges", Verbs::GET, BLOB_READ_PUBLIC)
        .comp(Comp::PageList)
        .conditions(FOUR_AND_TAGS)
        .lease(LeaseHeaders::Id)
        .built(),
    blob(Operation::GetPageRangesDiff, "Get Page Ranges (diff)", Verbs::GET, BLOB_READ_PUBLIC)
        .comp(Comp::PageList)
        .when(&[Selector::QueryOrHeader("prevsnapshot", "x-ms-previous-snapshot-url")])
        .since(Version::V2015_07_08)
        .conditions(FOUR_AND_TAGS)
        .lease(LeaseHeaders::Id)
        .built(),
    write(Operation::ResizePageBlob, "Set Blob Properties (page blob resize)", BLOB_WRITE)
        .comp(Comp::Properties)
        .when(&[Selector::Header("x-ms-blob-content-length")])
        .built(),
    write(
        Operation::SetPageBlobSequenceNumber,
        "Set Blob Properties (page blob sequence number)",
        BLOB_WRITE,
    )
    .comp(Comp::Properties)
    .when(&[Selector::Header("x-ms-sequence-number-action")])
    .built(),
    blob(Operation::IncrementalCopyBlob, "Incremental Copy Blob", Verbs::PUT, BLOB_CREATE)
        .reads(SourceCredentials::OwnOrOfAccount)
        .comp(Comp::IncrementalCopy)
        .since(Version::V2016_05_31)
        .success(&[202])
        .conditions(FOUR_AND_TAGS)
        .built(),
    write(Operation::AppendBlock, "Append Block", BLOB_APPEND)
        .comp(Comp::AppendBlock)
        .since(Version::V2015_02_21)
        .success(&[201])
        .conditions(APPEND)
        .built(),
    write(Operation::AppendBlockFromUrl, "Append Block From URL", BLOB_APPEND)
        .reads(SourceCredentials::Own)
        .comp(Comp::AppendBlock)
        .when(&[COPY_SOURCE])
        .since(Version::V2018_11_09)
        .success(&[201])
        .conditions(APPEND.and(Conditions::SOURCE))
        .built(),
    write(Operation::SealAppendBlob, "Append Blob Seal", BLOB_WRITE)
        .comp(Comp::Seal)
        .since(Version::V2019_12_12)
        .conditions(Conditions::ALL_FOUR.and(Conditions::APPEND_POSITION))
        .built(),
    blob(Operation::QueryBlobContents, "Query Blob Contents", Verbs::POST, BLOB_READ)
        .comp(Comp::Query)
        .since(Version::V2019_12_12)
        .success(&[200, 206])
        .conditions(FOUR_AND_TAGS)
        .lease(LeaseHeaders::Id)
        .built_with(cfg!(feature = "query")),
    blob(
        Operation::GetBlobTags,
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
        Operation::SetBlobTags,
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
    list(Operation::ListBlobsAsArrow, "List Blobs (flat, Apache Arrow body)")
        .when(&[ARROW])
        .since(Version::V2026_10_06)
        .built(),
    list(Operation::ListBlobsByDelimiterAsArrow, "List Blobs (delimiter, Apache Arrow body)")
        .when(&[ARROW, Selector::Query("delimiter")])
        .since(Version::V2026_10_06)
        .built(),
    container(
        Operation::GetContainerMetadata,
        "Get Container Metadata",
        Verbs::GET_OR_HEAD,
        CONTAINER_READ,
    )
    .comp(Comp::Metadata)
    .lease(LeaseHeaders::Id)
    .built(),
    blob(Operation::GetBlobMetadata, "Get Blob Metadata", Verbs::GET_OR_HEAD, BLOB_READ_PUBLIC)
        .comp(Comp::Metadata)
        .conditions(FOUR_AND_TAGS)
        .lease(LeaseHeaders::Id)
        .built(),
    Row::new(
        Operation::PreflightBlobRequest,
        Service::Blob,
        "Preflight Blob Request",
        Verbs::OPTIONS,
        Scope::Any,
        Need::NOTHING,
    )
    .since(Version::V2013_08_15)
    .built(),
];
