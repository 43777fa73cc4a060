//! A query on its way: bytes in, frames out, neither more of them than is being worked on.

use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::{Stream, stream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::frames::QueryError;
use crate::input::delimited::DelimitedScanner;
use crate::input::fatal;
use crate::input::json::JsonScanner;
use crate::input::parquet::ParquetScanner;
use crate::pipeline::Pipeline;
use crate::request::{InputFormat, Query};

/// The text that is worked on before the answer goes on.
const STEP_BYTES: usize = 256 * 1024;
/// Threads that work on queries at the same time. One that reads Parquet may wait for bytes that
/// another thread of the same pool reads, so they must not take the whole pool.
static THREADS: Semaphore = Semaphore::const_new(16);

/// The content of the blob, which does not change while it is read.
#[async_trait]
pub trait Source: Send + Sync + 'static {
    fn length(&self) -> u64;

    /// The bytes from the beginning on, none of them empty; `None` at the end.
    async fn next(&mut self) -> io::Result<Option<Bytes>>;

    /// These bytes, all of them within the length; only Parquet needs them.
    async fn read(&mut self, range: Range<u64>) -> io::Result<Bytes>;
}

impl Query {
    /// The answer. An error of the stream is one of the source; errors of the query are records.
    pub fn run(
        self,
        source: Box<dyn Source>,
        now: SystemTime,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
        let input = self.input.clone();
        let from = self.statement.from.clone();
        let now = DateTime::<Utc>::from(now).fixed_offset();
        let pipeline = Pipeline::new(self, source.length(), now);
        let scanner = match input {
            InputFormat::Delimited(settings) => Scanner::Text {
                scanner: Box::new(TextScanner::Delimited(DelimitedScanner::new(&settings))),
                source,
                rest: Bytes::new(),
            },
            InputFormat::Json(settings) => Scanner::Text {
                scanner: Box::new(TextScanner::Json(JsonScanner::new(&settings, &from))),
                source,
                rest: Bytes::new(),
            },
            InputFormat::Parquet => Scanner::Parquet(Box::new(ParquetScanner::new(source))),
        };
        let running = Running { pipeline, scanner };
        stream::unfold(Some(running), async |running| running?.next().await)
    }
}

struct Running {
    pipeline: Pipeline,
    scanner: Scanner,
}

enum Scanner {
    Text {
        scanner: Box<TextScanner>,
        source: Box<dyn Source>,
        rest: Bytes,
    },
    Parquet(Box<ParquetScanner>),
    /// The answer has its end.
    Finished,
}

enum TextScanner {
    Delimited(DelimitedScanner),
    Json(JsonScanner),
}

impl TextScanner {
    fn push(
        &mut self,
        bytes: &[u8],
        last: bool,
        pipeline: &mut Pipeline,
    ) -> Result<(), QueryError> {
        match self {
            Self::Delimited(scanner) => scanner.push(bytes, last, pipeline),
            Self::Json(scanner) => scanner.push(bytes, last, pipeline),
        }
    }
}

impl Running {
    async fn next(mut self) -> Option<(io::Result<Bytes>, Option<Self>)> {
        loop {
            if let Some(frames) = self.pipeline.take() {
                return Some((Ok(frames), Some(self)));
            }
            let stepped = match self.scanner {
                Scanner::Finished => return None,
                Scanner::Text { .. } => self.step_text().await,
                Scanner::Parquet(_) => self.step_parquet().await,
            };
            self = match stepped {
                Ok(running) => running,
                Err(fault) => return Some((Err(fault), None)),
            };
        }
    }

    fn finish(&mut self, fatal: Option<QueryError>) {
        self.pipeline.finish(fatal);
        self.scanner = Scanner::Finished;
    }

    async fn step_text(mut self) -> io::Result<Self> {
        let Scanner::Text { source, rest, .. } = &mut self.scanner else { return Ok(self) };
        let mut last = false;
        if rest.is_empty() {
            match source.next().await? {
                Some(bytes) => *rest = bytes,
                None => last = true,
            }
        }
        on_thread(move || Ok(self.step_text_blocking(last))).await
    }

    /// Takes in up to [`STEP_BYTES`], or the end of the blob.
    fn step_text_blocking(mut self, last: bool) -> Self {
        let Scanner::Text { scanner, rest, .. } = &mut self.scanner else { return self };
        let until_progress = usize::try_from(self.pipeline.until_progress()).unwrap_or(usize::MAX);
        let step = rest.split_to(rest.len().min(STEP_BYTES).min(until_progress));
        match scanner.push(&step, last, &mut self.pipeline) {
            Ok(()) => {
                self.pipeline.scanned(step.len() as u64);
                if last || self.pipeline.is_done() {
                    self.finish(None);
                }
            }
            Err(error) => self.finish(Some(error)),
        }
        self
    }

    async fn step_parquet(self) -> io::Result<Self> {
        let runtime = Handle::current();
        on_thread(move || self.step_parquet_blocking(runtime)).await
    }

    /// Opens the file or takes in one batch of it.
    fn step_parquet_blocking(mut self, runtime: Handle) -> io::Result<Self> {
        let Scanner::Parquet(scanner) = &mut self.scanner else { return Ok(self) };
        let pipeline = &mut self.pipeline;
        // A file that is not what it claims to be may take the decoder by surprise.
        let stepped = catch_unwind(AssertUnwindSafe(|| scanner.step(runtime, pipeline)));
        if let Some(fault) = scanner.take_fault() {
            return Err(fault);
        }
        match stepped {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => {
                self.pipeline.scanned_all();
                self.finish(None);
            }
            Ok(Err(error)) => self.finish(Some(error)),
            Err(_) => {
                let error = fatal("ParseError", "The blob is not a Parquet file.", 0);
                self.finish(Some(error));
            }
        }
        Ok(self)
    }
}

/// Runs a step where it may take its time: what a statement does with a record may be long work, and
/// reading Parquet waits.
async fn on_thread<T: Send + 'static>(
    step: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let _permit = THREADS.acquire().await.map_err(io::Error::other)?;
    tokio::task::spawn_blocking(step).await.map_err(io::Error::other)?
}
