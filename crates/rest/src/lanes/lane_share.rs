//! What a request may have of its lane: half a millisecond of its processor. Whatever is not done by
//! then goes on in the [heavy pool](crate::lanes::heavy_pool), where it makes nobody wait who asks for little.
//!
//! Time is counted by turns: a turn is one poll of the task of a connection.

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

/// What a request can take of its lane. Small requests take 5 to 30 µs, so hardly one of them gets
/// here; and one that is heavy does not make others wait much longer than they would anyway.
const SHARE: Duration = Duration::from_micros(500);
/// A turn that seems longer than this may have been interrupted by other threads, which is not the
/// request's fault: the clock of the thread is asked.
const DOUBTED: Duration = Duration::from_micros(250);

/// What is sent or taken in of a body in one turn of a lane: about a tenth of a millisecond.
const LANE_TURN_BYTES: usize = 128 * 1024;
/// The same in the pool, where only other long requests wait.
const POOL_TURN_BYTES: usize = 1024 * 1024;

/// What is sent or taken in of a body before others have a turn. A client that is as fast as we are
/// would otherwise have the thread until the body ends.
pub(crate) fn turn_bytes() -> usize {
    if heavy_pool::is_here() { POOL_TURN_BYTES } else { LANE_TURN_BYTES }
}

/// The text of so many entries of a listing is written in about a quarter of a millisecond.
const LIGHT_ENTRIES_MAX: usize = 200;

/// What a request that was handed over has spent.
const HANDED_OVER: u64 = u64::MAX;

/// One for each connection.
pub struct LaneShare {
    lane: Handle,
    pool: PoolEntrance,
    metrics: Arc<Metrics>,
    /// Of the request at work, in nanoseconds. Written on the lane only.
    spent: AtomicU64,
    account: AtomicU64,
}

/// The work was given up: it has panicked, or the server ends.
#[derive(Debug, thiserror::Error)]
#[error("a request was given up")]
pub struct GivenUp;

impl LaneShare {
    pub fn new(lane: Handle, pool: PoolEntrance, metrics: Arc<Metrics>) -> Arc<Self> {
        let (spent, account) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { lane, pool, metrics, spent, account })
    }

    /// The next request has come.
    pub fn begin(&self) {
        self.spent.store(0, Ordering::Relaxed);
    }

    /// Whose request it is: known before anything is done that may take long.
    pub fn is_for(&self, account: &str) {
        self.account.store(AccountKey::of(account).0, Ordering::Relaxed);
    }

    /// Runs a part of the request that is at work: here until its share is used up, then in the pool.
    pub fn carry<T: Send + 'static>(&self, work: Work<T>) -> Carrying<'_, T> {
        Carrying { share: self, state: State::OnLane(work) }
    }

    /// Runs the task of the connection and counts its turns.
    pub async fn count_turns<T>(&self, task: impl Future<Output = T>) -> T {
        let mut task = pin!(task);
        poll_fn(|context| {
            LANE_CLOCK.with(LaneClock::start);
            let polled = task.as_mut().poll(context);
            let took = LANE_CLOCK.with(LaneClock::turn_has_ended);
            let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
            // Nobody else writes it; a sum of two loads and a store is cheaper than an addition that
            // is atomic.
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
        // Whatever is left of the request follows it.
        if self.spent.swap(HANDED_OVER, Ordering::Relaxed) != HANDED_OVER {
            self.metrics.request_handed_over();
        }
        let account = AccountKey(self.account.load(Ordering::Relaxed));
        self.pool.run(account, self.lane.clone(), work)
    }
}

thread_local! {
    static LANE_CLOCK: LaneClock = const { LaneClock::new() };
    static LEAVES_LANE: Cell<bool> = const { Cell::new(false) };
}

/// Goes on in the pool, if this runs on a lane: what follows takes long and cannot be interrupted.
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

/// Leaves the lane if so many entries are to be written that their text takes long.
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
                LEAVES_LANE.with(|leaves| leaves.set(false));
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

/// How long turns take on the processor, at the price of one look at the clock on the wall for each. A
/// turn is counted from the end of the one before. Where that seems long, as when the lane was idle or
/// other threads had its processor, the clock of the thread is asked, a call of the kernel. So that
/// little happens between two answers of it, it is asked now and then in any case.
struct LaneClock {
    /// When the last turn ended.
    ended: Cell<Option<Instant>>,
    /// When the clock of the thread was asked last, and what it said.
    asked: Cell<Option<(Instant, Duration)>>,
}

impl LaneClock {
    const fn new() -> Self {
        Self { ended: Cell::new(None), asked: Cell::new(None) }
    }

    /// Before the first turn of the lane.
    fn start(&self) {
        if self.ended.get().is_none() {
            let now = Instant::now();
            self.ended.set(Some(now));
            self.asked.set(Some((now, thread_time())));
        }
    }

    /// What the turn that ends now has taken. It may say up to [`DOUBTED`] too much.
    fn turn_has_ended(&self) -> Duration {
        let now = Instant::now();
        let elapsed = self.ended.replace(Some(now)).map_or(Duration::ZERO, |it| now - it);
        let is_fresh = |(asked, _): (Instant, _)| now - asked < DOUBTED;
        if self.asked.get().is_some_and(is_fresh) {
            return elapsed;
        }
        let on_processor = thread_time();
        let before = self.asked.replace(Some((now, on_processor)));
        let since = before.map_or(elapsed, |(_, before)| on_processor.saturating_sub(before));
        elapsed.min(since)
    }
}

/// How long this thread has had a processor.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    // Neither is ever negative.
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests;
