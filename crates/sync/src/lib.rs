//! The locks, channels and threads on which the guarantees of `store` and `domain` depend. They are
//! those of parking_lot, tokio and the standard library.
//!
//! With the feature `shuttle` they have the same interface, but at each use the scheduler of shuttle
//! decides which thread continues: a test under [`explore`] runs its threads and tasks on one system
//! thread, in as many different orders as requested.

#![forbid(unsafe_code)]

#[cfg(not(feature = "shuttle"))]
mod plain {
    pub use std::thread;

    pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
    pub use tokio::sync::{
        Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard, Notify, OwnedRwLockReadGuard,
        RwLock as AsyncRwLock, mpsc, oneshot,
    };
    pub use tokio::task::{spawn_blocking, yield_now};
}

#[cfg(not(feature = "shuttle"))]
pub use plain::*;

#[cfg(feature = "shuttle")]
mod scheduled;

#[cfg(feature = "shuttle")]
pub use scheduled::*;
