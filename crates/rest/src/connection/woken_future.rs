//! A future that is seldom ready and asked at every turn of a loop. It is polled when it has called,
//! and not before: what lies behind it may be a lock that all connections share.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

pub(super) struct WokenFuture<'a, F> {
    future: Pin<&'a mut F>,
    flag: Arc<WakeFlag>,
    waker: Waker,
    /// Who is going to be woken. As long as it is the task that asks, asking is a load of the flag.
    registered: Option<Waker>,
}

struct WakeFlag {
    is_set: AtomicBool,
    /// Who waits for the future, and is woken each time that it calls.
    listener: Mutex<Option<Waker>>,
}

impl<'a, F: Future<Output = ()>> WokenFuture<'a, F> {
    pub fn new(future: Pin<&'a mut F>) -> Self {
        // Nobody has asked the future yet.
        let flag = Arc::new(WakeFlag { is_set: true.into(), listener: Mutex::new(None) });
        let waker = Waker::from(Arc::clone(&flag));
        Self { future, flag, waker, registered: None }
    }

    /// Whether it is ready now. Once it has, it must not be asked again.
    pub fn is_ready(&mut self) -> bool {
        // Before the future is polled: what it says from then on is not missed.
        self.flag.is_set.load(Ordering::Relaxed)
            && self.flag.is_set.swap(false, Ordering::AcqRel)
            && self.future.as_mut().poll(&mut Context::from_waker(&self.waker)).is_ready()
    }

    /// The same for a task that waits for it.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.registered.as_ref().is_some_and(|it| it.will_wake(context.waker())) {
            // Before the flag is looked at: setting it from then on wakes this task.
            *self.flag.listener.lock() = Some(context.waker().clone());
            self.registered = Some(context.waker().clone());
        }
        if self.is_ready() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_set.store(true, Ordering::Release);
        if let Some(listener) = &*self.listener.lock() {
            listener.wake_by_ref();
        }
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
