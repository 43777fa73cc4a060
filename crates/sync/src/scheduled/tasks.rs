//! Locks and notifications of tasks.

use std::sync::Arc;

use shuttle::future::{self, JoinHandle};
use tokio::sync;

use super::let_others_go_on;

#[derive(Debug, Default)]
pub struct AsyncMutex<T: ?Sized>(sync::Mutex<T>);

impl<T> AsyncMutex<T> {
    pub fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    pub async fn lock(&self) -> sync::MutexGuard<'_, T> {
        let_others_go_on();
        self.0.lock().await
    }

    pub fn try_lock(&self) -> Result<sync::MutexGuard<'_, T>, sync::TryLockError> {
        let_others_go_on();
        self.0.try_lock()
    }
}

#[derive(Debug, Default)]
pub struct AsyncRwLock<T>(Arc<sync::RwLock<T>>);

impl<T> AsyncRwLock<T> {
    pub async fn write(&self) -> sync::RwLockWriteGuard<'_, T> {
        let_others_go_on();
        self.0.write().await
    }

    pub async fn read_owned(self: Arc<Self>) -> sync::OwnedRwLockReadGuard<T> {
        let_others_go_on();
        Arc::clone(&self.0).read_owned().await
    }
}

#[derive(Debug, Default)]
pub struct Notify(sync::Notify);

impl Notify {
    pub fn notified(&self) -> sync::futures::Notified<'_> {
        let_others_go_on();
        self.0.notified()
    }

    pub fn notify_waiters(&self) {
        let_others_go_on();
        self.0.notify_waiters();
    }
}

/// Runs as a task: a separate system thread would make no difference here.
pub fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    future::spawn(async move { work() })
}
