//! The five lease actions.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Lease, LeaseId, LeaseKind, LeaseState, Stored};
use crate::time::Timestamp;

/// 15 to 60 seconds, or infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseDuration(Option<u8>);

impl LeaseDuration {
    pub const INFINITE: Self = Self(None);

    /// -1 is infinite, the only duration of a lease on a file.
    pub fn parse(seconds: i64, kind: LeaseKind) -> Option<Self> {
        match (seconds, kind) {
            (-1, _) => Some(Self::INFINITE),
            (15..=60, LeaseKind::Blob | LeaseKind::Container | LeaseKind::Share) => {
                u8::try_from(seconds).ok().map(|seconds| Self(Some(seconds)))
            }
            (_, _) => None,
        }
    }

    fn end(self, now: Timestamp) -> Option<Timestamp> {
        self.0.map(|seconds| now.plus(Duration::from_secs(seconds.into())))
    }
}

/// 0 to 60 seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakPeriod(u8);

impl BreakPeriod {
    pub const NONE: Self = Self(0);

    pub fn parse(seconds: i64) -> Option<Self> {
        u8::try_from(seconds).ok().filter(|seconds| *seconds <= 60).map(Self)
    }

    fn end(self, now: Timestamp) -> Timestamp {
        now.plus(Duration::from_secs(self.0.into()))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAction {
    Acquire {
        proposed: Option<LeaseId>,
        duration: LeaseDuration,
    },
    Renew {
        id: LeaseId,
    },
    Change {
        id: LeaseId,
        proposed: LeaseId,
    },
    Release {
        id: LeaseId,
    },
    /// A lease on a file breaks at once, whatever the period.
    Break {
        period: Option<BreakPeriod>,
    },
    /// As it was before 2012-02-12: without a period, and not twice.
    BreakOnce,
}

/// The lease after an action, and the outcome that the answer reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    pub lease: Lease,
    pub outcome: LeaseOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseOutcome {
    Acquired(LeaseId),
    Renewed(LeaseId),
    Changed(LeaseId),
    Released,
    /// Seconds until the lease is broken, rounded up, so that it is broken after that time.
    Broken {
        remaining_seconds: u64,
    },
}

/// Why an action does not happen; each is an error code of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseRefusal {
    #[error("there is already a lease")]
    AlreadyPresent,
    #[error("the lease is breaking and cannot be acquired until it is broken")]
    BreakingCannotBeAcquired,
    #[error("the lease is breaking and cannot be changed")]
    BreakingCannotBeChanged,
    #[error("the lease is broken and cannot be renewed")]
    BrokenCannotBeRenewed,
    #[error("the lease id is not that of the lease")]
    IdMismatch,
    #[error("there is no lease")]
    NotPresent,
    #[error("a lease on a file cannot be renewed")]
    RenewNotSupported,
    #[error("the lease is broken already, or about to be")]
    AlreadyBroken,
}

/// Every rule of the lease actions. `fresh_id` is the id for an acquire that proposes none.
///
/// Whether the resource can take lease actions at all (it is there, it is no snapshot, no copy onto
/// it is pending) is decided before.
pub fn decide(
    lease: &Lease,
    action: LeaseAction,
    kind: LeaseKind,
    fresh_id: LeaseId,
    now: Timestamp,
) -> Result<Decided, LeaseRefusal> {
    match action {
        LeaseAction::Acquire { proposed, duration } => {
            acquire(lease, proposed, duration, fresh_id, now)
        }
        LeaseAction::Renew { id } => renew(lease, id, kind, now),
        LeaseAction::Change { id, proposed } => change(lease, id, proposed, now),
        LeaseAction::Release { id } => release(lease, id),
        LeaseAction::Break { period } => match kind {
            LeaseKind::File => break_lease(lease, Some(BreakPeriod::NONE), now),
            LeaseKind::Blob | LeaseKind::Container | LeaseKind::Share => {
                break_lease(lease, period, now)
            }
        },
        LeaseAction::BreakOnce => match lease.state(now) {
            LeaseState::Breaking | LeaseState::Broken => Err(LeaseRefusal::AlreadyBroken),
            LeaseState::Available | LeaseState::Leased | LeaseState::Expired => {
                break_lease(lease, None, now)
            }
        },
    }
}

fn acquire(
    lease: &Lease,
    proposed: Option<LeaseId>,
    duration: LeaseDuration,
    fresh_id: LeaseId,
    now: Timestamp,
) -> Result<Decided, LeaseRefusal> {
    let same = proposed.is_some() && proposed == lease.id();
    match lease.state(now) {
        LeaseState::Leased if !same => return Err(LeaseRefusal::AlreadyPresent),
        LeaseState::Breaking if same => return Err(LeaseRefusal::BreakingCannotBeAcquired),
        LeaseState::Breaking => return Err(LeaseRefusal::AlreadyPresent),
        LeaseState::Leased | LeaseState::Available | LeaseState::Broken | LeaseState::Expired => {}
    }
    let id = proposed.unwrap_or(fresh_id);
    let lease = Lease(Stored::Leased { id, duration, until: duration.end(now) });
    Ok(Decided { lease, outcome: LeaseOutcome::Acquired(id) })
}

fn renew(
    lease: &Lease,
    id: LeaseId,
    kind: LeaseKind,
    now: Timestamp,
) -> Result<Decided, LeaseRefusal> {
    match kind {
        LeaseKind::File => return Err(LeaseRefusal::RenewNotSupported),
        LeaseKind::Blob | LeaseKind::Container | LeaseKind::Share => {}
    }
    if lease.id() != Some(id) {
        return Err(LeaseRefusal::IdMismatch);
    }
    match &lease.0 {
        // Leased or expired: an expired lease that cannot be renewed is no longer stored.
        Stored::Leased { duration, .. } => {
            let duration = *duration;
            let lease = Lease(Stored::Leased { id, duration, until: duration.end(now) });
            Ok(Decided { lease, outcome: LeaseOutcome::Renewed(id) })
        }
        Stored::Breaking { .. } | Stored::Broken { .. } => Err(LeaseRefusal::BrokenCannotBeRenewed),
        Stored::Available => Err(LeaseRefusal::IdMismatch),
    }
}

fn change(
    lease: &Lease,
    id: LeaseId,
    proposed: LeaseId,
    now: Timestamp,
) -> Result<Decided, LeaseRefusal> {
    match (&lease.0, lease.state(now)) {
        (Stored::Leased { id: held, duration, until }, LeaseState::Leased) => {
            // A client that repeats its change, not knowing that it happened, gets what it asked.
            if id != *held && proposed != *held {
                return Err(LeaseRefusal::IdMismatch);
            }
            let (duration, until) = (*duration, *until);
            let lease = Lease(Stored::Leased { id: proposed, duration, until });
            Ok(Decided { lease, outcome: LeaseOutcome::Changed(proposed) })
        }
        (Stored::Breaking { id: held, .. }, LeaseState::Breaking) => {
            let own = id == *held;
            Err(if own { LeaseRefusal::BreakingCannotBeChanged } else { LeaseRefusal::IdMismatch })
        }
        (
            Stored::Available
            | Stored::Leased { .. }
            | Stored::Breaking { .. }
            | Stored::Broken { .. },
            _,
        ) => Err(LeaseRefusal::NotPresent),
    }
}

fn release(lease: &Lease, id: LeaseId) -> Result<Decided, LeaseRefusal> {
    if lease.id() != Some(id) {
        return Err(LeaseRefusal::IdMismatch);
    }
    Ok(Decided { lease: Lease::default(), outcome: LeaseOutcome::Released })
}

fn break_lease(
    lease: &Lease,
    period: Option<BreakPeriod>,
    now: Timestamp,
) -> Result<Decided, LeaseRefusal> {
    let id = lease.id().ok_or(LeaseRefusal::NotPresent)?;
    let asked = period.map(|period| period.end(now));
    let broken_at = match (&lease.0, asked) {
        // A period never makes a lease last longer than it would have.
        (Stored::Leased { until: Some(until), .. } | Stored::Breaking { until, .. }, asked) => {
            asked.unwrap_or(*until).min(*until)
        }
        (Stored::Leased { until: None, .. }, asked) => asked.unwrap_or(now),
        (Stored::Broken { .. } | Stored::Available, _) => now,
    };
    let lease = if broken_at > now {
        Lease(Stored::Breaking { id, until: broken_at })
    } else {
        Lease(Stored::Broken { id })
    };
    let remaining_seconds = broken_at.since(now).as_nanos().div_ceil(1_000_000_000);
    let remaining_seconds = u64::try_from(remaining_seconds).unwrap_or(u64::MAX);
    Ok(Decided { lease, outcome: LeaseOutcome::Broken { remaining_seconds } })
}
