//! Where threads and tasks meet: the locks, channels and threads of `store` and `domain` that their
//! promises depend on. They are those of parking_lot, tokio and the standard library.
//!
//! With the feature `shuttle` they are the same to their users, but each use is a moment at which
//! the scheduler of shuttle decides who goes on: a test under [`explore`] runs its threads and tasks
//! on one thread of the system, in as many different orders as it is asked to.

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
