//! Conditional requests: whether a request may go on, given what it asks for and what is there.
//!
//! Nothing here knows an API version or a status: the front end says which combination rule applies
//! and turns refusals into answers. A blob that has only staged blocks is no subject: `If-Match: *`
//! fails on it and `If-None-Match: *` passes, as if nothing were there.

mod append;
mod entity;
mod sequence;

pub use append::{AppendConditions, AppendRefusal};
pub use entity::{
    EntityCondition, EntityConditionInvalid, EntityRefusal, EntityWrite, IfMatchUse, check_entity,
};
pub use sequence::{
    SequenceAction, SequenceActionInvalid, SequenceConditionNotMet, SequenceConditions,
    SequenceNumber, SequenceNumberTooLarge,
};

use crate::etag::ETag;
use crate::tags::{TagPredicate, TagSet};
use crate::time::Timestamp;

/// The conditions of a request; headers that were not sent are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    pub if_match: Option<ETagList>,
    pub if_none_match: Option<ETagList>,
    pub if_modified_since: Option<Timestamp>,
    pub if_unmodified_since: Option<Timestamp>,
    pub if_tags: Option<TagPredicate>,
}

/// The value of an `If-Match` or `If-None-Match` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ETagList {
    Any,
    Listed(Vec<ETagText>),
}

/// One ETag that a client sent. Text without the form of our ETags equals none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ETagText {
    Ours(ETag),
    Foreign,
}

impl ETagList {
    /// Reads a header value: `*`, or ETags separated by commas. None if it holds no ETag at all.
    /// A `*` in a list is a text that equals no ETag.
    pub fn parse(text: &str) -> Option<Self> {
        if text.trim() == "*" {
            return Some(Self::Any);
        }
        let listed: Vec<_> = split_outside_quotes(text)
            .map(str::trim)
            .filter(|etag| !etag.is_empty())
            .map(|etag| ETag::parse(etag).map_or(ETagText::Foreign, ETagText::Ours))
            .collect();
        if listed.is_empty() { None } else { Some(Self::Listed(listed)) }
    }

    fn contains(&self, etag: ETag) -> bool {
        match self {
            Self::Any => true,
            Self::Listed(listed) => listed.contains(&ETagText::Ours(etag)),
        }
    }

    fn is_several(&self) -> bool {
        match self {
            Self::Any => false,
            Self::Listed(listed) => listed.len() > 1,
        }
    }
}

impl From<ETag> for ETagList {
    fn from(etag: ETag) -> Self {
        Self::Listed(vec![ETagText::Ours(etag)])
    }
}

fn split_outside_quotes(text: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |character| {
        quoted ^= character == '"';
        character == ',' && !quoted
    })
}

/// The existing state that conditions are compared with.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub etag: ETag,
    pub last_modified: Timestamp,
    pub tags: &'a TagSet,
}

/// Which conditions one request may carry together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CombinationRule {
    /// Reads of blobs since 2013-08-15: any, and lists of ETags.
    Free,
    /// Writes, and older reads: If-None-Match with If-Modified-Since, or If-Match with
    /// If-Unmodified-Since, and one ETag in each.
    Pairs,
}

/// `MultipleConditionHeadersNotSupported`
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these conditions cannot be combined in one request")]
pub struct CombinationRefused;

/// Checked before anything is looked up: it does not depend on what is there.
pub fn validate_combination(
    conditions: &Conditions,
    rule: CombinationRule,
) -> Result<(), CombinationRefused> {
    match rule {
        CombinationRule::Free => return Ok(()),
        CombinationRule::Pairs => {}
    }
    let several = |list: &Option<ETagList>| list.as_ref().is_some_and(ETagList::is_several);
    if several(&conditions.if_match) || several(&conditions.if_none_match) {
        return Err(CombinationRefused);
    }
    let unchanged = conditions.if_match.is_some() || conditions.if_unmodified_since.is_some();
    let changed = conditions.if_none_match.is_some() || conditions.if_modified_since.is_some();
    // The headers of an allowed pair ask for the same thing; every other pair asks for both.
    if unchanged && changed { Err(CombinationRefused) } else { Ok(()) }
}

