//! A run over all workloads: rounds of recording and checking, until the time or the number of
//! operations is reached. Each round has new objects, so that histories stay short enough to check,
//! and removes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use tokio::time::Instant;

use crate::account::{Account, Service};
use crate::append::AppendWorkload;
use crate::append::http::AppendTarget;
use crate::blob::BlobWorkload;
use crate::blob::http::BlobTarget;
use crate::connection::Connection;
use crate::entity::EntityWorkload;
use crate::entity::http::EntityTarget;
use crate::file::FileWorkload;
use crate::file::http::FileTarget;
use crate::history::Record;
use crate::partition::PartitionWorkload;
use crate::partition::http::PartitionTarget;
use crate::queue::QueueWorkload;
use crate::queue::http::QueueTarget;
use crate::record::{Extent, HistoryOf, Target, Workload, record};
use crate::report::{Figures, Report, Verdict};
use crate::scratch_space;
use holdfast_random::Random;

/// The duration, the number of operations and the number of clients of a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    /// The clients of each workload.
    pub clients: u32,
    pub duration_max: Duration,
    /// Over all workloads.
    pub operations_max: u64,
}

/// The progress of a run.
#[derive(Debug, Default)]
pub struct Progress {
    pub operations: AtomicU64,
    pub maybes: AtomicU64,
    pub violations: AtomicU64,
}

/// Clients of one workload are spread over so many objects at once.
const OBJECTS: u32 = 2;
/// The operations of one client in a round.
const OPERATIONS: u32 = 60;
/// Long enough for leases to expire twice.
const ROUND_MAX: Duration = Duration::from_secs(45);

/// Runs every workload whose service the account has.
pub async fn run(account: Account, plan: Plan, progress: &Progress) -> Report {
    let run = Run { account: Arc::new(account), plan, progress, begun: Instant::now() };
    let outcomes = join_all(run.workloads()).await;
    let mut report = Report { seed: plan.seed, ..Report::default() };
    for outcome in outcomes {
        match outcome {
            Ok(figures) => report.workloads.push(figures),
            Err(skipped) => report.skipped.push(skipped),
        }
    }
    report.elapsed = run.begun.elapsed();
    report
}

type Outcome = Result<Figures, (&'static str, String)>;

struct Run<'run> {
    account: Arc<Account>,
    plan: Plan,
    progress: &'run Progress,
    begun: Instant,
}

/// How the objects of one workload are created and accessed.
struct Stage<T> {
    service: Service,
    objects: u32,
    operations_per_client: u32,
    round_max: Duration,
    /// Makes a client's access to an object, from the name of its space and its number there.
    target: fn(Connection, &str, u32) -> T,
}

fn stage<T>(
    service: Service,
    operations_per_client: u32,
    target: fn(Connection, &str, u32) -> T,
) -> Stage<T> {
    Stage { service, objects: OBJECTS, operations_per_client, round_max: ROUND_MAX, target }
}

