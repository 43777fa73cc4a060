//! What a lease means for every operation other than the lease actions.

use super::{DurationKind, Lease, LeaseId, LeaseKind, LeaseState, LeaseStatus};
use crate::time::Timestamp;

/// What an operation does to the leased resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads, and Snapshot Blob. No lease id is needed, but if one is given it must match.
    Read,
    /// Changes the resource: a blob's content, properties or metadata, a file, the properties,
    /// metadata or access policy of a container or share.
    Write,
    /// Needs what a write needs, but leaves the blob unmodified: Put Block, Set Blob Tags, Set Blob
    /// Tier.
    WriteBeside,
    Delete,
    /// Copy Blob onto the resource, which continues after the request. (Copy Blob From URL is
    /// complete when it is answered, and a [`Access::Write`].)
    CopyOnto,
    /// Abort Copy Blob, guarded only by an infinite lease.
    AbortCopy,
}

/// The lease after a successful operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAfter {
    Kept,
    /// The lease has ended before and is now forgotten: [`Lease::default`] is stored.
    Available,
}

impl LeaseAfter {
    /// The lease to store with the changed resource.
    pub fn apply(self, lease: &Lease) -> Lease {
        match self {
            Self::Kept => lease.clone(),
            Self::Available => Lease::default(),
        }
    }
}

/// Why an operation is refused. All are 412: the reference's outcome tables say 409 for a wrong id,
/// but its list of codes and the clients say 412.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessRefusal {
    #[error("there is a lease and no lease id was given")]
    IdMissing,
    #[error("the lease id is not that of the lease")]
    IdMismatch,
    #[error("a lease id was given and there is no lease")]
    NotPresent,
    /// The list of codes has its own code for this; Azurite answers as if there had been no lease,
    /// and clients handle both the same way.
    #[error("the lease of this id has expired")]
    Lost,
    #[error("a pending copy needs a lease without an end")]
    InfiniteDurationRequired,
}

/// Whether an operation is allowed under this lease, and the lease after it.
///
/// Not for listings, copy sources and whatever is inside a leased container, directory or share:
/// leases do not guard them.
pub fn check_access(
    lease: &Lease,
    access: Access,
    given: Option<LeaseId>,
    kind: LeaseKind,
    now: Timestamp,
) -> Result<LeaseAfter, AccessRefusal> {
    match (lease.status(now), given) {
        (LeaseStatus::Unlocked, Some(given)) => {
            let expired = lease.state(now) == LeaseState::Expired && Some(given) == lease.id();
            return Err(if expired { AccessRefusal::Lost } else { AccessRefusal::NotPresent });
        }
        (LeaseStatus::Unlocked, None) => return Ok(after_end(lease, access, kind, now)),
        (LeaseStatus::Locked, Some(given)) if Some(given) != lease.id() => {
            return Err(AccessRefusal::IdMismatch);
        }
        (LeaseStatus::Locked, None) if needs_id(lease, access, kind, now) => {
            return Err(AccessRefusal::IdMissing);
        }
        (LeaseStatus::Locked, Some(_) | None) => {}
    }
    if access == Access::CopyOnto && !is_infinite(lease, now) {
        return Err(AccessRefusal::InfiniteDurationRequired);
    }
    Ok(LeaseAfter::Kept)
}

fn needs_id(lease: &Lease, access: Access, kind: LeaseKind, now: Timestamp) -> bool {
    // The reference's text says that every set operation on a leased share needs the id, its table
    // that none does; a lease that guards less than the text promises is the worse error.
    let guards_writes = match kind {
        LeaseKind::Blob | LeaseKind::File | LeaseKind::Share => true,
        LeaseKind::Container => false,
    };
    match access {
        Access::Read => false,
        Access::Delete => true,
        Access::Write | Access::WriteBeside | Access::CopyOnto => guards_writes,
        Access::AbortCopy => is_infinite(lease, now),
    }
}

fn is_infinite(lease: &Lease, now: Timestamp) -> bool {
    lease.duration_kind(now) == Some(DurationKind::Infinite)
}

/// Modifying a blob removes an ended lease on it. Elsewhere an expired lease stays renewable until
/// another replaces it.
fn after_end(lease: &Lease, access: Access, kind: LeaseKind, now: Timestamp) -> LeaseAfter {
    let modifies = match access {
        Access::Write | Access::CopyOnto | Access::Delete => true,
        Access::Read | Access::WriteBeside | Access::AbortCopy => false,
    };
    let ended = lease.state(now) != LeaseState::Available;
    match kind {
        LeaseKind::Blob if modifies && ended => LeaseAfter::Available,
        LeaseKind::Blob | LeaseKind::Container | LeaseKind::Share | LeaseKind::File => {
            LeaseAfter::Kept
        }
    }
}

/// A lease id given for something that is not there.
pub fn check_absent(given: Option<LeaseId>) -> Result<(), AccessRefusal> {
    match given {
        Some(_) => Err(AccessRefusal::NotPresent),
        None => Ok(()),
    }
}
