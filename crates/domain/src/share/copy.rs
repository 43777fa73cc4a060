//! Copy File.

use super::node::GetNode;
use super::properties::TimeChange;
use super::tree::{Answer, Located};
use super::{Attributes, File, FileRefusal, NodeAddress, PermissionKey};
use crate::blob::{BlobRefusal, CopyEnd, CopyStatus, SourceElsewhere, SourceHere};
use crate::content::Received;
use crate::domain::Domain;
use crate::failure::{Failure, Fault};
use crate::lease::LeaseId;
use crate::metadata::Metadata;

pub struct CopyFile {
    pub address: NodeAddress,
    pub source: FileCopySource,
    /// As it is shown later.
    pub source_url: String,
    /// Of this copy, and no other.
    pub copy_id: String,
    /// Without any, that of the source.
    pub metadata: Option<Metadata>,
    pub properties: CopiedProperties,
    /// Whether a file that is there goes even if it is read-only.
    pub ignore_read_only: bool,
    /// `x-ms-file-copy-set-archive`
    pub set_archive: bool,
    pub lease_id: Option<LeaseId>,
}

/// Properties of a copy: given, taken from the source where that is a file, or those of any new file.
#[derive(Clone, Debug, Default)]
pub struct CopiedProperties {
    pub attributes: FromSource<Attributes>,
    pub created: FromSource<TimeChange>,
    pub written: FromSource<TimeChange>,
    pub changed: FromSource<TimeChange>,
    /// That of a source in another share is kept under a key of this one.
    pub permission: FromSource<PermissionKey>,
    pub mode: FromSource<u16>,
    pub owner: FromSource<(u32, u32)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FromSource<T> {
    #[default]
    New,
    Source,
    Given(T),
}

pub enum FileCopySource {
    /// A file of this account.
    File(GetNode),
    /// A blob of this account.
    Blob(SourceHere),
    /// Bytes from elsewhere that have come already.
    Fetched(Received, SourceElsewhere),
    /// Bytes from elsewhere that will come.
    Awaited(SourceElsewhere),
}

/// What a refusal of a copy is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileCopyRefusal {
    SourceFile(FileRefusal),
    SourceBlob(BlobRefusal),
    Destination(FileRefusal),
}

impl From<FileRefusal> for FileCopyRefusal {
    fn from(refusal: FileRefusal) -> Self {
        Self::Destination(refusal)
    }
}

pub struct AbortFileCopy {
    pub address: NodeAddress,
    pub copy_id: String,
    pub lease_id: Option<LeaseId>,
}

impl Domain {
    pub async fn copy_file(&self, command: CopyFile) -> Result<Located, Failure<FileCopyRefusal>> {
        let _ = command;
        Err(Failure::Fault(Fault::new("not built yet")))
    }

    /// Notes how much of a pending copy has come; whether it is still wanted.
    pub async fn note_file_copy_progress(
        &self,
        address: &NodeAddress,
        copy_id: &str,
        bytes_copied: u64,
    ) -> Answer<bool> {
        let _ = (address, copy_id, bytes_copied);
        Err(Failure::Fault(Fault::new("not built yet")))
    }

    /// Ends a pending copy. Refused if it has been ended otherwise.
    pub async fn end_file_copy(
        &self,
        address: &NodeAddress,
        copy_id: &str,
        end: CopyEnd,
    ) -> Answer<()> {
        let _ = (address, copy_id, end);
        Err(Failure::Fault(Fault::new("not built yet")))
    }

    pub async fn abort_file_copy(&self, command: &AbortFileCopy) -> Answer<()> {
        let _ = command;
        Err(Failure::Fault(Fault::new("not built yet")))
    }
}

/// Whether a file belongs to itself and not to a copy onto it.
pub(super) fn check_no_copy_pending(file: &File) -> Result<(), FileRefusal> {
    match &file.copy {
        Some(copy) if copy.status == CopyStatus::Pending => Err(FileRefusal::CopyPending),
        Some(_) | None => Ok(()),
    }
}
