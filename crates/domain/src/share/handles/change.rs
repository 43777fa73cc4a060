//! Changing properties, renaming and deleting nodes through handles.

use super::command::{BasicChange, RenameTo, SetTime};
use super::open_rules::SETTABLE;
use super::refusal::{HandleRefusal, refused};
use super::transfer::check_open;
use super::{Answer, change_events};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::share::opens::breaks::Cause;
use crate::share::opens::handle::FrozenTimes;
use crate::share::opens::watch::filter;
use crate::share::opens::{AccessMask, Claim, Handle, NodeKey, ShareMode};
use crate::share::security::Descriptor;
use crate::share::{
    Attributes, Expected, FileTimes, GetNode, Located, Node, NodeAddress, NodeProperties,
    RenameNode, ShareState, Wanted,
};
use crate::time::Timestamp;

impl Domain {
    pub async fn set_handle_basic(&self, handle: &Handle, change: &BasicChange) -> Answer<()> {
        check_open(handle)?;
        if !handle.access.contains(AccessMask::WRITE_ATTRIBUTES) {
            return Err(Failure::Refused(HandleRefusal::AccessDenied));
        }
        check_attributes(handle.is_directory, change).map_err(Failure::Refused)?;
        let frozen = {
            let mut state = handle.state.lock();
            state.frozen = freeze(state.frozen, change);
            state.frozen
        };
        self.at_place(handle, async |address| {
            self.change_node(&address, |node, stamp| {
                node.etag = stamp.etag;
                node.last_modified = stamp.now;
                node.times = set_times(node.times, change, frozen, stamp.now);
                if let Some(attributes) = change.attributes {
                    let kept = node.attributes.intersection(Attributes::SPARSE);
                    node.attributes = attributes.intersection(SETTABLE).union(kept);
                }
                Ok(())
            })
            .await
        })
        .await?;
        self.opens.reveal_written(handle.key);
        self.keep_opens(handle.key).await?;
        let heard = filter_of(change);
        if heard != 0 {
            self.tell(handle.key.share, &[change_events::set(&handle.path(), heard)]);
        }
        Ok(())
    }

    /// Sets whether the node is deleted with its last handle.
    pub async fn set_handle_disposition(&self, handle: &Handle, delete: bool) -> Answer<()> {
        check_open(handle)?;
        if !handle.access.deletes() {
            return Err(Failure::Refused(HandleRefusal::AccessDenied));
        }
        if delete {
            let node = self.node_of(handle).await?;
            let read_only = node.node.attributes.contains(Attributes::READ_ONLY);
            if (read_only && !handle.is_directory) || node.place.is_root() {
                return Err(Failure::Refused(HandleRefusal::CannotDelete));
            }
            self.opens.disturb(handle, Cause::Remove).await;
            if handle.is_directory {
                return self.mark_directory(handle, &node).await;
            }
        }
        self.opens.set_delete_pending(handle.key, delete);
        self.keep_opens(handle.key).await
    }

    /// Nothing is added to the directory between the check and the mark.
    async fn mark_directory(&self, handle: &Handle, located: &Located) -> Answer<()> {
        let sealed = self.opens.seal(handle.key).await;
        self.check_empty(&handle.share, &located.place, located.node.id).await?;
        self.opens.set_delete_pending(handle.key, true);
        drop(sealed);
        Ok(())
    }

    async fn node_of(&self, handle: &Handle) -> Answer<Located> {
        self.at_place(handle, async |address| {
            let state = ShareState::Current;
            self.get_node(&GetNode { address, state, wanted: Wanted::Any, lease_id: None }).await
        })
        .await
    }

    pub async fn rename_handle(&self, handle: &Handle, to: &RenameTo) -> Answer<()> {
        check_open(handle)?;
        if !handle.access.deletes() || handle.snapshot.is_some() {
            return Err(Failure::Refused(HandleRefusal::AccessDenied));
        }
        let from = handle.path();
        if from.components().is_empty() || to.path.components().is_empty() {
            return Err(Failure::Refused(HandleRefusal::InvalidParameter));
        }
        let share = handle.key.share;
        if handle.is_directory && self.opens.is_open_below(share, &from) {
            return Err(Failure::Refused(HandleRefusal::AccessDenied));
        }
        let expected = self.check_target(handle, to).await?;
        self.opens.disturb(handle, Cause::Remove).await;
        let renamed = self
            .at_place(handle, async |source| {
                self.rename_node(&RenameNode {
                    source,
                    destination: to.path.clone(),
                    destination_expected: expected,
                    wanted: Wanted::Any,
                    replace: to.replace,
                    ignore_read_only: false,
                    by_handle: true,
                    source_lease_id: None,
                    destination_lease_id: None,
                    properties: NodeProperties::default(),
                    metadata: None,
                    content_type: None,
                })
                .await
            })
            .await?;
        self.opens.moved(handle.key, renamed.located.place, to.path.clone());
        self.keep_opens(handle.key).await?;
        let replaced = renamed.replaced.is_some();
        self.tell(share, &change_events::renamed(&from, &to.path, handle.is_directory, replaced));
        Ok(())
    }

