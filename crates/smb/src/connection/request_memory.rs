//! Memory for running requests and their short answers: from before a request is read until its answer
//! is written.
//!
//! Each connection has a limit, and all of them together have one. When that is reached, a connection that
//! holds more than its share reads nothing until some of its own requests are answered, or there is room
//! again. So many clients that do not read hold little each, and do not block others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

const CONNECTION_KIB_MAX: usize = 64 * 1024;
const PROCESS_KIB_MAX: usize = 512 * 1024;
/// What a connection may always hold, whatever the others hold; or one request if that is longer.
const SHARE_KIB: usize = 1024;

/// The budget for requests of all connections.
#[derive(Debug, Default)]
pub struct ProcessRequestMemory {
    held_kib: AtomicUsize,
    /// Notified when memory is released while it is short.
    freed: Notify,
}

impl ProcessRequestMemory {
    fn is_short(&self) -> bool {
        self.held_kib.load(Ordering::Relaxed) >= PROCESS_KIB_MAX
    }
}

/// The budget for requests of one connection.
pub struct ConnectionWork {
    process: Arc<ProcessRequestMemory>,
    own: Arc<Semaphore>,
}

impl ConnectionWork {
    pub fn new(process: &Arc<ProcessRequestMemory>) -> Self {
        let own = Arc::new(Semaphore::new(CONNECTION_KIB_MAX));
        Self { process: Arc::clone(process), own }
    }

    /// Waits for room for one more request. Called only by the reader of a connection.
    pub async fn take(&self, bytes: usize) -> Working {
        let kib = (bytes / 1024 + 1).min(CONNECTION_KIB_MAX);
        loop {
            let mut freed = std::pin::pin!(self.process.freed.notified());
            freed.as_mut().enable();
            if !self.process.is_short() || self.is_within_share(kib) {
                break;
            }
            freed.await;
        }
        let own = Arc::clone(&self.own).acquire_many_owned(kib as u32).await;
        let own = own.expect("nobody closes it");
        self.process.held_kib.fetch_add(kib, Ordering::Relaxed);
        Working { process: Arc::clone(&self.process), kib, own: Some(own) }
    }

    fn is_within_share(&self, more_kib: usize) -> bool {
        let held = CONNECTION_KIB_MAX - self.own.available_permits();
        held == 0 || held + more_kib <= SHARE_KIB
    }
}

/// The memory of a running request, until this is dropped.
pub struct Working {
    process: Arc<ProcessRequestMemory>,
    kib: usize,
    own: Option<OwnedSemaphorePermit>,
}

impl Drop for Working {
    fn drop(&mut self) {
        // Released first, since the waiter checks what the connection holds.
        drop(self.own.take());
        let before = self.process.held_kib.fetch_sub(self.kib, Ordering::Relaxed);
        if before >= PROCESS_KIB_MAX {
            self.process.freed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MIB: usize = 1024 * 1024;

    async fn waits(work: &ConnectionWork, bytes: usize) -> bool {
        tokio::time::timeout(Duration::from_millis(5), work.take(bytes)).await.is_err()
    }

    async fn filled(process: &Arc<ProcessRequestMemory>) -> Vec<(ConnectionWork, Vec<Working>)> {
        let mut all = Vec::new();
        while !process.is_short() {
            let work = ConnectionWork::new(process);
            let mut held = Vec::new();
            while !waits(&work, MIB).await {
                held.push(work.take(MIB).await);
            }
            all.push((work, held));
        }
        all
    }

    #[tokio::test]
    async fn a_connection_has_its_own_limit() {
        let process = Arc::new(ProcessRequestMemory::default());
        let work = ConnectionWork::new(&process);
        let held = work.take(CONNECTION_KIB_MAX * 1024 - 2048).await;
        assert!(waits(&work, 2048).await);
        assert!(!waits(&ConnectionWork::new(&process), 8 * MIB).await);
        drop(held);
        assert!(!waits(&work, 2048).await);
        assert_eq!(process.held_kib.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn where_all_hold_much_each_has_a_share_and_nobody_more() {
        let process = Arc::new(ProcessRequestMemory::default());
        let mut all = filled(&process).await;
        let newcomer = ConnectionWork::new(&process);
        let long = newcomer.take(8 * MIB).await;
        assert!(waits(&newcomer, 100).await, "it has more than its share");
        drop(long);
        let short = newcomer.take(100).await;
        assert!(!waits(&newcomer, 100).await);
        drop(short);
        let (first, held) = &mut all[0];
        held.truncate(1);
        let before = process.held_kib.load(Ordering::Relaxed);
        assert!(before < PROCESS_KIB_MAX);
        assert!(!waits(first, MIB).await, "there is room again");
    }

    #[tokio::test]
    async fn who_waits_goes_on_when_its_own_requests_are_answered() {
        let process = Arc::new(ProcessRequestMemory::default());
        let all = filled(&process).await;
        let work = Arc::new(ConnectionWork::new(&process));
        let long = work.take(8 * MIB).await;
        let waiting = tokio::spawn({
            let work = Arc::clone(&work);
            async move { work.take(100).await }
        });
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(!waiting.is_finished());
        drop(long);
        drop(waiting.await.expect("no panic"));
        drop(all);
        assert_eq!(process.held_kib.load(Ordering::Relaxed), 0);
    }
}
