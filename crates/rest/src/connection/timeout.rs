//! Timeouts for futures that are mostly ready at once: the clock is read only if one has to wait.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::time::error::Elapsed;

/// Waits for `work` for at most `limit`.
pub(crate) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = T>,
) -> Result<T, Elapsed> {
    let mut work = pin!(work);
    match at_once(work.as_mut()).await {
        Poll::Ready(done) => Ok(done),
        Poll::Pending => tokio::time::timeout(limit, work).await,
    }
}

/// The result of `work` if it is ready. If it is pending, it wakes the caller as usual.
pub(crate) async fn at_once<T>(mut work: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::time::Instant;

    use super::*;

    const LIMIT: Duration = Duration::from_millis(30);

    #[tokio::test]
    async fn work_is_waited_for_until_the_limit() {
        assert_eq!(within(Duration::ZERO, ready(1)).await.ok(), Some(1));
        let short = tokio::time::sleep(Duration::from_millis(1));
        assert_eq!(within(Duration::from_secs(60), short).await.ok(), Some(()));
        let begun = Instant::now();
        assert!(within(LIMIT, pending::<()>()).await.is_err());
        assert!(begun.elapsed() >= LIMIT);
    }
}
