//! Background work, such as the collection of garbage or a copy from another host. Each piece of it
//! is a worker with a name, whose state can be read and which is told when to stop.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use holdfast_sync::Mutex;
use tokio::sync::Notify;

use crate::time::Timestamp;

/// So many workers that ended with a failure stay in the list.
const FAILED_MAX: usize = 16;

/// All background work of a process.
#[derive(Clone, Default)]
pub struct Workers {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    registry: Mutex<Registry>,
    /// Signalled when the workers are told to stop, or one has ended.
    changed: Notify,
    failure_log: OnceLock<FailureLog>,
}

/// Records that the worker of this name has failed.
type FailureLog = Box<dyn Fn(&str, &str) + Send + Sync>;

#[derive(Default)]
struct Registry {
    stopping: bool,
    next: u64,
    at_work: BTreeMap<u64, WorkerStatus>,
    /// The oldest first.
    failed: VecDeque<WorkerStatus>,
    totals: BTreeMap<&'static str, WorkerTotals>,
}

/// What is known of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerStatus {
    pub name: &'static str,
    /// What it works on, if there are several of its name.
    pub subject: Option<String>,
    pub state: WorkerState,
    /// Pieces of work that it has finished.
    pub rounds: u64,
    pub progress: Option<Progress>,
    pub last_error: Option<WorkerError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// For the time of the next piece of work, or for other workers of its name.
    Waiting,
    Working,
    /// It has been told to stop and finishes its current work.
    Stopping,
    /// It has ended, and its last piece of work failed.
    Failed,
}

/// How far the current piece of work is, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub bytes_done: u64,
    pub bytes_total: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerError {
    pub at: Timestamp,
    pub text: String,
}

/// What all workers of a name have done since the start, including those that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerTotals {
    pub at_work: u64,
    pub rounds: u64,
    pub errors: u64,
}

impl Workers {
    /// Begins a worker, which is listed until it is dropped.
    pub fn start(&self, name: &'static str, subject: Option<String>) -> Worker {
        let mut registry = self.shared.registry.lock();
        let id = registry.next;
        registry.next += 1;
        registry.totals.entry(name).or_default().at_work += 1;
        let status = WorkerStatus {
            name,
            subject,
            state: WorkerState::Waiting,
            rounds: 0,
            progress: None,
            last_error: None,
        };
        registry.at_work.insert(id, status);
        Worker { shared: Arc::clone(&self.shared), id, has_failed: AtomicBool::new(false) }
    }

    /// All that have not ended, the first to start first, and then the last that failed.
    pub fn list(&self) -> Vec<WorkerStatus> {
        let registry = self.shared.registry.lock();
        let seen = |status: &WorkerStatus| match registry.stopping {
            true => WorkerStatus { state: WorkerState::Stopping, ..status.clone() },
            false => status.clone(),
        };
        registry.at_work.values().map(seen).chain(registry.failed.iter().cloned()).collect()
    }

    pub fn totals(&self) -> BTreeMap<&'static str, WorkerTotals> {
        self.shared.registry.lock().totals.clone()
    }

    /// Where failures are logged, besides in the list. Only the first call counts.
    pub fn log_failures(&self, log: impl Fn(&str, &str) + Send + Sync + 'static) {
        let _ = self.shared.failure_log.set(Box::new(log));
    }

    /// Tells all workers to stop, including those that start later.
    pub fn stop(&self) {
        self.shared.registry.lock().stopping = true;
        self.shared.changed.notify_waiters();
    }

    /// Waits until no worker is left.
    pub async fn all_ended(&self) {
        self.shared.wait_until(|registry| registry.at_work.is_empty()).await;
    }
}

impl Shared {
    async fn wait_until(&self, is_so: impl Fn(&Registry) -> bool) {
        loop {
            let changed = self.changed.notified();
            if is_so(&self.registry.lock()) {
                return;
            }
            changed.await;
        }
    }
}

/// A piece of background work, held by the task that does it.
#[must_use]
pub struct Worker {
    shared: Arc<Shared>,
    id: u64,
    /// The last piece of work did.
    has_failed: AtomicBool,
}

impl Worker {
    pub fn works(&self) {
        self.change(|status, _| status.state = WorkerState::Working);
    }

    pub fn waits(&self) {
        self.change(|status, _| status.state = WorkerState::Waiting);
    }

    pub fn has_finished_round(&self) {
        self.has_failed.store(false, Ordering::Relaxed);
        self.change(|status, totals| {
            status.rounds += 1;
            totals.rounds += 1;
        });
    }

