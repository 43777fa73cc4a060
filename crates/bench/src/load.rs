//! Drives one server: threads of one core each, connections on them, operations one after another
//! on each connection.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::account::Account;
use crate::client::{Client, Failure};
use crate::workload::{Settings, Workload, WorkloadName, build};

/// Kinds of failure listed in a report; others are only counted.
const FAILURE_KINDS_MAX: usize = 16;
/// Connections that fill a population before a run.
const POPULATING_CONNECTIONS: u64 = 16;
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);
/// The longest latency a histogram can hold.
const LATENCY_MICROSECONDS_MAX: u64 = 120_000_000;

/// How much load, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub connections: usize,
    pub threads: usize,
    pub warm_up: Duration,
    pub duration: Duration,
    /// Ends the run before its duration has passed.
    pub count: Option<u64>,
}

/// The results of a run.
pub struct Tally {
    pub latencies: Histogram<u64>,
    pub bytes: u64,
    pub errors: u64,
    pub failures: BTreeMap<Failure, u64>,
    pub elapsed: Duration,
    /// Operations made, measured or not, and the processor time of this program for them.
    pub made: u64,
    pub processor: Duration,
    /// The processor time of the server for them, if known.
    pub server: Option<Duration>,
}

/// A server with everything that a workload needs.
pub struct PreparedServer {
    account: Arc<Account>,
    /// Each connection runs one of them.
    workloads: Vec<Arc<dyn Workload>>,
}

impl PreparedServer {
    pub fn prepare(
        account: Account,
        name: WorkloadName,
        settings: Settings,
    ) -> Result<Self, Failure> {
        Self::with(account, build(name, settings))
    }

    pub fn with(account: Account, workloads: Vec<Arc<dyn Workload>>) -> Result<Self, Failure> {
        let target = Self { account: Arc::new(account), workloads };
        on_this_thread(async {
            for workload in &target.workloads {
                workload.prepare(&mut target.connect(&**workload).await?).await?;
            }
            Ok(())
        })?;
        target.populate()?;
        Ok(target)
    }

    async fn connect(&self, workload: &dyn Workload) -> Result<Client, Failure> {
        Client::connect(Arc::clone(&self.account), workload.service()).await
    }

    /// Creates what a run needs, or restores it.
    pub fn populate(&self) -> Result<(), Failure> {
        self.for_all_objects(async |workload: &dyn Workload, client: &mut Client, index| {
            workload.populate(client, index).await
        })
    }

    /// Deletes every second object of the population.
    pub fn remove_half(&self) -> Result<(), Failure> {
        self.for_all_objects(async |workload: &dyn Workload, client: &mut Client, index| {
            if index % 2 == 0 { workload.remove(client, index).await } else { Ok(()) }
        })
    }

    fn for_all_objects(
        &self,
        change: impl AsyncFn(&dyn Workload, &mut Client, u64) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let change = &change;
        on_this_thread(async {
            for workload in &self.workloads {
                let next = &AtomicU64::new(0);
                let objects = workload.population();
                let change_some = || async move {
                    let mut client = self.connect(&**workload).await?;
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= objects {
                            return Ok(());
                        }
                        change(&**workload, &mut client, index).await?;
                    }
                };
                let connections = objects.min(POPULATING_CONNECTIONS);
                let changed = (0..connections).map(|_| change_some());
                futures_util::future::try_join_all(changed).await?;
            }
            Ok(())
        })
    }

    pub fn run(&self, plan: Plan) -> Tally {
        let started = Instant::now();
        let run = Run {
            measured_from: started + plan.warm_up,
            ends: started + plan.warm_up + plan.duration,
            tickets: plan.count.map(AtomicU64::new),
        };
        let threads = plan.threads.clamp(1, plan.connections);
        let tallies: Vec<Tally> = std::thread::scope(|scope| {
            let running: Vec<_> = (0..threads)
                .map(|thread| {
                    let connections = (thread..plan.connections).step_by(threads);
                    let run = &run;
                    scope.spawn(move || {
                        take_turns_with_the_server();
                        let mut tally = on_this_thread(self.drive_all(run, connections));
                        tally.processor = processor_time_of_this_thread();
                        tally
                    })
                })
                .collect();
            running.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let mut total = Tally::new();
        for tally in tallies {
            total.add(tally);
        }
        total
    }

    async fn drive_all(&self, run: &Run, connections: impl Iterator<Item = usize>) -> Tally {
        // One per thread: one histogram per connection would not stay in the processor's cache.
        let tally = RefCell::new(Tally::new());
        let driven = connections
            .map(|number| self.drive(run, &*self.workloads[number % self.workloads.len()], &tally));
        futures_util::future::join_all(driven).await;
        tally.into_inner()
    }

    async fn drive(&self, run: &Run, workload: &dyn Workload, tally: &RefCell<Tally>) {
        let mut worker = workload.worker();
        let mut connected = None;
        let mut started = Instant::now();
        while let Some(measured) = run.next(started) {
            let client = match &mut connected {
                Some(client) => client,
                None => match self.connect(workload).await {
                    Ok(client) => {
                        started = Instant::now();
                        connected.insert(client)
                    }
                    Err(failure) => {
                        tally.borrow_mut().fail(failure);
                        tokio::time::sleep(RECONNECT_PAUSE).await;
                        started = Instant::now();
                        continue;
                    }
                },
            };
            let outcome = worker.operation(client).await;
            let ended = Instant::now();
            let mut tally = tally.borrow_mut();
            tally.made += 1;
            match outcome {
                Ok(bytes) if measured => tally.succeed(bytes, ended - started),
                Ok(_) => {}
                Err(failure) => {
                    if failure.ends_connection() {
                        connected = None;
                    }
                    tally.fail(failure);
                }
            }
            if measured {
                tally.elapsed = ended.saturating_duration_since(run.measured_from);
            }
            started = ended;
        }
        if let Some(mut client) = connected
            && let Err(failure) = worker.finish(&mut client).await
        {
            tally.borrow_mut().fail(failure);
        }
    }

    pub fn clean_up(&self) -> Result<(), Failure> {
        on_this_thread(async {
            for workload in &self.workloads {
                workload.clean_up(&mut self.connect(&**workload).await?).await?;
            }
            Ok(())
        })
    }
}

/// The time and the number of operations that the connections of one run share.
struct Run {
    measured_from: Instant,
    ends: Instant,
    tickets: Option<AtomicU64>,
}

impl Run {
    /// Whether the next operation is measured, if there is one more.
    fn next(&self, now: Instant) -> Option<bool> {
        if now >= self.ends {
            return None;
        }
        if now < self.measured_from {
            return Some(false);
        }
        let Some(tickets) = &self.tickets else { return Some(true) };
        let took =
            tickets.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        took.is_ok().then_some(true)
    }
}

impl Tally {
    fn new() -> Self {
        let latencies = Histogram::new_with_bounds(1, LATENCY_MICROSECONDS_MAX, 3);
        Self {
            latencies: latencies.expect("the bounds are valid"),
            bytes: 0,
            errors: 0,
            failures: BTreeMap::new(),
            elapsed: Duration::ZERO,
            made: 0,
            processor: Duration::ZERO,
            server: None,
        }
    }

    fn succeed(&mut self, bytes: u64, latency: Duration) {
        let microseconds = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1);
        self.latencies.saturating_record(microseconds);
        self.bytes += bytes;
    }

    fn fail(&mut self, failure: Failure) {
        self.count(failure, 1);
    }

    fn count(&mut self, failure: Failure, times: u64) {
        self.errors += times;
        if self.failures.len() < FAILURE_KINDS_MAX || self.failures.contains_key(&failure) {
            *self.failures.entry(failure).or_default() += times;
        }
    }

    fn add(&mut self, other: Self) {
        self.latencies.add(&other.latencies).expect("all have the same bounds");
        self.bytes += other.bytes;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.made += other.made;
        self.processor += other.processor;
        let told_apart: u64 = other.failures.values().sum();
        self.errors += other.errors - told_apart;
        for (failure, times) in other.failures {
            self.count(failure, times);
        }
    }
}

