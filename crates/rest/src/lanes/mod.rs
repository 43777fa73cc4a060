//! The threads that carry connections. Each has a runtime of its own, and a connection stays on one
//! of them: no thread must be found to run it and there is no work stealing, which saves about a
//! tenth of the cost of small requests.
//!
//! While a request runs, others on its thread wait. So a request that takes more than its
//! [share](crate::lanes::lane_share) continues in the [heavy pool](crate::lanes::heavy_pool), and long work
//! yields from time to time, or it could not be moved. Blocking work (reads from the disk, digests of long
//! bodies, queries of a blob) goes to the blocking pool of its lane.

pub(crate) mod heavy_pool;
pub(crate) mod lane_share;

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::lanes::heavy_pool::HeavyPool;
use crate::lanes::lane_share::LaneShare;
use crate::metrics::Metrics;

/// How long running work in the blocking pool may take when its lane ends.
const GRACE: Duration = Duration::from_secs(1);

pub struct Lanes {
    /// Dropped before the lanes, in whose runtimes its work lives: fields are dropped in this
    /// order.
    pool: HeavyPool,
    lanes: StartedLanes,
}

struct StartedLanes(Vec<Lane>);

struct Lane {
    runtime: Handle,
    /// One reference for each connection, and this one.
    connections: Arc<()>,
    /// Dropped to end the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A place of a connection on its lane, held as long as the connection exists.
pub struct Carried {
    lane: Handle,
    share: Arc<LaneShare>,
    _connection: Arc<()>,
}

/// Methods, since naming a field in an `async` block would move that field alone and drop the place.
impl Carried {
    pub fn lane(&self) -> &Handle {
        &self.lane
    }

    pub fn share(&self) -> &Arc<LaneShare> {
        &self.share
    }
}

impl Lanes {
    /// One for each processor.
    pub fn start() -> io::Result<Self> {
        Self::of(thread::available_parallelism()?.get())
    }

    fn of(count: usize) -> io::Result<Self> {
        let lanes = (0..count).map(Lane::start).collect::<io::Result<_>>()?;
        Ok(Self { pool: HeavyPool::start(count)?, lanes: StartedLanes(lanes) })
    }

    /// The lane with the fewest connections.
    pub fn next(&self, metrics: &Arc<Metrics>) -> Carried {
        let fewest = self.lanes.0.iter().min_by_key(|lane| Arc::strong_count(&lane.connections));
        let lane = fewest.expect("there is at least one processor");
        Carried {
            lane: lane.runtime.clone(),
            share: LaneShare::new(
                lane.runtime.clone(),
                self.pool.entrance().clone(),
                Arc::clone(metrics),
            ),
            _connection: Arc::clone(&lane.connections),
        }
    }
}

impl Lane {
    fn start(number: usize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name(format!("lane-{number}")).spawn(move || {
            // Nothing is ever sent: the sender is dropped.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_timeout(GRACE);
        })?;
        let (stop, thread) = (Some(stop), Some(thread));
        Ok(Self { runtime: handle, connections: Arc::new(()), stop, thread })
    }
}

impl Drop for StartedLanes {
    fn drop(&mut self) {
        // All are told before any is waited for.
        self.0.iter_mut().for_each(|lane| drop(lane.stop.take()));
        for thread in self.0.iter_mut().filter_map(|lane| lane.thread.take()) {
            // A panic of a lane has been logged already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(lanes: &Lanes) -> Vec<usize> {
        lanes.lanes.0.iter().map(|lane| Arc::strong_count(&lane.connections) - 1).collect()
    }

    #[test]
    fn connections_go_where_the_fewest_are() {
        let lanes = Lanes::of(3).expect("threads");
        let next = || lanes.next(&Arc::default());
        let mut carried: Vec<_> = (0..7).map(|_| next()).collect();
        assert_eq!(counts(&lanes), [3, 2, 2]);
        drop(carried.remove(1));
        drop(carried.remove(3));
        assert_eq!(counts(&lanes), [3, 0, 2]);
        carried.extend([next(), next()]);
        assert_eq!(counts(&lanes), [3, 2, 2]);
    }

    #[test]
    fn what_is_carried_stays_on_one_thread_and_ends_with_the_lanes() {
        let lanes = Lanes::of(1).expect("threads");
        let carried = lanes.next(&Arc::default());
        let runtime = carried.lane().clone();
        let on_thread = || thread::current().name().map(str::to_owned);
        let (told, tells) = std::sync::mpsc::channel();
        drop(runtime.spawn(async move {
            let _carried = carried;
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_millis(1)).await;
                told.send(on_thread()).expect("it is waited for");
            }
            std::future::pending::<()>().await;
        }));
        for _ in 0..3 {
            assert_eq!(tells.recv().expect("told").as_deref(), Some("lane-0"));
        }
        drop(lanes);
        assert!(tells.recv().is_err(), "the connection was dropped");
    }
}
