//! The sequential model of a file.

use super::{Answer, Request, SLOTS, Slots};
use crate::etag::KnownETag;
use crate::linearizability::Object;
use crate::refusal::Reasons;

#[derive(Clone, Debug)]
pub struct FileModel;

/// `None` if there is no file.
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

    fn decide(
        state: &State,
        _number: u32,
        request: &Request,
        _answer: Option<&Answer>,
    ) -> Result<State, Reasons> {
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

    fn after_success(
        _before: &State,
        after: State,
        request: &Request,
        answer: &Answer,
    ) -> Option<State> {
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

    fn refusal(answer: &Answer) -> Option<(u16, &str)> {
        let Answer::Refused { status, code } = answer else { return None };
        Some((*status, code))
    }

    fn only_reads(request: &Request) -> bool {
        *request == Request::Get
    }

    fn written(request: &Request) -> Option<u64> {
        let Request::Write { value, .. } = request else { return None };
        Some(*value)
    }

    fn shows(answer: &Answer, value: u64) -> bool {
        matches!(answer, Answer::Read { slots, .. } if slots.contains(&value))
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
