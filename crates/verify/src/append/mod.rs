//! An append blob: blocks appended at any position or a given one, up to a size.

pub mod http;
mod model;

use crate::etag::{Condition, ETag};
use crate::history::Record;
use crate::linearizability;
use crate::record::Workload;
use crate::report::Verdict;
use holdfast_random::Random;

pub use model::AppendModel;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Creates an empty blob, or replaces the existing one.
    Create {
        condition: Condition,
    },
    Append {
        value: u64,
        position: Option<u64>,
        size_max: Option<u64>,
    },
    Get,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Created {
        etag: ETag,
    },
    Appended {
        offset: u64,
        blocks: u64,
        etag: ETag,
    },
    /// Every piece of the content.
    Read {
        pieces: Vec<u64>,
        etag: ETag,
    },
    Refused {
        status: u16,
        code: String,
    },
    /// A success with a value that was never written.
    Nonsense(String),
}

#[derive(Clone, Copy, Debug)]
pub struct AppendWorkload;

/// How many pieces a block has.
pub fn pieces(value: u64) -> u64 {
    1 + value % 3
}

pub const PIECE_BYTES: u64 = crate::content::PIECE_BYTES as u64;

/// The length that was last seen.
#[derive(Debug, Default)]
pub struct Memory {
    length: u64,
}

impl Workload for AppendWorkload {
    type Request = Request;
    type Answer = Answer;
    type Memory = Memory;

    fn name(&self) -> &'static str {
        "append blob"
    }

    fn choose(&self, random: &mut Random, memory: &mut Memory, unique: u64) -> Request {
        let append = |position, size_max| Request::Append { value: unique, position, size_max };
        match random.below(100) {
            0..3 => Request::Create { condition: Condition::None },
            3..9 => Request::Create { condition: Condition::Absent },
            9..35 => append(None, None),
            35..65 => append(Some(memory.length), None),
            65..75 => append(None, Some(memory.length + PIECE_BYTES * random.below(4))),
            _ => Request::Get,
        }
    }

    fn learn(&self, memory: &mut Memory, request: &Request, answer: &Answer) {
        memory.length = match (request, answer) {
            (_, Answer::Created { .. }) => 0,
            (Request::Append { value, .. }, Answer::Appended { offset, .. }) => {
                offset + pieces(*value) * PIECE_BYTES
            }
            (_, Answer::Read { pieces, .. }) => pieces.len() as u64 * PIECE_BYTES,
            _ => return,
        };
    }

    fn check(&self, history: &[Record<Request, Answer>]) -> Verdict {
        linearizability::check::<AppendModel>(history)
    }
}
