//! The properties of a node beside its content, and how changes update them.

use super::{Attributes, FileTimes, Node, PermissionKey, PosixProperties, Protocol};
use crate::domain::Stamp;
use crate::time::Timestamp;

/// Properties given by a request; the others get the defaults of the operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeProperties {
    /// By default a new file has [`Attributes::ARCHIVE`], and a new directory none.
    pub attributes: Option<Attributes>,
    pub created: Option<TimeChange>,
    pub written: Option<TimeChange>,
    pub changed: Option<TimeChange>,
    /// By default the one inherited from the directory.
    pub permission: Option<PermissionKey>,
    /// For NFS shares; ignored elsewhere.
    pub mode: Option<u16>,
    pub owner: Option<u32>,
    pub group: Option<u32>,
}

/// `x-ms-file-creation-time` and its like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeChange {
    Now,
    At(Timestamp),
    /// A new node has nothing to preserve: its time is now.
    Preserve,
}

impl TimeChange {
    pub(super) fn apply(self, before: Timestamp, now: Timestamp) -> Timestamp {
        match self {
            Self::Now => now,
            Self::At(time) => time,
            Self::Preserve => before,
        }
    }
}

/// What a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// The bytes, or their number.
    Data,
    /// Anything else that a client sees.
    Properties,
}

/// The stamp that every change leaves on a node.
pub(crate) fn touch(node: &mut Node, touch: Touch, stamp: Stamp) {
    node.etag = stamp.etag;
    node.last_modified = stamp.now;
    node.times.changed = stamp.now;
    match touch {
        Touch::Data => node.times.written = stamp.now,
        Touch::Properties => {}
    }
}

impl NodeProperties {
    /// The times of something new.
    pub(super) fn new_times(&self, now: Timestamp) -> FileTimes {
        let time = |change: Option<TimeChange>| change.map_or(now, |change| change.apply(now, now));
        FileTimes {
            created: time(self.created),
            written: time(self.written),
            changed: time(self.changed),
            accessed: now,
        }
    }

    /// For a new node in a share of this protocol.
    pub(super) fn new_posix(
        &self,
        protocol: Protocol,
        is_directory: bool,
    ) -> Option<PosixProperties> {
        let (mode, links) = if is_directory { (0o775, 2) } else { (0o664, 1) };
        (protocol == Protocol::Nfs).then(|| PosixProperties {
            mode: self.mode.unwrap_or(mode),
            owner: self.owner.unwrap_or_default(),
            group: self.group.unwrap_or_default(),
            links,
        })
    }

    /// Sets what is given, after the stamp of the change, so that given times prevail.
    pub(super) fn apply(&self, node: &mut Node, before: FileTimes, now: Timestamp) {
        if let Some(attributes) = self.attributes {
            node.attributes = attributes;
        }
        let set = |time: &mut Timestamp, before: Timestamp, change: Option<TimeChange>| {
            if let Some(change) = change {
                *time = change.apply(before, now);
            }
        };
        set(&mut node.times.created, before.created, self.created);
        set(&mut node.times.written, before.written, self.written);
        set(&mut node.times.changed, before.changed, self.changed);
        if let Some(permission) = self.permission {
            node.permission = permission;
        }
        if let Some(posix) = &mut node.posix {
            posix.mode = self.mode.unwrap_or(posix.mode);
            posix.owner = self.owner.unwrap_or(posix.owner);
            posix.group = self.group.unwrap_or(posix.group);
        }
    }
}
