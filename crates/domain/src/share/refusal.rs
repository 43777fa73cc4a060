//! Why an operation on a file or directory does not happen.

use super::opens::EnterRefusal;
use crate::lease::{AccessRefusal, LeaseRefusal};

/// Every outcome of an operation on a node, other than success, that a client can tell apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileRefusal {
    ShareNotFound,
    SnapshotNotFound,
    /// A directory on the path is missing, or is not a directory.
    ParentNotFound,
    NotFound,
    AlreadyExists,
    /// A directory where a file is asked for, or the other way round.
    WrongKind,
    DirectoryNotEmpty,
    /// The root is neither deleted, moved nor replaced.
    IsRoot,
    /// A directory cannot be moved into itself or below.
    IntoItself,
    /// The attribute is set.
    ReadOnly,
    /// Not what the caller has found there before; it should look it up again.
    Moved,
    /// The range begins at or past the end of a file of this length.
    InvalidRange {
        length: u64,
    },
    /// A write past the end of the file.
    RangePastEnd,
    /// The bytes are more or fewer than those of the range they are for.
    LengthMismatch,
    TooLong,
    OverQuota,
    PermissionNotFound,
    /// The snapshot to compare with is not there.
    PreviousSnapshotNotFound,
    /// The snapshot to compare with is not older than what is compared with it.
    PreviousSnapshotNewer,
    /// The file was created again, or renamed, since the snapshot to compare with.
    GenerationMismatch,
    /// Links are for NFS shares.
    OtherProtocol,
    CopyPending,
    NoCopyPending,
    CopyIdMismatch,
    LeaseAccess(AccessRefusal),
    LeaseAction(LeaseRefusal),
    /// An open of an SMB client prevents it.
    Opens(EnterRefusal),
}

impl From<AccessRefusal> for FileRefusal {
    fn from(refusal: AccessRefusal) -> Self {
        Self::LeaseAccess(refusal)
    }
}

impl From<LeaseRefusal> for FileRefusal {
    fn from(refusal: LeaseRefusal) -> Self {
        Self::LeaseAction(refusal)
    }
}