/// Runs a future on a runtime of this thread alone: a connection never moves between cores.
fn on_this_thread<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(future)
}

/// The generator shares the processors with the server. A thread that wakes up usually preempts the one
/// that woke it, so that the server would be interrupted after a few answers; with this policy the
/// thread waits until the processor is free, and then finds more answers.
fn take_turns_with_the_server() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is to parameters of this function.
    let outcome = unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) };
    // If that is not permitted, the load is the same and costs a little more.
    if outcome != 0 {
        eprintln!("the generator is scheduled as usual: {}", std::io::Error::last_os_error());
    }
}

fn processor_time_of_this_thread() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of this function.
    let outcome = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(outcome, 0, "every Linux has this clock");
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceiling;
    use crate::workload::Parts;

    const PLAN: Plan = Plan {
        connections: 5,
        threads: 2,
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(60),
        count: Some(203),
    };
    const SETTINGS: Settings =
        Settings { payload_bytes: 100, objects: 10, parts: Parts { count: 2, bytes: 100 } };

    #[test]
    fn counted_run_makes_exactly_that_many_operations() {
        for (name, bytes) in [
            (WorkloadName::PutBlob, 20_300),
            (WorkloadName::GetBlob, 20_300),
            (WorkloadName::HeadBlob, 0),
            (WorkloadName::CreateDeleteContainer, 0),
        ] {
            let account = ceiling::start(SETTINGS.payload_bytes).expect("a port is free");
            let target = PreparedServer::prepare(account, name, SETTINGS).expect("all is answered");
            let tally = target.run(PLAN);
            assert_eq!(tally.latencies.len(), 203, "{name:?}");
            assert_eq!(tally.bytes, bytes, "{name:?}");
            assert_eq!(tally.failures, BTreeMap::new(), "{name:?}");
            target.clean_up().expect("all is answered");
        }
    }

    #[test]
    fn wrong_answers_are_errors_and_not_operations() {
        let account = ceiling::start(SETTINGS.payload_bytes + 1).expect("a port is free");
        let target =
            PreparedServer::prepare(account, WorkloadName::GetBlob, SETTINGS).expect("prepared");
        let tally = target.run(PLAN);
        assert_eq!(tally.latencies.len(), 0);
        assert_eq!(tally.errors, 203);
        let wrong = Failure::Wrong("the blob has another length");
        assert_eq!(tally.failures, BTreeMap::from([(wrong, 203)]));
    }

    #[test]
    fn server_that_is_not_there_is_a_broken_connection() {
        let account =
            Account::parse("AccountName=a;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:1")
                .expect("it is valid");
        let refused = PreparedServer::prepare(account, WorkloadName::PutBlob, SETTINGS).err();
        assert!(refused.expect("nothing listens there").ends_connection());
    }
}
