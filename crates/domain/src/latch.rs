//! Queues in front of hot objects: writers to one object line up here instead of fighting for the
//! commit. Correctness does not depend on it; the expectations of a batch carry that.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use tokio::sync::{Mutex, MutexGuard};

/// Objects that share a queue wait for each other's commit, so there are many more queues than
/// writers at work.
const QUEUES: usize = 8192;

pub struct Latches {
    queues: Box<[Mutex<()>]>,
}

impl Default for Latches {
    fn default() -> Self {
        Self { queues: (0..QUEUES).map(|_| Mutex::new(())).collect() }
    }
}

impl Latches {
    /// Waits for the turn of every one of `keys`. Queues are taken in one order by everybody, so
    /// that two operations on the same objects cannot wait for each other.
    pub async fn acquire<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<MutexGuard<'_, ()>> {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let mut queues: Vec<usize> =
            keys.iter().map(|key| hasher.hash_one(key.as_ref()) as usize % QUEUES).collect();
        queues.sort_unstable();
        queues.dedup();
        let mut held = Vec::with_capacity(queues.len());
        for queue in queues {
            held.push(self.queues[queue].lock().await);
        }
        held
    }
}
