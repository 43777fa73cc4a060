//! Leases on blobs, containers, shares and files: what is stored, and the rules by which it changes
//! and guards.
//!
//! Time is passed in: when a lease expires its [`LeaseState`] changes, not what is stored. Not
//! supported: leases as they were before 2012-02-12 (renewable and breakable after release).

mod access;
mod action;
mod id;

pub use access::{Access, AccessRefusal, LeaseAfter, check_absent, check_access};
pub use action::{
    BreakPeriod, Decided, LeaseAction, LeaseDuration, LeaseOutcome, LeaseRefusal, decide,
};
pub use id::LeaseId;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// What a lease is on; the rules differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseKind {
    Blob,
    Container,
    Share,
    File,
}

/// A lease as it is stored with what it is on. By default there is none.
///
/// An expired lease on a blob can be renewed only if the blob has not been modified since. That
/// needs no record of modifications: each stores the lease that [`check_access`] returns, which for
/// an expired lease on a blob is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease(Stored);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Stored {
    #[default]
    Available,
    /// Expired, once `until` has come.
    Leased {
        id: LeaseId,
        duration: LeaseDuration,
        until: Option<Timestamp>,
    },
    /// Broken, once `until` has come.
    Breaking {
        id: LeaseId,
        until: Timestamp,
    },
    Broken {
        id: LeaseId,
    },
}

/// `x-ms-lease-state`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    Available,
    Leased,
    Breaking,
    Broken,
    Expired,
}

/// `x-ms-lease-status`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStatus {
    Locked,
    Unlocked,
}

/// `x-ms-lease-duration`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurationKind {
    Infinite,
    Fixed,
}

impl Lease {
    pub fn state(&self, now: Timestamp) -> LeaseState {
        match &self.0 {
            Stored::Available => LeaseState::Available,
            Stored::Leased { until: Some(until), .. } if *until <= now => LeaseState::Expired,
            Stored::Leased { .. } => LeaseState::Leased,
            Stored::Breaking { until, .. } if *until <= now => LeaseState::Broken,
            Stored::Breaking { .. } => LeaseState::Breaking,
            Stored::Broken { .. } => LeaseState::Broken,
        }
    }

    pub fn status(&self, now: Timestamp) -> LeaseStatus {
        match self.state(now) {
            LeaseState::Leased | LeaseState::Breaking => LeaseStatus::Locked,
            LeaseState::Available | LeaseState::Broken | LeaseState::Expired => {
                LeaseStatus::Unlocked
            }
        }
    }

    /// Only while leased.
    pub fn duration_kind(&self, now: Timestamp) -> Option<DurationKind> {
        match (&self.0, self.state(now)) {
            (Stored::Leased { until: None, .. }, LeaseState::Leased) => {
                Some(DurationKind::Infinite)
            }
            (Stored::Leased { until: Some(_), .. }, LeaseState::Leased) => {
                Some(DurationKind::Fixed)
            }
            (
                Stored::Available
                | Stored::Leased { .. }
                | Stored::Breaking { .. }
                | Stored::Broken { .. },
                _,
            ) => None,
        }
    }

    /// Kept after the lease has ended, until it is released or replaced.
    pub fn id(&self) -> Option<LeaseId> {
        match &self.0 {
            Stored::Available => None,
            Stored::Leased { id, .. } | Stored::Breaking { id, .. } | Stored::Broken { id } => {
                Some(*id)
            }
        }
    }

    /// The lease on a path after Path Create has replaced it.
    #[must_use]
    pub fn broken_by_replacement(&self) -> Self {
        self.id().map_or_else(Self::default, |id| Self(Stored::Broken { id }))
    }
}

#[cfg(test)]
mod tests;
