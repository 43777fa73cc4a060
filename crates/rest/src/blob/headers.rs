//! Headers that several blob operations read or write.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_domain::blob::{
    AccessTier, Blob, Immutability, Kind, ReadBlob, RehydratePriority, Rehydration,
};
use holdfast_domain::condition::{
    CombinationRule, Conditions, DateConditions, ETagList, validate_combination,
};
use holdfast_domain::content::ContentHeaders;
use holdfast_domain::tags::TagPredicate;

use super::encryption;
use crate::answer::Answer;
use crate::error::{Code, Error};
pub use crate::headers::content_headers::{
    content_type, digests, encode_md5, md5_header, source_digests, stored_headers, whole_md5,
};
pub use crate::headers::copy_state::{copy_progress, copy_state, copy_status};
pub use crate::headers::resource_headers::{
    identity, lease, lease_duration, lease_state, lease_status, metadata,
};
use crate::request::Call;
use crate::version::Version;

/// The conditions of a write: pairs of headers only.
pub fn write_conditions(call: &Call<'_>) -> Result<Conditions, Error> {
    conditions(call, CombinationRule::Pairs)
}

/// The conditions of a read, and the rule by which they combine at the version of the request.
pub fn read_conditions(call: &Call<'_>) -> Result<(Conditions, CombinationRule), Error> {
    let rule = if call.version >= Version::V2013_08_15 {
        CombinationRule::Free
    } else {
        CombinationRule::Pairs
    };
    let mut conditions = conditions(call, rule)?;
    if call.version < Version::V2016_05_31 && conditions.if_none_match == Some(ETagList::Any) {
        conditions.if_none_match = None;
    }
    Ok((conditions, rule))
}

/// The conditions of the calls on tags, whose other headers have been known since 2026-02-06.
pub fn tag_call_conditions(call: &Call<'_>) -> Result<Conditions, Error> {
    const NAMES: ConditionNames = ConditionNames {
        if_match: "x-ms-blob-if-match",
        if_none_match: "x-ms-blob-if-none-match",
        if_modified_since: "x-ms-blob-if-modified-since",
        if_unmodified_since: "x-ms-blob-if-unmodified-since",
    };
    if call.version < Version::V2026_02_06 {
        return Ok(Conditions { if_tags: tag_predicate(call)?, ..Conditions::default() });
    }
    named_conditions(call, CombinationRule::Pairs, NAMES)
}

struct ConditionNames {
    if_match: &'static str,
    if_none_match: &'static str,
    if_modified_since: &'static str,
    if_unmodified_since: &'static str,
}

fn conditions(call: &Call<'_>, rule: CombinationRule) -> Result<Conditions, Error> {
    const NAMES: ConditionNames = ConditionNames {
        if_match: "if-match",
        if_none_match: "if-none-match",
        if_modified_since: "if-modified-since",
        if_unmodified_since: "if-unmodified-since",
    };
    named_conditions(call, rule, NAMES)
}

fn named_conditions(
    call: &Call<'_>,
    rule: CombinationRule,
    names: ConditionNames,
) -> Result<Conditions, Error> {
    let conditions = Conditions {
        if_match: etags(call, names.if_match)?,
        if_none_match: etags(call, names.if_none_match)?,
        if_modified_since: call.date_header(names.if_modified_since)?,
        if_unmodified_since: call.date_header(names.if_unmodified_since)?,
        if_tags: tag_predicate(call)?,
    };
    validate_combination(&conditions, rule)
        .map_err(|_| Code::MultipleConditionHeadersNotSupported)?;
    Ok(conditions)
}

/// The conditions that containers take.
pub fn date_conditions(call: &Call<'_>) -> Result<DateConditions, Error> {
    let conditions = DateConditions {
        if_modified_since: call.date_header("if-modified-since")?,
        if_unmodified_since: call.date_header("if-unmodified-since")?,
    };
    conditions.validate_combination().map_err(|_| Code::MultipleConditionHeadersNotSupported)?;
    Ok(conditions)
}

