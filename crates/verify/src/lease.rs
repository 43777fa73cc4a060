//! Leases in the models: the effect of each action on each state, and its answer. There is no clock
//! here: the end of a timer is an event with the timer's number.

use std::fmt;

/// An id of a lease, short enough to read; on the wire it is a GUID.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseId(pub u64);

impl LeaseId {
    pub fn guid(self) -> String {
        format!("{:08x}-0000-4000-8000-{:012x}", self.0 >> 48, self.0 & 0xFFFF_FFFF_FFFF)
    }
}

impl fmt::Debug for LeaseId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "lease-{:x}", self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Seconds, or infinite.
    Acquire {
        id: LeaseId,
        seconds: Option<u32>,
    },
    Renew {
        id: LeaseId,
    },
    Change {
        id: LeaseId,
        to: LeaseId,
    },
    Release {
        id: LeaseId,
    },
    Break {
        seconds: Option<u32>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lease {
    #[default]
    Available,
    /// The timer is `None` for an infinite lease.
    Leased {
        id: LeaseId,
        timer: Option<u32>,
        seconds: Option<u32>,
    },
    /// The timer that ends first ends it.
    Breaking {
        id: LeaseId,
        timers: Vec<u32>,
    },
    Broken {
        id: LeaseId,
    },
    Expired {
        id: LeaseId,
        seconds: u32,
    },
}

/// Codes of refusals, which depend on the kind of object.
pub const PRESENT: &str = "LeaseAlreadyPresent";
const BREAKING_ACQUIRE: &str = "LeaseIsBreakingAndCannotBeAcquired";
const BREAKING_CHANGE: &str = "LeaseIsBreakingAndCannotBeChanged";
const BROKEN_RENEW: &str = "LeaseIsBrokenAndCannotBeRenewed";
const NOT_PRESENT: &str = "LeaseNotPresentWithLeaseOperation";
const MISMATCH: &str = "LeaseIdMismatchWithLeaseOperation";

impl Lease {
    /// The word for it in the header `x-ms-lease-state`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Leased { .. } => "leased",
            Self::Breaking { .. } => "breaking",
            Self::Broken { .. } => "broken",
            Self::Expired { .. } => "expired",
        }
    }

    /// The state after the action, or the code of its refusal. `number` is that of the action and
    /// its timer.
    pub fn after(&self, action: Action, number: u32) -> Result<Self, &'static str> {
        match action {
            Action::Acquire { id, seconds } => {
                let leased = Self::Leased { id, timer: seconds.map(|_| number), seconds };
                match self {
                    Self::Available | Self::Broken { .. } | Self::Expired { .. } => Ok(leased),
                    Self::Leased { id: held, .. } if *held == id => Ok(leased),
                    Self::Leased { .. } => Err(PRESENT),
                    Self::Breaking { id: held, .. } if *held == id => Err(BREAKING_ACQUIRE),
                    Self::Breaking { .. } => Err(PRESENT),
                }
            }
            Action::Renew { id } => match self {
                Self::Leased { id: held, seconds, .. } if *held == id => {
                    Ok(Self::Leased { id, timer: seconds.map(|_| number), seconds: *seconds })
                }
                Self::Expired { id: held, seconds } if *held == id => {
                    Ok(Self::Leased { id, timer: Some(number), seconds: Some(*seconds) })
                }
                Self::Breaking { id: held, .. } | Self::Broken { id: held } if *held == id => {
                    Err(BROKEN_RENEW)
                }
                Self::Available
                | Self::Leased { .. }
                | Self::Breaking { .. }
                | Self::Broken { .. }
                | Self::Expired { .. } => Err(MISMATCH),
            },
            Action::Change { id, to } => match self {
                Self::Leased { id: held, timer, seconds } if *held == id || *held == to => {
                    Ok(Self::Leased { id: to, timer: *timer, seconds: *seconds })
                }
                Self::Leased { .. } => Err(MISMATCH),
                Self::Breaking { id: held, .. } if *held == id => Err(BREAKING_CHANGE),
                Self::Breaking { .. } => Err(MISMATCH),
                Self::Available | Self::Broken { .. } | Self::Expired { .. } => Err(NOT_PRESENT),
            },
            Action::Release { id } => match self {
                Self::Leased { id: held, .. }
                | Self::Breaking { id: held, .. }
                | Self::Broken { id: held }
                | Self::Expired { id: held, .. }
                    if *held == id =>
                {
                    Ok(Self::Available)
                }
                Self::Available
                | Self::Leased { .. }
                | Self::Breaking { .. }
                | Self::Broken { .. }
                | Self::Expired { .. } => Err(MISMATCH),
            },
            Action::Break { seconds } => self.broken(seconds, number),
        }
    }

    fn broken(&self, seconds: Option<u32>, number: u32) -> Result<Self, &'static str> {
        match (self, seconds) {
            (Self::Available, _) => Err(NOT_PRESENT),
            (Self::Broken { id } | Self::Expired { id, .. }, _) => Ok(Self::Broken { id: *id }),
            (Self::Leased { id, .. } | Self::Breaking { id, .. }, Some(0)) => {
                Ok(Self::Broken { id: *id })
            }
            (Self::Leased { id, timer, .. }, Some(_)) => {
                let timers = timer.iter().copied().chain([number]).collect();
                Ok(Self::Breaking { id: *id, timers })
            }
            (Self::Leased { id, timer: Some(timer), .. }, None) => {
                Ok(Self::Breaking { id: *id, timers: vec![*timer] })
            }
            (Self::Leased { id, timer: None, .. }, None) => Ok(Self::Broken { id: *id }),
            (Self::Breaking { id, timers }, Some(_)) => {
                let timers = timers.iter().copied().chain([number]).collect();
                Ok(Self::Breaking { id: *id, timers })
            }
            (Self::Breaking { .. }, None) => Ok(self.clone()),
        }
    }

    pub fn timer_ends(&self, number: u32) -> Self {
        match self {
            Self::Leased { id, timer: Some(timer), seconds: Some(seconds) } if *timer == number => {
                Self::Expired { id: *id, seconds: *seconds }
            }
            Self::Breaking { id, timers } if timers.contains(&number) => Self::Broken { id: *id },
            Self::Available
            | Self::Leased { .. }
            | Self::Breaking { .. }
            | Self::Broken { .. }
            | Self::Expired { .. } => self.clone(),
        }
    }

    /// The state after a write of the content, or the refusal, with the codes for this kind of
    /// object.
    pub fn after_write(
        &self,
        id: Option<LeaseId>,
        kind: &Codes,
    ) -> Result<Self, &'static [&'static str]> {
        match (self, id) {
            (Self::Leased { .. } | Self::Breaking { .. }, None) => Err(&["LeaseIdMissing"]),
            (Self::Leased { id: held, .. } | Self::Breaking { id: held, .. }, Some(id)) => {
                if *held == id { Ok(self.clone()) } else { Err(kind.mismatch) }
            }
            (Self::Available | Self::Broken { .. } | Self::Expired { .. }, None) => {
                Ok(Self::Available)
            }
            (Self::Available, Some(_)) => Err(kind.not_present),
            (Self::Broken { .. } | Self::Expired { .. }, Some(_)) => Err(kind.not_held),
        }
    }
}

