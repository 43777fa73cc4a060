//! Shares, their directories and files: one set of rules for File REST and SMB
//! (`docs/design/0006-files.md`).
//!
//! Each operation on a node names it by a [`NodeAddress`]: a path, or a place and a number that were
//! found before. A caller that does something between finding a node and changing it (waiting until
//! others release it) looks it up, does that, and then names the node that it found as expected.

mod address;

mod change_events;
mod copy;
mod directory;
mod file;
mod garbage;
pub mod handles;
mod lease;
mod link;
mod list;
mod model;
mod node;
pub mod opens;

mod pending_copy;
mod properties;
mod range;
mod refusal;
mod rename;
mod rest_call;
mod rows;
mod seed;
mod tree;

pub use address::{At, Expected, NodeAddress, Place, ShareState};
pub use change_events::ChangedNode;
pub use copy::{CopiedProperties, CopyFile, FileCopyRefusal, FileCopySource, FromSource};
pub use directory::{CreateDirectory, DirectoryPage, ListDirectory};
pub use file::{CreateFile, FILE_BYTES_MAX, FileDownload};
pub use lease::LeaseFile;
pub use link::{CreateHardLink, CreateSymbolicLink};
pub use rest_call::{FoundHandles, GetFile, RestCall};
mod deleted_share;
mod lifecycle;
mod list_shares;
mod permission;
pub mod security;
mod snapshot;
mod usage;

pub(crate) use deleted_share::purge_share;
pub use deleted_share::{DeleteShare, DeletedShare, RestoreShare, WithSnapshots};
pub use lifecycle::{
    CreateShare, LeaseShare, QUOTA_GIB_DEFAULT, QUOTA_GIB_MAX, SetShareAcl, SetShareMetadata,
    SetShareProperties, ShareRefusal, ShareSettings,
};
pub use list_shares::{ListShares, ListedShare, ListedState, ShareListing, ShareMarker};
pub use model::{
    AccessTier, Attributes, Directory, File, FileCopy, FileHeaders, FileTimes, LinkTarget, Node,
    NodeKind, PaidBursting, PermissionKey, PosixProperties, Protocol, Provisioned, RootSquash,
    Share, SharePath, TierChange,
};
pub use node::{DeleteNode, DeletedNode, GetNode, SetNodeMetadata, SetNodeProperties, Wanted};
pub use pending_copy::AbortFileCopy;
pub(crate) use pending_copy::fail_interrupted;
pub use permission::PermissionRefusal;
pub use properties::{NodeProperties, TimeChange};
pub use range::{
    FileRanges, ListRanges, PUT_RANGE_BYTES_MAX, PastEnd, PutRange, RANGE_BYTES, RangeChange,
    WriteAt,
};
pub use refusal::FileRefusal;
pub use rename::{RenameNode, Renamed};
pub(crate) use rows::{NODE, condemned_shares, condemned_snapshots, is_node};
pub use snapshot::{SNAPSHOTS_MAX, SnapshotShare};
pub use tree::Located;
pub(crate) use usage::LiveShares;
