//! The conditions of table entities: `If-Match` alone, and not on every operation.

use crate::etag::EntityETag;

/// What an operation does with `If-Match`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMatchUse {
    /// Insert Entity.
    Ignored,
    /// Update and Merge; without it they insert a missing entity. Before 2011-08-18 they could not,
    /// and it was [`IfMatchUse::Required`].
    Optional,
    /// Delete Entity.
    Required,
    /// Operations on tables, which have no ETag.
    Refused,
}

/// Why the condition headers of a table request make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntityConditionInvalid {
    #[error("the operation needs If-Match")]
    Missing,
    #[error("the operation takes no If-None-Match")]
    NoneMatchNotSupported,
    #[error("the resource has no ETag to match")]
    NotSupported,
    #[error("the value of If-Match is no ETag of an entity")]
    Malformed,
}

/// The value of `If-Match` on an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntityCondition {
    Any,
    Exactly(EntityETag),
    /// Has the form of a weak ETag, but no entity can have it.
    Nothing,
}

impl EntityCondition {
    /// Reads both headers of a request, as far as the operation uses them.
    pub fn read(
        usage: IfMatchUse,
        if_match: Option<&str>,
        if_none_match: Option<&str>,
    ) -> Result<Option<Self>, EntityConditionInvalid> {
        let text = match (usage, if_match) {
            (IfMatchUse::Ignored, _) => return Ok(None),
            (_, _) if if_none_match.is_some() => {
                return Err(EntityConditionInvalid::NoneMatchNotSupported);
            }
            (IfMatchUse::Refused, Some(_)) => return Err(EntityConditionInvalid::NotSupported),
            (IfMatchUse::Required, None) => return Err(EntityConditionInvalid::Missing),
            (IfMatchUse::Refused | IfMatchUse::Optional, None) => return Ok(None),
            (IfMatchUse::Optional | IfMatchUse::Required, Some(text)) => text.trim(),
        };
        if text == "*" {
            return Ok(Some(Self::Any));
        }
        match EntityETag::parse(text) {
            Some(etag) => Ok(Some(Self::Exactly(etag))),
            // The service compares a text of the right form, and refuses any other
            // (github.com/Azure/Azurite/issues/1229 and 2013).
            None if is_weak_etag(text) => Ok(Some(Self::Nothing)),
            None => Err(EntityConditionInvalid::Malformed),
        }
    }
}

fn is_weak_etag(text: &str) -> bool {
    let inside = text.strip_prefix("W/\"").and_then(|rest| rest.strip_suffix('"'));
    inside.is_some_and(|inside| !inside.contains('"'))
}

/// Which writes need the entity to exist, or not to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntityWrite {
    Insert,
    /// Update and Merge with If-Match, Insert Or Replace and Insert Or Merge without.
    Change,
    Delete,
}

/// Why a write of an entity is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntityRefusal {
    #[error("the entity already exists")]
    AlreadyExists,
    #[error("the entity does not exist")]
    NotFound,
    #[error("the entity has changed since its ETag was read")]
    NotSatisfied,
}

