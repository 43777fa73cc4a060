//! A block blob: unconditional writes, updates by ETag, creations, deletions, leases.

pub mod http;
mod model;

use std::time::Duration;

use crate::etag::{Condition, ETag, find_reused};
use crate::history::Record;
use crate::lease::{Action, LeaseId};
use crate::linearizability;
use crate::record::Workload;
use crate::report::Verdict;
use holdfast_random::Random;

pub use model::BlobModel;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Put { value: u64, condition: Condition, lease: Option<LeaseId> },
    Get,
    Delete { condition: Condition, lease: Option<LeaseId> },
    Lease(Action),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Written {
        etag: ETag,
    },
    /// With the state of the lease.
    Read {
        value: u64,
        etag: ETag,
        lease: String,
    },
    Deleted,
    /// A lease action was done.
    Done,
    Refused {
        status: u16,
        code: String,
    },
    /// A success with a value that was never written.
    Nonsense(String),
}

/// What the clients of a blob test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobWorkload {
    /// The content and its ETag.
    Register,
    /// Leases that are acquired, broken, changed and released all the time.
    Leases,
    /// Leases that are left to expire.
    Expiry,
}

/// The shortest there is; renewals take as long.
pub const LEASE_SECONDS: u32 = 15;
/// Few, so that clients use the same ones.
const LEASE_IDS: u64 = 3;

#[derive(Debug, Default)]
pub struct Memory {
    /// Newest last.
    etags: Vec<ETag>,
    /// Ids that this client has acquired.
    leases: Vec<LeaseId>,
}

const ETAGS_REMEMBERED_MAX: usize = 4;

impl Memory {
    fn condition(&self, random: &mut Random) -> Condition {
        match self.etags.last() {
            Some(newest) if random.percent(80) => Condition::Is(newest.clone()),
            Some(_) => random.pick(&self.etags).cloned().map_or(Condition::None, Condition::Is),
            None => Condition::Exists,
        }
    }
}

impl Workload for BlobWorkload {
    type Request = Request;
    type Answer = Answer;
    type Memory = Memory;

    fn name(&self) -> &'static str {
        match self {
            Self::Register => "blob",
            Self::Leases => "blob leases",
            Self::Expiry => "lease expiry",
        }
    }

    fn choose(&self, random: &mut Random, memory: &mut Memory, unique: u64) -> Request {
        match self {
            Self::Register => choose_register(random, memory, unique),
            Self::Leases => choose_lease(random, unique),
            Self::Expiry => choose_expiry(random, memory, unique),
        }
    }

    fn learn(&self, memory: &mut Memory, request: &Request, answer: &Answer) {
        match answer {
            Answer::Written { etag } | Answer::Read { etag, .. } => {
                memory.etags.push(etag.clone());
                if memory.etags.len() > ETAGS_REMEMBERED_MAX {
                    memory.etags.remove(0);
                }
            }
            Answer::Done => {
                if let Request::Lease(Action::Acquire { id, .. }) = request {
                    memory.leases.push(*id);
                }
            }
            Answer::Deleted | Answer::Refused { .. } | Answer::Nonsense(_) => {}
        }
    }

    fn pause_max(&self) -> Duration {
        match self {
            Self::Register => Duration::ZERO,
            Self::Leases => Duration::from_millis(100),
            Self::Expiry => Duration::from_millis(500),
        }
    }

    fn check(&self, history: &[Record<Request, Answer>]) -> Verdict {
        let mut verdict = linearizability::check::<BlobModel>(history);
        verdict.violations.extend(find_reused(history.iter().filter_map(|record| {
            let (etag, value) = match (&record.request, record.answer.as_ref()?) {
                (Request::Put { value, .. }, Answer::Written { etag }) => (etag, *value),
                (_, Answer::Read { etag, value, .. }) => (etag, *value),
                _ => return None,
            };
            Some((etag.clone(), value, record.to_string()))
        })));
        verdict
    }
}

fn choose_register(random: &mut Random, memory: &Memory, unique: u64) -> Request {
    let put = |condition| Request::Put { value: unique, condition, lease: None };
    match random.below(100) {
        0..20 => put(Condition::None),
        20..45 => put(memory.condition(random)),
        45..55 => put(Condition::Absent),
        55..59 => Request::Delete { condition: Condition::None, lease: None },
        59..63 => Request::Delete { condition: memory.condition(random), lease: None },
        _ => Request::Get,
    }
}

fn choose_lease(random: &mut Random, unique: u64) -> Request {
    let id = LeaseId(1 + random.below(LEASE_IDS));
    let put = |lease| Request::Put { value: unique, condition: Condition::None, lease };
    match random.below(100) {
        0..10 => put(None),
        10..30 => put(Some(id)),
        30..32 => Request::Delete { condition: Condition::None, lease: None },
        32..34 => Request::Delete { condition: Condition::None, lease: Some(id) },
        34..50 => Request::Get,
        50..66 => {
            let seconds = if random.percent(80) { Some(LEASE_SECONDS) } else { None };
            Request::Lease(Action::Acquire { id, seconds })
        }
        66..74 => Request::Lease(Action::Renew { id }),
        74..80 => {
            let to = LeaseId(1 + random.below(LEASE_IDS));
            Request::Lease(Action::Change { id, to })
        }
        80..86 => Request::Lease(Action::Release { id }),
        _ => {
            let seconds = random.pick(&[None, Some(0), Some(0), Some(1), Some(2)]).copied();
            Request::Lease(Action::Break { seconds: seconds.flatten() })
        }
    }
}

fn choose_expiry(random: &mut Random, memory: &Memory, unique: u64) -> Request {
    let put = |lease| Request::Put { value: unique, condition: Condition::None, lease };
    let held = memory.leases.last().copied();
    match random.below(100) {
        0..25 => {
            Request::Lease(Action::Acquire { id: LeaseId(unique), seconds: Some(LEASE_SECONDS) })
        }
        25..45 => put(None),
        45..70 => put(Some(held.unwrap_or(LeaseId(unique)))),
        70..72 => Request::Lease(Action::Renew { id: held.unwrap_or(LeaseId(unique)) }),
        _ => Request::Get,
    }
}
