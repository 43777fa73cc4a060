//! The sequential model of an entity.

use super::{Answer, Properties, Request, Write};
use crate::etag::{Condition, ETag, KnownETag};
use crate::linearizability::Object;
use crate::refusal::Reasons;

#[derive(Clone, Debug)]
pub struct EntityModel;

/// `None` if there is no entity.
pub type State = Option<Entity>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entity {
    properties: Properties,
    etag: KnownETag,
}

const NOT_FOUND: (u16, &str) = (404, "ResourceNotFound");

impl Object for EntityModel {
    type State = State;
    type Request = Request;
    type Answer = Answer;

    const NAME: &'static str = "entity";

    fn decide(
        state: &State,
        _number: u32,
        request: &Request,
        answer: Option<&Answer>,
    ) -> Result<State, Reasons> {
        match (request, state) {
            (Request::Insert(_), Some(_)) => Err(vec![(409, "EntityAlreadyExists")]),
            (Request::Insert(properties), None) => written(*properties),
            (Request::Update { properties, condition: Condition::None, .. }, None) => {
                written(*properties)
            }
            (Request::Update { .. } | Request::Delete { .. } | Request::Get, None) => {
                Err(vec![NOT_FOUND])
            }
            (Request::Update { write, properties, condition }, Some(entity)) => {
                meets(entity, condition, answer)?;
                match write {
                    Write::Replace => written(*properties),
                    Write::Merge => written(merged(entity.properties, *properties)),
                }
            }
            (Request::Delete { condition }, Some(entity)) => {
                meets(entity, condition, answer)?;
                Ok(None)
            }
            (Request::Get, Some(entity)) => Ok(Some(entity.clone())),
        }
    }

    fn after_success(
        before: &State,
        after: State,
        request: &Request,
        answer: &Answer,
    ) -> Option<State> {
        match (request, answer, after) {
            (
                Request::Insert(_) | Request::Update { .. },
                Answer::Written { etag },
                Some(entity),
            ) => {
                let old = before.as_ref().and_then(|entity| entity.etag.as_ref());
                let is_new = old != Some(etag);
                is_new.then(|| Some(Entity { etag: Some(etag.clone()), ..entity }))
            }
            (Request::Get, Answer::Read { properties, etag }, Some(entity)) => {
                let is_right = entity.properties == *properties
                    && entity.etag.as_ref().is_none_or(|known| known == etag);
                is_right.then(|| Some(Entity { etag: Some(etag.clone()), ..entity }))
            }
            (Request::Delete { .. }, Answer::Deleted, after) => Some(after),
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
        let (Request::Insert(properties) | Request::Update { properties, .. }) = request else {
            return None;
        };
        Some(properties.left.max(properties.right))
    }

    fn shows(answer: &Answer, value: u64) -> bool {
        let Answer::Read { properties, .. } = answer else { return false };
        properties.left == value || properties.right == value
    }

    fn proves(request: &Request, answer: &Answer) -> Option<State> {
        let entity = |properties: &Properties, etag: &ETag| {
            Some(Some(Entity { properties: *properties, etag: Some(etag.clone()) }))
        };
        match (request, answer) {
            (
                Request::Insert(properties)
                | Request::Update { write: Write::Replace, properties, .. },
                Answer::Written { etag },
            ) => entity(properties, etag),
            (_, Answer::Read { properties, etag }) => entity(properties, etag),
            (_, Answer::Deleted | Answer::Refused { status: 404, .. }) => Some(None),
            _ => None,
        }
    }
}

fn written(properties: Properties) -> Result<State, Reasons> {
    Ok(Some(Entity { properties, etag: None }))
}

fn merged(old: Properties, new: Properties) -> Properties {
    let either = |old, new| if new == 0 { old } else { new };
    Properties { left: either(old.left, new.left), right: either(old.right, new.right) }
}

fn meets(entity: &Entity, condition: &Condition, answer: Option<&Answer>) -> Result<(), Reasons> {
    let is_met = match (condition, &entity.etag) {
        (Condition::None | Condition::Exists, _) => true,
        (Condition::Absent, _) => false,
        (Condition::Is(wanted), Some(etag)) => wanted == etag,
        // If the ETag is unknown, the answer shows whether it was this one.
        (Condition::Is(_), None) => {
            matches!(answer, Some(Answer::Written { .. } | Answer::Deleted))
        }
    };
    let reasons = || vec![(412, "UpdateConditionNotSatisfied"), (412, "ConditionNotMet")];
    if is_met { Ok(()) } else { Err(reasons()) }
}
