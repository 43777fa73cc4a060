//! A partition of a table: entity group transactions that read lists and append to them, and
//! queries that read many at once.

mod check;
pub mod http;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::etag::ETag;
use crate::history::Record;
use crate::record::Workload;
use crate::report::Verdict;
use holdfast_random::Random;

/// Number of a row in the partition.
pub type Row = u32;

/// The content of one row: everything appended to it, in order.
pub type List = Vec<u64>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Query {
        rows: Range<Row>,
    },
    /// Applied as a whole or not at all.
    Batch {
        changes: Vec<Change>,
        has_stale_etag: bool,
    },
}

/// An element appended to the list of a row that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub row: Row,
    pub before: List,
    /// `None` if the row did not exist: it is inserted.
    pub etag: Option<ETag>,
    pub element: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Rows(BTreeMap<Row, (List, ETag)>),
    Committed,
    Refused {
        status: u16,
        code: String,
    },
    /// A success with a value that was never written.
    Nonsense(String),
}

#[derive(Clone, Copy, Debug)]
pub struct PartitionWorkload;

pub const ROWS: Row = 6;
const CHANGES_MAX: u64 = 3;
/// The ETag of no entity.
pub const STALE_ETAG: &str = "W/\"datetime'2001-01-01T00%3A00%3A00.0000000Z'\"";

type Page = BTreeMap<Row, (List, ETag)>;

/// The last query's rows and result.
#[derive(Debug, Default)]
pub struct Memory(Option<(Range<Row>, Page)>);

impl Workload for PartitionWorkload {
    type Request = Request;
    type Answer = Answer;
    type Memory = Memory;

    fn name(&self) -> &'static str {
        "table batches"
    }

    fn choose(&self, random: &mut Random, memory: &mut Memory, unique: u64) -> Request {
        let read = if random.percent(70) { memory.0.take() } else { None };
        let Some((rows, read)) = read else {
            let rows = match random.below(4) {
                0 => 0..ROWS / 2,
                1 => ROWS / 2..ROWS,
                _ => 0..ROWS,
            };
            return Request::Query { rows };
        };
        let mut rows: Vec<Row> = rows.collect();
        let mut changes = Vec::new();
        for _ in 0..=random.below(CHANGES_MAX) {
            if rows.is_empty() {
                break;
            }
            let row = rows.swap_remove(random.below(rows.len() as u64) as usize);
            let (before, etag) = match read.get(&row) {
                Some((list, etag)) => (list.clone(), Some(etag.clone())),
                None => (List::new(), None),
            };
            changes.push(Change { row, before, etag, element: unique });
        }
        let mut has_stale_etag = false;
        // In some transactions the last change is refused: then those before it must not be seen.
        if changes.len() > 1
            && random.percent(20)
            && let Some(last) = changes.last_mut()
        {
            last.etag = Some(ETag::new(STALE_ETAG));
            has_stale_etag = true;
        }
        Request::Batch { changes, has_stale_etag }
    }

    fn learn(&self, memory: &mut Memory, request: &Request, answer: &Answer) {
        if let (Request::Query { rows }, Answer::Rows(read)) = (request, answer) {
            memory.0 = Some((rows.clone(), read.clone()));
        }
    }

    fn check(&self, history: &[Record<Request, Answer>]) -> Verdict {
        check::check(history)
    }
}
