//! The threads on which long requests continue, so that short ones need not wait for them. There is
//! one pool for all lanes, with as many threads as processors and lower priority than the lanes.
//! Runnable work is taken round-robin by account: an account gets its share of the threads, however
//! many requests the others have.
//!
//! Knows nothing of requests: it runs futures to their end, one poll in a turn.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Added to the niceness of the process. The scheduler then gives a lane that wants to run about nine
/// times the share of one of these threads, and lets it run at once when it wakes up.
const NICENESS: i32 = 10;

thread_local! {
    static IS_OF_POOL: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread belongs to the pool, so that no short request waits for it.
pub fn is_here() -> bool {
    IS_OF_POOL.get()
}

pub type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Selects the queue of a piece of work. Accounts with the same key share their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccountKey(pub u64);

impl AccountKey {
    /// FNV-1a. Long requests are authorized, so nobody gains by colliding names.
    pub fn of(account: &str) -> Self {
        let add = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        Self(account.bytes().fold(0xCBF2_9CE4_8422_2325_u64, add))
    }
}

/// Ends the threads when it is dropped, and drops what they have not finished.
pub struct HeavyPool {
    entrance: PoolEntrance,
    threads: Vec<JoinHandle<()>>,
}

/// Hands work to the pool; after the pool has ended work is dropped.
#[derive(Clone)]
pub struct PoolEntrance {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<Queue>,
    has_work: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Runnable tasks by account; no list is empty.
    runnable: HashMap<AccountKey, VecDeque<Arc<Task>>>,
    /// The accounts in `runnable`, the next one first.
    order: VecDeque<AccountKey>,
    /// All unfinished tasks, so that they can be dropped when the pool ends.
    unfinished: HashMap<u64, Arc<Task>>,
    newest: u64,
    threads_waiting: usize,
    has_ended: bool,
}

struct Task {
    shared: Arc<Shared>,
    number: u64,
    account: AccountKey,
    /// The runtime of its timers and sockets.
    runtime: Handle,
    state: AtomicU8,
    /// `None` when it is finished.
    work: Mutex<Option<Work<()>>>,
}

/// Nothing to do until it is woken.
const WAITING: u8 = 0;
const QUEUED: u8 = 1;
const RUNNING: u8 = 2;
/// Woken while it ran: it must run again.
const RUNNING_AGAIN: u8 = 3;

impl HeavyPool {
    pub fn start(threads: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared { queue: Mutex::default(), has_work: Condvar::new() });
        let mut pool = Self { entrance: PoolEntrance { shared }, threads: Vec::new() };
        for number in 0..threads {
            let shared = Arc::clone(&pool.entrance.shared);
            let thread = thread::Builder::new().name(format!("heavy-{number}"));
            pool.threads.push(thread.spawn(move || shared.run_tasks())?);
        }
        Ok(pool)
    }

    pub fn entrance(&self) -> &PoolEntrance {
        &self.entrance
    }
}

impl PoolEntrance {
    /// Runs `work` to its end, in the context of `runtime`. The answer fails if the work panics, or
    /// if the pool ends first.
    pub fn run<T: Send + 'static>(
        &self,
        account: AccountKey,
        runtime: Handle,
        work: Work<T>,
    ) -> oneshot::Receiver<T> {
        let (finished, answer) = oneshot::channel();
        let work: Work<()> = Box::pin(async move {
            // Nothing waits for the result if the connection was dropped; the work is done all the
            // same.
            let _ = finished.send(work.await);
        });
        let mut queue = self.shared.queue.lock();
        if queue.has_ended {
            return answer;
        }
        queue.newest += 1;
        let task = Arc::new(Task {
            shared: Arc::clone(&self.shared),
            number: queue.newest,
            account,
            runtime,
            state: AtomicU8::new(QUEUED),
            work: Mutex::new(Some(work)),
        });
        queue.unfinished.insert(task.number, Arc::clone(&task));
        queue.add(task);
        self.shared.call_a_thread(&queue);
        answer
    }
}