/// Why a read is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadRefusal {
    #[error("the resource has not been modified")]
    NotModified,
    #[error("a condition of the read is not met")]
    NotMet,
    /// `If-None-Match: *` asks a read to go on only if there is nothing to read.
    #[error("no state of the resource can meet the condition of the read")]
    Unsatisfiable,
}

/// Conditions of a read, by [`CombinationRule::Free`]:
/// `If-Match and If-Unmodified-Since and (If-None-Match or If-Modified-Since)`.
///
/// `If-None-Match: *` was ignored before 2016-05-31: the front end leaves it out for such a
/// request. `Ok` without a subject means "not found".
pub fn check_read(
    conditions: &Conditions,
    subject: Option<&Subject<'_>>,
) -> Result<(), ReadRefusal> {
    if conditions.if_none_match == Some(ETagList::Any) {
        return Err(ReadRefusal::Unsatisfiable);
    }
    let Some(subject) = subject else {
        // The reference leaves open whether "not found" comes first; Azurite answers 412, and so
        // a client that sent an ETag learns that the state it knew is gone.
        return if conditions.if_match.is_some() { Err(ReadRefusal::NotMet) } else { Ok(()) };
    };
    let outcome = Outcome::of(conditions, subject);
    if outcome.required_failed() {
        return Err(ReadRefusal::NotMet);
    }
    match (outcome.none_match, outcome.modified_since) {
        (Some(false), Some(false) | None) | (None, Some(false)) => Err(ReadRefusal::NotModified),
        (Some(true), _) | (_, Some(true)) | (None, None) => Ok(()),
    }
}

/// Conditions of a read by [`CombinationRule::Pairs`], where an ETag decides alone.
pub fn check_read_by_pairs(
    conditions: &Conditions,
    subject: Option<&Subject<'_>>,
) -> Result<(), ReadRefusal> {
    let deciding = Conditions {
        if_modified_since: conditions
            .if_modified_since
            .filter(|_| conditions.if_none_match.is_none()),
        if_unmodified_since: conditions
            .if_unmodified_since
            .filter(|_| conditions.if_match.is_none()),
        ..conditions.clone()
    };
    check_read(&deciding, subject)
}

/// The kinds of writes, which differ in `If-None-Match: *` and the code of its refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// Put Blob of every type, Put Block List, Put Blob From URL, Path Create.
    Create,
    /// Copy Blob and Copy Blob From URL, compared with their destination.
    Copy,
    /// Every other write: properties, metadata, pages, appends, leases, snapshots, deletes.
    InPlace,
}

/// Why a write is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteRefusal {
    #[error("a condition of the write is not met")]
    NotMet,
    /// The same on the destination of a copy, for which the service has another code.
    #[error("a condition on the destination of the copy is not met")]
    TargetNotMet,
    /// `If-None-Match: *` on something that is there.
    #[error("the resource already exists")]
    AlreadyExists,
}

/// Conditions of a write, which [`validate_combination`] has passed by [`CombinationRule::Pairs`].
///
/// Without a subject, `If-Match` fails and every other condition passes; `Ok` then means that an
/// in-place write finds nothing and a creation continues.
pub fn check_write(
    conditions: &Conditions,
    kind: WriteKind,
    subject: Option<&Subject<'_>>,
) -> Result<(), WriteRefusal> {
    let not_met = match kind {
        WriteKind::Create | WriteKind::InPlace => WriteRefusal::NotMet,
        WriteKind::Copy => WriteRefusal::TargetNotMet,
    };
    let Some(subject) = subject else {
        return if conditions.if_match.is_some() { Err(not_met) } else { Ok(()) };
    };
    if conditions.if_none_match == Some(ETagList::Any) {
        match kind {
            // For copies the reference says 412. Clients that copy to a new name only (Apache
            // Arrow's object store among them) are written for the 409 that creations give.
            WriteKind::Create | WriteKind::Copy => return Err(WriteRefusal::AlreadyExists),
            // The service lets these pass (Azurite notes it for Set Blob Properties).
            WriteKind::InPlace => {}
        }
    }
    let outcome = Outcome::of(conditions, subject);
    // Where both of a pair were sent, the ETag decides alone.
    let none_match = match (&conditions.if_none_match, outcome.modified_since) {
        (Some(ETagList::Any), _) => Some(true),
        (Some(ETagList::Listed(_)), _) => outcome.none_match,
        (None, modified_since) => modified_since,
    };
    let matched = outcome.matched.or(outcome.unmodified_since);
    let met = [matched, none_match, outcome.tags].into_iter().all(|part| part.unwrap_or(true));
    if met { Ok(()) } else { Err(not_met) }
}

