//! The same names, scheduled by shuttle. Locks of threads are shuttle's own; those of tasks are
//! tokio's, which know no executor, with a moment to go on elsewhere before each use.

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

/// Others may go on here. Not while a failed test unwinds: it takes everything down with it.
fn let_others_go_on() {
    if !std::thread::panicking() {
        thread::yield_now();
    }
}
