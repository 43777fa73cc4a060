//! The stream between the network and hyper that keeps the case of metadata names.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::rewrite::Rewriter;
use super::scanner::HeadScanner;
use super::{HeaderCase, Shared};

/// How much one write copies while names are to be replaced: a head with what usually follows it.
const COPIED_BYTES_MAX: usize = 16 * 1024;

/// Everything passes as it is, without being copied, but for the heads of announced answers.
pub struct CaseKeeping<S> {
    inner: S,
    shared: Arc<Shared>,
    scanner: HeadScanner,
    heads: u64,
    rewriter: Rewriter,
    /// Rewritten bytes, and how many of them are written. Nothing later may overtake them.
    out: Vec<u8>,
    written: usize,
}

impl<S> CaseKeeping<S> {
    /// Heads longer than `head_bytes_max` are not looked at, nor is anything after them.
    pub fn new(inner: S, head_bytes_max: usize) -> (Self, HeaderCase) {
        let shared = Arc::new(Shared::default());
        let stream = Self {
            inner,
            shared: Arc::clone(&shared),
            scanner: HeadScanner::new(head_bytes_max),
            heads: 0,
            rewriter: Rewriter::default(),
            out: Vec::new(),
            written: 0,
        };
        (stream, HeaderCase { shared })
    }

    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Writing to it directly would overtake bytes that wait here.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    fn passes_through(&self) -> bool {
        !self.rewriter.holds_bytes() && !self.shared.is_announced.load(Ordering::Acquire)
    }

    /// Takes over some of the caller's bytes and returns how many.
    fn absorb(&mut self, slices: &[IoSlice<'_>]) -> usize {
        let mut announced = self.shared.announced.lock();
        let mut budget = COPIED_BYTES_MAX;
        for slice in slices {
            let piece = &slice[..slice.len().min(budget)];
            self.rewriter.rewrite(&mut announced, piece, &mut self.out);
            budget -= piece.len();
        }
        self.shared.is_announced.store(!announced.is_empty(), Ordering::Release);
        COPIED_BYTES_MAX - budget
    }
}

impl<S: AsyncWrite + Unpin> CaseKeeping<S> {
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.out.len() {
            let pending = &self.out[self.written..];
            match ready!(Pin::new(&mut self.inner).poll_write(context, pending))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
        }
        // Not kept for the next time: few answers need it, and connections are many.
        self.out = Vec::new();
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    fn poll_write_rewritten(
        &mut self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let count = self.absorb(slices);
        // The bytes are ours now: that the network takes no more of them at present is for the
        // next call to wait for.
        match self.poll_drain(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(count)),
        }
    }

    fn poll_release(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.rewriter.release(&mut self.out);
        self.poll_drain(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CaseKeeping<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { inner, scanner, heads, shared, .. } = self.get_mut();
        let filled = buffer.filled().len();
        ready!(Pin::new(inner).poll_read(context, buffer))?;
        scanner.feed(&buffer.filled()[filled..], |names| {
            if !names.is_empty() {
                shared.requests.lock().push(*heads, names);
            }
            *heads += 1;
        });
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CaseKeeping<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_drain(context))?;
        if this.passes_through() {
            return Pin::new(&mut this.inner).poll_write(context, bytes);
        }
        this.poll_write_rewritten(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_drain(context))?;
        if this.passes_through() {
            return Pin::new(&mut this.inner).poll_write_vectored(context, slices);
        }
        this.poll_write_rewritten(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_release(context))?;
        Pin::new(&mut this.inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_release(context))?;
        Pin::new(&mut this.inner).poll_shutdown(context)
    }
}
