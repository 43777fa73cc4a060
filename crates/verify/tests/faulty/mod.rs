//! Small servers in memory with one bug each, to show that the checkers find it. They run on
//! paused time and one thread: a seed is a run.

#![allow(dead_code, reason = "each test file uses some of it")]

pub mod append;
pub mod blob;
pub mod entity;
pub mod file;
pub mod partition;
pub mod queue;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use holdfast_random::Random;
use holdfast_verify::record::{Extent, Target, Workload, record};
use holdfast_verify::report::Verdict;
use tokio::time::{Instant, sleep};

/// A client of a server with a bug.
pub struct Faulty<Server, Bug> {
    server: Arc<Mutex<Server>>,
    random: Random,
    bug: Bug,
}

impl<Server: Default, Bug: Copy> Faulty<Server, Bug> {
    /// Clients of one server.
    pub fn targets(bug: Bug, clients: u64, seed: u64) -> Vec<Self> {
        let server = Arc::<Mutex<Server>>::default();
        let client = |number| Self {
            server: Arc::clone(&server),
            random: Random::for_user(seed, 1000 + number),
            bug,
        };
        (0..clients).map(client).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Server> {
        self.server.lock().expect("no client panics")
    }
}

/// A network delay of up to a few milliseconds.
pub async fn travel(random: &mut Random) {
    sleep(Duration::from_micros(random.below(4000) + 1)).await;
}

/// Loses answers as when a server is killed: sometimes two requests of every client are not
/// answered, and half of those are not even executed.
pub struct Unanswered<T> {
    target: T,
    random: Random,
    calls: u32,
}

pub fn unanswered<T>(targets: Vec<T>, seed: u64) -> Vec<Unanswered<T>> {
    let targets = targets.into_iter().zip(0..);
    let with =
        |(target, client)| Unanswered { target, random: Random::for_user(seed, client), calls: 0 };
    targets.map(with).collect()
}

impl<W: Workload, T: Target<W>> Target<W> for Unanswered<T> {
    async fn call(&mut self, request: &W::Request) -> Option<W::Answer> {
        self.calls += 1;
        let is_answered = !matches!(self.calls, 20 | 21 | 40 | 41);
        if !is_answered && self.random.below(2) == 0 {
            travel(&mut self.random).await;
            return None;
        }
        let answer = self.target.call(request).await;
        answer.filter(|_| is_answered)
    }
}

/// Checks histories of clients of one object, over several seeds, until a violation is found.
pub fn verdicts<W: Workload, T: Target<W>>(
    workload: &W,
    seeds: std::ops::Range<u64>,
    extent: Extent,
    mut targets: impl FnMut(u64) -> Vec<T>,
) -> Vec<Verdict> {
    let check = |seed: u64| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime can be made");
        let targets = targets(seed);
        let history = runtime.block_on(async {
            let begun = Instant::now();
            let (mut history, mut targets) = record(workload, targets, seed, begun, extent).await;
            if let Some((closing, extent)) = workload.closing() {
                targets.truncate(1);
                history.extend(record(&closing, targets, seed, begun, extent).await.0);
            }
            history
        });
        workload.check(&history)
    };
    // One history that shows a bug is enough.
    let mut verdicts: Vec<Verdict> = Vec::new();
    for verdict in seeds.map(check) {
        verdicts.push(verdict);
        if verdicts.last().is_some_and(|verdict| !verdict.violations.is_empty()) {
            break;
        }
    }
    verdicts
}

/// The checkers that found a violation.
pub fn found_by(verdicts: &[Verdict]) -> BTreeSet<&'static str> {
    verdicts.iter().flat_map(|verdict| &verdict.violations).map(|it| it.checker).collect()
}

/// Fails unless this checker found a violation in some history.
#[track_caller]
pub fn assert_found(checker: &str, verdicts: &[Verdict]) {
    assert!(found_by(verdicts).contains(checker), "{verdicts:#?}");
}

/// Fails unless every history was checked and found legal.
#[track_caller]
pub fn assert_clean(verdicts: &[Verdict]) {
    for verdict in verdicts {
        assert_eq!(*verdict, Verdict::default());
    }
}

pub const SHORT: Extent =
    Extent { operations_per_client: 60, duration_max: Duration::from_secs(600) };
