//! Recording: clients that choose requests, send and record them, each independently, all on one
//! object.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant as Clock;

use crate::history::{Instant, Record};
use crate::report::Verdict;
use holdfast_random::Random;

/// The requests of clients on one kind of object, and the check of their answers.
pub trait Workload: Clone + Send + Sync + 'static {
    type Request: Clone + Debug + Send + Sync + 'static;
    type Answer: Clone + Debug + Send + Sync + 'static;
    /// What a client knows from answers: ETags, ids of leases, receipts.
    type Memory: Default + Send + 'static;

    fn name(&self) -> &'static str;

    /// The next request of a client. `unique` is different for every request of a history.
    fn choose(&self, random: &mut Random, memory: &mut Self::Memory, unique: u64) -> Self::Request;

    fn learn(&self, memory: &mut Self::Memory, request: &Self::Request, answer: &Self::Answer);

    /// How long a client waits before its next request, at most.
    fn pause_max(&self) -> Duration {
        Duration::ZERO
    }

    /// The shortest such wait.
    fn pause_min(&self) -> Duration {
        Duration::ZERO
    }

    /// The workload of one client after all others are done, and its extent.
    fn closing(&self) -> Option<(Self, Extent)> {
        None
    }

    /// Judges the history of one object.
    fn check(&self, history: &[Record<Self::Request, Self::Answer>]) -> Verdict;
}

pub type HistoryOf<W> = Vec<Record<<W as Workload>::Request, <W as Workload>::Answer>>;

/// A client's access to one object. An answer of `None` means no answer, or an unknown outcome.
pub trait Target<W: Workload>: Send + 'static {
    fn call(&mut self, request: &W::Request) -> impl Future<Output = Option<W::Answer>> + Send;
}

/// How much is recorded of one object.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub operations_per_client: u32,
    /// No operation begins after this.
    pub duration_max: Duration,
}

/// Runs a client for every target concurrently, each in its own task, and returns their records in
/// the order of calls, and the targets. The seed determines the choices, but not the interleaving.
pub async fn record<W: Workload, T: Target<W>>(
    workload: &W,
    targets: Vec<T>,
    seed: u64,
    begun: Clock,
    extent: Extent,
) -> (HistoryOf<W>, Vec<T>) {
    let clients = targets.into_iter().zip(0..).map(|(target, number)| {
        let workload = workload.clone();
        tokio::spawn(Client { workload, target, number, seed, begun, extent }.run())
    });
    let (mut history, mut targets) = (HistoryOf::<W>::new(), Vec::new());
    for client in join_all(clients).await {
        // A client that panics is a bug of ours and must not look like a short history.
        let (records, target) = client.expect("clients do not panic");
        history.extend(records);
        targets.push(target);
    }
    history.sort_by_key(|record| (record.call, record.client));
    (history, targets)
}

struct Client<W: Workload, T> {
    workload: W,
    target: T,
    number: u32,
    seed: u64,
    begun: Clock,
    extent: Extent,
}

impl<W: Workload, T: Target<W>> Client<W, T> {
    async fn run(self) -> (HistoryOf<W>, T) {
        let Self { workload, mut target, number, seed, begun, extent } = self;
        let mut random = Random::for_user(seed, u64::from(number) + 1);
        let mut memory = W::Memory::default();
        let mut history = Vec::new();
        let started = Clock::now();
        for count in 0..extent.operations_per_client {
            let (least, most) = (workload.pause_min(), workload.pause_max());
            if !most.is_zero() {
                let range = u64::try_from((most - least).as_micros()).unwrap_or(u64::MAX);
                let more = Duration::from_micros(random.below(range.saturating_add(1)));
                tokio::time::sleep(least + more).await;
            }
            if started.elapsed() >= extent.duration_max {
                break;
            }
            let unique = (u64::from(number) + 1) << 32 | u64::from(count + 1);
            let request = workload.choose(&mut random, &mut memory, unique);
            let call = since(begun);
            let answer = target.call(&request).await;
            let end = if answer.is_some() { since(begun) } else { Instant::NEVER };
            if let Some(answer) = &answer {
                workload.learn(&mut memory, &request, answer);
            }
            history.push(Record { client: number, call, end, request, answer });
        }
        (history, target)
    }
}

fn since(begun: Clock) -> Instant {
    Instant(i64::try_from(begun.elapsed().as_nanos()).unwrap_or(i64::MAX - 1))
}
