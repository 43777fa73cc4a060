//! The case of metadata names, which hyper does not keep.
//!
//! Metadata travels in headers `x-ms-meta-NAME`, and the service gives NAME back as it came; hyper
//! knows header names in lower case only. [`CaseKeeping`] stands between the network and hyper:
//!
//! - Reading, it notes the names of each request head that have upper-case letters, in the order
//!   of the requests. hyper handles the requests of a connection strictly in that order, so the
//!   handler takes exactly one note for each.
//! - Writing, it is told by the handler that an answer has such names. The answer carries them
//!   under placeholders, which are replaced on their way out. Between such answers it passes
//!   everything through.
//!
//! Nothing but our own headers is ever rewritten. A placeholder holds a token of 122 random bits
//! that is drawn for one answer when that answer is made, and taken out before the answer leaves
//! the process: no client ever sees one, and none is used twice. So no bytes that a client stored
//! or sent can hold it but by a chance of one in 2^122, and bodies pass unchanged even while a
//! placeholder is looked for. A name is put in only if it equals, but for case, the valid header
//! name whose place it takes: it cannot end a line or begin another header.
//!
//! Should the scanner lose its place in a connection, no more than case is at stake: a note only
//! changes the case of names that hyper has read itself.

mod rewrite;
mod scanner;
mod stream;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::HeaderMap;
use hyper::header::HeaderName;
use parking_lot::Mutex;

use rewrite::Announcement;
pub use scanner::HeadScanner;
pub use stream::CaseKeeping;

const METADATA_PREFIX: &str = "x-ms-meta-";
/// hyper reads no further ahead than its buffer is long, so more pipelined requests than this, all
/// with such names, are no client's way of working. Theirs are lower-cased.
const REQUESTS_WAITING_MAX: usize = 256;
/// Likewise for answers that hyper has not written.
const ANSWERS_ANNOUNCED_MAX: usize = 256;

/// What the handler of a connection's requests knows of it. Clones share the connection.
#[derive(Clone)]
pub struct HeaderCase {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    requests: Mutex<Requests>,
    announced: Mutex<VecDeque<Announcement>>,
    /// Whether `announced` holds anything, so that other writes take no lock.
    is_announced: AtomicBool,
}

/// Requests are counted at both ends; only those with names to keep take a place.
#[derive(Default)]
struct Requests {
    handled: u64,
    waiting: VecDeque<(u64, Vec<String>)>,
}

impl Requests {
    fn push(&mut self, number: u64, names: Vec<String>) {
        if self.waiting.len() < REQUESTS_WAITING_MAX {
            self.waiting.push_back((number, names));
        }
    }

    fn pop(&mut self) -> Vec<String> {
        let number = self.handled;
        self.handled += 1;
        let names = self.waiting.pop_front_if(|(waiting, _)| *waiting == number);
        names.map(|(_, names)| names).unwrap_or_default()
    }
}

impl HeaderCase {
    /// To be called exactly once for each request, in order: where hyper calls the service.
    pub fn next_request(&self) -> RequestCase {
        RequestCase { names: self.shared.requests.lock().pop() }
    }

    /// Makes the metadata headers of an answer leave with the case of `names` (without their
    /// prefix). To be called last, when the answer will not be replaced by another.
    pub fn answer_names<'a>(
        &self,
        headers: &mut HeaderMap,
        names: impl IntoIterator<Item = &'a str>,
    ) {
        let mut names = names.into_iter().filter(|name| has_upper_case(name)).peekable();
        if names.peek().is_none() {
            return;
        }
        let mut announced = self.shared.announced.lock();
        if announced.len() >= ANSWERS_ANNOUNCED_MAX {
            return;
        }
        let mut announcement = Announcement::new();
        for name in names {
            rename(headers, name, &mut announcement);
        }
        if !announcement.is_empty() {
            announced.push_back(announcement);
            self.shared.is_announced.store(true, Ordering::Release);
        }
    }
}

fn has_upper_case(name: &str) -> bool {
    name.bytes().any(|byte| byte.is_ascii_uppercase())
}

fn rename(headers: &mut HeaderMap, name: &str, announcement: &mut Announcement) {
    let name = format!("{METADATA_PREFIX}{name}");
    let Ok(lower_case) = HeaderName::from_bytes(name.as_bytes()) else { return };
    let Some(value) = headers.remove(&lower_case) else { return };
    let placeholder = announcement.add(name);
    let placeholder = placeholder.and_then(|name| HeaderName::try_from(name).ok());
    headers.insert(placeholder.unwrap_or(lower_case), value);
}

/// The metadata names of one request that came with upper-case letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestCase {
    names: Vec<String>,
}

impl RequestCase {
    /// In the order they came, without their prefix.
    pub fn original_case(&self) -> &[String] {
        &self.names
    }

    /// A metadata name as the client wrote it.
    pub fn original<'a>(&'a self, lower_case: &'a str) -> &'a str {
        let same = |name: &&String| name.eq_ignore_ascii_case(lower_case);
        self.names.iter().find(same).map_or(lower_case, String::as_str)
    }
}