/// Why nothing is copied from a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceRefusal {
    #[error("a condition on the source of the copy is not met")]
    NotMet,
    /// The service has a code of its own for it.
    #[error("the condition on the tags of the source is not met")]
    TagsNotMet,
}

/// The `x-ms-source-if-*` conditions, compared with the source of a copy. They combine as those of
/// a read do; the caller refuses a missing source.
pub fn check_source(conditions: &Conditions, source: &Subject<'_>) -> Result<(), SourceRefusal> {
    let without_tags = Conditions { if_tags: None, ..conditions.clone() };
    check_read(&without_tags, Some(source)).map_err(|refusal| match refusal {
        ReadRefusal::NotModified | ReadRefusal::NotMet | ReadRefusal::Unsatisfiable => {
            SourceRefusal::NotMet
        }
    })?;
    match &conditions.if_tags {
        Some(predicate) if !predicate.matches(source.tags) => Err(SourceRefusal::TagsNotMet),
        Some(_) | None => Ok(()),
    }
}

/// The two date conditions, the only ones of containers. `x-ms-access-tier-if-*` compares the same
/// two with the time of the last change of tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DateConditions {
    pub if_modified_since: Option<Timestamp>,
    pub if_unmodified_since: Option<Timestamp>,
}

/// `ConditionNotMet`
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a condition on the time of the last change is not met")]
pub struct DateConditionNotMet;

impl DateConditions {
    pub fn validate_combination(&self) -> Result<(), CombinationRefused> {
        let both = self.if_modified_since.is_some() && self.if_unmodified_since.is_some();
        if both { Err(CombinationRefused) } else { Ok(()) }
    }

    pub fn check(&self, last_changed: Timestamp) -> Result<(), DateConditionNotMet> {
        let modified = self.if_modified_since.is_none_or(|date| is_later(last_changed, date));
        let unmodified = self.if_unmodified_since.is_none_or(|date| !is_later(last_changed, date));
        if modified && unmodified { Ok(()) } else { Err(DateConditionNotMet) }
    }
}

impl From<&Conditions> for DateConditions {
    fn from(conditions: &Conditions) -> Self {
        Self {
            if_modified_since: conditions.if_modified_since,
            if_unmodified_since: conditions.if_unmodified_since,
        }
    }
}

/// Each condition by itself: passed, failed, or not asked for.
struct Outcome {
    matched: Option<bool>,
    unmodified_since: Option<bool>,
    none_match: Option<bool>,
    modified_since: Option<bool>,
    tags: Option<bool>,
}

impl Outcome {
    fn of(conditions: &Conditions, subject: &Subject<'_>) -> Self {
        let later = |date| is_later(subject.last_modified, date);
        Self {
            matched: conditions.if_match.as_ref().map(|list| list.contains(subject.etag)),
            unmodified_since: conditions.if_unmodified_since.map(|date| !later(date)),
            none_match: conditions.if_none_match.as_ref().map(|list| !list.contains(subject.etag)),
            modified_since: conditions.if_modified_since.map(later),
            tags: conditions.if_tags.as_ref().map(|predicate| predicate.matches(subject.tags)),
        }
    }

    fn required_failed(&self) -> bool {
        [self.matched, self.unmodified_since, self.tags].contains(&Some(false))
    }
}

/// Clients see Last-Modified in whole seconds and send it back, so the fraction must not count.
fn is_later(time: Timestamp, date: Timestamp) -> bool {
    time.whole_seconds() > date.whole_seconds()
}

#[cfg(test)]
mod tests;
