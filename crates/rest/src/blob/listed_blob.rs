//! What a listing shows of a blob, in any form of the answer: the name of each element, and the
//! function for its value.

use holdfast_domain::blob::{Encryption, Kind, ListedBlob, ListedState};
use holdfast_domain::copy::CopyState;
use holdfast_domain::metadata::Metadata;
use holdfast_domain::tags::TagSet;
use holdfast_domain::time::Timestamp;

use super::headers;
use super::list_blobs::Include;
use crate::source::copy_status_description;
use crate::version::Version;

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// A blob in a listing, with the options of the request.
pub struct Entry<'a> {
    pub listed: &'a ListedBlob,
    pub include: Include,
    pub version: Version,
    pub now: Timestamp,
}

pub enum Value {
    /// The element is omitted.
    None,
    Text(String),
    Flag(bool),
    Number(u64),
    Time(Timestamp),
}

/// The type of a field's value, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Text,
    Flag,
    Number,
    Time,
}

pub type Field = (&'static str, Type, fn(&Entry<'_>) -> Value);

/// Which state of the blob this is.
pub const IDENTITY: &[Field] = &[
    ("Deleted", Type::Flag, |entry| flag_if(entry.listed.deleted.is_some())),
    ("Snapshot", Type::Text, |entry| match entry.listed.state {
        ListedState::Snapshot(moment) => text(moment.iso8601()),
        ListedState::Base | ListedState::Version(_) => Value::None,
    }),
    ("VersionId", Type::Text, |entry| match entry.listed.state {
        ListedState::Base => entry.since(Version::V2019_12_12, |entry| {
            entry.listed.blob.version.map_or(Value::None, |version| text(version.iso8601()))
        }),
        ListedState::Version(moment) => text(moment.iso8601()),
        ListedState::Snapshot(_) => Value::None,
    }),
    ("IsCurrentVersion", Type::Flag, |entry| {
        let current = entry.is_current() && entry.listed.blob.version.is_some();
        entry.since(Version::V2019_12_12, |_| flag_if(current))
    }),
    ("HasVersionsOnly", Type::Flag, |entry| flag_if(entry.listed.has_versions_only)),
];

/// The properties of an uncommitted blob.
pub fn of_uncommitted(property: &str) -> Value {
    match property {
        "Content-Length" => Value::Number(0),
        "BlobType" => text(headers::kind_name(Kind::Block)),
        _ => Value::None,
    }
}

