//! The answers to refusals of operations on directories and files.

use holdfast_domain::lease::AccessRefusal;
use holdfast_domain::share::FileRefusal;
use holdfast_domain::share::opens::EnterRefusal;

use crate::error::refusals::lease_code;
use crate::error::{Code, Error};

impl From<FileRefusal> for Error {
    fn from(refusal: FileRefusal) -> Self {
        let code = match refusal {
            FileRefusal::ShareNotFound => Code::ShareNotFound,
            FileRefusal::SnapshotNotFound => Code::ShareSnapshotNotFound,
            FileRefusal::ParentNotFound => Code::ParentNotFound,
            FileRefusal::NotFound => Code::ResourceNotFound,
            FileRefusal::AlreadyExists => Code::ResourceAlreadyExists,
            FileRefusal::WrongKind => Code::ResourceTypeMismatch,
            FileRefusal::DirectoryNotEmpty => Code::DirectoryNotEmpty,
            FileRefusal::IsRoot => Code::CannotDeleteFileOrDirectory,
            FileRefusal::IntoItself => {
                return Self::from(Code::InvalidHeaderValue)
                    .detail("HeaderName", "x-ms-file-rename-source")
                    .detail("Reason", "A directory cannot be moved into itself.");
            }
            FileRefusal::ReadOnly => Code::ReadOnlyAttribute,
            // It was renamed or replaced again and again during the lookups.
            FileRefusal::Moved => Code::ServerBusy,
            FileRefusal::InvalidRange { length } => {
                return Self::from(Code::InvalidRange)
                    .header("content-range", format!("bytes */{length}"));
            }
            FileRefusal::RangePastEnd => Code::InvalidRange,
            FileRefusal::LengthMismatch => {
                return Self::from(Code::InvalidHeaderValue)
                    .detail("HeaderName", "x-ms-range")
                    .detail("Reason", "The body is longer or shorter than its range.");
            }
            FileRefusal::TooLong => Code::OutOfRangeInput,
            FileRefusal::OverQuota => Code::ShareSizeLimitReached,
            FileRefusal::PermissionNotFound => Code::FileInvalidPermissionKey,
            FileRefusal::PreviousSnapshotNotFound => Code::PreviousSnapshotNotFound,
            FileRefusal::PreviousSnapshotNewer => Code::PreviousSnapshotCannotBeNewer,
            FileRefusal::GenerationMismatch => Code::FileGenerationMismatch,
            FileRefusal::OtherProtocol => {
                return Self::from(Code::InvalidQueryParameterValue)
                    .detail("QueryParameterName", "restype")
                    .detail("Reason", "Only shares of NFS have links.");
            }
            FileRefusal::CopyPending => Code::PendingCopyOperation,
            FileRefusal::NoCopyPending => Code::NoPendingCopyOperation,
            FileRefusal::CopyIdMismatch => Code::CopyIdMismatch,
            FileRefusal::LeaseAccess(refusal) => match refusal {
                AccessRefusal::IdMissing => Code::LeaseIdMissing,
                AccessRefusal::IdMismatch => Code::LeaseIdMismatchWithFileOperation,
                AccessRefusal::NotPresent => Code::LeaseNotPresentWithFileOperation,
                AccessRefusal::Lost => Code::LeaseLost,
                AccessRefusal::InfiniteDurationRequired => Code::InfiniteLeaseDurationRequired,
            },
            FileRefusal::LeaseAction(refusal) => lease_code(refusal),
            FileRefusal::Opens(refusal) => match refusal {
                EnterRefusal::DeletePending => Code::SMBDeletePending,
                EnterRefusal::SharingViolation => Code::SharingViolation,
                EnterRefusal::LockConflict => Code::FileLockConflict,
                EnterRefusal::CacheFlushDelay => Code::ClientCacheFlushDelay,
            },
        };
        Self::from(code).about("file")
    }
}
