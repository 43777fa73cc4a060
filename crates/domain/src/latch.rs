//! Queues in front of hot objects: writers to one object wait here instead of conflicting at the
//! commit. Correctness does not depend on it, but on the expectations of a batch.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use holdfast_sync::{AsyncMutex, AsyncMutexGuard};

/// Objects that share a queue wait for each other's commit, so there are many more queues than
/// active writers.
const QUEUES: usize = 8192;

/// Ends when it is dropped.
pub type Turn<'a> = Vec<AsyncMutexGuard<'a, ()>>;

pub struct Latches {
    queues: Box<[AsyncMutex<()>]>,
}

impl Default for Latches {
    fn default() -> Self {
        Self { queues: (0..QUEUES).map(|_| AsyncMutex::new(())).collect() }
    }
}

impl Latches {
    /// Waits for the turn of every one of `keys`.
    pub async fn acquire<K: AsRef<[u8]>>(&self, keys: &[K]) -> Turn<'_> {
        let queues = queues_of(keys);
        let mut held = Vec::with_capacity(queues.len());
        for queue in queues {
            held.push(self.queues[queue].lock().await);
        }
        held
    }

    /// The turn of every one of `keys`, if all are free.
    pub fn try_acquire<K: AsRef<[u8]>>(&self, keys: &[K]) -> Option<Turn<'_>> {
        queues_of(keys).into_iter().map(|queue| self.queues[queue].try_lock().ok()).collect()
    }
}

/// Queues are always taken in the same order, so that two operations cannot deadlock.
fn queues_of<K: AsRef<[u8]>>(keys: &[K]) -> Vec<usize> {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let mut queues: Vec<usize> =
        keys.iter().map(|key| hasher.hash_one(key.as_ref()) as usize % QUEUES).collect();
    queues.sort_unstable();
    queues.dedup();
    queues
}

#[cfg(all(test, feature = "shuttle"))]
mod shuttle {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use holdfast_sync::{explore, future};

    use super::*;

    const KEYS: [&str; 3] = ["blob", "container", "table"];
    /// Every two of them, and in both orders.
    const WANTED: [[usize; 2]; 5] = [[0, 1], [1, 0], [1, 2], [2, 1], [2, 0]];

    /// Marks keys as in use.
    struct Worked<'a>(&'a [AtomicBool; 3], [usize; 2]);

    impl<'a> Worked<'a> {
        fn begin(on: &'a [AtomicBool; 3], keys: [usize; 2]) -> Self {
            for key in keys {
                assert!(!on[key].swap(true, Ordering::SeqCst), "two work on {}", KEYS[key]);
            }
            Self(on, keys)
        }
    }

    impl Drop for Worked<'_> {
        fn drop(&mut self) {
            self.1.into_iter().for_each(|key| self.0[key].store(false, Ordering::SeqCst));
        }
    }

    #[test]
    fn one_at_a_time_works_on_a_key_and_everybody_gets_there_whoever_gives_up() {
        explore(|| {
            let (latches, worked) = (Arc::new(Latches::default()), Arc::default());
            let workers = WANTED.map(|wanted| {
                let (latches, worked) = (Arc::clone(&latches), Arc::clone(&worked));
                future::spawn(async move {
                    let _turn = latches.acquire(&wanted.map(|key| KEYS[key])).await;
                    let _worked = Worked::begin(&worked, wanted);
                    future::yield_now().await;
                })
            });
            future::block_on(async {
                workers[0].abort();
                for worker in workers.into_iter().skip(1) {
                    worker.await.expect("done");
                }
                latches.acquire(&KEYS).await;
            });
        });
    }
}
