//! Copies from other hosts, whose bytes the domain fetches in the background.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_domain::condition::SequenceNumber;
use holdfast_domain::content::ByteSource;
use holdfast_domain::copy::{
    CopyDestination, CopyFailure, RemoteBytes, RemoteSource, SourceElsewhere, SourceKind,
};
use hyper::HeaderMap;
use hyper::header::{HeaderValue, IF_MATCH, IF_UNMODIFIED_SINCE};

use super::{Asked, FetchedBytes, Fetcher, SourceProperties, SourceUrl};
use crate::frontend::Frontend;

const PAGE_BYTES: u64 = 512;

/// The source of a copy, as described by another host.
pub fn source_of(properties: SourceProperties) -> SourceElsewhere {
    let length = properties.length.unwrap_or(0);
    let kind = match properties.blob_type.as_deref() {
        Some("PageBlob") if length.is_multiple_of(PAGE_BYTES) => {
            SourceKind::Page(SequenceNumber::default())
        }
        Some("AppendBlob") => SourceKind::Append,
        Some(_) | None => SourceKind::Block,
    };
    let SourceProperties { headers, metadata, .. } = properties;
    SourceElsewhere { kind, length, headers, metadata }
}

/// The request for a source that was read before: only the same state is accepted.
pub fn unchanged(asked: Asked, seen: &SourceProperties) -> Asked {
    let mut conditions = HeaderMap::new();
    let etag = seen.etag.as_deref().and_then(|etag| HeaderValue::from_str(etag).ok());
    let date = seen.last_modified.map(|date| date.rfc1123().to_string());
    let date = date.and_then(|date| HeaderValue::from_str(&date).ok());
    match (etag, date) {
        // A weak ETag never matches.
        (Some(etag), _) if !etag.as_bytes().starts_with(b"W/") => {
            conditions.insert(IF_MATCH, etag);
        }
        (_, Some(date)) => {
            conditions.insert(IF_UNMODIFIED_SINCE, date);
        }
        (_, None) => {}
    }
    Asked { conditions, range: None, ..asked }
}

/// Begins to fetch the bytes of a pending copy in the background.
pub fn begin(
    frontend: &Frontend,
    destination: CopyDestination,
    copy_id: String,
    url: SourceUrl,
    asked: Asked,
) {
    let fetcher = Arc::clone(frontend.fetcher());
    let source = OtherHost { fetcher, url, asked };
    frontend.shared_domain().fetch_copy(destination, copy_id, source);
}

struct OtherHost {
    fetcher: Arc<Fetcher>,
    url: SourceUrl,
    asked: Asked,
}

#[async_trait]
impl RemoteSource for OtherHost {
    async fn open(&self) -> Result<RemoteBytes, CopyFailure> {
        let fetched = self.fetcher.open(&self.url, &self.asked, u64::MAX).await?;
        let length = fetched.length;
        Ok(RemoteBytes { bytes: Box::new(BytesOfCopy(fetched.bytes)), length })
    }
}

struct BytesOfCopy(FetchedBytes);

#[async_trait]
impl ByteSource for BytesOfCopy {
    type Refusal = CopyFailure;

    async fn next(&mut self) -> Result<Option<Bytes>, CopyFailure> {
        Ok(self.0.next().await?)
    }
}
