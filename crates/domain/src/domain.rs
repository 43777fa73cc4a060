//! The state that all operations share, and the ways they read and change rows.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_store::{Batch, CommitError, Engine, Extents, Fault};

use crate::content::{
    self, ByteSource, INLINE_BYTES_MAX, INLINE_PART_BYTES_MAX, ReceiveFailure, Received, Released,
    Sealing,
};
use crate::copy::CopyPlaces;
use crate::etag::{ETag, ETagSource};
use crate::failure::Failure;
use crate::features::Features;
use crate::latch::{Latches, Turn};
use crate::live_leases::LiveLeases;
use crate::queue::LiveQueues;
use crate::removal_progress::RemovalProgress;
use crate::rows::{self, Stored};
use crate::service_properties::PropertiesCache;
use crate::share::LiveShares;
use crate::share::opens::Opens;
use crate::time::{Clock, Timestamp};
use crate::transact::{Transaction, transact, transact_pipelined};
use crate::workers::Workers;

/// How far the ETags of a run may be ahead of the last recorded time. The recording is due every
/// few seconds, see [`crate::background`]; this leaves room for a stalled one.
const ETAGS_PAST_RECORDED_TIME_MAX: Duration = Duration::from_secs(60);

pub struct Domain {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) extents: Arc<dyn Extents>,
    clock: Arc<dyn Clock>,
    etags: ETagSource,
    latches: Latches,
    pub(crate) features: Features,
    pub(crate) properties_cache: PropertiesCache,
    pub(crate) live_leases: LiveLeases,
    pub(crate) removal_progress: RemovalProgress,
    pub(crate) live_queues: LiveQueues,
    pub(crate) live_shares: LiveShares,
    pub(crate) opens: Opens,
    workers: Workers,
    pub(crate) copy_places: CopyPlaces,
}

impl Domain {
    /// `clock` must not be behind [`recorded_time`].
    pub async fn open(
        engine: Arc<dyn Engine>,
        extents: Arc<dyn Extents>,
        clock: Arc<dyn Clock>,
        features: Features,
    ) -> Result<Self, Fault> {
        let etags = ETagSource::default();
        if let Some(recorded) = recorded_time(&*engine).await? {
            let bound = recorded.plus(ETAGS_PAST_RECORDED_TIME_MAX);
            etags.resume_above(ETag::from_ticks(bound.ticks()));
        }
        Ok(Self {
            engine,
            extents,
            clock,
            etags,
            latches: Latches::default(),
            features,
            properties_cache: PropertiesCache::default(),
            live_leases: LiveLeases::default(),
            removal_progress: RemovalProgress::default(),
            live_queues: LiveQueues::default(),
            opens: Opens::default(),
            live_shares: LiveShares::default(),
            workers: Workers::default(),
            copy_places: CopyPlaces::default(),
        })
    }

    pub fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    pub fn extents(&self) -> &dyn Extents {
        &*self.extents
    }

    /// The background work.
    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How many leases are held, of those that this run has granted or changed.
    pub fn live_leases(&self) -> u64 {
        self.live_leases.count(self.now())
    }

    /// Makes a body durable, before any decision about it. Dropping the result frees it again.
    pub async fn receive<R: Send>(
        &self,
        source: &mut dyn ByteSource<Refusal = R>,
    ) -> Result<Received, ReceiveFailure<R>> {
        self.receive_sealed(source, None).await
    }

    /// As [`Domain::receive`], encrypted with a key of the client if there is one.
    pub async fn receive_sealed<R: Send>(
        &self,
        source: &mut dyn ByteSource<Refusal = R>,
        sealing: Option<&Sealing>,
    ) -> Result<Received, ReceiveFailure<R>> {
        self.check_room()?;
        content::receive(&self.extents, source, sealing, INLINE_BYTES_MAX).await
    }

    /// As [`Domain::receive_sealed`], for bytes that become one of many parts of a blob.
    pub async fn receive_part<R: Send>(
        &self,
        source: &mut dyn ByteSource<Refusal = R>,
        sealing: Option<&Sealing>,
    ) -> Result<Received, ReceiveFailure<R>> {
        self.check_room()?;
        content::receive(&self.extents, source, sealing, INLINE_PART_BYTES_MAX).await
    }

    /// On a full disk no row could name the bytes, so they are not received at all.
    fn check_room(&self) -> Result<(), Fault> {
        self.engine.short_of_room().map_or(Ok(()), Err)
    }

    /// The time of a change and the ETag it gives.
    pub(crate) fn stamp(&self) -> Stamp {
        let now = self.now();
        Stamp { now, etag: self.etags.next(now) }
    }

    pub(crate) async fn transact<T, R, F>(
        &self,
        latched: &[Bytes],
        mut attempt: impl FnMut(Transaction) -> F,
    ) -> Result<T, Failure<R>>
    where
        F: Future<Output = Result<(T, Transaction), Failure<R>>>,
    {
        let attempt = |transaction: Transaction| attempt(transaction.at(self.now()));
        let done = transact(&*self.engine, &self.latches, latched, attempt).await;
        self.free_released(done)
    }

    /// For changes with no state in memory that must be updated in commit order, see
    /// [`transact_pipelined`].
    pub(crate) async fn transact_pipelined<T, R, F>(
        &self,
        latched: &[Bytes],
        mut attempt: impl FnMut(Transaction) -> F,
    ) -> Result<T, Failure<R>>
    where
        F: Future<Output = Result<(T, Transaction), Failure<R>>>,
    {
        let attempt = |transaction: Transaction| attempt(transaction.at(self.now()));
        let done = transact_pipelined(&*self.engine, &self.latches, latched, attempt).await;
        self.free_released(done)
    }

    fn free_released<T, R>(
        &self,
        done: Result<(T, Released), Failure<R>>,
    ) -> Result<T, Failure<R>> {
        let (outcome, released) = done?;
        released.free(&*self.extents);
        Ok(outcome)
    }

    /// Waits for a turn on what `keys` name, for callers that look at more than rows before a
    /// transaction. No caller may hold another turn while it waits.
    pub(crate) async fn turn(&self, keys: &[Bytes]) -> Turn<'_> {
        self.latches.acquire(keys).await
    }

    /// A number that was never given out before.
    pub(crate) fn fresh_id(&self) -> u64 {
        self.etags.next(self.now()).ticks()
    }

    /// Records the time for the next run, see [`recorded_time`].
    pub(crate) async fn record_time(&self) -> Result<(), CommitError> {
        let mut batch = Batch::blind();
        batch.put(rows::clock(), self.now().encode()).even_without_room();
        self.engine.commit(batch).await
    }
}

/// A time that an earlier run has reached: deadlines and ETags continue from here even if the wall
/// clock was set back since.
pub async fn recorded_time(engine: &dyn Engine) -> Result<Option<Timestamp>, Fault> {
    let row = engine.snapshot().await?.get(&rows::clock()).await?;
    row.map(|row| Timestamp::decode(&row)).transpose()
}

impl Stored for Timestamp {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "the recorded time";
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub now: Timestamp,
    pub etag: ETag,
}

/// Reads and decodes a row, and adds it to what the transaction expects.
pub(crate) async fn read<T: Stored>(
    transaction: &mut Transaction,
    key: &Bytes,
) -> Result<Option<T>, Fault> {
    transaction.get(key).await?.map(|row| T::decode(&row)).transpose()
}
