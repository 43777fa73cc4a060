//! The same names, scheduled by shuttle. Locks of threads are shuttle's own; those of tasks are
//! tokio's, which need no executor, with a possible switch before each use.

mod channels;
mod explore;
mod tasks;
mod threads;

pub use channels::{mpsc, oneshot};
pub use explore::explore;
pub use shuttle::future::yield_now;
pub use shuttle::{future, rand, thread};
pub use tasks::{AsyncMutex, AsyncRwLock, Notify, spawn_blocking};
pub use threads::{Condvar, Mutex, MutexGuard, RwLock};
pub use tokio::sync::{MutexGuard as AsyncMutexGuard, OwnedRwLockReadGuard};

/// A possible switch. Not while a failed test unwinds.
fn let_others_go_on() {
    if !std::thread::panicking() {
        thread::yield_now();
    }
}
