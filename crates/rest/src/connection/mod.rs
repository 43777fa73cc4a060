//! HTTP/1.1 on one connection: requests are read, handled and answered one after the other.
//!
//! hyper would do this too, but it keeps header names in lower case only, and the names of metadata
//! must be returned as they were sent; see `docs/design/0003-http-connections.md`.

mod answer_writer;
mod body_framing;
mod io;
mod request_head;
#[cfg(test)]
mod tests;
pub(crate) mod timeout;
mod woken_future;

pub(crate) use body_framing::decode_chunked;
pub use io::Incoming;
pub(crate) use request_head::take as take_head;
pub use request_head::{HeadRefusal, Parts, RequestCase, RequestHead};

use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use hyper::{Method, Version};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::answer::Answer;
use crate::connection::timeout::within;
use crate::lanes::heavy_pool::Work;
use crate::lanes::lane_share::{GivenUp, LaneShare};
use answer_writer::{After, Output, is_long};
use io::Io;
use request_head::HeadEnd;
use woken_future::WokenFuture;

/// How much of an unwanted body is read and discarded. Closing the connection while the client is
/// still sending would lose the answer; beyond this it is lost.
const UNWANTED_BYTES_MAX: u64 = 64 * 1024 * 1024;
const UNWANTED_TIMEOUT: Duration = Duration::from_secs(5);
/// The same for bytes after an invalid request.
const UNREADABLE_BYTES_MAX: u64 = 1024 * 1024;
const UNREADABLE_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The request line and all headers together.
    pub header_bytes_max: usize,
    /// How long a connection may be idle.
    pub idle_timeout: Duration,
    /// How long the head of a request may take, from its first byte on.
    pub head_timeout: Duration,
    /// How long a client may leave bytes unread without any progress.
    pub stall_timeout: Duration,
}

/// Why a connection ended before its client ended it.
#[derive(Debug)]
pub enum Ended {
    Idle,
    Refused(HeadRefusal),
    Failed(std::io::Error),
}

impl From<GivenUp> for Ended {
    fn from(why: GivenUp) -> Self {
        Self::Failed(std::io::Error::other(why))
    }
}

impl From<std::io::Error> for Ended {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error)
    }
}

/// What answers the requests of a connection.
pub trait Handler: Send + Sync {
    /// The future is boxed, so that a waiting connection does not hold the memory of a request; and
    /// it borrows nothing, since it may continue on another thread than its connection.
    fn handle(self: &Arc<Self>, head: RequestHead, body: Incoming) -> Work<Answer>;

    /// The answer to that request is about to be sent.
    fn begins_answer(&self) {}

    /// The answer was sent; the connection waits for the next request.
    fn answered(&self) {}

    /// Returns when the connection is to be closed at once.
    fn told_to_close(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// The connection was told to close and has closed; a running request is still being finished.
    fn closed(&self) {}
}

/// Answers requests until the client, `stopping` or the handler ends the connection. A request that
/// has begun is always finished, even if its client is gone: dropping a handler during its commit
/// would skip the steps after the commit.
pub async fn serve<S>(
    stream: S,
    limits: Limits,
    stopping: impl Future<Output = ()>,
    handler: &Arc<impl Handler>,
    share: &LaneShare,
) -> Result<(), Ended>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let io = Arc::new(Mutex::new(Io::new(stream)));
    let mut serving = pin!(serve_requests(&io, limits, stopping, handler, share));
    let told_to_close = pin!(handler.told_to_close());
    let mut told_to_close = WokenFuture::new(told_to_close);
    tokio::select! {
        biased;
        ended = &mut serving => ended,
        () = poll_fn(|context| told_to_close.poll(context)) => {
            io.lock().close();
            handler.closed();
            serving.await
        }
    }
}

async fn serve_requests<S>(
    io: &Arc<Mutex<Io<S>>>,
    limits: Limits,
    stopping: impl Future<Output = ()>,
    handler: &Arc<impl Handler>,
    share: &LaneShare,
) -> Result<(), Ended>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stopping = pin!(stopping);
    let mut waiting = Waiting {
        io,
        limits,
        stopping: WokenFuture::new(stopping),
        is_stopping: false,
        timer: pin!(sleep_until(Instant::now() + limits.idle_timeout)),
    };
    let mut output = Output::new(io, limits.stall_timeout);
    loop {
        let head = match waiting.next_head().await {
            Ok(Some(head)) => head,
            Ok(None) => break,
            Err(Ended::Refused(refusal)) => {
                output.refuse(refusal.status()).await?;
                output.end().await?;
                pass_over(io, UNREADABLE_BYTES_MAX, UNREADABLE_TIMEOUT).await;
                return Err(Ended::Refused(refusal));
            }
            Err(ended) => return Err(ended),
        };
        share.begin();
        io.lock().expect_body(head.framing, head.expects_continue);
        let bodiless = head.parts.method == Method::HEAD;
        let (version, keeps_alive) = (head.parts.version, head.keeps_alive);
        let body = Incoming::of(io);
        let answer = share.carry(handler.handle(head, body)).await?;
        handler.begins_answer();
        // Handle other requests that have arrived on this thread before sending the first answer:
        // then the code of handling and of sending stays in the processor's caches for all of them.
        tokio::task::yield_now().await;
        let after = match (keeps_alive && can_go_on(&io.lock()), waiting.is_stopping()) {
            (true, false) if version == Version::HTTP_10 => After::KeptOld,
            (true, false) => After::Kept,
            _ => After::Closed,
        };
        if is_long(&answer, bodiless) {
            output = share.carry(Box::pin(output.send(answer, version, after))).await??;
        } else {
            output.answer(answer, bodiless, version, after).await?;
        }
        pass_over_body(io).await;
        handler.answered();
        if after == After::Closed || !io.lock().body.has_ended() {
            break;
        }
    }
    output.end().await?;
    Ok(())
}

