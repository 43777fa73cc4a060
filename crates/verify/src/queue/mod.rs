//! A queue: producers, and consumers that delete, extend, forget and act too late.

mod check;
pub mod http;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::history::Record;
use crate::record::{Extent, Workload};
use crate::report::Verdict;
use holdfast_random::Random;

/// An id or a receipt from the server.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Word(pub Arc<str>);

impl Word {
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A message and the receipt for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub message: Word,
    pub receipt: Word,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Put { value: u64, delay_seconds: u32 },
    Get { count: u32, visibility_seconds: u32 },
    Delete(Held),
    Update { held: Held, visibility_seconds: u32 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Put(Held),
    Got(Vec<Delivery>),
    Deleted,
    Updated {
        receipt: Word,
    },
    Refused {
        status: u16,
        code: String,
    },
    /// A success with a text that was never put.
    Nonsense(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub held: Held,
    pub value: u64,
    /// How often it has been delivered, including this time.
    pub count: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueWorkload {
    Use,
    /// Gets all remaining messages.
    Drain,
}

pub const VISIBILITY_SECONDS_MAX: u32 = 2;
/// Long enough that messages got by the last client do not reappear meanwhile.
pub const DRAIN_VISIBILITY_SECONDS: u32 = 300;
/// How often it polls, in total longer than anything is hidden.
const DRAIN_LOOKS: u32 = 24;
const DRAIN_PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, Default)]
pub struct Memory {
    held: Vec<Held>,
    /// Receipts that were used, or forgotten.
    old: Vec<Held>,
}

const OLD_MAX: usize = 8;

impl Memory {
    fn forget(&mut self, held: Held) {
        self.old.push(held);
        if self.old.len() > OLD_MAX {
            self.old.remove(0);
        }
    }
}

impl Workload for QueueWorkload {
    type Request = Request;
    type Answer = Answer;
    type Memory = Memory;

    fn name(&self) -> &'static str {
        "queue"
    }

    fn choose(&self, random: &mut Random, memory: &mut Memory, unique: u64) -> Request {
        if *self == Self::Drain {
            return Request::Get { count: 32, visibility_seconds: DRAIN_VISIBILITY_SECONDS };
        }
        if random.percent(10)
            && let Some(old) = random.pick(&memory.old).cloned()
        {
            return if random.percent(50) {
                Request::Delete(old)
            } else {
                Request::Update { held: old, visibility_seconds: 0 }
            };
        }
        if random.percent(60)
            && let Some(held) = memory.held.pop()
        {
            memory.forget(held.clone());
            match random.below(100) {
                0..60 => return Request::Delete(held),
                60..80 => {
                    let visibility_seconds =
                        random.below(u64::from(VISIBILITY_SECONDS_MAX) + 1) as u32;
                    return Request::Update { held, visibility_seconds };
                }
                // This consumer never deletes its message.
                _ => {}
            }
        }
        if random.percent(45) {
            let delay_seconds = if random.percent(10) { 1 } else { 0 };
            return Request::Put { value: unique, delay_seconds };
        }
        Request::Get {
            count: 1 + random.below(3) as u32,
            visibility_seconds: 1 + random.below(VISIBILITY_SECONDS_MAX.into()) as u32,
        }
    }

    fn learn(&self, memory: &mut Memory, request: &Request, answer: &Answer) {
        match (request, answer) {
            (_, Answer::Put(held)) => memory.forget(held.clone()),
            (_, Answer::Got(deliveries)) => {
                memory.held.extend(deliveries.iter().map(|delivery| delivery.held.clone()));
            }
            (Request::Update { held, .. }, Answer::Updated { receipt }) => {
                memory.held.push(Held { receipt: receipt.clone(), ..held.clone() });
            }
            _ => {}
        }
    }

    fn pause_max(&self) -> Duration {
        match self {
            Self::Use => Duration::from_millis(60),
            Self::Drain => DRAIN_PAUSE,
        }
    }

    fn pause_min(&self) -> Duration {
        match self {
            Self::Use => Duration::ZERO,
            Self::Drain => DRAIN_PAUSE,
        }
    }

    fn closing(&self) -> Option<(Self, Extent)> {
        let extent = Extent { operations_per_client: DRAIN_LOOKS, duration_max: Duration::MAX };
        Some((Self::Drain, extent))
    }

    fn check(&self, history: &[Record<Request, Answer>]) -> Verdict {
        check::check(history).into()
    }
}
