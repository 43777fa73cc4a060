//! Notifications to clients that watch directories, for changes by either protocol.

use super::opens::watch::{ChangeAction, ChangeEvent, filter};
use super::{At, Node, NodeAddress, NodeProperties, RenameNode, SetNodeProperties, TimeChange};
use crate::domain::Domain;
use crate::names::{FilePath, PathComponent};

/// Metadata and the headers of a file are to SMB what extended attributes are.
const METADATA: u32 = filter::ATTRIBUTES | filter::EXTENDED_ATTRIBUTES;
const CONTENT: u32 = filter::SIZE | filter::LAST_WRITE;

impl Domain {
    pub(super) fn tell(&self, share: u64, change_events: &[ChangeEvent]) {
        self.opens.tell(share, change_events);
    }
}

fn modified(path: &FilePath, filter: u32) -> ChangeEvent {
    ChangeEvent { path: path.clone(), action: ChangeAction::Modified, filter }
}

/// It was added, removed or renamed.
pub(super) fn named(path: &FilePath, is_directory: bool, action: ChangeAction) -> ChangeEvent {
    let filter = if is_directory { filter::DIRECTORY_NAME } else { filter::FILE_NAME };
    ChangeEvent { path: path.clone(), action, filter }
}

pub(super) fn written(path: &FilePath) -> ChangeEvent {
    modified(path, CONTENT)
}

pub(super) fn set(path: &FilePath, filter: u32) -> ChangeEvent {
    modified(path, filter)
}

pub(super) fn secured(path: &FilePath) -> ChangeEvent {
    modified(path, filter::SECURITY)
}

/// A node was renamed, possibly to another directory and replacing a file.
pub(super) fn renamed(
    from: &FilePath,
    to: &FilePath,
    is_directory: bool,
    replaced: bool,
) -> Vec<ChangeEvent> {
    let named = |path, action| named(path, is_directory, action);
    let gone = replaced.then(|| named(to, ChangeAction::Removed));
    let (old, new) = if from.parent() == to.parent() {
        (ChangeAction::RenamedFrom, ChangeAction::RenamedTo)
    } else {
        (ChangeAction::Removed, ChangeAction::Added)
    };
    gone.into_iter().chain([named(from, old), named(to, new)]).collect()
}

/// The properties that a rename has set.
pub(super) fn set_by_rename(command: &RenameNode) -> Option<ChangeEvent> {
    let has_metadata = command.metadata.is_some() || command.content_type.is_some();
    let heard = given(&command.properties) | if has_metadata { METADATA } else { 0 };
    (heard != 0).then(|| modified(&command.destination, heard))
}

/// The node that a REST call changes.
pub struct ChangedNode<'a> {
    /// With its name as it is stored.
    path: FilePath,
    /// What was there before.
    before: Option<&'a Node>,
}

impl<'a> ChangedNode<'a> {
    /// `None` if only a place is known: watchers need paths.
    pub(super) fn of(
        address: &NodeAddress,
        before: Option<&'a Node>,
        name: Option<&PathComponent>,
    ) -> Option<Self> {
        match &address.at {
            At::Path(path) => Some(Self { path: path.with_last(name), before }),
            At::Place(_) => None,
        }
    }

    pub(super) fn created_directory(&self) -> Vec<ChangeEvent> {
        vec![named(&self.path, true, ChangeAction::Added)]
    }

    pub(super) fn created_link(&self) -> Vec<ChangeEvent> {
        vec![named(&self.path, false, ChangeAction::Added)]
    }

    /// Created, or replaced in all that it was.
    pub(super) fn created_file(&self, after: &Node) -> Vec<ChangeEvent> {
        let path = self.path.with_last(after.name.as_ref());
        match self.before {
            Some(before) => vec![modified(&path, CONTENT | differences(before, after))],
            None => {
                let bytes = (after.length() > 0).then(|| written(&path));
                let added = named(&path, false, ChangeAction::Added);
                [added].into_iter().chain(bytes).collect()
            }
        }
    }

    pub(super) fn written(&self) -> Vec<ChangeEvent> {
        vec![written(&self.path)]
    }

    pub(super) fn set(&self, command: &SetNodeProperties, after: &Node) -> Vec<ChangeEvent> {
        let headers = if command.headers.is_some() { METADATA } else { 0 };
        let length = if command.length.is_some() { CONTENT } else { 0 };
        let differences = self.before.map_or(0, |before| differences(before, after));
        let heard = headers | length | differences | given(&command.properties);
        if heard == 0 { Vec::new() } else { vec![modified(&self.path, heard)] }
    }

    pub(super) fn set_metadata(&self) -> Vec<ChangeEvent> {
        vec![modified(&self.path, METADATA)]
    }

    pub(super) fn deleted(&self) -> Vec<ChangeEvent> {
        let is_directory = self.before.is_some_and(Node::is_directory);
        vec![named(&self.path, is_directory, ChangeAction::Removed)]
    }
}

/// The filter bits for setting such properties.
fn given(properties: &NodeProperties) -> u32 {
    let bit = |is_given: bool, bit: u32| if is_given { bit } else { 0 };
    let time =
        |change: Option<TimeChange>| matches!(change, Some(TimeChange::Now | TimeChange::At(_)));
    bit(properties.attributes.is_some(), filter::ATTRIBUTES)
        | bit(time(properties.created), filter::CREATION)
        | bit(time(properties.written), filter::LAST_WRITE)
        | bit(properties.permission.is_some(), filter::SECURITY)
}

fn differences(before: &Node, after: &Node) -> u32 {
    let bit = |is_other: bool, bit: u32| if is_other { bit } else { 0 };
    let (was, is) = (&before.times, &after.times);
    let headers = |node: &Node| node.file().map(|file| file.headers.clone());
    bit(before.attributes != after.attributes, filter::ATTRIBUTES)
        | bit(before.length() != after.length(), filter::SIZE)
        | bit(was.written != is.written, filter::LAST_WRITE)
        | bit(was.accessed != is.accessed, filter::LAST_ACCESS)
        | bit(was.created != is.created, filter::CREATION)
        | bit(before.permission != after.permission, filter::SECURITY)
        | bit(before.metadata != after.metadata, METADATA)
        | bit(headers(before) != headers(after), METADATA)
}
