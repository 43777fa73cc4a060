//! What a lease means for every operation other than the lease actions.

use super::{Lease, LeaseDuration, LeaseId, LeaseKind, LeaseState, LeaseStatus, Stored};
use crate::time::Timestamp;

/// What an operation does to the leased resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads, and Snapshot Blob. A lease id is not needed, but if given it must be right.
    Read,
    /// Changes the resource: a blob's content, properties or metadata, a file, the properties,
    /// metadata or access policy of a container or share.
    Write,
    /// Needs what a write needs, but leaves the blob unmodified: Put Block, Set Blob Tags, Set Blob
    /// Tier.
    WriteBeside,
    Delete,
    /// Copy Blob onto the resource, which goes on after the request. (Copy Blob From URL is done
    /// when it is answered, and a [`Access::Write`].)
    CopyOnto,
    /// Abort Copy Blob, guarded only by an infinite lease.
    AbortCopy,
}

/// What a successful operation leaves of the lease.
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

/// Why an operation does not go on. All are 412: the reference's outcome tables say 409 for a wrong
/// id, but its list of codes and the clients say 412.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessRefusal {
    #[error("there is a lease and no lease id was given")]
    IdMissing,
    #[error("the lease id is not that of the lease")]
    IdMismatch,
    /// Also when the lease has ended: what the service calls `LeaseLost` in places, Azurite
    /// answers as this, which the clients handle alike.
    #[error("a lease id was given and there is no lease")]
    NotPresent,
    #[error("a copy cannot go on under a lease that ends")]
    InfiniteDurationRequired,
}

/// Whether an operation may go on under this lease, and what it leaves of it.
///
/// Listings, copy sources and everything about what is inside a leased container, directory or
/// share do not come here: leases do not guard them.
pub fn check_access(
    lease: &Lease,
    access: Access,
    given: Option<LeaseId>,
    kind: LeaseKind,
    now: Timestamp,
) -> Result<LeaseAfter, AccessRefusal> {
    let state = lease.state(now);
    match (lease.status(now), given) {
        (LeaseStatus::Unlocked, Some(_)) => return Err(AccessRefusal::NotPresent),
        (LeaseStatus::Unlocked, None) => {}
        (LeaseStatus::Locked, Some(given)) if Some(given) != lease.id() => {
            return Err(AccessRefusal::IdMismatch);
        }
        (LeaseStatus::Locked, Some(_)) => {}
        (LeaseStatus::Locked, None) if needs_id(lease, access, kind) => {
            return Err(AccessRefusal::IdMissing);
        }
        (LeaseStatus::Locked, None) => {}
    }
    let ends = match &lease.0 {
        Stored::Leased { duration, .. } => *duration != LeaseDuration::INFINITE,
        Stored::Available | Stored::Breaking { .. } | Stored::Broken { .. } => true,
    };
    if access == Access::CopyOnto && lease.status(now) == LeaseStatus::Locked && ends {
        return Err(AccessRefusal::InfiniteDurationRequired);
    }
    Ok(after(state, access, kind))
}

fn needs_id(lease: &Lease, access: Access, kind: LeaseKind) -> bool {
    // The reference's text says that every set operation on a leased share needs the id, its table
    // that none does; a lease that guards less than its text promises is the worse error.
    let guards_writes = match kind {
        LeaseKind::Blob | LeaseKind::File | LeaseKind::Share => true,
        LeaseKind::Container => false,
    };
    match access {
        Access::Read => false,
        Access::Delete => true,
        Access::Write | Access::WriteBeside | Access::CopyOnto => guards_writes,
        Access::AbortCopy => match &lease.0 {
            Stored::Leased { until, .. } => until.is_none(),
            Stored::Available | Stored::Breaking { .. } | Stored::Broken { .. } => false,
        },
    }
}

fn after(state: LeaseState, access: Access, kind: LeaseKind) -> LeaseAfter {
    let modifies = match access {
        Access::Write | Access::CopyOnto | Access::Delete => true,
        Access::Read | Access::WriteBeside | Access::AbortCopy => false,
    };
    match (kind, state) {
        (LeaseKind::Blob, LeaseState::Broken | LeaseState::Expired) if modifies => {
            LeaseAfter::Available
        }
        (LeaseKind::Blob | LeaseKind::Container | LeaseKind::Share | LeaseKind::File, _) => {
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