/// `current` is the ETag of the entity that is there, if one is.
pub fn check_entity(
    write: EntityWrite,
    condition: Option<EntityCondition>,
    current: Option<EntityETag>,
) -> Result<(), EntityRefusal> {
    match (write, condition, current) {
        (EntityWrite::Insert, _, Some(_)) => Err(EntityRefusal::AlreadyExists),
        (EntityWrite::Insert, _, None) | (EntityWrite::Change, None, _) => Ok(()),
        (EntityWrite::Change, Some(_), None) | (EntityWrite::Delete, _, None) => {
            Err(EntityRefusal::NotFound)
        }
        (_, Some(EntityCondition::Exactly(etag)), Some(current)) if etag != current => {
            Err(EntityRefusal::NotSatisfied)
        }
        (_, Some(EntityCondition::Nothing), Some(_)) => Err(EntityRefusal::NotSatisfied),
        (EntityWrite::Change | EntityWrite::Delete, _, Some(_)) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    const A: EntityETag = EntityETag::new(Timestamp::from_ticks(638_000_000_000_000_000));
    const B: EntityETag = EntityETag::new(Timestamp::from_ticks(638_000_000_000_000_001));

    #[test]
    fn the_headers_of_a_table_request_are_read_as_its_operation_needs() {
        use EntityConditionInvalid::{Malformed, Missing, NoneMatchNotSupported, NotSupported};
        use IfMatchUse::{Ignored, Optional, Refused, Required};
        let etag = A.to_string();
        let etag = Some(etag.as_str());
        let (any, exact) = (Ok(Some(EntityCondition::Any)), Ok(Some(EntityCondition::Exactly(A))));
        let nothing = Ok(Some(EntityCondition::Nothing));
        for (cell, usage, if_match, if_none_match, expected) in [
            ("4.4 Insert / If-Match not used", Ignored, Some("garbage"), None, Ok(None)),
            ("4.4 Update, Merge / ETag", Optional, etag, None, exact),
            ("4.4 Update, Merge / *", Optional, Some("*"), None, any),
            ("4.4 Insert Or Replace / absent", Optional, None, None, Ok(None)),
            ("4.4 Insert Or Replace before 2011-08-18", Required, None, None, Err(Missing)),
            ("4.4 Delete / ETag", Required, etag, None, exact),
            ("4.4 Delete / *", Required, Some("*"), None, any),
            ("4.4 Delete / absent", Required, None, None, Err(Missing)),
            (
                "1.3 Table entity If-None-Match / PUT",
                Optional,
                None,
                Some("*"),
                Err(NoneMatchNotSupported),
            ),
            (
                "1.3 Table entity If-None-Match / DELETE",
                Required,
                None,
                etag,
                Err(NoneMatchNotSupported),
            ),
            (
                "4.4 both If-Match and If-None-Match",
                Optional,
                etag,
                etag,
                Err(NoneMatchNotSupported),
            ),
            ("4.4 bad ETag text", Optional, Some("\"0x8D\""), None, Err(Malformed)),
            ("4.4 bad ETag text / Delete", Required, Some("x"), None, Err(Malformed)),
            ("4.4 two ETags", Required, Some("W/\"x\", W/\"y\""), None, Err(Malformed)),
            ("4.4 half an ETag", Required, Some("W/\""), None, Err(Malformed)),
            ("4.4 a weak ETag of others", Optional, Some("W/\"wrong\""), None, nothing),
            ("4.4 If-Match on a table", Refused, Some("*"), None, Err(NotSupported)),
            ("4.4 no If-Match on a table", Refused, None, None, Ok(None)),
        ] {
            let read = EntityCondition::read(usage, if_match, if_none_match);
            assert_eq!(read, expected, "{cell}");
        }
    }

    #[test]
    fn entities_are_written_only_as_their_condition_allows() {
        use EntityRefusal::{AlreadyExists, NotFound, NotSatisfied};
        use EntityWrite::{Change, Delete, Insert};
        let any = Some(EntityCondition::Any);
        let exact = Some(EntityCondition::Exactly(A));
        let nothing = Some(EntityCondition::Nothing);
        for (cell, write, condition, current, expected) in [
            ("4.4 Insert / exists", Insert, None, Some(A), Err(AlreadyExists)),
            ("4.4 Insert / absent", Insert, None, None, Ok(())),
            ("4.4 Update, Merge ETag / exists, equal", Change, exact, Some(A), Ok(())),
            ("4.4 Update, Merge ETag / exists, other", Change, exact, Some(B), Err(NotSatisfied)),
            ("4.4 Update, Merge ETag / absent", Change, exact, None, Err(NotFound)),
            ("4.4 Update, Merge * / exists", Change, any, Some(B), Ok(())),
            ("4.4 Update, Merge * / absent", Change, any, None, Err(NotFound)),
            ("4.4 Insert Or Replace, Merge / exists", Change, None, Some(B), Ok(())),
            ("4.4 Insert Or Replace, Merge / absent", Change, None, None, Ok(())),
            ("4.4 Delete ETag / exists, equal", Delete, exact, Some(A), Ok(())),
            ("4.4 Delete ETag / exists, other", Delete, exact, Some(B), Err(NotSatisfied)),
            ("4.4 Delete ETag / absent", Delete, exact, None, Err(NotFound)),
            ("4.4 Update, Merge weak / exists", Change, nothing, Some(B), Err(NotSatisfied)),
            ("4.4 Update, Merge weak / absent", Change, nothing, None, Err(NotFound)),
            ("4.4 Delete weak / exists", Delete, nothing, Some(B), Err(NotSatisfied)),
            ("4.4 Delete * / exists", Delete, any, Some(B), Ok(())),
            ("4.4 Delete * / absent", Delete, any, None, Err(NotFound)),
        ] {
            assert_eq!(check_entity(write, condition, current), expected, "{cell}");
        }
    }
}
