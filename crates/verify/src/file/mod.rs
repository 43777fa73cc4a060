//! A file of a few slots: ranges of slots are written and cleared, the whole file is read.

pub mod http;
mod model;

use std::ops::Range;

use crate::etag::ETag;
use crate::history::Record;
use crate::linearizability;
use crate::record::Workload;
use crate::report::Verdict;
use holdfast_random::Random;

pub use model::FileModel;

pub const SLOTS: usize = 4;
/// Clearing works in pieces of this size.
pub const SLOT_BYTES: usize = 512;

/// The value of each slot; 0 if empty.
pub type Slots = [u64; SLOTS];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Creates an empty file of full length, or replaces the existing one.
    Create,
    Write {
        slots: Range<usize>,
        value: u64,
    },
    Clear {
        slots: Range<usize>,
    },
    Get,
    Delete,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// SMB returns no ETag.
    Written {
        etag: Option<ETag>,
    },
    Read {
        slots: Slots,
        etag: Option<ETag>,
    },
    Deleted,
    Refused {
        status: u16,
        code: String,
    },
    /// A success with a value that was never written.
    Nonsense(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileWorkload {
    /// By REST only.
    Rest,
    /// By clients of both protocols, which hold the file open: it is created once, and stays.
    Shared,
}

/// The first request of the first client, which creates the file that others hold open.
const FIRST: u64 = 1 << 32 | 1;

impl Workload for FileWorkload {
    type Request = Request;
    type Answer = Answer;
    type Memory = ();

    fn name(&self) -> &'static str {
        match self {
            Self::Rest => "file",
            Self::Shared => "file by REST and SMB",
        }
    }

    fn choose(&self, random: &mut Random, _memory: &mut (), unique: u64) -> Request {
        let first = random.below(SLOTS as u64) as usize;
        let count = 1 + random.below((SLOTS - first) as u64) as usize;
        let slots = first..first + count;
        if *self == Self::Shared {
            return match random.below(100) {
                _ if unique == FIRST => Request::Create,
                0..50 => Request::Write { slots, value: unique },
                _ => Request::Get,
            };
        }
        match random.below(100) {
            0..6 => Request::Create,
            6..8 => Request::Delete,
            8..50 => Request::Write { slots, value: unique },
            50..60 => Request::Clear { slots },
            _ => Request::Get,
        }
    }

    fn learn(&self, _memory: &mut (), _request: &Request, _answer: &Answer) {}

    fn check(&self, history: &[Record<Request, Answer>]) -> Verdict {
        linearizability::check::<FileModel>(history)
    }
}
