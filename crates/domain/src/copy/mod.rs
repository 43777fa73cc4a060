//! Copies onto blobs and files: the state of a copy, and of a source that is not on this server.

mod failure;
mod fetching;

pub use failure::{CopyFailure, SourceFailure, SourceReason};
pub(crate) use fetching::CopyPlaces;
pub use fetching::{CopyDestination, RemoteBytes, RemoteSource};

use serde::{Deserialize, Serialize};

use crate::condition::SequenceNumber;
use crate::content::{ContentHeaders, Received};
use crate::metadata::Metadata;
use crate::time::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyState {
    pub id: String,
    /// As the client named it, without its signature.
    pub source: String,
    pub status: CopyStatus,
    pub bytes_copied: u64,
    pub bytes_total: u64,
    pub completed: Option<Timestamp>,
    /// Why it failed.
    pub failure: Option<CopyFailure>,
    /// For a blob that is written by incremental copies only: its last finished snapshot.
    pub incremental: Option<Incremental>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyStatus {
    Pending,
    Success,
    Aborted,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incremental {
    /// The snapshot of the source that was copied last.
    pub source_snapshot: Timestamp,
    pub destination_snapshot: Option<Timestamp>,
}

#[derive(Clone, Debug)]
pub struct SourceElsewhere {
    pub kind: SourceKind,
    pub length: u64,
    pub headers: ContentHeaders,
    pub metadata: Metadata,
}

/// The kind of a blob, as far as another server tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    Block,
    Page(SequenceNumber),
    Append,
}

/// How a copy ends.
pub enum CopyEnd {
    Fetched(Received),
    Failed(CopyFailure),
}