    /// Whether a rename to a place is allowed: no open of the directory excludes it, and what is
    /// there can be replaced. Returns what the rename then expects to find.
    async fn check_target(&self, handle: &Handle, to: &RenameTo) -> Answer<Expected> {
        let address = NodeAddress::path(handle.share.clone(), to.path.clone());
        let found = self.find_node(&address, ShareState::Current).await;
        let found = found.map_err(|failure| failure.map(refused))?;
        let share = handle.key.share;
        let parent = found.parent.as_ref().map_or(share, |parent| parent.id);
        if self.opens.is_marked_for_deletion(NodeKey { share, node: parent }) {
            return Err(Failure::Refused(HandleRefusal::DeletePending));
        }
        // As Windows does, which opens the directory with this mode while it works in it.
        let sharing = ShareMode { delete: false, ..ShareMode::ALL };
        let claim = Claim { access: AccessMask::WRITE_DATA, share: sharing };
        if self.opens.excludes(NodeKey { share, node: parent }, claim) {
            return Err(Failure::Refused(HandleRefusal::SharingViolation));
        }
        if let Some(parent) = &found.parent {
            self.check_addition(handle, parent).await?;
        }
        match found.node {
            None => Ok(Expected::Nothing),
            Some(node) if node.id == handle.key.node => Ok(Expected::Node(node.id)),
            Some(_) if !to.replace => Err(Failure::Refused(HandleRefusal::AlreadyExists)),
            Some(node) => {
                let key = NodeKey { share, node: node.id };
                if node.is_directory() || self.opens.is_open(key) {
                    return Err(Failure::Refused(HandleRefusal::AccessDenied));
                }
                self.check_replacement(handle, &node, found.parent.as_ref()).await?;
                Ok(Expected::Node(node.id))
            }
        }
    }

    pub async fn handle_descriptor(&self, handle: &Handle) -> Answer<Descriptor> {
        check_open(handle)?;
        let key = self.node_of(handle).await?.node.permission;
        let descriptor = self.descriptor(&handle.share, key).await;
        descriptor.map_err(|failure| failure.map(|_| HandleRefusal::InvalidDescriptor))
    }

    pub async fn set_handle_descriptor(
        &self,
        handle: &Handle,
        descriptor: &Descriptor,
    ) -> Answer<()> {
        check_open(handle)?;
        let needed = AccessMask::WRITE_DAC.union(AccessMask::WRITE_OWNER);
        if !handle.access.intersects(needed.union(AccessMask::ACCESS_SYSTEM_SECURITY)) {
            return Err(Failure::Refused(HandleRefusal::AccessDenied));
        }
        let key = self.permission_key(&handle.share, descriptor).await;
        let key = key.map_err(|failure| failure.map(|_| HandleRefusal::InvalidDescriptor))?;
        self.at_place(handle, async |address| {
            self.change_node(&address, |node: &mut Node, stamp| {
                node.permission = key;
                (node.etag, node.last_modified) = (stamp.etag, stamp.now);
                node.times.changed = stamp.now;
                Ok(())
            })
            .await
        })
        .await?;
        self.tell(handle.key.share, &[change_events::secured(&handle.path())]);
        Ok(())
    }
}

fn check_attributes(is_directory: bool, change: &BasicChange) -> Result<(), HandleRefusal> {
    let temporary =
        change.attributes.is_some_and(|attributes| attributes.contains(Attributes::TEMPORARY));
    let impossible = if is_directory { temporary } else { change.directory };
    if impossible { Err(HandleRefusal::InvalidParameter) } else { Ok(()) }
}

/// A time that is set stays so, whatever is done through the handle.
fn freeze(frozen: FrozenTimes, change: &BasicChange) -> FrozenTimes {
    let after = |frozen: bool, time: SetTime| match time {
        SetTime::Keep => frozen,
        SetTime::At(_) | SetTime::Freeze => true,
        SetTime::Thaw => false,
    };
    FrozenTimes {
        created: after(frozen.created, change.created),
        accessed: after(frozen.accessed, change.accessed),
        written: after(frozen.written, change.written),
        changed: after(frozen.changed, change.changed),
    }
}

fn set_times(
    times: FileTimes,
    change: &BasicChange,
    frozen: FrozenTimes,
    now: Timestamp,
) -> FileTimes {
    let after = |before: Timestamp, time: SetTime| match time {
        SetTime::At(time) => time,
        SetTime::Keep | SetTime::Freeze | SetTime::Thaw => before,
    };
    // Freezing and thawing change no time, not even this one.
    let keeps = frozen.changed || change.changed != SetTime::Keep;
    let changed = if keeps { times.changed } else { now };
    FileTimes {
        created: after(times.created, change.created),
        accessed: after(times.accessed, change.accessed),
        written: after(times.written, change.written),
        changed: after(changed, change.changed),
    }
}

fn filter_of(change: &BasicChange) -> u32 {
    let set = |time: SetTime, bit: u32| if matches!(time, SetTime::At(_)) { bit } else { 0 };
    let attributes = change.attributes.map_or(0, |_| filter::ATTRIBUTES);
    attributes
        | set(change.created, filter::CREATION)
        | set(change.accessed, filter::LAST_ACCESS)
        | set(change.written, filter::LAST_WRITE)
}
