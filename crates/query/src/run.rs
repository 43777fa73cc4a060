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

/// The bytes that are worked on before others get a turn on the thread.
const STEP_BYTES: usize = 256 * 1024;
/// Threads that decode Parquet at the same time, of all queries. Each may wait for bytes that
/// another thread of the same pool reads, so that they must not take the whole pool.
static PARQUET_THREADS: Semaphore = Semaphore::const_new(16);

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

    /// Takes in up to [`STEP_BYTES`] of text.
    async fn step_text(mut self) -> io::Result<Self> {
        let Scanner::Text { scanner, source, rest } = &mut self.scanner else { return Ok(self) };
        if rest.is_empty() {
            tokio::task::yield_now().await;
            match source.next().await? {
                Some(bytes) => *rest = bytes,
                None => {
                    let ended = scanner.push(b"", true, &mut self.pipeline);
                    self.finish(ended.err());
                    return Ok(self);
                }
            }
        }
        let until_progress = usize::try_from(self.pipeline.until_progress()).unwrap_or(usize::MAX);
        let step = rest.split_to(rest.len().min(STEP_BYTES).min(until_progress));
        match scanner.push(&step, false, &mut self.pipeline) {
            Ok(()) => {
                self.pipeline.scanned(step.len() as u64);
                if self.pipeline.is_done() {
                    self.finish(None);
                }
            }
            Err(error) => self.finish(Some(error)),
        }
        Ok(self)
    }

    /// Opens the file or takes in one batch of it.
    async fn step_parquet(self) -> io::Result<Self> {
        let _permit = PARQUET_THREADS.acquire().await.map_err(io::Error::other)?;
        let runtime = Handle::current();
        tokio::task::spawn_blocking(move || self.step_parquet_blocking(runtime))
            .await
            .map_err(io::Error::other)?
    }

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
