//! Every rule of opening a node that does not depend on its other opens.

use super::command::{Action, Disposition, OpenNode};
use super::refusal::HandleRefusal;
use crate::lease::LeaseStatus;
use crate::share::opens::rest_operation::lease_permits;
use crate::share::opens::{AccessMask, CreateId, Durability};
use crate::share::{Attributes, Node, NodeAddress};
use crate::time::Timestamp;

/// The attributes that can be set; the other bits describe the kind of a node.
pub(super) const SETTABLE: Attributes = Attributes::from_bits_retain(0x2_3127);

/// The outcome of the rules of opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decided {
    pub access: AccessMask,
    pub maximal_access: AccessMask,
    pub action: Action,
}

impl Decided {
    pub fn overwrites(self) -> bool {
        match self.action {
            Action::Superseded | Action::Overwritten => true,
            Action::Opened | Action::Created => false,
        }
    }
}

impl OpenNode {
    pub(super) fn address(&self) -> NodeAddress {
        NodeAddress::path(self.share.clone(), self.path.clone()).within(self.share_number)
    }

    /// Identifies a CREATE that is sent again.
    pub(super) fn create_id(&self) -> Option<CreateId> {
        match self.durable?.kind {
            Durability::First => None,
            Durability::Second(guid) => Some(CreateId { client: self.opener.client, guid }),
        }
    }

    pub(super) fn settable_attributes(&self) -> Attributes {
        self.attributes.intersection(SETTABLE)
    }

    /// Whether it would replace the content of an existing node.
    fn wants_overwrite(&self) -> Option<Action> {
        match self.disposition {
            Disposition::Supersede => Some(Action::Superseded),
            Disposition::Overwrite | Disposition::OverwriteIf => Some(Action::Overwritten),
            Disposition::Open | Disposition::OpenIf | Disposition::Create => None,
        }
    }
}

/// Refuses requests that are invalid whatever is there.
pub(super) fn check_request(command: &OpenNode) -> Result<(), HandleRefusal> {
    let options = command.options;
    let overwrites = command.wants_overwrite().is_some();
    let contradicts = options.directory && (options.non_directory || overwrites);
    if contradicts || !command.access.is_known() {
        return Err(HandleRefusal::InvalidParameter);
    }
    if command.access.is_empty() {
        return Err(HandleRefusal::AccessDenied);
    }
    let temporary = command.attributes.contains(Attributes::TEMPORARY);
    if options.directory && temporary {
        return Err(HandleRefusal::InvalidParameter);
    }
    let deletes = command.access.specific().union(AccessMask::MAXIMUM_ALLOWED);
    let may_delete = command.access.contains(AccessMask::MAXIMUM_ALLOWED) || deletes.deletes();
    if options.delete_on_close && !may_delete {
        return Err(HandleRefusal::InvalidParameter);
    }
    Ok(())
}

/// Decides where nothing exists. `allowed` is the client's maximum access to the directory.
pub(super) fn decide_absent(
    command: &OpenNode,
    allowed: AccessMask,
) -> Result<Decided, HandleRefusal> {
    match command.disposition {
        Disposition::Open | Disposition::Overwrite => return Err(HandleRefusal::NotFound),
        Disposition::Create
        | Disposition::OpenIf
        | Disposition::OverwriteIf
        | Disposition::Supersede => {}
    }
    if command.snapshot.is_some() {
        return Err(HandleRefusal::WriteProtected);
    }
    if !allowed.contains(right_to_add(command.options.directory)) {
        return Err(HandleRefusal::AccessDenied);
    }
    let read_only = command.attributes.contains(Attributes::READ_ONLY);
    if command.options.delete_on_close && read_only {
        return Err(HandleRefusal::CannotDelete);
    }
    let maximal_access = command.allowed;
    let access = command.access.granted(maximal_access).ok_or(HandleRefusal::AccessDenied)?;
    Ok(Decided { access, maximal_access, action: Action::Created })
}

/// The right to a directory that adding to it requires.
pub(super) fn right_to_add(is_directory: bool) -> AccessMask {
    if is_directory { AccessMask::APPEND_DATA } else { AccessMask::WRITE_DATA }
}

/// Decides for an existing node. `allowed` is the client's maximum access to it.
pub(super) fn decide_existing(
    command: &OpenNode,
    node: &Node,
    allowed: AccessMask,
    now: Timestamp,
) -> Result<Decided, HandleRefusal> {
    if command.disposition == Disposition::Create {
        return Err(HandleRefusal::AlreadyExists);
    }
    let options = command.options;
    if options.directory && !node.is_directory() {
        return Err(HandleRefusal::NotDirectory);
    }
    if node.is_directory() && (options.non_directory || command.wants_overwrite().is_some()) {
        return Err(HandleRefusal::IsDirectory);
    }
    let read_only = node.attributes.contains(Attributes::READ_ONLY) && !node.is_directory();
    let maximal_access = maximal_access(command, allowed, read_only);
    let access = command.access.granted(maximal_access).ok_or(HandleRefusal::AccessDenied)?;
    if options.delete_on_close {
        if read_only || node.name.is_none() {
            return Err(HandleRefusal::CannotDelete);
        }
        if !access.deletes() {
            return Err(HandleRefusal::AccessDenied);
        }
    }
    let overwrite = command.wants_overwrite();
    if overwrite.is_some() {
        check_overwrite(command, node, maximal_access)?;
    }
    let needed = if overwrite.is_some() { AccessMask::WRITE_DATA } else { AccessMask::empty() };
    let lease = node.file().map_or(LeaseStatus::Unlocked, |file| file.lease.status(now));
    if !lease_permits(lease, access.union(needed)) {
        return Err(HandleRefusal::SharingViolation);
    }
    let action = overwrite.unwrap_or(Action::Opened);
    Ok(Decided { access, maximal_access, action })
}

fn maximal_access(command: &OpenNode, allowed: AccessMask, read_only: bool) -> AccessMask {
    let read = AccessMask::GENERIC_READ.union(AccessMask::GENERIC_EXECUTE).specific();
    if command.snapshot.is_some() {
        return allowed.intersection(read);
    }
    let writes = AccessMask::WRITE_DATA.union(AccessMask::APPEND_DATA);
    if read_only { allowed.difference(writes) } else { allowed }
}

/// A hidden or system file is only replaced by a request that gives the same attributes.
fn check_overwrite(
    command: &OpenNode,
    node: &Node,
    maximal_access: AccessMask,
) -> Result<(), HandleRefusal> {
    let unsaid = |attribute: Attributes| {
        node.attributes.contains(attribute) && !command.attributes.contains(attribute)
    };
    let writable = maximal_access.contains(AccessMask::WRITE_DATA);
    if !writable || unsaid(Attributes::HIDDEN) || unsaid(Attributes::SYSTEM) {
        return Err(HandleRefusal::AccessDenied);
    }
    Ok(())
}
