//! How an operation can fail. The four kinds are never mixed: refused by a rule, lost to other
//! writers too often, outcome unknown, or a fault of our own.

use std::convert::Infallible;

use holdfast_store::CommitError;
pub use holdfast_store::Fault;

#[derive(Debug)]
pub enum Failure<R> {
    /// A rule of the service: lease mismatch, condition not met.
    Refused(R),
    /// Bounded retries were lost to other writers; safe to retry.
    Busy,
    /// May have happened; only the client can decide what to do.
    OutcomeUnknown(Fault),
    /// Ours: I/O, corruption.
    Fault(Fault),
}

impl<R> Failure<R> {
    /// The same with another refusal.
    pub fn map<S>(self, refusal: impl FnOnce(R) -> S) -> Failure<S> {
        match self {
            Self::Refused(refused) => Failure::Refused(refusal(refused)),
            Self::Busy => Failure::Busy,
            Self::OutcomeUnknown(fault) => Failure::OutcomeUnknown(fault),
            Self::Fault(fault) => Failure::Fault(fault),
        }
    }

    /// The refusal, or else the failure of another kind.
    pub fn refusal(self) -> Result<R, Failure<Infallible>> {
        match self {
            Self::Refused(refused) => Ok(refused),
            Self::Busy => Err(Failure::Busy),
            Self::OutcomeUnknown(fault) => Err(Failure::OutcomeUnknown(fault)),
            Self::Fault(fault) => Err(Failure::Fault(fault)),
        }
    }
}

impl<R> From<Fault> for Failure<R> {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl<R> From<CommitError> for Failure<R> {
    /// A conflict that was not retried.
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflict => Self::Busy,
            CommitError::OutcomeUnknown(fault) => Self::OutcomeUnknown(fault),
            CommitError::Fault(fault) => Self::Fault(fault),
        }
    }
}
