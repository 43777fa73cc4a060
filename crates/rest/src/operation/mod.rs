//! The operations of the four services: one row for each, the source of routing, authorization,
//! names in metrics and logs, and the support matrix.

mod blob;
mod file;
mod headers;
mod need;
mod queue;
mod route;
mod row;
mod support_matrix;
mod table;
#[cfg(test)]
mod tests;

pub use headers::{Conditions, LeaseHeaders};
pub use need::{
    ACTION_PREFIX, Anonymous, Need, NeededActions, ResourceType, Second, SourceCredentials,
};
pub use route::{RouteRefusal, TUNNELLED_METHOD, check_since, in_known_form, route};
pub use row::{Comp, Restype, Row, Scope, Selector, Verb, Verbs};
pub use support_matrix::{support_matrix, support_summary};

use crate::service::Service;
use crate::url_query::UrlQuery;

/// Every operation, by service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    Blob(BlobOperation),
    Queue(QueueOperation),
    Table(TableOperation),
    File(FileOperation),
}

/// The operations of a service, and how many there are.
macro_rules! operations {
    ($(#[$about:meta])* $name:ident { $($operation:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($operation,)*
        }

        impl $name {
            const COUNT: usize = [$(Self::$operation),*].len();
        }
    };
}

operations! {
    /// The operations of the Blob service, in the order of their rows.
    BlobOperation {
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
    }
}

operations! {
    /// The operations of the Queue service, in the order of their rows.
    QueueOperation {
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
    }
}

operations! {
    /// The operations of the Table service, in the order of their rows.
    TableOperation {
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
    }
}

operations! {
    /// The operations of the File service, in the order of their rows.
    FileOperation {
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
}

impl Operation {
    pub fn row(self) -> &'static Row {
        match self {
            Self::Blob(operation) => &blob::ROWS[operation as usize],
            Self::Queue(operation) => &queue::ROWS[operation as usize],
            Self::Table(operation) => &table::ROWS[operation as usize],
            Self::File(operation) => &file::ROWS[operation as usize],
        }
    }

    /// The name in the reference, for logs, metrics and documentation.
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    pub const fn service(self) -> Service {
        match self {
            Self::Blob(_) => Service::Blob,
            Self::Queue(_) => Service::Queue,
            Self::Table(_) => Service::Table,
            Self::File(_) => Service::File,
        }
    }

    /// What the caller needs. Deleting a version and permanent deletion need other letters than
    /// deleting a blob, and only the query tells them apart.
    pub fn need(self, query: &UrlQuery<'_>) -> Need {
        let need = self.row().need;
        if self != Self::Blob(BlobOperation::DeleteBlob) {
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
        Service::ALL.into_iter().flat_map(rows).map(|row| row.operation)
    }
}

impl From<BlobOperation> for Operation {
    fn from(operation: BlobOperation) -> Self {
        Self::Blob(operation)
    }
}

impl From<QueueOperation> for Operation {
    fn from(operation: QueueOperation) -> Self {
        Self::Queue(operation)
    }
}

impl From<TableOperation> for Operation {
    fn from(operation: TableOperation) -> Self {
        Self::Table(operation)
    }
}

impl From<FileOperation> for Operation {
    fn from(operation: FileOperation) -> Self {
        Self::File(operation)
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

/// Checks the order, since a row is found by the number of its operation.
macro_rules! rows_are_in_order {
    ($($rows:path: $service:ident, $operations:ident;)*) => { $(
        const _: () = {
            assert!($rows.len() == $operations::COUNT, "an operation has no row");
            let mut at = 0;
            while at < $rows.len() {
                let Operation::$service(operation) = $rows[at].operation else {
                    panic!("another service")
                };
                assert!(operation as usize == at, "a row is out of order");
                at += 1;
            }
        };
    )* };
}

rows_are_in_order! {
    blob::ROWS: Blob, BlobOperation;
    queue::ROWS: Queue, QueueOperation;
    table::ROWS: Table, TableOperation;
    file::ROWS: File, FileOperation;
}
