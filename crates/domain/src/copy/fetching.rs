//! The background work of a copy whose bytes come from another host.
//!
//! It ends with the process. A copy that is pending when the server starts is failed: to go on with it,
//! the credentials for its source would have to be stored.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_store::KeyRange;
use tokio::sync::Semaphore;

use super::{CopyEnd, CopyFailure};
use crate::blob::{self, BlobPath};
use crate::content::{ByteSource, ReceiveFailure, Received};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::rows::{blob_of_pending_copy, pending_copies};
use crate::share::{self, NodeAddress};
use crate::workers::{Progress, Worker};

/// Copies that are fetched at the same time; the others wait.
const COPIES_MAX: usize = 16;
/// A copy that takes longer is failed.
const COPY_TIME_MAX: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// How often progress is recorded, and it is checked whether the copy is still wanted.
const PROGRESS_NOTED_EVERY: Duration = Duration::from_secs(2);
/// Copies failed in one commit when the server starts.
const ROWS_PER_COMMIT: usize = 256;

/// A source on another host.
#[async_trait]
pub trait RemoteSource: Send + Sync + 'static {
    async fn open(&self) -> Result<RemoteBytes, CopyFailure>;
}

pub struct RemoteBytes {
    pub bytes: Box<dyn ByteSource<Refusal = CopyFailure>>,
    /// The length of the body, if the source tells it.
    pub length: Option<u64>,
}

/// What a copy becomes.
pub enum CopyDestination {
    Blob(BlobPath),
    File(NodeAddress),
}

/// Places of copies that are fetched.
pub(crate) struct CopyPlaces(Semaphore);

impl Default for CopyPlaces {
    fn default() -> Self {
        Self(Semaphore::new(COPIES_MAX))
    }
}

impl Domain {
    /// Fetches the bytes of a pending copy in the background.
    pub fn fetch_copy(
        self: &Arc<Self>,
        destination: CopyDestination,
        copy_id: String,
        source: impl RemoteSource,
    ) {
        let worker = self.workers().start("copy", Some(copy_id.clone()));
        let domain = Arc::clone(self);
        let fetching = Fetching { domain, destination, copy_id, worker };
        drop(tokio::spawn(async move { fetching.run(&source).await }));
    }

    /// Fails the copies that an earlier run left pending. Called once, before any request.
    pub async fn fail_interrupted_copies(&self) -> Result<(), Failure<()>> {
        let range = KeyRange::prefix(pending_copies());
        loop {
            let stamp = self.stamp();
            let more = self
                .transact(&[], async |mut transaction| {
                    let found = transaction.scan(&range, ROWS_PER_COMMIT).await?;
                    for row in &found {
                        let key = blob_of_pending_copy(&row.key);
                        if share::is_node(&key) {
                            share::fail_interrupted(&mut transaction, key, stamp).await?;
                        } else {
                            blob::fail_interrupted(&mut transaction, key, stamp).await?;
                        }
                        transaction.delete(row.key.clone());
                    }
                    Ok((found.len() == ROWS_PER_COMMIT, transaction))
                })
                .await?;
            if !more {
                return Ok(());
            }
        }
    }
}

/// A copy under way.
struct Fetching {
    domain: Arc<Domain>,
    destination: CopyDestination,
    copy_id: String,
    worker: Worker,
}

impl Fetching {
    async fn run(self, source: &dyn RemoteSource) {
        let fetched = async {
            let _place = self.domain.copy_places.0.acquire().await;
            self.worker.works();
            self.fetch(source).await
        };
        let end = tokio::select! {
            ended = tokio::time::timeout(COPY_TIME_MAX, fetched) => match ended {
                Ok(end) => end,
                Err(_) => Some(CopyEnd::Failed(CopyFailure::TimedOut)),
            },
            // It stays pending, and the next run fails it.
            () = self.worker.told_to_stop() => None,
        };
        match end {
            Some(CopyEnd::Failed(why)) => {
                self.worker.has_failed(self.domain.now(), &why);
                self.end(CopyEnd::Failed(why)).await;
            }
            Some(fetched) => {
                let is_noted = self.end(fetched).await;
                if is_noted {
                    self.worker.has_finished_round();
                }
            }
            None => {}
        }
    }

    /// How the copy ends, or `None` if it is not wanted any more.
    async fn fetch(&self, source: &dyn RemoteSource) -> Option<CopyEnd> {
        tokio::select! {
            received = self.receive(source) => Some(match received {
                Ok(received) => CopyEnd::Fetched(received),
                Err(failure) => CopyEnd::Failed(failure),
            }),
            () = self.note_progress() => None,
        }
    }

    async fn receive(&self, source: &dyn RemoteSource) -> Result<Received, CopyFailure> {
        let RemoteBytes { bytes, length } = source.open().await?;
        let progress = Progress { bytes_done: 0, bytes_total: length };
        self.worker.has_progressed(progress);
        let mut counted = Counted { bytes, progress, worker: &self.worker };
        self.domain.receive(&mut counted).await.map_err(|failure| match failure {
            ReceiveFailure::Source(failure) => failure,
            ReceiveFailure::Fault(fault) => {
                self.worker.has_failed(self.domain.now(), &fault);
                CopyFailure::NotStored
            }
        })
    }

    /// Ends when the copy is not wanted any more.
    async fn note_progress(&self) {
        loop {
            tokio::time::sleep(PROGRESS_NOTED_EVERY).await;
            let bytes = self.worker.progress().map_or(0, |progress| progress.bytes_done);
            let (domain, id) = (&self.domain, &self.copy_id);
            let is_wanted = match &self.destination {
                CopyDestination::Blob(path) => {
                    self.is_wanted(domain.note_copy_progress(path, id, bytes).await)
                }
                CopyDestination::File(address) => {
                    self.is_wanted(domain.note_file_copy_progress(address, id, bytes).await)
                }
            };
            if !is_wanted {
                return;
            }
        }
    }

    fn is_wanted<R: std::fmt::Debug>(&self, noted: Result<bool, Failure<R>>) -> bool {
        noted.unwrap_or_else(|failure| {
            self.worker.has_failed(self.domain.now(), &failure);
            true
        })
    }

    /// Whether the end could be noted.
    async fn end(&self, end: CopyEnd) -> bool {
        let (domain, id) = (&self.domain, &self.copy_id);
        match &self.destination {
            CopyDestination::Blob(path) => self.is_noted(domain.end_copy(path, id, end).await),
            CopyDestination::File(address) => {
                self.is_noted(domain.end_file_copy(address, id, end).await)
            }
        }
    }

    fn is_noted<R: std::fmt::Debug>(&self, ended: Result<(), Failure<R>>) -> bool {
        match ended {
            // It is refused if the copy was not wanted any more.
            Ok(()) | Err(Failure::Refused(_)) => true,
            Err(failure) => {
                self.worker.has_failed(self.domain.now(), &failure);
                false
            }
        }
    }
}

/// Bytes that are counted as they come.
struct Counted<'a> {
    bytes: Box<dyn ByteSource<Refusal = CopyFailure>>,
    progress: Progress,
    worker: &'a Worker,
}

#[async_trait]
impl ByteSource for Counted<'_> {
    type Refusal = CopyFailure;

    async fn next(&mut self) -> Result<Option<Bytes>, CopyFailure> {
        let next = self.bytes.next().await?;
        if let Some(bytes) = &next {
            self.progress.bytes_done += bytes.len() as u64;
            self.worker.has_progressed(self.progress);
        }
        Ok(next)
    }
}
