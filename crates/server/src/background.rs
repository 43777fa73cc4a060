//! How often each kind of background work runs; the work itself is in the domain.

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::Failure;
use holdfast_domain::workers::Worker;

use crate::wiring::Node;

/// After a crash the next run continues from a time at most this old.
const TIME_RECORDED_EVERY: Duration = Duration::from_secs(5);
/// How soon the space of deleted data begins to be freed.
const GARBAGE_LOOKED_FOR_EVERY: Duration = Duration::from_secs(1);
/// How late something that is due may begin.
const DUE_LOOKED_FOR_EVERY: Duration = Duration::from_secs(1);

/// Works until the workers of the domain are told to stop. Each ends between two pieces of work, and
/// the time is recorded once more when the last has ended, including those started by requests.
pub async fn work(node: Arc<Node>) {
    tokio::join!(
        collect_orphaned_extents(&node),
        repeat(&node, "time", TIME_RECORDED_EVERY, async || {
            node.domain().keep_time().await.map(|()| false)
        }),
        repeat(&node, "garbage", GARBAGE_LOOKED_FOR_EVERY, || node.domain().collect_garbage()),
        repeat(&node, "due", DUE_LOOKED_FOR_EVERY, || node.domain().do_what_is_due()),
        repeat(&node, "queues", DUE_LOOKED_FOR_EVERY, || node.domain().tend_queues()),
        repeat(&node, "expired-handles", DUE_LOOKED_FOR_EVERY, async || {
            node.domain().close_expired_handles().await;
            Ok(false)
        })
    );
    node.domain().workers().all_ended().await;
    if let Err(failure) = node.domain().keep_time().await {
        tracing::error!(?failure, "the time could not be recorded");
    }
}

async fn collect_orphaned_extents(node: &Node) {
    let worker = node.domain().workers().start("orphaned-extents", None);
    worker.works();
    match node.domain().collect_orphaned_extents().await {
        Ok(()) => worker.has_finished_round(),
        Err(fault) => worker.has_failed(node.domain().now(), &fault),
    }
}

/// Repeats a piece of work: at once if there is more to do, else after a pause.
async fn repeat<F>(node: &Node, name: &'static str, pause: Duration, work: impl Fn() -> F)
where
    F: Future<Output = Result<bool, Failure<()>>>,
{
    let worker = node.domain().workers().start(name, None);
    loop {
        worker.works();
        let done = work().await;
        let more = match done {
            Ok(more) => {
                worker.has_finished_round();
                more
            }
            Err(failure) => {
                worker.has_failed(node.domain().now(), &failure);
                false
            }
        };
        worker.waits();
        if told_to_stop_within(&worker, if more { Duration::ZERO } else { pause }).await {
            return;
        }
    }
}

/// Whether it is told to stop, now or within `pause`.
async fn told_to_stop_within(worker: &Worker, pause: Duration) -> bool {
    tokio::time::timeout(pause, worker.told_to_stop()).await.is_ok()
}
