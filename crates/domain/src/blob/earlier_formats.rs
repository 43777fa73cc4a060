//! Rows as earlier builds wrote them, frozen, and what they are today.

use serde::{Deserialize, Serialize};

use super::model::{
    AccessTier, Blob, Deletion, Encryption, Immutability, Kind, PastBlob, Rehydration, Role,
};
use crate::content::{Content, ContentHeaders};
use crate::copy::CopyState;
use crate::etag::ETag;
use crate::lease::Lease;
use crate::metadata::Metadata;
use crate::tags::TagSet;
use crate::time::Timestamp;

/// Format 2 of a blob, which has no encryption context.
#[derive(Serialize, Deserialize)]
pub(super) struct Blob2 {
    kind: Kind,
    etag: ETag,
    created: Timestamp,
    last_modified: Timestamp,
    length: u64,
    content: Content,
    headers: ContentHeaders,
    metadata: Metadata,
    tags: TagSet,
    lease: Lease,
    version: Option<Timestamp>,
    tier: Option<AccessTier>,
    tier_changed: Option<Timestamp>,
    rehydration: Option<Rehydration>,
    copy: Option<CopyState>,
    expires: Option<Timestamp>,
    immutability: Option<Immutability>,
    legal_hold: bool,
    encryption: Encryption,
}

/// Format 1 of an earlier state of a blob.
#[derive(Serialize, Deserialize)]
pub(super) struct Past1 {
    blob: Blob2,
    role: Role,
    deleted: Option<Deletion>,
}

impl From<Blob2> for Blob {
    fn from(blob: Blob2) -> Self {
        Self {
            kind: blob.kind,
            etag: blob.etag,
            created: blob.created,
            last_modified: blob.last_modified,
            length: blob.length,
            content: blob.content,
            headers: blob.headers,
            metadata: blob.metadata,
            tags: blob.tags,
            lease: blob.lease,
            version: blob.version,
            tier: blob.tier,
            tier_changed: blob.tier_changed,
            rehydration: blob.rehydration,
            copy: blob.copy,
            expires: blob.expires,
            immutability: blob.immutability,
            legal_hold: blob.legal_hold,
            encryption: blob.encryption,
            encryption_context: None,
        }
    }
}

impl From<Past1> for PastBlob {
    fn from(past: Past1) -> Self {
        Self { blob: past.blob.into(), role: past.role, deleted: past.deleted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Stored as _;

    /// A blob as written in format 2: a block blob, ETag 7, created at 8, changed at 9, of 3 bytes
    /// in row 7, of the type `a/b` and no other header, without metadata and tags, never leased,
    /// cool, under a legal hold, with the scope `s`.
    const BLOB_2: &[u8] = &[
        0, 7, 8, 9, 3, 1, 7, 1, 3, b'a', b'/', b'b', 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0,
        0, 1, 2, 1, b's',
    ];

    fn row(format: u8, parts: &[&[u8]]) -> Vec<u8> {
        [&[format][..], &parts.concat()].concat()
    }

    #[test]
    fn a_blob_of_format_2_is_read_without_a_context_and_written_anew() {
        let blob = Blob::decode(&row(2, &[BLOB_2])).expect("a blob of the build before");
        assert_eq!((blob.etag, blob.length), (ETag::from_ticks(7), 3));
        assert_eq!(blob.headers.content_type.as_deref(), Some("a/b"));
        assert_eq!((blob.tier, blob.legal_hold), (Some(AccessTier::Cool), true));
        assert_eq!(blob.encryption, Encryption::Scope("s".to_owned()));
        assert_eq!(blob.encryption_context, None);
        assert_eq!(blob.encode()[..], row(3, &[BLOB_2, &[0]])[..]);
    }

    #[test]
    fn a_past_of_format_1_is_read_too() {
        let past = PastBlob::decode(&row(1, &[BLOB_2, &[2, 1, 5, 6]])).expect("a past");
        assert_eq!(past.role, Role::Replaced);
        let (at, until) = (Timestamp::from_ticks(5), Timestamp::from_ticks(6));
        assert_eq!(past.deleted, Some(Deletion { at, until }));
        assert!(past.blob.legal_hold);
    }

    #[test]
    fn a_row_of_an_earlier_format_that_is_cut_short_is_a_fault() {
        assert!(Blob::decode(&row(2, &[&BLOB_2[..BLOB_2.len() - 1]])).is_err());
        assert!(Blob::decode(&row(1, &[BLOB_2])).is_err());
    }
}
