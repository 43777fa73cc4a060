//! Shares, their directories and files: one set of rules for File REST and SMB
//! (`docs/design/0006-files.md`).

mod model;
mod rows;

pub use model::{
    AccessTier, Attributes, Directory, File, FileCopy, FileHeaders, FileTimes, LinkTarget, Node,
    NodeKind, PermissionKey, PosixProperties, Protocol, RootSquash, Share, SharePath,
};
