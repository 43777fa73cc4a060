//! A future that is seldom ready and checked at every turn of a loop. It is polled only after a
//! wake-up, since polling may take a lock that all connections share.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

pub(super) struct WokenFuture<'a, F> {
    future: Pin<&'a mut F>,
    flag: Arc<WakeFlag>,
    waker: Waker,
}

struct WakeFlag {
    is_set: AtomicBool,
    /// The task that waits for the future.
    listener: AtomicWaker,
}

impl<'a, F: Future<Output = ()>> WokenFuture<'a, F> {
    pub fn new(future: Pin<&'a mut F>) -> Self {
        // The future has not been polled yet.
        let flag = Arc::new(WakeFlag { is_set: true.into(), listener: AtomicWaker::new() });
        let waker = Waker::from(Arc::clone(&flag));
        Self { future, flag, waker }
    }

    /// Whether it is ready now. Must not be called again once it was ready.
    pub fn is_ready(&mut self) -> bool {
        // Before the future is polled, so that later wake-ups are not missed.
        self.flag.is_set.load(Ordering::Relaxed)
            && self.flag.is_set.swap(false, Ordering::AcqRel)
            && self.future.as_mut().poll(&mut Context::from_waker(&self.waker)).is_ready()
    }

    /// As [`WokenFuture::is_ready`], for a task that waits for it.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // Before the flag is read, so that setting it later wakes this task.
        self.flag.listener.register(context.waker());
        if self.is_ready() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_set.store(true, Ordering::Release);
        self.listener.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::pin::pin;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_future_is_asked_once_and_when_it_has_woken() {
        let (ring, mut rung) = oneshot::channel::<()>();
        let asked = Cell::new(0);
        let mut future = pin!(poll_fn(|context| {
            asked.set(asked.get() + 1);
            Pin::new(&mut rung).poll(context).map(drop)
        }));
        let mut woken = WokenFuture::new(future.as_mut());
        for _ in 0..3 {
            assert!(!woken.is_ready());
            assert!(woken.poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        assert_eq!(asked.get(), 1);
        let waking = async {
            tokio::task::yield_now().await;
            ring.send(()).expect("waited for");
        };
        tokio::join!(poll_fn(|context| woken.poll(context)), waking);
        assert_eq!(asked.get(), 2);
    }

    #[test]
    fn a_future_that_wakes_at_once_is_asked_again() {
        assert!(WokenFuture::new(pin!(std::future::ready(())).as_mut()).is_ready());
    }
}