/// The conditions on the time of the last change of tier that Delete Blob takes.
pub fn tier_conditions(call: &Call<'_>) -> Result<DateConditions, Error> {
    Ok(DateConditions {
        if_modified_since: call.date_header("x-ms-access-tier-if-modified-since")?,
        if_unmodified_since: call.date_header("x-ms-access-tier-if-unmodified-since")?,
    })
}

fn etags(call: &Call<'_>, name: &'static str) -> Result<Option<ETagList>, Error> {
    let Some(text) = call.header(name)? else { return Ok(None) };
    ETagList::parse(text).map(Some).ok_or_else(|| Error::invalid_header(name, text))
}

fn tag_predicate(call: &Call<'_>) -> Result<Option<TagPredicate>, Error> {
    const NAME: &str = "x-ms-if-tags";
    let Some(text) = call.header(NAME)? else { return Ok(None) };
    if !call.granted.may_read_tags {
        return Err(Code::AuthorizationPermissionMismatch.into());
    }
    match TagPredicate::parse(text) {
        Ok(predicate) => Ok(Some(predicate)),
        Err(_) => Err(Error::invalid_header(NAME, text)),
    }
}

/// The headers `x-ms-blob-content-*`; with `plain`, the standard headers apply where those are
/// absent.
pub fn content_headers(call: &Call<'_>, plain: bool) -> Result<ContentHeaders, Error> {
    let either = |own: &'static str, other: &'static str| -> Result<Option<String>, Error> {
        let sent = match call.header(own)? {
            Some(value) => Some(value),
            None if plain => call.header(other)?,
            None => None,
        };
        Ok(sent.map(str::to_owned))
    };
    Ok(ContentHeaders {
        content_type: either("x-ms-blob-content-type", "content-type")?,
        content_encoding: either("x-ms-blob-content-encoding", "content-encoding")?,
        content_language: either("x-ms-blob-content-language", "content-language")?,
        content_disposition: call.header("x-ms-blob-content-disposition")?.map(str::to_owned),
        cache_control: either("x-ms-blob-cache-control", "cache-control")?,
        content_md5: md5_header(call, "x-ms-blob-content-md5")?,
    })
}

/// Before 2013-08-15 a lease id was ignored when a blob was created.
pub fn lease_needs_blob(call: &Call<'_>) -> bool {
    call.version >= Version::V2013_08_15
}

const TIERS: [(AccessTier, &str); 16] = [
    (AccessTier::Hot, "Hot"),
    (AccessTier::Cool, "Cool"),
    (AccessTier::Cold, "Cold"),
    (AccessTier::Archive, "Archive"),
    (AccessTier::Smart, "Smart"),
    (AccessTier::P4, "P4"),
    (AccessTier::P6, "P6"),
    (AccessTier::P10, "P10"),
    (AccessTier::P15, "P15"),
    (AccessTier::P20, "P20"),
    (AccessTier::P30, "P30"),
    (AccessTier::P40, "P40"),
    (AccessTier::P50, "P50"),
    (AccessTier::P60, "P60"),
    (AccessTier::P70, "P70"),
    (AccessTier::P80, "P80"),
];

pub fn parse_tier(text: &str) -> Option<AccessTier> {
    TIERS.iter().find(|(_, name)| name.eq_ignore_ascii_case(text)).map(|(tier, _)| *tier)
}

/// The name of a blob's tier, and whether it is the account's default rather than chosen.
pub fn tier(blob: &Blob) -> (&'static str, bool) {
    let tier = blob.tier.unwrap_or(AccessTier::Hot);
    (tier_name(tier), blob.tier.is_none())
}

pub fn tier_name(tier: AccessTier) -> &'static str {
    TIERS.iter().find(|(named, _)| *named == tier).map_or("Hot", |(_, name)| name)
}

pub fn access_tier(answer: &mut Answer, blob: &Blob) {
    let (tier, inferred) = tier(blob);
    answer.header("x-ms-access-tier", tier);
    answer.optional_header("x-ms-access-tier-inferred", inferred.then_some("true"));
    let changed = blob.tier_changed.map(|changed| changed.rfc1123().to_string());
    answer.optional_header("x-ms-access-tier-change-time", changed);
    answer.optional_header("x-ms-smart-access-tier", smart_tier(blob));
}

