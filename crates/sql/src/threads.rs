//! The threads of queries. A query runs in steps, and takes a thread for each of them.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use tokio::sync::Semaphore;

use crate::work::GivenUp;

/// Threads that run queries at the same time. One that reads Parquet may wait for bytes that
/// another thread of the same pool reads, so queries must not take the whole pool.
const THREADS_MAX: usize = 16;
/// The threads of one owner, so that others always find a thread.
const THREADS_OF_OWNER_MAX: usize = 4;

static THREADS: Semaphore = Semaphore::const_new(THREADS_MAX);
/// The owners that have queries now.
static OWNERS: LazyLock<Mutex<HashMap<String, Weak<Semaphore>>>> = LazyLock::new(Mutex::default);

/// The turns of one query. When they are dropped, its running work stops.
pub struct Turns {
    owner: Arc<Semaphore>,
    given_up: GivenUp,
}

impl Drop for Turns {
    fn drop(&mut self) {
        self.given_up.give_up();
    }
}

impl Turns {
    /// For a query of this owner, if it has one.
    pub fn of(owner: Option<&str>) -> Self {
        let new = || Arc::new(Semaphore::new(THREADS_OF_OWNER_MAX));
        let owner = owner.map_or_else(new, |owner| {
            let mut owners = OWNERS.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = owners.get(owner).and_then(Weak::upgrade) {
                return known;
            }
            owners.retain(|_, known| known.strong_count() > 0);
            let known = new();
            owners.insert(owner.to_owned(), Arc::downgrade(&known));
            known
        });
        Self { owner, given_up: GivenUp::default() }
    }

    pub fn given_up(&self) -> GivenUp {
        self.given_up.clone()
    }

    /// Runs a step on a blocking thread: evaluating a record may take long, and reading Parquet blocks.
    /// The thread counts as used until the step is done, even if nothing waits for it.
    pub async fn on_thread<T: Send + 'static>(
        &self,
        step: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let of_owner = Arc::clone(&self.owner).acquire_owned().await.map_err(io::Error::other)?;
        let of_all = THREADS.acquire().await.map_err(io::Error::other)?;
        let held = (of_owner, of_all);
        let step = move || {
            let _held = held;
            step()
        };
        tokio::task::spawn_blocking(step).await.map_err(io::Error::other)?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// However many queries one owner has, it uses so many threads, and another gets one at once.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn owner_leaves_threads_to_others() {
        let (begun, begins) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let ends = Arc::new(Mutex::new(ends));
        for _ in 0..3 * THREADS_MAX {
            let (begun, ends) = (begun.clone(), Arc::clone(&ends));
            tokio::spawn(async move {
                let wait = move || {
                    let _ = begun.send(());
                    let _ = ends.lock().expect("not poisoned").recv();
                    Ok(())
                };
                Turns::of(Some("greedy")).on_thread(wait).await
            });
        }
        for _ in 0..THREADS_OF_OWNER_MAX {
            begins.recv_timeout(Duration::from_secs(10)).expect("begun");
        }
        let other = Turns::of(Some("modest"));
        let done = tokio::time::timeout(Duration::from_secs(10), other.on_thread(|| Ok(7))).await;
        assert_eq!(done.expect("in time").expect("done"), 7);
        assert!(begins.try_recv().is_err(), "it has more threads than it may have");
        drop(end);
    }
}