    pub fn has_progressed(&self, progress: Progress) {
        self.change(|status, _| status.progress = Some(progress));
    }

    pub fn progress(&self) -> Option<Progress> {
        let registry = self.shared.registry.lock();
        registry.at_work.get(&self.id).and_then(|status| status.progress)
    }

    pub fn has_failed(&self, at: Timestamp, error: &dyn fmt::Debug) {
        self.has_failed.store(true, Ordering::Relaxed);
        let text = format!("{error:?}");
        let mut name = "";
        self.change(|status, totals| {
            name = status.name;
            status.last_error = Some(WorkerError { at, text: text.clone() });
            totals.errors += 1;
        });
        if let Some(log) = self.shared.failure_log.get() {
            log(name, &text);
        }
    }

    /// Waits until it is time to stop.
    pub async fn told_to_stop(&self) {
        self.shared.wait_until(|registry| registry.stopping).await;
    }

    fn change(&self, change: impl FnOnce(&mut WorkerStatus, &mut WorkerTotals)) {
        let registry = &mut *self.shared.registry.lock();
        if let Some(status) = registry.at_work.get_mut(&self.id) {
            change(status, registry.totals.entry(status.name).or_default());
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.change(|_, totals| totals.at_work -= 1);
        let mut registry = self.shared.registry.lock();
        if let Some(status) = registry.at_work.remove(&self.id)
            && self.has_failed.load(Ordering::Relaxed)
        {
            if registry.failed.len() == FAILED_MAX {
                registry.failed.pop_front();
            }
            registry.failed.push_back(WorkerStatus { state: WorkerState::Failed, ..status });
        }
        drop(registry);
        self.shared.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_listed_with_what_it_has_done_until_it_is_dropped() {
        let workers = Workers::default();
        let worker = workers.start("garbage", None);
        let copy = workers.start("copy", Some("id".to_owned()));
        copy.works();
        copy.has_progressed(Progress { bytes_done: 3, bytes_total: Some(10) });
        worker.has_finished_round();
        worker.has_failed(Timestamp::from_ticks(7), &"no room");
        let [first, second] = <[_; 2]>::try_from(workers.list()).expect("two workers");
        assert_eq!((first.name, first.state, first.rounds), ("garbage", WorkerState::Waiting, 1));
        let error = first.last_error.expect("it has failed");
        assert_eq!((error.at, error.text.as_str()), (Timestamp::from_ticks(7), "\"no room\""));
        assert_eq!((second.subject.as_deref(), second.state), (Some("id"), WorkerState::Working));
        assert_eq!(second.progress.map(|progress| progress.bytes_done), Some(3));
        drop(copy);
        assert_eq!(workers.list().len(), 1);
        drop(worker);
        assert_eq!(workers.list()[0].state, WorkerState::Failed);
        let totals = WorkerTotals { at_work: 0, rounds: 1, errors: 1 };
        assert_eq!(workers.totals()["garbage"], totals, "what has ended still counts");
    }

    #[test]
    fn only_the_last_of_those_that_ended_with_a_failure_stay() {
        let workers = Workers::default();
        for number in 0..FAILED_MAX + 2 {
            let worker = workers.start("copy", Some(number.to_string()));
            worker.has_failed(Timestamp::default(), &number);
            if number == 1 {
                worker.has_finished_round();
            }
        }
        let left = workers.list();
        assert_eq!(left.len(), FAILED_MAX);
        assert_eq!(left[0].subject.as_deref(), Some("2"), "0 is too old, 1 recovered");
    }

    #[test]
    fn failures_are_taken_down_where_that_is_asked_for() {
        let (workers, log) = (Workers::default(), Arc::new(Mutex::new(Vec::new())));
        let taken = Arc::clone(&log);
        workers.log_failures(move |name, text| taken.lock().push(format!("{name}: {text}")));
        workers.start("time", None).has_failed(Timestamp::default(), &1);
        assert_eq!(log.lock().as_slice(), ["time: 1"]);
    }

    #[tokio::test]
    async fn all_are_told_to_stop_and_waited_for() {
        let workers = Workers::default();
        let worker = workers.start("copy", None);
        let task = tokio::spawn(async move { worker.told_to_stop().await });
        tokio::task::yield_now().await;
        assert!(!task.is_finished(), "nobody has told it to stop");
        workers.stop();
        workers.all_ended().await;
        assert_eq!(workers.list(), []);
        task.await.expect("it has ended");
        let late = workers.start("copy", None);
        assert_eq!(workers.list()[0].state, WorkerState::Stopping);
        late.told_to_stop().await;
    }
}
