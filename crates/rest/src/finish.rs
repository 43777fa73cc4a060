//! A request that has been begun is finished, whether or not its client waits for the answer.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::runtime::Handle;

/// hyper drops the handler of a request when the client goes away. Between the commit of a write
/// and what follows it (space that is given back, properties that are remembered) that would leave
/// the work half done, so a handler that is dropped goes on as a task of its own. It cannot go on
/// for long: its body ends with the connection, and nothing else waits for the client.
pub struct Finished<F: Future<Output: Send> + Send + 'static> {
    /// Until it has finished.
    handler: Option<Pin<Box<F>>>,
}

impl<F: Future<Output: Send> + Send + 'static> Finished<F> {
    pub fn new(handler: F) -> Self {
        Self { handler: Some(Box::pin(handler)) }
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for Finished<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let handler = self.handler.as_mut().expect("not polled after it has finished");
        let output = ready!(handler.as_mut().poll(context));
        self.handler = None;
        Poll::Ready(output)
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for Finished<F> {
    fn drop(&mut self) {
        let unfinished = self.handler.take().filter(|_| !std::thread::panicking());
        // Without a runtime the process is ending, and the next start finds what is left to do.
        if let (Some(handler), Ok(runtime)) = (unfinished, Handle::try_current()) {
            drop(runtime.spawn(handler));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn a_handler_that_is_dropped_half_way_is_finished() {
        let (go_on, may_go_on) = oneshot::channel::<()>();
        let (finished, has_finished) = oneshot::channel();
        let mut handler = Box::pin(Finished::new(async move {
            may_go_on.await.expect("told to go on");
            finished.send(()).expect("waited for");
        }));
        assert!(futures_util::poll!(handler.as_mut()).is_pending());
        drop(handler);
        go_on.send(()).expect("it is still there");
        has_finished.await.expect("it finishes");
    }

    #[tokio::test]
    async fn a_handler_that_has_finished_gives_its_answer_once() {
        assert_eq!(Finished::new(async { 5 }).await, 5);
    }
}
