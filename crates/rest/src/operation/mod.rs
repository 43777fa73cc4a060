//! The operations of the four services: one row for each, from which routing, authorization, the
//! names in metrics and logs, and the support matrix all come.

mod blob;
mod file;
mod headers;
mod matrix;
mod need;
mod queue;
mod route;
mod row;
mod table;
#[cfg(test)]
mod tests;

pub use headers::{Conditions, LeaseHeaders};
pub use matrix::{support_matrix, support_summary};
pub use need::{
    ACTION_PREFIX, Anonymous, Need, NeededActions, ResourceType, Second, SourceCredentials,
};
pub use route::{RouteRefusal, check_since, in_known_form, route, tunnelled};
pub use row::{Comp, Restype, Row, Scope, Selector, Verb, Verbs};

use crate::service::Service;
use crate::url_query::Query;

/// Every operation, in the order of the rows. The name of the service is in front where two
/// services have an operation of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    SetBlobServiceProperties,
    GetBlobServiceProperties,
    GetBlobServiceStats,
    ListContainers,
    GetUserDelegationKey,
    GetAccountInformation,
    BlobBatch,
    FindBlobsByTags,
    CreateContainer,
    GetContainerProperties,
    DeleteContainer,
    SetContainerMetadata,
    GetContainerAcl,
    SetContainerAcl,
    RestoreContainer,
    RenameContainer,
    BlobBatchInContainer,
    FindBlobsByTagsInContainer,
    AcquireContainerLease,
    ReleaseContainerLease,
    RenewContainerLease,
    BreakContainerLease,
    ChangeContainerLease,
    ListBlobs,
    ListBlobsByDelimiter,
    GetAccountInformationByContainer,
    GetBlob,
    GetBlobProperties,
    DeleteBlob,
    PutPageBlob,
    PutAppendBlob,
    PutBlockBlob,
    PutBlobFromUrl,
    UndeleteBlob,
    SetBlobExpiry,
    SetBlobProperties,
    SetBlobImmutabilityPolicy,
    DeleteBlobImmutabilityPolicy,
    SetBlobLegalHold,
    SetBlobMetadata,
    AcquireBlobLease,
    ReleaseBlobLease,
    RenewBlobLease,
    ChangeBlobLease,
    BreakBlobLease,
    SnapshotBlob,
    CopyBlob,
    CopyBlobFromUrl,
    AbortCopyBlob,
    SetBlobTier,
    GetAccountInformationByBlob,
    PutBlock,
    PutBlockFromUrl,
    PutBlockList,
    GetBlockList,
    PutPage,
    ClearPage,
    PutPageFromUrl,
    GetPageRanges,
    GetPageRangesDiff,
    ResizePageBlob,
    SetPageBlobSequenceNumber,
    IncrementalCopyBlob,
    AppendBlock,
    AppendBlockFromUrl,
    SealAppendBlob,
    QueryBlobContents,
    GetBlobTags,
    SetBlobTags,
    ListBlobsAsArrow,
    ListBlobsByDelimiterAsArrow,
    GetContainerMetadata,
    GetBlobMetadata,
    PreflightBlobRequest,
    SetQueueServiceProperties,
    GetQueueServiceProperties,
    GetQueueServiceStats,
    ListQueues,
    CreateQueue,
    DeleteQueue,
    GetQueueMetadata,
    SetQueueMetadata,
    GetQueueAcl,
    SetQueueAcl,
    GetMessages,
    ClearMessages,
    PutMessage,
    PeekMessages,
    UpdateMessage,
    DeleteMessage,
    GetQueueUserDelegationKey,
    PreflightQueueRequest,
    QueryTables,
    CreateTable,
    DeleteTable,
    QueryEntities,
    GetEntity,
    UpdateEntity,
    MergeEntity,
    DeleteEntity,
    InsertEntity,
    GetTableAcl,
    SetTableAcl,
    SetTableServiceProperties,
    GetTableServiceProperties,
    GetTableServiceStats,
    EntityGroupTransaction,
    GetTable,
    InsertOrReplaceEntity,
    InsertOrMergeEntity,
    GetODataMetadata,
    PreflightTableRequest,
    SetFileServiceProperties,
    GetFileServiceProperties,
    ListShares,
    CreateShare,
    GetShareProperties,
    DeleteShare,
    AcquireShareLease,
    ReleaseShareLease,
    ChangeShareLease,
    RenewShareLease,
    BreakShareLease,
    SnapshotShare,
    CreatePermission,
    GetPermission,
    SetShareProperties,
    SetShareMetadata,
    GetShareAcl,
    SetShareAcl,
    GetShareStats,
    RestoreShare,
    CreateDirectory,
    GetDirectoryProperties,
    DeleteDirectory,
    SetDirectoryProperties,
    SetDirectoryMetadata,
    ListDirectoriesAndFiles,
    ListHandles,
    ForceCloseHandles,
    RenameDirectory,
    CreateFile,
    GetFile,
    GetFileProperties,
    DeleteFile,
    SetFileProperties,
    SetFileMetadata,
    AcquireFileLease,
    ReleaseFileLease,
    ChangeFileLease,
    BreakFileLease,
    PutRange,
    PutRangeFromUrl,
    ListRanges,
    CopyFile,
    AbortCopyFile,
    RenameFile,
    CreateSymbolicLink,
    GetSymbolicLink,
    CreateHardLink,
    GetFileUserDelegationKey,
    GetShareMetadata,
    GetDirectoryMetadata,
    GetFileMetadata,
    PreflightFileRequest,
}

const COUNT: usize = blob::ROWS.len() + queue::ROWS.len() + table::ROWS.len() + file::ROWS.len();

static ROWS: [Row; COUNT] = {
    let services = [blob::ROWS, queue::ROWS, table::ROWS, file::ROWS];
    let mut rows = [blob::ROWS[0]; COUNT];
    let (mut service, mut filled) = (0, 0);
    while service < services.len() {
        let mut at = 0;
        while at < services[service].len() {
            rows[filled] = services[service][at];
            // A row is found by the number of its operation.
            assert!(rows[filled].operation as usize == filled, "a row is out of order");
            filled += 1;
            at += 1;
        }
        service += 1;
    }
    rows
};

impl Operation {
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The name in the reference, for logs, metrics and documentation.
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    pub fn service(self) -> Service {
        self.row().service
    }

    /// What the caller needs. Deleting a version or deleting for good takes other letters than
    /// deleting a blob, and only the query tells them apart.
    pub fn need(self, query: &Query<'_>) -> Need {
        let need = self.row().need;
        if self != Self::DeleteBlob {
            return need;
        }
        let permanent =
            query.get("deletetype").is_some_and(|kind| kind.eq_ignore_ascii_case("permanent"));
        match (permanent, query.get_nonempty("versionid")) {
            (true, _) => Need { letters: &["y"], ..need },
            (false, Some(_)) => Need { letters: &["x"], ..need },
            (false, None) => need,
        }
    }

    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.operation)
    }
}

/// The rows of one service.
pub(crate) fn rows(service: Service) -> &'static [Row] {
    match service {
        Service::Blob => blob::ROWS,
        Service::Queue => queue::ROWS,
        Service::Table => table::ROWS,
        Service::File => file::ROWS,
    }
}
