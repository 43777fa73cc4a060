//! An entity: inserted, replaced and merged by ETag or without, deleted, read.

pub mod http;
mod model;

use crate::etag::{Condition, ETag, find_reused};
use crate::history::Record;
use crate::linearizability;
use crate::record::Workload;
use crate::report::Verdict;
use holdfast_random::Random;

pub use model::EntityModel;

/// Its two properties; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Properties {
    pub left: u64,
    pub right: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    Replace,
    Merge,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Insert(Properties),
    /// Without a condition it inserts a missing entity.
    Update {
        write: Write,
        properties: Properties,
        condition: Condition,
    },
    Delete {
        condition: Condition,
    },
    Get,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Written {
        etag: ETag,
    },
    Read {
        properties: Properties,
        etag: ETag,
    },
    Deleted,
    Refused {
        status: u16,
        code: String,
    },
    /// A success with a value that was never written.
    Nonsense(String),
}

#[derive(Clone, Copy, Debug)]
pub struct EntityWorkload;

#[derive(Debug, Default)]
pub struct Memory {
    etag: Option<ETag>,
    older: Option<ETag>,
}

impl Workload for EntityWorkload {
    type Request = Request;
    type Answer = Answer;
    type Memory = Memory;

    fn name(&self) -> &'static str {
        "entity"
    }

    fn choose(&self, random: &mut Random, memory: &mut Memory, unique: u64) -> Request {
        let properties = match random.below(3) {
            0 => Properties { left: unique, right: 0 },
            1 => Properties { left: 0, right: unique },
            _ => Properties { left: unique, right: unique },
        };
        let seen = if random.percent(85) { &memory.etag } else { &memory.older };
        let condition = seen.clone().map_or(Condition::Exists, Condition::Is);
        let write = if random.percent(50) { Write::Merge } else { Write::Replace };
        match random.below(100) {
            0..12 => Request::Insert(properties),
            12..42 => Request::Update { write, properties, condition },
            42..48 => Request::Update { write, properties, condition: Condition::Exists },
            48..60 => Request::Update { write, properties, condition: Condition::None },
            60..65 => Request::Delete { condition },
            65..68 => Request::Delete { condition: Condition::Exists },
            _ => Request::Get,
        }
    }

    fn learn(&self, memory: &mut Memory, _request: &Request, answer: &Answer) {
        if let Answer::Written { etag } | Answer::Read { etag, .. } = answer
            && memory.etag.as_ref() != Some(etag)
        {
            memory.older = memory.etag.replace(etag.clone());
        }
    }

    fn check(&self, history: &[Record<Request, Answer>]) -> Verdict {
        let mut verdict = linearizability::check::<EntityModel>(history);
        verdict.violations.extend(find_reused(history.iter().filter_map(|record| {
            match record.answer.as_ref()? {
                Answer::Read { properties, etag } => {
                    Some((etag.clone(), *properties, record.to_string()))
                }
                Answer::Written { .. }
                | Answer::Deleted
                | Answer::Refused { .. }
                | Answer::Nonsense(_) => None,
            }
        })));
        verdict
    }
}
