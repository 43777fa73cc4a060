//! Why an operation through a handle is refused; one variant for each status that a client can tell
//! apart.

use crate::share::FileRefusal;
use crate::share::opens::EnterRefusal;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandleRefusal {
    #[error("the handle was closed")]
    Closed,
    #[error("the share is not there")]
    ShareNotFound,
    #[error("a directory on the way is not there")]
    PathNotFound,
    #[error("there is nothing of this name")]
    NotFound,
    #[error("there is something of this name")]
    AlreadyExists,
    #[error("it is a directory")]
    IsDirectory,
    #[error("it is not a directory")]
    NotDirectory,
    #[error("the access is not granted")]
    AccessDenied,
    #[error("somebody has it open in a way that excludes this")]
    SharingViolation,
    #[error("it is about to be deleted")]
    DeletePending,
    #[error("it is read-only and cannot be deleted")]
    CannotDelete,
    #[error("the directory is not empty")]
    DirectoryNotEmpty,
    /// Of a read or a write.
    #[error("a range of it is locked by somebody else")]
    LockConflict,
    /// Of a lock.
    #[error("a range of it is locked by somebody else")]
    LockNotGranted,
    #[error("the range is not locked")]
    RangeNotLocked,
    #[error("the handle has more locks than are kept of one")]
    TooManyLocks,
    #[error("the request makes no sense")]
    InvalidParameter,
    #[error("this cannot be done with it")]
    InvalidRequest,
    #[error("the file ends before this range")]
    EndOfFile,
    #[error("the share has no room for it")]
    DiskFull,
    #[error("the file would be too long")]
    TooLong,
    #[error("a snapshot of a share is not written to")]
    WriteProtected,
    #[error("there are no more names")]
    NoMoreFiles,
    #[error("no name matches the search pattern")]
    NoSuchFile,
    #[error("the search pattern is longer than any name")]
    InvalidPattern,
    #[error("the security descriptor is not valid")]
    InvalidDescriptor,
    #[error("the request that this one repeats is still at work")]
    StillPending,
    #[error("a request with this identifier has opened something")]
    AlreadyCreated,
}

/// Translates a refusal of a node function for a client with a handle.
pub(super) fn refused(refusal: FileRefusal) -> HandleRefusal {
    match refusal {
        FileRefusal::ShareNotFound => HandleRefusal::ShareNotFound,
        FileRefusal::ParentNotFound => HandleRefusal::PathNotFound,
        FileRefusal::NotFound | FileRefusal::SnapshotNotFound => HandleRefusal::NotFound,
        FileRefusal::AlreadyExists => HandleRefusal::AlreadyExists,
        FileRefusal::DirectoryNotEmpty => HandleRefusal::DirectoryNotEmpty,
        FileRefusal::ReadOnly | FileRefusal::IsRoot | FileRefusal::IntoItself => {
            HandleRefusal::AccessDenied
        }
        FileRefusal::Moved => HandleRefusal::Closed,
        FileRefusal::InvalidRange { .. } => HandleRefusal::EndOfFile,
        FileRefusal::TooLong | FileRefusal::RangePastEnd => HandleRefusal::TooLong,
        FileRefusal::OverQuota => HandleRefusal::DiskFull,
        FileRefusal::PermissionNotFound => HandleRefusal::InvalidDescriptor,
        FileRefusal::LengthMismatch => HandleRefusal::InvalidParameter,
        // A pending copy writes the file, or a REST lease excludes others.
        FileRefusal::CopyPending | FileRefusal::LeaseAccess(_) | FileRefusal::LeaseAction(_) => {
            HandleRefusal::SharingViolation
        }
        FileRefusal::Opens(EnterRefusal::DeletePending) => HandleRefusal::DeletePending,
        FileRefusal::Opens(EnterRefusal::LockConflict) => HandleRefusal::LockConflict,
        FileRefusal::Opens(EnterRefusal::SharingViolation | EnterRefusal::CacheFlushDelay) => {
            HandleRefusal::SharingViolation
        }
        FileRefusal::WrongKind
        | FileRefusal::PreviousSnapshotNotFound
        | FileRefusal::PreviousSnapshotNewer
        | FileRefusal::GenerationMismatch
        | FileRefusal::OtherProtocol
        | FileRefusal::NoCopyPending
        | FileRefusal::CopyIdMismatch => HandleRefusal::InvalidRequest,
    }
}
