//! The sequential model of an append blob.

use super::{Answer, PIECE_BYTES, Request, pieces};
use crate::etag::{Condition, KnownETag};
use crate::linearizability::Object;
use crate::refusal::Reasons;

#[derive(Clone, Debug)]
pub struct AppendModel;

/// `None` if there is no blob.
pub type State = Option<Blob>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Blob {
    pieces: u64,
    blocks: u64,
    /// The digest of all pieces in order: checking compares contents often.
    digest: u64,
    etag: KnownETag,
}

impl Blob {
    fn with(&self, value: u64) -> Self {
        let mut blob = self.clone();
        for _ in 0..pieces(value) {
            blob.digest = digest(blob.digest, value);
            blob.pieces += 1;
        }
        blob.blocks += 1;
        blob
    }
}

fn digest(before: u64, piece: u64) -> u64 {
    let mixed = (before ^ piece).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_add(before.rotate_left(17))
}

impl Object for AppendModel {
    type State = State;
    type Request = Request;
    type Answer = Answer;

    const NAME: &'static str = "append blob";

    fn decide(
        state: &State,
        _number: u32,
        request: &Request,
        _answer: Option<&Answer>,
    ) -> Result<State, Reasons> {
        match (request, state) {
            (Request::Create { condition: Condition::Absent }, Some(_)) => {
                Err(vec![(409, "BlobAlreadyExists"), (412, "ConditionNotMet")])
            }
            (Request::Create { .. }, _) => Ok(Some(Blob::default())),
            (Request::Append { .. } | Request::Get, None) => Err(vec![(404, "BlobNotFound")]),
            (Request::Get, Some(blob)) => Ok(Some(blob.clone())),
            (Request::Append { value, position, size_max }, Some(blob)) => {
                let mut reasons = Vec::new();
                let length = blob.pieces * PIECE_BYTES;
                if position.is_some_and(|position| position != length) {
                    reasons.push((412, "AppendPositionConditionNotMet"));
                }
                let after = length + pieces(*value) * PIECE_BYTES;
                if size_max.is_some_and(|size_max| after > size_max) {
                    reasons.push((412, "MaxBlobSizeConditionNotMet"));
                }
                if !reasons.is_empty() {
                    return Err(reasons);
                }
                Ok(Some(Blob { etag: None, ..blob.with(*value) }))
            }
        }
    }

    fn after_success(
        before: &State,
        after: State,
        request: &Request,
        answer: &Answer,
    ) -> Option<State> {
        let after = after?;
        let old = before.as_ref().and_then(|blob| blob.etag.as_ref());
        match (request, answer) {
            (Request::Create { .. }, Answer::Created { etag }) => {
                let is_new = old != Some(etag);
                is_new.then(|| Some(Blob { etag: Some(etag.clone()), ..after }))
            }
            (Request::Append { .. }, Answer::Appended { offset, blocks, etag }) => {
                let length = before.as_ref().map_or(0, |blob| blob.pieces * PIECE_BYTES);
                let is_right = *offset == length && *blocks == after.blocks && old != Some(etag);
                is_right.then(|| Some(Blob { etag: Some(etag.clone()), ..after }))
            }
            (Request::Get, Answer::Read { pieces, etag }) => {
                let is_right = pieces.len() as u64 == after.pieces
                    && pieces.iter().fold(0, |before, piece| digest(before, *piece))
                        == after.digest
                    && after.etag.as_ref().is_none_or(|known| known == etag);
                is_right.then(|| Some(Blob { etag: Some(etag.clone()), ..after }))
            }
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
        let Request::Append { value, .. } = request else { return None };
        Some(*value)
    }

    fn shows(answer: &Answer, value: u64) -> bool {
        matches!(answer, Answer::Read { pieces, .. } if pieces.contains(&value))
    }

    fn proves(request: &Request, answer: &Answer) -> Option<State> {
        match (request, answer) {
            (Request::Create { .. }, Answer::Created { etag }) => {
                Some(Some(Blob { etag: Some(etag.clone()), ..Blob::default() }))
            }
            (_, Answer::Refused { status: 404, .. }) => Some(None),
            _ => None,
        }
    }
}
