//! The bytes of a connection, shared by the loop that answers requests and the body of the request
//! that is being handled. The two take turns: while a handler runs only its body is read.

#![allow(unsafe_code, reason = "bytes are read into memory that need not be cleared first")]

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::body_framing::Framing;
use crate::lanes::lane_share::turn_bytes;

/// Enough for usual heads with a small body.
const READ_BYTES: usize = 8 * 1024;
/// The most that is read at once of a large body.
const BODY_READ_BYTES_MAX: usize = 256 * 1024;
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

pub(super) struct Io<S> {
    /// `None` once the connection is closed, though a request may still be running.
    stream: Option<S>,
    /// Bytes that were read and not used yet.
    pub input: BytesMut,
    pub body: Framing,
    /// What must be written before the client sends its body (100 Continue).
    continue_due: &'static [u8],
}

impl<S: AsyncRead + AsyncWrite + Unpin> Io<S> {
    pub fn new(stream: S) -> Self {
        let (stream, input) = (Some(stream), BytesMut::new());
        Self { stream, input, body: Framing::Ended, continue_due: b"" }
    }

    /// Closes the connection; further reads and writes are errors.
    pub fn close(&mut self) {
        self.stream = None;
    }

    fn stream(&mut self) -> io::Result<Pin<&mut S>> {
        self.stream.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::ConnectionAborted.into())
    }

    /// Prepares for the body of the next request.
    pub fn expect_body(&mut self, framing: Framing, expects_continue: bool) {
        let waits = expects_continue && !framing.has_ended() && self.input.is_empty();
        self.continue_due = if waits { CONTINUE } else { b"" };
        self.body = framing;
    }

    /// Whether the client still waits to be told to send its body.
    pub fn is_continue_due(&self) -> bool {
        !self.continue_due.is_empty()
    }

    /// Reads more input; 0 bytes at the end of the stream.
    pub fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        bytes: usize,
    ) -> Poll<io::Result<usize>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        };
        self.input.reserve(bytes);
        let mut unfilled = ReadBuf::uninit(self.input.spare_capacity_mut());
        ready!(Pin::new(stream).poll_read(context, &mut unfilled))?;
        let read = unfilled.filled().len();
        // SAFETY: `ReadBuf` counts as filled only what has been initialized, from the beginning of
        // the spare capacity on.
        unsafe { self.input.set_len(self.input.len() + read) };
        Poll::Ready(Ok(read))
    }

    pub fn poll_read_head(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.poll_read(context, READ_BYTES)
    }

    /// Whether the client has closed the connection, as far as is known: not while it has sent more
    /// bytes. If it has not, `context` is woken when it does.
    pub fn client_is_gone(&mut self, context: &mut Context<'_>) -> bool {
        if !self.input.is_empty() || !self.body.has_ended() {
            return false;
        }
        match self.poll_read_head(context) {
            Poll::Ready(Ok(0) | Err(_)) => true,
            Poll::Ready(Ok(_)) | Poll::Pending => false,
        }
    }

    /// Writes some of `slices`; an error if the stream takes no more.
    pub fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = self.stream()?;
        let written = ready!(match slices {
            [slice] => stream.poll_write(context, slice),
            slices => stream.poll_write_vectored(context, slices),
        })?;
        Poll::Ready(if written == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(written) })
    }

    fn poll_continue(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.continue_due.is_empty() {
            let slice = IoSlice::new(self.continue_due);
            let written = ready!(self.poll_write(context, &[slice]))?;
            self.continue_due = self.continue_due.get(written..).unwrap_or_default();
        }
        self.poll_flush(context)
    }

    pub fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(context)
    }

    /// Tells the client that nothing more will come.
    pub fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(context)
    }
}

/// A body that is read as it arrives.
trait Source: Send {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>>;
    fn framing(&self) -> &Framing;
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Source for Io<S> {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            match self.body.take(&mut self.input) {
                Ok(Some(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                Ok(None) if self.body.has_ended() => return Poll::Ready(None),
                Ok(None) => {}
                Err(_) => return Poll::Ready(Some(Err(io::ErrorKind::InvalidData.into()))),
            }
            if self.is_continue_due() {
                ready!(self.poll_continue(context))?;
            }
            let left = usize::try_from(self.body.left().unwrap_or(0)).unwrap_or(usize::MAX);
            let bytes = left.min(BODY_READ_BYTES_MAX).min(turn_bytes()).max(READ_BYTES);
            if ready!(self.poll_read(context, bytes))? == 0 {
                return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
            }
        }
    }

    fn framing(&self) -> &Framing {
        &self.body
    }
}

/// The body of the request that is being handled.
pub struct Incoming {
    /// `None` if it is empty.
    source: Option<Arc<Mutex<dyn Source>>>,
}

impl Incoming {
    pub const fn none() -> Self {
        Self { source: None }
    }

    pub(super) fn of<S>(io: &Arc<Mutex<Io<S>>>) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        if io.lock().body.has_ended() {
            return Self::none();
        }
        Self { source: Some(Arc::clone(io) as Arc<Mutex<dyn Source>>) }
    }

    /// How much of the declared length is missing; `None` if no length was declared.
    pub fn length_left(&self) -> Option<u64> {
        self.source.as_ref().map_or(Some(0), |source| source.lock().framing().left())
    }

    /// The next bytes, never empty. Nothing follows an error.
    pub async fn next(&mut self) -> Option<io::Result<Bytes>> {
        let next = match &self.source {
            None => return None,
            Some(source) => std::future::poll_fn(|context| source.lock().poll_next(context)).await,
        };
        if !matches!(next, Some(Ok(_))) {
            self.source = None;
        }
        next
    }
}
