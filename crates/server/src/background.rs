//! When the work behind the requests is done; what it is, the domain knows.

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::Failure;
use tokio::sync::watch;

use crate::wiring::Node;

/// A run that crashes goes on from a time at most this old.
const TIME_RECORDED_EVERY: Duration = Duration::from_secs(5);
/// How soon the space of what was deleted begins to come back.
const GARBAGE_LOOKED_FOR_EVERY: Duration = Duration::from_secs(1);
/// How late something that is due may begin.
const DUE_LOOKED_FOR_EVERY: Duration = Duration::from_secs(1);

/// Works until `stop` turns true, and ends between two pieces of work.
pub async fn work(node: Arc<Node>, stop: watch::Receiver<bool>) {
    let stop = Stop(stop);
    tokio::join!(
        collect_orphaned_extents(&node),
        keep_time(&node, stop.clone()),
        collect_garbage(&node, stop.clone()),
        do_what_is_due(&node, stop.clone()),
        close_expired_handles(&node, stop.clone()),
        tend_queues(&node, stop)
    );
    record_time(&node).await;
}

#[derive(Clone)]
struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Whether it is time to stop, at once or within `pause`.
    async fn comes_within(&mut self, pause: Duration) -> bool {
        tokio::time::timeout(pause, self.0.wait_for(|stop| *stop)).await.is_ok()
    }
}

async fn collect_orphaned_extents(node: &Node) {
    if let Err(fault) = node.domain().collect_orphaned_extents().await {
        tracing::error!(?fault, "space left by an earlier run could not be collected");
    }
}

async fn keep_time(node: &Node, mut stop: Stop) {
    loop {
        record_time(node).await;
        if stop.comes_within(TIME_RECORDED_EVERY).await {
            return;
        }
    }
}

async fn record_time(node: &Node) {
    if let Err(failure) = node.domain().keep_time().await {
        tracing::error!(?failure, "the time could not be recorded");
    }
}

async fn collect_garbage(node: &Node, mut stop: Stop) {
    loop {
        let collected = node.domain().collect_garbage().await;
        if stop.comes_within(pause_after(collected, GARBAGE_LOOKED_FOR_EVERY)).await {
            return;
        }
    }
}

async fn do_what_is_due(node: &Node, mut stop: Stop) {
    loop {
        let done = node.domain().do_what_is_due().await;
        if stop.comes_within(pause_after(done, DUE_LOOKED_FOR_EVERY)).await {
            return;
        }
    }
}

async fn close_expired_handles(node: &Node, mut stop: Stop) {
    while !stop.comes_within(DUE_LOOKED_FOR_EVERY).await {
        node.domain().close_expired_handles().await;
    }
}

async fn tend_queues(node: &Node, mut stop: Stop) {
    loop {
        let tended = node.domain().tend_queues().await;
        if stop.comes_within(pause_after(tended, DUE_LOOKED_FOR_EVERY)).await {
            return;
        }
    }
}

/// How long to wait after a piece of work that says whether there is more.
fn pause_after(done: Result<bool, Failure<()>>, otherwise: Duration) -> Duration {
    match done {
        Ok(true) => Duration::ZERO,
        Ok(false) => otherwise,
        Err(failure) => {
            tracing::error!(?failure, "work behind the requests failed");
            otherwise
        }
    }
}