/// Codes of refused writes for one kind of object; each list has every code that servers use.
pub struct Codes {
    pub mismatch: &'static [&'static str],
    pub not_present: &'static [&'static str],
    pub not_held: &'static [&'static str],
}

pub const BLOB: Codes = Codes {
    mismatch: &["LeaseIdMismatchWithBlobOperation"],
    not_present: &["LeaseNotPresentWithBlobOperation"],
    not_held: &[
        "LeaseNotPresentWithBlobOperation",
        "LeaseLost",
        "LeaseIdMismatchWithBlobOperation",
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    const A: LeaseId = LeaseId(1);
    const B: LeaseId = LeaseId(2);

    fn leased() -> Lease {
        Lease::Leased { id: A, timer: Some(7), seconds: Some(15) }
    }

    #[test]
    fn each_action_on_each_state_is_as_documented() {
        let breaking = || Lease::Breaking { id: A, timers: vec![7] };
        let (broken, expired) =
            (|| Lease::Broken { id: A }, || Lease::Expired { id: A, seconds: 15 });
        let acquire = |id| Action::Acquire { id, seconds: Some(15) };
        let taken = |id| Ok(Lease::Leased { id, timer: Some(9), seconds: Some(15) });
        let cases = [
            (Lease::Available, acquire(A), taken(A)),
            (leased(), acquire(A), taken(A)),
            (leased(), acquire(B), Err(PRESENT)),
            (breaking(), acquire(A), Err(BREAKING_ACQUIRE)),
            (breaking(), acquire(B), Err(PRESENT)),
            (broken(), acquire(B), taken(B)),
            (expired(), acquire(B), taken(B)),
            (leased(), Action::Renew { id: A }, taken(A)),
            (expired(), Action::Renew { id: A }, taken(A)),
            (expired(), Action::Renew { id: B }, Err(MISMATCH)),
            (broken(), Action::Renew { id: A }, Err(BROKEN_RENEW)),
            (Lease::Available, Action::Renew { id: A }, Err(MISMATCH)),
            (breaking(), Action::Change { id: A, to: B }, Err(BREAKING_CHANGE)),
            (expired(), Action::Change { id: A, to: B }, Err(NOT_PRESENT)),
            (leased(), Action::Release { id: B }, Err(MISMATCH)),
            (broken(), Action::Release { id: A }, Ok(Lease::Available)),
            (Lease::Available, Action::Break { seconds: None }, Err(NOT_PRESENT)),
            (leased(), Action::Break { seconds: Some(0) }, Ok(broken())),
            (leased(), Action::Break { seconds: None }, Ok(breaking())),
            (breaking(), Action::Break { seconds: None }, Ok(breaking())),
            (expired(), Action::Break { seconds: Some(5) }, Ok(broken())),
        ];
        for (lease, action, expected) in cases {
            assert_eq!(lease.after(action, 9), expected, "{action:?} on {lease:?}");
        }
    }

    #[test]
    fn a_broken_lease_ends_with_its_own_time_or_the_time_of_the_break() {
        let breaking = leased().after(Action::Break { seconds: Some(5) }, 9).expect("it is leased");
        for timer in [7, 9] {
            assert_eq!(breaking.timer_ends(timer), Lease::Broken { id: A });
        }
        assert_eq!(breaking.timer_ends(8), breaking);
    }

    #[test]
    fn writes_need_the_id_of_a_lease_and_only_of_one() {
        assert_eq!(leased().after_write(None, &BLOB), Err(["LeaseIdMissing"].as_slice()));
        assert_eq!(leased().after_write(Some(A), &BLOB), Ok(leased()));
        assert_eq!(leased().after_write(Some(B), &BLOB), Err(BLOB.mismatch));
        assert_eq!(Lease::Available.after_write(Some(A), &BLOB), Err(BLOB.not_present));
        let expired = Lease::Expired { id: A, seconds: 15 };
        assert_eq!(expired.after_write(None, &BLOB), Ok(Lease::Available));
        assert_eq!(expired.after_write(Some(A), &BLOB), Err(BLOB.not_held));
    }
}
