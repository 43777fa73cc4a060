//! REST operations in terms of SMB: each is an open while it runs.

use std::time::Duration;

use super::access::AccessMask;
use super::breaks::Cause;
use super::share_mode::{Claim, ShareMode, compatible};
use crate::lease::LeaseStatus;

/// The longest that a REST call waits for the caches that it breaks.
pub const REST_BREAK_WAIT_MAX: Duration = Duration::from_secs(30);

/// What a REST call does to one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestOperation {
    /// Create File over a file, and Copy File onto one.
    CreateFile,
    /// Get File, and the source of a copy.
    GetFile,
    GetFileProperties,
    GetFileMetadata,
    ListRanges,
    /// List Directories and Files, for each that is listed.
    List,
    SetFileProperties,
    SetFileMetadata,
    /// Also Put Range from URL and Clear Range.
    PutRange,
    DeleteFile,
    DeleteDirectory,
    /// Acquire Lease on a file; other lease actions have no conflicts.
    LeaseFile,
    /// Rename File or Directory, for what is renamed.
    RenameSource,
    /// Rename File, for what is replaced.
    RenameTarget,
    /// The end of a copy from another host, or its abort, for the file that gets its bytes or loses
    /// them. Nobody is in its way: who caches what the file was before only has to hear of it.
    CopyEnd,
    /// Create Hard Link, for the file that gets another name.
    LinkTarget,
    /// Whatever else is done to a directory, and to a lease that is there: it only has to be in time
    /// before what is about to be deleted is.
    Directory,
}

/// How an operation conflicts with the opens of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub claim: Claim,
    /// Conflicts even with an open that shares everything.
    pub alone: bool,
    pub cause: Option<Cause>,
    /// Conflicts with byte-range locks.
    pub whole_file_written: bool,
}

const READ: AccessMask = AccessMask::READ_DATA;
const WRITE: AccessMask = AccessMask::WRITE_DATA;
const DELETE: AccessMask = AccessMask::DELETE;

impl RestOperation {
    pub fn entry(self) -> Entry {
        let shared = |access| Claim { access, share: ShareMode::ALL };
        let (claim, cause) = match self {
            Self::CreateFile => (shared(WRITE.union(DELETE)), Some(Cause::Overwrite)),
            Self::GetFile | Self::ListRanges => (shared(READ), Some(Cause::Read)),
            Self::GetFileProperties | Self::GetFileMetadata => {
                (shared(AccessMask::empty()), Some(Cause::Read))
            }
            Self::List | Self::LinkTarget | Self::Directory => (shared(AccessMask::empty()), None),
            Self::CopyEnd => (shared(AccessMask::empty()), Some(Cause::Write)),
            Self::SetFileProperties | Self::SetFileMetadata | Self::PutRange => {
                (shared(WRITE), Some(Cause::Write))
            }
            Self::DeleteFile | Self::DeleteDirectory | Self::RenameTarget => {
                (shared(DELETE), Some(Cause::Remove))
            }
            Self::RenameSource => (shared(DELETE), Some(Cause::Remove)),
            // The table of share modes shows that reading is needed too, though the text names only
            // Write and Delete. While leased, others may read.
            Self::LeaseFile => {
                let access = READ.union(WRITE).union(DELETE);
                (Claim { access, share: ShareMode::READ }, Some(Cause::Open))
            }
        };
        let alone = match self {
            Self::DeleteFile | Self::DeleteDirectory | Self::RenameTarget => true,
            Self::CreateFile
            | Self::GetFile
            | Self::GetFileProperties
            | Self::GetFileMetadata
            | Self::ListRanges
            | Self::List
            | Self::SetFileProperties
            | Self::SetFileMetadata
            | Self::PutRange
            | Self::LeaseFile
            | Self::RenameSource
            | Self::CopyEnd
            | Self::LinkTarget
            | Self::Directory => false,
        };
        let whole_file_written = matches!(self, Self::PutRange | Self::CreateFile);
        Entry { claim, alone, cause, whole_file_written }
    }

    /// Whether it is compatible with an SMB open.
    pub fn compatible_with(self, open: Claim) -> bool {
        let entry = self.entry();
        !entry.alone && compatible(entry.claim, open)
    }
}

/// Whether an SMB open may have `access` to a file with this REST lease.
pub fn lease_permits(lease: LeaseStatus, access: AccessMask) -> bool {
    match lease {
        LeaseStatus::Unlocked => true,
        LeaseStatus::Locked => !access.writes() && !access.deletes(),
    }
}

#[cfg(test)]
#[path = "rest_operation_tests.rs"]
mod tests;
