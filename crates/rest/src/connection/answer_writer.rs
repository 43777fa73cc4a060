//! Sending answers.

use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice, Write as _};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use hyper::{StatusCode, Version};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};

use super::io::Io;
use crate::answer::{Answer, AnswerBody, Piece};
use crate::connection::timeout::within;
use crate::lanes::lane_share::turn_bytes;

/// A body up to this length is copied after its head: cheaper than a write of two buffers.
const COPIED_BYTES_MAX: usize = 8 * 1024;

/// What happens to the connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Kept,
    /// Kept open for a client of HTTP/1.0, which must be told.
    KeptOld,
    Closed,
}

pub(super) struct Output<S> {
    io: Arc<Mutex<Io<S>>>,
    stall_timeout: Duration,
    /// Bytes left in this turn.
    turn_left: usize,
    /// The buffer for heads of answers, which is reused.
    head: Vec<u8>,
}

/// How the end of a body is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Length(u64),
    Chunks,
    /// By the end of the connection.
    Close,
}

/// Whether an answer may take more than one turn to send.
pub(super) fn is_long(answer: &Answer, bodiless: bool) -> bool {
    let is_long = match &answer.body {
        AnswerBody::Empty => false,
        AnswerBody::Whole(bytes) => bytes.len() > turn_bytes(),
        AnswerBody::Stream(..) => true,
    };
    is_long && !bodiless
}

impl<S: AsyncRead + AsyncWrite + Unpin> Output<S> {
    pub fn new(io: &Arc<Mutex<Io<S>>>, stall_timeout: Duration) -> Self {
        let (io, head) = (Arc::clone(io), Vec::with_capacity(1024));
        Self { io, stall_timeout, turn_left: turn_bytes(), head }
    }

    /// Sends an answer with a body.
    pub async fn send(
        mut self,
        answer: Answer,
        version: Version,
        after: After,
    ) -> io::Result<Self> {
        self.answer(answer, false, version, after).await?;
        Ok(self)
    }

    pub async fn answer(
        &mut self,
        answer: Answer,
        bodiless: bool,
        version: Version,
        after: After,
    ) -> io::Result<()> {
        let ending = match answer.body.length() {
            Some(length) => Ending::Length(length),
            None if version == Version::HTTP_10 => Ending::Close,
            None => Ending::Chunks,
        };
        self.turn_left = turn_bytes();
        let after = if ending == Ending::Close { After::Closed } else { after };
        self.head.clear();
        write_head(&mut self.head, &answer, bodiless, ending, after);
        let mut head = std::mem::take(&mut self.head);
        let sent = match answer.body {
            AnswerBody::Empty => self.write([&head]).await,
            _ if bodiless || has_no_body(answer.status) => self.write([&head]).await,
            AnswerBody::Whole(bytes) if bytes.len() <= COPIED_BYTES_MAX => {
                head.extend_from_slice(&bytes);
                self.write([&head]).await
            }
            AnswerBody::Whole(bytes) => self.write([&head, &bytes]).await,
            AnswerBody::Stream(_, pieces) => self.stream(&head, pieces, ending).await,
        };
        self.head = head;
        sent?;
        poll_fn(|context| self.io.lock().poll_flush(context)).await
    }

    async fn stream(
        &mut self,
        mut head: &[u8],
        mut pieces: impl Stream<Item = Piece> + Unpin,
        ending: Ending,
    ) -> io::Result<()> {
        let mut sent = 0;
        // An answer of unknown length is still being computed, which may take long: that stops when
        // the client is gone. An answer that is only read is sent until writing fails.
        let is_worked_out = !matches!(ending, Ending::Length(_));
        let io = Arc::clone(&self.io);
        let mut next = poll_fn(|context| {
            let next = pieces.poll_next_unpin(context);
            if next.is_pending() && is_worked_out && io.lock().client_is_gone(context) {
                return Poll::Ready(Some(Err(ErrorKind::ConnectionAborted.into())));
            }
            next
        });
        while let Some(piece) = (&mut next).await {
            let piece = piece?;
            sent += piece.len() as u64;
            match ending {
                _ if piece.is_empty() => continue,
                Ending::Length(length) if sent > length => {
                    return Err(ErrorKind::InvalidData.into());
                }
                Ending::Length(_) | Ending::Close => self.write([head, &piece]).await?,
                Ending::Chunks => {
                    let size = format!("{:x}\r\n", piece.len());
                    self.write([head, size.as_bytes(), &piece, b"\r\n"]).await?;
                }
            }
            head = b"";
            if is_worked_out {
                // Making the next piece may take as long as sending many.
                self.give_way().await;
            }
        }
        match ending {
            // The client must not mistake a part for the whole.
            Ending::Length(length) if sent < length => Err(ErrorKind::UnexpectedEof.into()),
            Ending::Length(_) | Ending::Close => self.write([head]).await,
            Ending::Chunks => self.write([head, b"0\r\n\r\n"]).await,
        }
    }