pub const PROPERTIES: &[Field] = &[
    ("Creation-Time", Type::Time, |entry| {
        entry.since(Version::V2017_11_09, |entry| Value::Time(entry.listed.blob.created))
    }),
    ("Last-Modified", Type::Time, |entry| Value::Time(entry.listed.blob.last_modified)),
    // Listings show ETags without their quotes.
    ("Etag", Type::Text, |entry| text(entry.listed.blob.etag.unquoted())),
    ("Content-Length", Type::Number, |entry| Value::Number(entry.listed.blob.length)),
    ("Content-Type", Type::Text, |entry| text(headers::content_type(&entry.listed.blob.headers))),
    ("Content-Encoding", Type::Text, |entry| or_empty(&entry.listed.blob.headers.content_encoding)),
    ("Content-Language", Type::Text, |entry| or_empty(&entry.listed.blob.headers.content_language)),
    ("Content-MD5", Type::Text, |entry| {
        or_empty(&entry.listed.blob.headers.content_md5.as_ref().map(headers::encode_md5))
    }),
    ("Cache-Control", Type::Text, |entry| or_empty(&entry.listed.blob.headers.cache_control)),
    ("Content-Disposition", Type::Text, |entry| {
        or_empty(&entry.listed.blob.headers.content_disposition)
    }),
    ("x-ms-blob-sequence-number", Type::Number, |entry| match entry.listed.blob.kind {
        Kind::Page { sequence_number, .. } => Value::Number(sequence_number.get()),
        Kind::Block | Kind::Append { .. } => Value::None,
    }),
    ("BlobType", Type::Text, |entry| text(headers::kind_name(entry.listed.blob.kind))),
    ("Sealed", Type::Flag, |entry| match entry.listed.blob.kind {
        Kind::Append { sealed, .. } => flag_if(sealed),
        Kind::Block | Kind::Page { .. } => Value::None,
    }),
    ("AccessTier", Type::Text, |entry| {
        entry.since(Version::V2017_04_17, |entry| text(headers::tier(&entry.listed.blob).0))
    }),
    ("AccessTierInferred", Type::Flag, |entry| {
        entry.since(Version::V2017_04_17, |entry| flag_if(headers::tier(&entry.listed.blob).1))
    }),
    ("AccessTierChangeTime", Type::Time, |entry| {
        entry.since(Version::V2017_04_17, |entry| time(entry.listed.blob.tier_changed))
    }),
    ("SmartAccessTier", Type::Text, |entry| {
        let tier = headers::smart_tier(&entry.listed.blob);
        entry.since(Version::V2026_06_06, |_| optional(tier))
    }),
    ("ArchiveStatus", Type::Text, |entry| {
        optional(entry.listed.blob.rehydration.map(headers::archive_status))
    }),
    ("RehydratePriority", Type::Text, |entry| {
        optional(entry.listed.blob.rehydration.map(headers::rehydrate_priority))
    }),
    ("LeaseStatus", Type::Text, |entry| {
        entry.lease(|entry| text(headers::lease_status(&entry.listed.blob.lease, entry.now)))
    }),
    ("LeaseState", Type::Text, |entry| {
        entry.lease(|entry| text(headers::lease_state(&entry.listed.blob.lease, entry.now)))
    }),
    ("LeaseDuration", Type::Text, |entry| {
        entry.lease(|entry| optional(headers::lease_duration(&entry.listed.blob.lease, entry.now)))
    }),
    ("CopyId", Type::Text, |entry| entry.copy(|copy| text(&copy.id))),
    ("CopyStatus", Type::Text, |entry| entry.copy(|copy| text(headers::copy_status(copy.status)))),
    ("CopySource", Type::Text, |entry| entry.copy(|copy| text(&copy.source))),
    ("CopyProgress", Type::Text, |entry| entry.copy(|copy| text(headers::copy_progress(copy)))),
    ("CopyCompletionTime", Type::Time, |entry| entry.copy(|copy| time(copy.completed))),
    ("CopyStatusDescription", Type::Text, |entry| {
        entry.copy(|copy| optional(copy.failure.as_ref().map(copy_status_description)))
    }),
    ("IncrementalCopy", Type::Flag, |entry| {
        let copy = entry.listed.blob.copy.as_ref();
        flag_if(copy.is_some_and(|copy| copy.incremental.is_some()))
    }),
    ("DestinationSnapshot", Type::Text, |entry| {
        entry.copy(|copy| {
            let snapshot = copy.incremental.and_then(|copy| copy.destination_snapshot);
            optional(snapshot.map(Timestamp::iso8601))
        })
    }),
    ("ServerEncrypted", Type::Flag, |_| Value::Flag(true)),
    ("CustomerProvidedKeySha256", Type::Text, |entry| match &entry.listed.blob.encryption {
        Encryption::CustomerKey { sha256 } => text(headers::encode_sha256(sha256)),
        Encryption::Account | Encryption::Scope(_) => Value::None,
    }),
    ("EncryptionScope", Type::Text, |entry| match &entry.listed.blob.encryption {
        Encryption::Scope(scope) => text(scope),
        Encryption::Account | Encryption::CustomerKey { .. } => Value::None,
    }),
    ("TagCount", Type::Number, |entry| match entry.listed.blob.tags.len() {
        0 => Value::None,
        count => Value::Number(count as u64),
    }),
    ("Expiry-Time", Type::Time, |entry| time(entry.listed.blob.expires)),
    ("ImmutabilityPolicyUntilDate", Type::Time, |entry| {
        let policy = entry.listed.blob.immutability.filter(|_| entry.include.immutability);
        time(policy.map(|policy| policy.until))
    }),
    ("ImmutabilityPolicyMode", Type::Text, |entry| {
        let policy = entry.listed.blob.immutability.filter(|_| entry.include.immutability);
        optional(policy.map(headers::policy_mode))
    }),
    ("LegalHold", Type::Flag, |entry| {
        flag_if(entry.include.legal_hold && entry.listed.blob.legal_hold)
    }),
    ("DeletedTime", Type::Time, |entry| time(entry.listed.deleted.map(|deleted| deleted.at))),
    ("RemainingRetentionDays", Type::Number, |entry| match entry.listed.deleted {
        Some(deleted) => {
            Value::Number(deleted.until.since(entry.now).as_secs().div_ceil(SECONDS_PER_DAY))
        }
        None => Value::None,
    }),
];

impl Entry<'_> {
    pub fn metadata(&self) -> Option<&Metadata> {
        self.include.metadata.then_some(&self.listed.blob.metadata)
    }

    pub fn tags(&self) -> Option<&TagSet> {
        let tags = &self.listed.blob.tags;
        (self.include.tags && !tags.is_empty()).then_some(tags)
    }

    fn is_current(&self) -> bool {
        self.listed.state == ListedState::Base && self.listed.deleted.is_none()
    }

    fn since(&self, version: Version, value: impl Fn(&Self) -> Value) -> Value {
        if self.version >= version { value(self) } else { Value::None }
    }

    /// Only the current state can have a lease.
    fn lease(&self, value: impl Fn(&Self) -> Value) -> Value {
        if self.is_current() { value(self) } else { Value::None }
    }

    fn copy(&self, value: impl Fn(&CopyState) -> Value) -> Value {
        let copy = self.listed.blob.copy.as_ref().filter(|_| self.include.copy);
        copy.map_or(Value::None, value)
    }
}

fn text(value: impl ToString) -> Value {
    Value::Text(value.to_string())
}

fn optional(value: Option<impl ToString>) -> Value {
    value.map_or(Value::None, text)
}

/// Headers that are not set are listed as empty elements.
fn or_empty(value: &Option<String>) -> Value {
    Value::Text(value.clone().unwrap_or_default())
}

fn flag_if(flag: bool) -> Value {
    if flag { Value::Flag(true) } else { Value::None }
}

fn time(value: Option<Timestamp>) -> Value {
    value.map_or(Value::None, Value::Time)
}
