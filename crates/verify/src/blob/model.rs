//! The sequential model of a blob.

use std::time::Duration;

use super::{Answer, LEASE_SECONDS, Request};
use crate::etag::{Condition, ETag, KnownETag};
use crate::lease::{self, Action, Lease, LeaseId};
use crate::linearizability::Object;
use crate::refusal::Reasons;

#[derive(Clone, Debug)]
pub struct BlobModel;

/// `None` if there is no blob.
pub type State = Option<Blob>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Blob {
    value: u64,
    etag: KnownETag,
    lease: Lease,
}

const CONDITION_NOT_MET: (u16, &str) = (412, "ConditionNotMet");
const NOT_FOUND: (u16, &str) = (404, "BlobNotFound");

impl Object for BlobModel {
    type State = State;
    type Request = Request;
    type Answer = Answer;

    const NAME: &'static str = "blob";

    fn decide(
        state: &State,
        number: u32,
        request: &Request,
        answer: Option<&Answer>,
    ) -> Result<State, Reasons> {
        match (request, state) {
            (Request::Put { value, condition, lease }, state) => {
                let mut reasons = unmet(state.as_ref(), condition, answer);
                let after = leased_write(state.as_ref(), *lease, &mut reasons);
                if !reasons.is_empty() {
                    return Err(reasons);
                }
                Ok(Some(Blob { value: *value, etag: None, lease: after }))
            }
            (Request::Delete { condition, lease }, None) => {
                let mut reasons = unmet(None, condition, answer);
                reasons.push(NOT_FOUND);
                leased_write(None, *lease, &mut reasons);
                Err(reasons)
            }
            (Request::Delete { condition, lease }, Some(blob)) => {
                let mut reasons = unmet(Some(blob), condition, answer);
                leased_write(Some(blob), *lease, &mut reasons);
                if reasons.is_empty() { Ok(None) } else { Err(reasons) }
            }
            (Request::Get | Request::Lease(_), None) => Err(vec![NOT_FOUND]),
            (Request::Get, Some(blob)) => Ok(Some(blob.clone())),
            (Request::Lease(action), Some(blob)) => match blob.lease.after(*action, number) {
                Ok(lease) => Ok(Some(Blob { lease, ..blob.clone() })),
                Err(code) => Err(vec![(409, code)]),
            },
        }
    }

    fn after_success(
        before: &State,
        after: State,
        request: &Request,
        answer: &Answer,
    ) -> Option<State> {
        match (request, answer, after) {
            (Request::Put { .. }, Answer::Written { etag }, Some(blob)) => {
                let old = before.as_ref().and_then(|blob| blob.etag.as_ref());
                let is_new = old != Some(etag);
                is_new.then(|| Some(Blob { etag: Some(etag.clone()), ..blob }))
            }
            (Request::Get, Answer::Read { value, etag, lease }, Some(blob)) => {
                let is_right = blob.value == *value
                    && blob.etag.as_ref().is_none_or(|known| known == etag)
                    && blob.lease.word() == lease;
                is_right.then(|| Some(Blob { etag: Some(etag.clone()), ..blob }))
            }
            (Request::Delete { .. }, Answer::Deleted, after) => Some(after),
            (Request::Lease(_), Answer::Done, after) => Some(after),
            _ => None,
        }
    }

    fn timer_ends(state: &State, number: u32) -> State {
        state.as_ref().map(|blob| Blob { lease: blob.lease.timer_ends(number), ..blob.clone() })
    }

    fn timer(request: &Request, answer: Option<&Answer>) -> Option<Duration> {
        if matches!(answer, Some(Answer::Refused { .. })) {
            return None;
        }
        let seconds = match request {
            Request::Lease(Action::Acquire { seconds, .. }) => *seconds,
            Request::Lease(Action::Renew { .. }) => Some(LEASE_SECONDS),
            Request::Lease(Action::Break { seconds }) => seconds.filter(|seconds| *seconds > 0),
            Request::Lease(Action::Change { .. } | Action::Release { .. })
            | Request::Put { .. }
            | Request::Get
            | Request::Delete { .. } => None,
        };
        seconds.map(|seconds| Duration::from_secs(seconds.into()))
    }

    fn refusal(answer: &Answer) -> Option<(u16, &str)> {
        let Answer::Refused { status, code } = answer else { return None };
        Some((*status, code))
    }

    fn only_reads(request: &Request) -> bool {
        *request == Request::Get
    }

    fn written(request: &Request) -> Option<u64> {
        let Request::Put { value, .. } = request else { return None };
        Some(*value)
    }

    fn shows(answer: &Answer, value: u64) -> bool {
        matches!(answer, Answer::Read { value: read, .. } if *read == value)
    }

    fn proves(request: &Request, answer: &Answer) -> Option<State> {
        let unleased = |value, etag: &ETag| {
            Some(Some(Blob { value, etag: Some(etag.clone()), lease: Lease::Available }))
        };
        match (request, answer) {
            (Request::Put { value, lease: None, .. }, Answer::Written { etag }) => {
                unleased(*value, etag)
            }
            (Request::Get, Answer::Read { value, etag, lease }) if lease == "available" => {
                unleased(*value, etag)
            }
            (_, Answer::Deleted) => Some(None),
            (_, Answer::Refused { status: 404, .. }) => Some(None),
            _ => None,
        }
    }
}

fn unmet(blob: Option<&Blob>, condition: &Condition, answer: Option<&Answer>) -> Reasons {
    match (condition, blob) {
        (Condition::None, _) | (Condition::Exists, Some(_)) | (Condition::Absent, None) => vec![],
        (Condition::Absent, Some(_)) => vec![(409, "BlobAlreadyExists"), CONDITION_NOT_MET],
        (Condition::Exists | Condition::Is(_), None) => vec![CONDITION_NOT_MET],
        (Condition::Is(wanted), Some(Blob { etag: Some(etag), .. })) if wanted == etag => vec![],
        // If the ETag is unknown, the answer shows whether it was this one.
        (Condition::Is(_), Some(Blob { etag: None, .. }))
            if matches!(answer, Some(Answer::Written { .. } | Answer::Deleted)) =>
        {
            vec![]
        }
        (Condition::Is(_), Some(_)) => vec![CONDITION_NOT_MET],
    }
}

/// The lease after a write; adds reasons to refuse it.
fn leased_write(blob: Option<&Blob>, id: Option<LeaseId>, reasons: &mut Reasons) -> Lease {
    let lease = blob.map_or(&Lease::Available, |blob| &blob.lease);
    match lease.after_write(id, &lease::BLOB) {
        Ok(lease) => lease,
        Err(codes) => {
            reasons.extend(codes.iter().map(|code| (412, *code)));
            lease.clone()
        }
    }
}