    /// Answers bytes that were not a request.
    pub async fn refuse(&mut self, status: StatusCode) -> io::Result<()> {
        let answer = Answer::new(status);
        self.answer(answer, false, Version::HTTP_11, After::Closed).await
    }

    /// Tells the client that nothing more will come.
    pub async fn end(&mut self) -> io::Result<()> {
        self.in_time(poll_fn(|context| self.io.lock().poll_shutdown(context))).await
    }

    async fn write<const PARTS: usize>(&mut self, parts: [&[u8]; PARTS]) -> io::Result<()> {
        let mut slices = parts.map(IoSlice::new);
        let mut left = &mut slices[..];
        // Empty slices at the front must be removed, or a write of 0 bytes would look like a closed
        // stream.
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            if self.turn_left == 0 {
                self.give_way().await;
            }
            let mut now = [IoSlice::new(b""); PARTS];
            let count = begin_of(left, self.turn_left, &mut now);
            let write = poll_fn(|context| self.io.lock().poll_write(context, &now[..count]));
            let written = self.in_time(write).await?;
            self.turn_left = self.turn_left.saturating_sub(written);
            IoSlice::advance_slices(&mut left, written);
        }
        Ok(())
    }

    /// Yields to other tasks.
    async fn give_way(&mut self) {
        tokio::task::yield_now().await;
        self.turn_left = turn_bytes();
    }

    async fn in_time<T>(&self, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        within(self.stall_timeout, work).await?
    }
}

/// The first `bytes_max` bytes of `slices`, as slices in `begin`.
fn begin_of<'a>(slices: &'a [IoSlice<'_>], bytes_max: usize, begin: &mut [IoSlice<'a>]) -> usize {
    let (mut count, mut left) = (0, bytes_max);
    for (begin, slice) in begin.iter_mut().zip(slices) {
        let bytes = &slice[..slice.len().min(left)];
        if bytes.is_empty() && count > 0 {
            break;
        }
        *begin = IoSlice::new(bytes);
        (count, left) = (count + 1, left - bytes.len());
    }
    count
}

/// Such answers have no body, whatever their headers say.
fn has_no_body(status: StatusCode) -> bool {
    status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

fn write_head(head: &mut Vec<u8>, answer: &Answer, bodiless: bool, ending: Ending, after: After) {
    head.extend_from_slice(b"HTTP/1.1 ");
    head.extend_from_slice(answer.status.as_str().as_bytes());
    head.push(b' ');
    head.extend_from_slice(answer.reason().as_bytes());
    head.extend_from_slice(b"\r\n");
    head.extend_from_slice(answer.headers.as_wire());
    // Only the handler knows the length of a body that is not sent.
    let tells_length = answer.headers.contains("content-length");
    if !(bodiless || tells_length || has_no_body(answer.status)) {
        match ending {
            Ending::Length(length) => {
                // Writing to memory cannot fail.
                let _ = write!(head, "content-length: {length}\r\n");
            }
            Ending::Chunks => head.extend_from_slice(b"transfer-encoding: chunked\r\n"),
            Ending::Close => {}
        }
    }
    head.extend_from_slice(match after {
        After::Kept => b"\r\n",
        After::KeptOld => b"connection: keep-alive\r\n\r\n",
        After::Closed => b"connection: close\r\n\r\n",
    });
}
