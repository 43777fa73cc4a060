//! Copies from other hosts, fetched behind the request that began them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_domain::Domain;
use holdfast_domain::blob::{BlobPath, CopyEnd};
use holdfast_domain::content::{ByteSource, ReceiveFailure, Received};
use holdfast_domain::copy::CopyFailure;
use holdfast_domain::failure::Failure;
use holdfast_domain::share::NodeAddress;
use hyper::HeaderMap;
use hyper::header::{HeaderValue, IF_MATCH, IF_UNMODIFIED_SINCE};

use crate::frontend::Frontend;
use crate::source::{Asked, FetchedBytes, Fetcher, SourceFailure, SourceProperties, SourceUrl};

/// Copies that are fetched at the same time; the others wait.
pub const COPIES_MAX: usize = 16;
/// A copy that has not ended by then never will.
const COPY_TIME_MAX: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// How often it is noted how much has come, and asked whether it is still wanted.
const PROGRESS_NOTED_EVERY: Duration = Duration::from_secs(2);

/// What is asked of a source that has been looked at: the same state, or none.
pub fn unchanged(asked: Asked, seen: &SourceProperties) -> Asked {
    let mut conditions = HeaderMap::new();
    let etag = seen.etag.as_deref().and_then(|etag| HeaderValue::from_str(etag).ok());
    let date = seen.last_modified.map(|date| date.rfc1123().to_string());
    let date = date.and_then(|date| HeaderValue::from_str(&date).ok());
    match (etag, date) {
        // A weak one never matches.
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

/// Fetches the bytes of a copy that is pending, without anybody waiting for them.
pub fn begin(
    frontend: &Frontend,
    destination: Destination,
    copy_id: String,
    url: SourceUrl,
    asked: Asked,
) {
    let (domain, fetcher) = (frontend.shared_domain(), Arc::clone(frontend.fetcher()));
    let places = Arc::clone(frontend.copy_places());
    let copy = Copy { domain, destination, copy_id };
    drop(tokio::spawn(async move {
        let fetched = async {
            let _place = places.acquire().await;
            copy.fetch(&fetcher, &url, &asked).await
        };
        match tokio::time::timeout(COPY_TIME_MAX, fetched).await {
            Ok(Some(end)) => copy.end(end).await,
            Ok(None) => {}
            Err(_) => copy.end(CopyEnd::Failed(CopyFailure::TimedOut)).await,
        }
    }));
}

/// What a copy becomes.
pub enum Destination {
    Blob(BlobPath),
    File(NodeAddress),
}

struct Copy {
    domain: Arc<Domain>,
    destination: Destination,
    copy_id: String,
}

impl Copy {
    /// How the copy ends, or nothing if it is not wanted any more.
    async fn fetch(&self, fetcher: &Fetcher, url: &SourceUrl, asked: &Asked) -> Option<CopyEnd> {
        let copied = AtomicU64::new(0);
        tokio::select! {
            received = self.receive(fetcher, url, asked, &copied) => Some(match received {
                Ok(received) => CopyEnd::Fetched(received),
                Err(why) => CopyEnd::Failed(why),
            }),
            () = self.note_progress(&copied) => None,
        }
    }

    async fn receive(
        &self,
        fetcher: &Fetcher,
        url: &SourceUrl,
        asked: &Asked,
        copied: &AtomicU64,
    ) -> Result<Received, CopyFailure> {
        let fetched = fetcher.open(url, asked, u64::MAX).await;
        let fetched = fetched.map_err(CopyFailure::from)?;
        let mut counted = Counted { bytes: fetched.bytes, copied };
        self.domain.receive(&mut counted).await.map_err(|failure| match failure {
            ReceiveFailure::Source(failure) => failure.into(),
            ReceiveFailure::Fault(fault) => {
                tracing::error!(?fault, "the bytes of a copy could not be stored");
                CopyFailure::NotStored
            }
        })
    }

    /// Ends when the copy is not wanted any more.
    async fn note_progress(&self, copied: &AtomicU64) {
        loop {
            tokio::time::sleep(PROGRESS_NOTED_EVERY).await;
            let bytes = copied.load(Ordering::Relaxed);
            let (domain, id) = (&self.domain, &self.copy_id);
            let wanted = match &self.destination {
                Destination::Blob(path) => {
                    is_wanted(domain.note_copy_progress(path, id, bytes).await)
                }
                Destination::File(address) => {
                    is_wanted(domain.note_file_copy_progress(address, id, bytes).await)
                }
            };
            if !wanted {
                return;
            }
        }
    }

    async fn end(&self, end: CopyEnd) {
        let (domain, id) = (&self.domain, &self.copy_id);
        match &self.destination {
            Destination::Blob(path) => note_end(domain.end_copy(path, id, end).await),
            Destination::File(address) => note_end(domain.end_file_copy(address, id, end).await),
        }
    }
}

fn is_wanted<R: std::fmt::Debug>(noted: Result<bool, Failure<R>>) -> bool {
    match noted {
        Ok(wanted) => wanted,
        Err(failure) => {
            tracing::warn!(?failure, "the progress of a copy was not noted");
            true
        }
    }
}

fn note_end<R: std::fmt::Debug>(ended: Result<(), Failure<R>>) {
    match ended {
        Ok(()) => {}
        Err(Failure::Refused(refusal)) => {
            tracing::debug!(?refusal, "a copy ended that was not wanted any more");
        }
        Err(failure) => tracing::error!(?failure, "the end of a copy was not noted"),
    }
}

/// Bytes that are counted as they come.
struct Counted<'a> {
    bytes: FetchedBytes,
    copied: &'a AtomicU64,
}

#[async_trait]
impl ByteSource for Counted<'_> {
    type Refusal = SourceFailure;

    async fn next(&mut self) -> Result<Option<Bytes>, SourceFailure> {
        let next = self.bytes.next().await?;
        if let Some(bytes) = &next {
            self.copied.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
        Ok(next)
    }
}
