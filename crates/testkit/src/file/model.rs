//! A file as it would be if it served one client at a time.

use super::{Answer, Request, SLOTS, Slots};
use crate::etag::KnownETag;
use crate::linearizable::Object;
use crate::refusal::{Reasons, is_among};

#[derive(Clone, Debug)]
pub struct FileModel;

/// None if there is no file.
pub type State = Option<File>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct File {
    slots: Slots,
    etag: KnownETag,
}

impl Object for FileModel {
    type State = State;
    type Request = Request;
    type Answer = Answer;

    const NAME: &'static str = "file";

    fn start() -> State {
        None
    }

    fn step(
        state: &State,
        _number: u32,
        request: &Request,
        answer: Option<&Answer>,
    ) -> Option<State> {
        match (decide(state, request), answer) {
            (Ok(after), None) => Some(after),
            (Err(_), None) => Some(state.clone()),
            (Err(reasons), Some(Answer::Refused { status, code })) => {
                is_among(&reasons, *status, code).then(|| state.clone())
            }
            (Ok(after), Some(answer)) => after_success(after, request, answer),
            (Err(_), Some(_)) => None,
        }
    }

    fn changes_nothing(request: &Request, answer: Option<&Answer>) -> bool {
        *request == Request::Get || matches!(answer, Some(Answer::Refused { .. }))
    }

    fn proves(request: &Request, answer: &Answer) -> Option<State> {
        let file = |slots, etag: &KnownETag| Some(Some(File { slots, etag: etag.clone() }));
        match (request, answer) {
            (Request::Create, Answer::Written { etag }) => file([0; SLOTS], etag),
            (_, Answer::Read { slots, etag }) => file(*slots, etag),
            (_, Answer::Deleted | Answer::Refused { status: 404, .. }) => Some(None),
            _ => None,
        }
    }
}

/// What the request makes of the file, or why it must be refused.
fn decide(state: &State, request: &Request) -> Result<State, Reasons> {
    let with = |file: &File, range: &std::ops::Range<usize>, value| {
        let mut slots = file.slots;
        slots[range.clone()].fill(value);
        Ok(Some(File { slots, etag: None }))
    };
    match (request, state) {
        (Request::Create, _) => Ok(Some(File { slots: [0; SLOTS], etag: None })),
        (_, None) => Err(vec![(404, "ResourceNotFound")]),
        (Request::Write { slots, value }, Some(file)) => with(file, slots, *value),
        (Request::Clear { slots }, Some(file)) => with(file, slots, 0),
        (Request::Delete, Some(_)) => Ok(None),
        (Request::Get, Some(file)) => Ok(Some(file.clone())),
    }
}

/// The state after a success, if what was answered fits it.
fn after_success(after: State, request: &Request, answer: &Answer) -> Option<State> {
    match (request, answer, after) {
        (Request::Delete, Answer::Deleted, after) => Some(after),
        (Request::Get, Answer::Read { slots, etag }, Some(file)) => {
            let is_same = match (&file.etag, etag) {
                (Some(known), Some(etag)) => known == etag,
                (None, _) | (_, None) => true,
            };
            let etag = etag.clone().or(file.etag);
            (is_same && file.slots == *slots).then_some(Some(File { slots: *slots, etag }))
        }
        (
            Request::Create | Request::Write { .. } | Request::Clear { .. },
            Answer::Written { etag },
            Some(file),
        ) => Some(Some(File { slots: file.slots, etag: etag.clone() })),
        _ => None,
    }
}