impl Drop for HeavyPool {
    fn drop(&mut self) {
        let shared = &self.entrance.shared;
        shared.queue.lock().has_ended = true;
        shared.has_work.notify_all();
        for thread in self.threads.drain(..) {
            // The thread catches panics of the work.
            let _ = thread.join();
        }
        let unfinished = {
            let mut queue = shared.queue.lock();
            queue.runnable.clear();
            queue.order.clear();
            std::mem::take(&mut queue.unfinished)
        };
        // Not under the lock: dropping a task may wake others.
        unfinished.into_values().for_each(|task| task.give_up());
    }
}

impl Queue {
    fn add(&mut self, task: Arc<Task>) {
        let account = task.account;
        let tasks = self.runnable.entry(account).or_default();
        if tasks.is_empty() {
            self.order.push_back(account);
        }
        tasks.push_back(task);
    }

    /// The next task of the next account, which then goes to the end.
    fn next(&mut self) -> Option<Arc<Task>> {
        let account = self.order.pop_front()?;
        let tasks = self.runnable.get_mut(&account)?;
        let task = tasks.pop_front();
        if tasks.is_empty() {
            self.runnable.remove(&account);
        } else {
            self.order.push_back(account);
        }
        task
    }
}

impl Shared {
    fn run_tasks(&self) {
        lower_priority();
        IS_OF_POOL.set(true);
        let mut queue = self.queue.lock();
        while !queue.has_ended {
            let Some(task) = queue.next() else {
                queue.threads_waiting += 1;
                self.has_work.wait(&mut queue);
                queue.threads_waiting -= 1;
                continue;
            };
            drop(queue);
            let outcome = task.turn();
            queue = self.queue.lock();
            match outcome {
                Turn::Waits => {}
                Turn::GoesOn => queue.add(task),
                Turn::Finished => drop(queue.unfinished.remove(&task.number)),
            }
        }
    }

    fn call_a_thread(&self, queue: &Queue) {
        if queue.threads_waiting > 0 {
            self.has_work.notify_one();
        }
    }
}

enum Turn {
    Waits,
    GoesOn,
    Finished,
}

impl Task {
    fn turn(self: &Arc<Self>) -> Turn {
        self.state.store(RUNNING, Ordering::Release);
        let waker = Waker::from(Arc::clone(self));
        let mut slot = self.work.lock();
        let Some(work) = slot.as_mut() else { return Turn::Finished };
        let _runtime = self.runtime.enter();
        let mut context = Context::from_waker(&waker);
        // A panic ends this work only, as it would end the task of its connection only.
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(&mut context)));
        if !matches!(polled, Ok(Poll::Pending)) {
            let finished = slot.take();
            drop(slot);
            // Dropping what has panicked may panic again.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(finished)));
            return Turn::Finished;
        }
        let waits =
            self.state.compare_exchange(RUNNING, WAITING, Ordering::AcqRel, Ordering::Acquire);
        if waits.is_ok() {
            return Turn::Waits;
        }
        self.state.store(QUEUED, Ordering::Release);
        Turn::GoesOn
    }

    /// Drops the work.
    fn give_up(&self) {
        let _runtime = self.runtime.enter();
        let work = self.work.lock().take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(work)));
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let woken = |state| match state {
            WAITING => Some(QUEUED),
            RUNNING => Some(RUNNING_AGAIN),
            _ => None,
        };
        let before = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, woken);
        if before == Ok(WAITING) {
            let mut queue = self.shared.queue.lock();
            if !queue.has_ended {
                queue.add(Arc::clone(self));
                self.shared.call_a_thread(&queue);
            }
        }
    }
}

/// Lowers the priority of this thread.
#[cfg(target_os = "linux")]
fn lower_priority() {
    // On Linux priorities belong to threads, and no process means the calling thread.
    let lowered = rustix::process::getpriority_process(None)
        .and_then(|nice| rustix::process::setpriority_process(None, nice + NICENESS));
    if let Err(error) = lowered {
        tracing::warn!(%error, "long requests run at the priority of short ones");
    }
}

/// Elsewhere this would lower the priority of the whole process.
#[cfg(not(target_os = "linux"))]
fn lower_priority() {
    let _ = NICENESS;
}

#[cfg(test)]
mod tests;