/// The current tier of a blob in the smart tier, which the service would move: here it stays in the
/// first.
pub fn smart_tier(blob: &Blob) -> Option<&'static str> {
    (blob.tier == Some(AccessTier::Smart)).then_some(tier_name(AccessTier::Hot))
}

/// What Get Blob and Get Blob Properties say about a blob, without the headers of its bytes.
pub fn blob_properties(answer: &mut Answer, call: &Call<'_>, read: &ReadBlob) {
    let blob = &read.blob;
    identity(answer, blob.etag, blob.last_modified, call.version);
    metadata(answer, &blob.metadata);
    if read.current {
        lease(answer, &blob.lease, read.now);
    }
    blob_kind(answer, blob.kind);
    version_id(answer, call, blob);
    let is_current = blob.version.is_some() && read.current;
    answer.optional_header("x-ms-is-current-version", is_current.then_some("true"));
    answer.show("x-ms-creation-time", blob.created.rfc1123());
    answer.header("x-ms-server-encrypted", "true");
    encryption::describe(answer, &blob.encryption);
    if call.version >= Version::V2021_08_06 {
        answer.optional_header(encryption::CONTEXT, blob.encryption_context.as_deref());
    }
    if let Some(copy) = &blob.copy {
        copy_state(answer, copy);
    }
    if let Some(rehydration) = blob.rehydration {
        answer.header("x-ms-archive-status", archive_status(rehydration));
        answer.header("x-ms-rehydrate-priority", rehydrate_priority(rehydration));
    }
    if let Some(policy) = blob.immutability {
        answer.show("x-ms-immutability-policy-until-date", policy.until.rfc1123());
        answer.header("x-ms-immutability-policy-mode", policy_mode(policy));
    }
    answer.optional_header("x-ms-legal-hold", blob.legal_hold.then_some("true"));
    let expires = blob.expires.map(|expires| expires.rfc1123().to_string());
    answer.optional_header("x-ms-expiry-time", expires);
    if !blob.tags.is_empty() && call.granted.may_read_tags {
        answer.show("x-ms-tag-count", blob.tags.len());
    }
}

pub fn archive_status(rehydration: Rehydration) -> String {
    format!("rehydrate-pending-to-{}", tier_name(rehydration.to).to_ascii_lowercase())
}

pub fn rehydrate_priority(rehydration: Rehydration) -> &'static str {
    match rehydration.priority {
        RehydratePriority::Standard => "Standard",
        RehydratePriority::High => "High",
    }
}

pub fn policy_mode(policy: Immutability) -> &'static str {
    if policy.locked { "Locked" } else { "Unlocked" }
}

pub fn encode_sha256(sha256: &[u8; 32]) -> String {
    STANDARD.encode(sha256)
}

/// The headers for blobs of one kind.
fn blob_kind(answer: &mut Answer, kind: Kind) {
    answer.header("x-ms-blob-type", kind_name(kind));
    match kind {
        Kind::Block => {}
        Kind::Page { .. } => sequence_number(answer, kind),
        Kind::Append { blocks, sealed } => {
            answer.show("x-ms-blob-committed-block-count", blocks);
            answer.optional_header("x-ms-blob-sealed", sealed.then_some("true"));
        }
    }
}

/// The sequence number, which blobs of the other kinds do not have.
pub fn sequence_number(answer: &mut Answer, kind: Kind) {
    if let Kind::Page { sequence_number, .. } = kind {
        answer.show("x-ms-blob-sequence-number", sequence_number.get());
    }
}

pub fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Block => "BlockBlob",
        Kind::Page { .. } => "PageBlob",
        Kind::Append { .. } => "AppendBlob",
    }
}

/// The version created by a write, if versions are kept.
pub fn version_id(answer: &mut Answer, call: &Call<'_>, blob: &Blob) {
    if call.version >= Version::V2019_12_12 {
        let version = blob.version.map(|version| version.iso8601().to_string());
        answer.optional_header("x-ms-version-id", version);
    }
}