/// Whether another request can follow: an unread rest of the body is short enough to be discarded,
/// and the client will send it.
fn can_go_on<S: AsyncRead + AsyncWrite + Unpin>(io: &Io<S>) -> bool {
    let is_short = io.body.left().is_none_or(|left| left <= UNWANTED_BYTES_MAX);
    io.body.has_ended() || (is_short && !io.is_continue_due())
}

/// Reads and discards the rest of a body, up to the maximum.
async fn pass_over_body<S>(io: &Arc<Mutex<Io<S>>>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if io.lock().is_continue_due() {
        return;
    }
    let mut body = Incoming::of(io);
    let pass = async {
        let mut passed = 0;
        while let Some(Ok(bytes)) = body.next().await {
            passed += bytes.len() as u64;
            if passed > UNWANTED_BYTES_MAX {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    drop(within(UNWANTED_TIMEOUT, pass).await);
}

/// Reads what a client still sends before its connection is closed: closing with unread bytes would
/// lose the answer.
async fn pass_over<S>(io: &Mutex<Io<S>>, bytes_max: u64, timeout: Duration)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let pass = async {
        let mut passed = 0;
        while passed <= bytes_max {
            io.lock().input.clear();
            match poll_fn(|context| io.lock().poll_read_head(context)).await {
                Ok(0) | Err(_) => return,
                Ok(read) => passed += read as u64,
            }
        }
    };
    drop(within(timeout, pass).await);
}

/// What a connection does between requests.
struct Waiting<'a, S, Stopping> {
    io: &'a Mutex<Io<S>>,
    limits: Limits,
    stopping: WokenFuture<'a, Stopping>,
    is_stopping: bool,
    /// One timer for the whole connection: it is only extended when it fires too early, so that a
    /// request needs no timer.
    timer: Pin<&'a mut Sleep>,
}

impl<S, Stopping> Waiting<'_, S, Stopping>
where
    S: AsyncRead + AsyncWrite + Unpin,
    Stopping: Future<Output = ()>,
{
    fn is_stopping(&mut self) -> bool {
        self.is_stopping = self.is_stopping || self.stopping.is_ready();
        self.is_stopping
    }

    /// The next request; `None` if the client or the server ends the connection.
    async fn next_head(&mut self) -> Result<Option<RequestHead>, Ended> {
        let mut begun = !self.io.lock().input.is_empty();
        let patience = if begun { self.limits.head_timeout } else { self.limits.idle_timeout };
        let mut deadline = Instant::now() + patience;
        let mut end = HeadEnd::default();
        loop {
            {
                let input = &mut self.io.lock().input;
                let bytes_max = self.limits.header_bytes_max;
                let looked =
                    end.is_in(input).then(|| request_head::take(input, bytes_max)).transpose();
                if let Some(head) = looked.map_err(Ended::Refused)?.flatten() {
                    return Ok(Some(head));
                }
                if input.len() >= bytes_max {
                    return Err(Ended::Refused(HeadRefusal::TooLarge));
                }
            }
            let idle = self.io.lock().input.is_empty();
            if idle && self.is_stopping {
                return Ok(None);
            }
            // Only a head that arrives in pieces gets here.
            if !idle {
                if !begun {
                    begun = true;
                    deadline = Instant::now() + self.limits.head_timeout;
                }
                if self.timer.deadline() > deadline {
                    self.timer.as_mut().reset(deadline);
                }
            }
            tokio::select! {
                biased;
                read = poll_fn(|context| self.io.lock().poll_read_head(context)) => match read {
                    Ok(0) if idle => return Ok(None),
                    Ok(0) => return Err(Ended::Failed(ErrorKind::UnexpectedEof.into())),
                    // A client that leaves between two requests is not an error.
                    Err(_) if idle => return Ok(None),
                    Err(error) => return Err(error.into()),
                    Ok(_) => {}
                },
                () = poll_fn(|context| self.stopping.poll(context)), if !self.is_stopping => {
                    self.is_stopping = true;
                }
                () = self.timer.as_mut() => {
                    if Instant::now() >= deadline {
                        return Err(Ended::Idle);
                    }
                    self.timer.as_mut().reset(deadline);
                }
            }
        }
    }
}
