//! Every rule of opening a node that does not depend on who else has it open.

use super::command::{Action, Disposition, OpenNode};
use super::refusal::HandleRefusal;
use crate::lease::LeaseStatus;
use crate::share::opens::rest_operation::lease_permits;
use crate::share::opens::{AccessMask, CreateId, Durability};
use crate::share::{Attributes, Node, NodeAddress};
use crate::time::Timestamp;

/// What can be set; the rest of the bits tell what a node is.
pub(super) const SETTABLE: Attributes = Attributes::from_bits_retain(0x2_3127);

/// What opening comes to.
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

    /// By which a CREATE is known if it comes again.
    pub(super) fn create_id(&self) -> Option<CreateId> {
        match self.durable?.kind {
            Durability::First => None,
            Durability::Second(guid) => Some(CreateId { client: self.opener.client, guid }),
        }
    }

    pub(super) fn settable_attributes(&self) -> Attributes {
        self.attributes.intersection(SETTABLE)
    }

    /// Whether it would replace the content of what is there.
    fn wants_overwrite(&self) -> Option<Action> {
        match self.disposition {
            Disposition::Supersede => Some(Action::Superseded),
            Disposition::Overwrite | Disposition::OverwriteIf => Some(Action::Overwritten),
            Disposition::Open | Disposition::OpenIf | Disposition::Create => None,
        }
    }
}

/// Requests that make no sense whatever is there.
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

/// Nothing is there. `allowed` is what the client may have of the directory.
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

/// What it takes of a directory to put something into it.
pub(super) fn right_to_add(is_directory: bool) -> AccessMask {
    if is_directory { AccessMask::APPEND_DATA } else { AccessMask::WRITE_DATA }
}

/// What to do with a node that is there. `allowed` is what the client may have of it.
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

/// What is hidden, or of the system, is only replaced by somebody who says that it is.
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
