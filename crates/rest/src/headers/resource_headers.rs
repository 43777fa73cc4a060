//! Headers of answers about resources with an ETag, metadata and a lease.

use holdfast_domain::etag::ETag;
use holdfast_domain::lease::{DurationKind, Lease, LeaseState, LeaseStatus};
use holdfast_domain::metadata::Metadata;
use holdfast_domain::time::Timestamp;

use crate::answer::Answer;
use crate::version::Version;

/// ETag and Last-Modified, which every answer about one resource has.
pub fn identity(answer: &mut Answer, etag: ETag, last_modified: Timestamp, version: Version) {
    if version >= Version::V2011_08_18 {
        answer.show("etag", etag);
    } else {
        answer.show("etag", etag.unquoted());
    }
    answer.show("last-modified", last_modified.rfc1123());
}

pub fn metadata(answer: &mut Answer, metadata: &Metadata) {
    for (name, value) in metadata.iter() {
        answer.metadata_header(name, value);
    }
}

pub fn lease(answer: &mut Answer, lease: &Lease, now: Timestamp) {
    answer.header("x-ms-lease-status", lease_status(lease, now));
    answer.header("x-ms-lease-state", lease_state(lease, now));
    answer.optional_header("x-ms-lease-duration", lease_duration(lease, now));
}

pub fn lease_status(lease: &Lease, now: Timestamp) -> &'static str {
    match lease.status(now) {
        LeaseStatus::Locked => "locked",
        LeaseStatus::Unlocked => "unlocked",
    }
}

pub fn lease_state(lease: &Lease, now: Timestamp) -> &'static str {
    match lease.state(now) {
        LeaseState::Available => "available",
        LeaseState::Leased => "leased",
        LeaseState::Breaking => "breaking",
        LeaseState::Broken => "broken",
        LeaseState::Expired => "expired",
    }
}

pub fn lease_duration(lease: &Lease, now: Timestamp) -> Option<&'static str> {
    lease.duration_kind(now).map(|kind| match kind {
        DurationKind::Infinite => "infinite",
        DurationKind::Fixed => "fixed",
    })
}