impl Run<'_> {
    fn workloads(&self) -> Vec<BoxFuture<'_, Outcome>> {
        let blobs = |operations_per_client| {
            stage(Service::Blob, operations_per_client, |connection, space, object| BlobTarget {
                connection,
                path: format!("/{space}/{object}"),
            })
        };
        let appends = stage(Service::Blob, OPERATIONS, |connection, space, object| AppendTarget {
            connection,
            path: format!("/{space}/{object}"),
        });
        let entities = stage(Service::Table, OPERATIONS, |connection, table, object| {
            EntityTarget { connection, table: table.to_owned(), row: object.to_string() }
        });
        let partitions = stage(Service::Table, OPERATIONS, |connection, table, object| {
            PartitionTarget { connection, table: table.to_owned(), partition: object.to_string() }
        });
        let queues = stage(Service::Queue, OPERATIONS, |connection, queue, _| QueueTarget {
            connection,
            path: format!("/{queue}/messages"),
        });
        let files = stage(Service::File, OPERATIONS, |connection, share, object| FileTarget {
            connection,
            path: format!("/{share}/{object}"),
        });
        vec![
            Box::pin(self.rounds(1, BlobWorkload::Register, blobs(OPERATIONS))),
            Box::pin(self.rounds(2, BlobWorkload::Leases, blobs(OPERATIONS))),
            Box::pin(self.rounds(3, BlobWorkload::Expiry, blobs(u32::MAX))),
            Box::pin(self.rounds(4, AppendWorkload, appends)),
            Box::pin(self.rounds(5, EntityWorkload, entities)),
            Box::pin(self.rounds(6, PartitionWorkload, partitions)),
            Box::pin(self.rounds(7, QueueWorkload::Use, Stage { objects: 1, ..queues })),
            Box::pin(self.rounds(8, FileWorkload::Rest, files)),
        ]
    }

    fn is_over(&self) -> bool {
        self.begun.elapsed() >= self.plan.duration_max
            || self.progress.operations.load(Ordering::Relaxed) >= self.plan.operations_max
    }

    /// Records and checks until the run is over or a violation is found.
    async fn rounds<W: Workload, T: Target<W>>(
        &self,
        number: u64,
        workload: W,
        stage: Stage<T>,
    ) -> Outcome {
        let name = workload.name();
        let mut figures = Figures { workload: name, ..Figures::default() };
        if self.account.endpoint(stage.service).is_none() {
            let reason = format!("the account has no {} endpoint", stage.service.name());
            return Err((name, reason));
        }
        let mut seeds = Random::for_user(self.plan.seed, number);
        let mut judging = None;
        while !self.is_over() && figures.violations.is_empty() {
            let mut connection = Connection::new(Arc::clone(&self.account), stage.service);
            let space = match scratch_space::create(&mut connection, stage.service).await {
                Ok(space) => space,
                Err(reason) if figures.objects == 0 => return Err((name, reason)),
                Err(_) => break,
            };
            let histories = self.round(&workload, &stage, &space, seeds.number()).await;
            scratch_space::remove(&mut connection, stage.service, &space).await;
            if let Some(judged) = judging.take() {
                self.take(&mut figures, judged).await;
            }
            judging = Some(tokio::task::spawn_blocking({
                let workload = workload.clone();
                move || judge(&workload, &histories)
            }));
        }
        if let Some(judged) = judging {
            self.take(&mut figures, judged).await;
        }
        Ok(figures)
    }

    async fn round<W: Workload, T: Target<W>>(
        &self,
        workload: &W,
        stage: &Stage<T>,
        space: &str,
        seed: u64,
    ) -> Vec<HistoryOf<W>> {
        let left = self.plan.duration_max.saturating_sub(self.begun.elapsed());
        let extent = Extent {
            operations_per_client: stage.operations_per_client,
            duration_max: stage.round_max.min(left),
        };
        let clients = (self.plan.clients / stage.objects).max(1);
        let objects = (0..stage.objects).map(|object| async move {
            let target = |_| {
                let connection = Connection::new(Arc::clone(&self.account), stage.service);
                (stage.target)(connection, space, object)
            };
            let targets: Vec<T> = (0..clients).map(target).collect();
            let seed = seed.wrapping_add(object.into());
            let (mut history, mut targets) =
                record(workload, targets, seed, self.begun, extent).await;
            if let Some((closing, extent)) = workload.closing() {
                targets.truncate(1);
                history.extend(record(&closing, targets, seed, self.begun, extent).await.0);
            }
            self.count(&history);
            history
        });
        join_all(objects).await
    }

    fn count<Request, Answer>(&self, history: &[Record<Request, Answer>]) {
        let maybes = history.iter().filter(|record| record.is_maybe()).count();
        self.progress.operations.fetch_add(history.len() as u64, Ordering::Relaxed);
        self.progress.maybes.fetch_add(maybes as u64, Ordering::Relaxed);
    }

    async fn take(&self, figures: &mut Figures, judged: tokio::task::JoinHandle<Figures>) {
        // A panic of a checker is a bug of ours and must not look like a clean run.
        let judged = judged.await.expect("checkers do not panic");
        self.progress.violations.fetch_add(judged.violations.len() as u64, Ordering::Relaxed);
        figures.add(judged);
    }
}

fn judge<W: Workload>(workload: &W, histories: &[HistoryOf<W>]) -> Figures {
    let mut figures = Figures::default();
    for history in histories {
        let Verdict { violations, is_unjudged } = workload.check(history);
        figures.add(Figures {
            workload: workload.name(),
            operations: history.len() as u64,
            maybes: history.iter().filter(|record| record.is_maybe()).count() as u64,
            objects: 1,
            unjudged: u64::from(is_unjudged),
            violations,
        });
    }
    figures
}
