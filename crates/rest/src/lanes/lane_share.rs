//! The share of a request on its lane: half a millisecond of processor time. What is not done by then
//! continues in the [heavy pool](crate::lanes::heavy_pool), where it does not delay small requests.
//!
//! Time is counted in turns: a turn is one poll of the task of a connection.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::lanes::heavy_pool::{self, AccountKey, PoolEntrance, Work};
use crate::metrics::Metrics;

/// The processor time of a request on its lane. Small requests take 5 to 30 µs, so hardly any
/// reaches this; and a heavy one delays others only a little.
const SHARE: Duration = Duration::from_micros(500);
/// A turn that seems longer than this may have been interrupted by other threads, so the thread's
/// CPU clock is read.
const DOUBTED: Duration = Duration::from_micros(250);

/// How much of a body is sent or received in one turn of a lane: about a tenth of a millisecond.
const LANE_TURN_BYTES: usize = 128 * 1024;
/// The same in the pool, where only other long requests wait.
const POOL_TURN_BYTES: usize = 1024 * 1024;

/// How much of a body is sent or received before a yield. Otherwise a fast client would hold the
/// thread until the end of the body.
pub(crate) fn turn_bytes() -> usize {
    if heavy_pool::is_here() { POOL_TURN_BYTES } else { LANE_TURN_BYTES }
}

/// The text of so many entries of a listing is written in about a quarter of a millisecond.
const LIGHT_ENTRIES_MAX: usize = 200;

/// The value of `spent` for a request that was handed over.
const HANDED_OVER: u64 = u64::MAX;

/// One for each connection.
pub struct LaneShare {
    lane: Handle,
    pool: PoolEntrance,
    metrics: Arc<Metrics>,
    /// Nanoseconds spent by the running request. Written on the lane only.
    spent: AtomicU64,
    account: AtomicU64,
}

/// The work was dropped: it has panicked, or the server ends.
#[derive(Debug, thiserror::Error)]
#[error("a request was given up")]
pub struct GivenUp;

impl LaneShare {
    pub fn new(lane: Handle, pool: PoolEntrance, metrics: Arc<Metrics>) -> Arc<Self> {
        let (spent, account) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { lane, pool, metrics, spent, account })
    }

    /// The next request begins.
    pub fn begin(&self) {
        self.spent.store(0, Ordering::Relaxed);
    }

    /// Sets the account of the request, before any work that may take long.
    pub fn is_for(&self, account: &str) {
        self.account.store(AccountKey::of(account).0, Ordering::Relaxed);
    }

    /// Runs a part of the current request: here until its share is used up, then in the pool.
    pub fn carry<T: Send + 'static>(&self, work: Work<T>) -> Carrying<'_, T> {
        Carrying { share: self, state: State::OnLane(work) }
    }

    /// Runs the task of the connection and counts its turns.
    pub async fn count_turns<T>(&self, task: impl Future<Output = T>) -> T {
        let mut task = pin!(task);
        poll_fn(|context| {
            let begun = Instant::now();
            LANE_CLOCK.with(|clock| clock.begin(begun));
            let polled = task.as_mut().poll(context);
            let took = LANE_CLOCK.with(|clock| clock.took(begun));
            let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
            // It has one writer, so a load and a store are enough; they are cheaper than an atomic
            // addition.
            let spent = self.spent.load(Ordering::Relaxed).saturating_add(nanoseconds);
            self.spent.store(spent, Ordering::Relaxed);
            self.metrics.lane_turn(nanoseconds);
            polled
        })
        .await
    }

    fn is_used_up(&self) -> bool {
        Duration::from_nanos(self.spent.load(Ordering::Relaxed)) >= SHARE
    }

    fn hand_over<T: Send + 'static>(&self, work: Work<T>) -> oneshot::Receiver<T> {
        // The rest of the request follows it.
        if self.spent.swap(HANDED_OVER, Ordering::Relaxed) != HANDED_OVER {
            self.metrics.request_handed_over();
        }
        let account = AccountKey(self.account.load(Ordering::Relaxed));
        self.pool.run(account, self.lane.clone(), work)
    }
}

thread_local! {
    static LANE_CLOCK: LaneClock = const { LaneClock { asked: Cell::new(None) } };
    static LEAVES_LANE: Cell<bool> = const { Cell::new(false) };
}

/// Continues in the pool, if this runs on a lane: what follows takes long and cannot yield.
pub(crate) async fn leave_lane() {
    let mut has_left = false;
    poll_fn(|context| {
        if has_left {
            return Poll::Ready(());
        }
        has_left = true;
        LEAVES_LANE.set(true);
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Leaves the lane if there are so many entries that writing them takes long.
pub(crate) async fn leave_lane_for(entries: usize) {
    if entries > LIGHT_ENTRIES_MAX {
        leave_lane().await;
    }
}

/// See [`LaneShare::carry`].
pub struct Carrying<'a, T> {
    share: &'a LaneShare,
    state: State<T>,
}

enum State<T> {
    OnLane(Work<T>),
    InPool(oneshot::Receiver<T>),
    HandedOver,
}

impl<T: Send + 'static> Future for Carrying<'_, T> {
    type Output = Result<T, GivenUp>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let share = self.share;
        if let State::OnLane(work) = &mut self.state {
            if !share.is_used_up() {
                LEAVES_LANE.set(false);
                match work.as_mut().poll(context) {
                    Poll::Ready(done) => return Poll::Ready(Ok(done)),
                    Poll::Pending if !LEAVES_LANE.take() => return Poll::Pending,
                    Poll::Pending => {}
                }
            }
            let State::OnLane(work) = std::mem::replace(&mut self.state, State::HandedOver) else {
                return Poll::Ready(Err(GivenUp));
            };
            self.state = State::InPool(share.hand_over(work));
        }
        match &mut self.state {
            State::InPool(answer) => Pin::new(answer).poll(context).map_err(|_| GivenUp),
            State::OnLane(_) | State::HandedOver => Poll::Ready(Err(GivenUp)),
        }
    }
}

/// Measures the processor time of turns at about the cost of a wall clock: the CPU clock of the
/// thread, a system call, is read only from time to time and for turns that seem long.
struct LaneClock {
    /// When the CPU clock was read last, and its value.
    asked: Cell<Option<(Instant, Duration)>>,
}

impl LaneClock {
    fn begin(&self, now: Instant) {
        let is_fresh = |(asked, _): (Instant, _)| now.duration_since(asked) < DOUBTED;
        if !self.asked.get().is_some_and(is_fresh) {
            self.asked.set(Some((now, thread_time())));
        }
    }

    /// The processor time of a turn that began at `begun`; up to [`DOUBTED`] too much if it was
    /// interrupted by other threads.
    fn took(&self, begun: Instant) -> Duration {
        let now = Instant::now();
        let elapsed = now.duration_since(begun);
        if elapsed < DOUBTED {
            return elapsed;
        }
        let on_processor = thread_time();
        let before = self.asked.replace(Some((now, on_processor)));
        let since = before.map_or(elapsed, |(_, before)| on_processor.saturating_sub(before));
        elapsed.min(since)
    }
}

/// The processor time of this thread.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    // Neither is ever negative.
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests;
