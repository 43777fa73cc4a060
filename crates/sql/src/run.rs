//! Runs a query: bytes in, frames out, holding no more of either than the current step needs.

use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::{Stream, stream};
use tokio::runtime::Handle;

use crate::frames::QueryError;
use crate::input::delimited::DelimitedScanner;
use crate::input::fatal;
use crate::input::json::JsonScanner;
use crate::input::parquet::ParquetScanner;
use crate::pipeline::Pipeline;
use crate::request::{InputFormat, Query};
use crate::threads::Turns;

/// How much text is processed in one step, before output is sent and others run: at most this, or less
/// so that it takes about the step time.
const STEP_BYTES_MAX: usize = 256 * 1024;
const STEP_BYTES_MIN: usize = 4 * 1024;
const STEP_TIME: Duration = Duration::from_millis(50);

/// The content of the blob, which does not change while it is read.
#[async_trait]
pub trait Source: Send + Sync + 'static {
    fn length(&self) -> u64;

    /// The next bytes from the beginning, never empty; `None` at the end.
    async fn next(&mut self) -> io::Result<Option<Bytes>>;

    /// The bytes of a range within the length; only for Parquet.
    async fn read(&mut self, range: Range<u64>) -> io::Result<Bytes>;
}

impl Query {
    /// The answer. An error of the stream is one of the source; errors of the query are records. When
    /// it is dropped, its work ends soon.
    pub fn run(
        self,
        source: Box<dyn Source>,
        now: SystemTime,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
        let input = self.input.clone();
        let from = self.statement.from.clone();
        let now = DateTime::<Utc>::from(now).fixed_offset();
        let turns = Turns::of(self.owner.as_deref());
        let pipeline = Pipeline::new(self, source.length(), now, turns.given_up());
        let scanner = match input {
            InputFormat::Delimited(settings) => Scanner::Text {
                scanner: Box::new(TextScanner::Delimited(DelimitedScanner::new(&settings))),
                source,
                rest: Bytes::new(),
                ended: false,
            },
            InputFormat::Json(settings) => Scanner::Text {
                scanner: Box::new(TextScanner::Json(JsonScanner::new(&settings, &from))),
                source,
                rest: Bytes::new(),
                ended: false,
            },
            InputFormat::Parquet => Scanner::Parquet(Box::new(ParquetScanner::new(source))),
        };
        let running = Running { pipeline, scanner, step_bytes: STEP_BYTES_MAX };
        stream::unfold(Some((running, turns)), async |running| {
            let (running, turns) = running?;
            let (piece, running) = running.next(&turns).await?;
            Some((piece, running.map(|running| (running, turns))))
        })
    }
}

struct Running {
    pipeline: Pipeline,
    scanner: Scanner,
    step_bytes: usize,
}

enum Scanner {
    Text {
        scanner: Box<TextScanner>,
        source: Box<dyn Source>,
        rest: Bytes,
        /// The source is at its end.
        ended: bool,
    },
    Parquet(Box<ParquetScanner>),
    /// The answer is complete.
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
    async fn next(mut self, turns: &Turns) -> Option<(io::Result<Bytes>, Option<Self>)> {
        loop {
            if let Some(frames) = self.pipeline.take() {
                return Some((Ok(frames), Some(self)));
            }
            let stepped = match self.scanner {
                Scanner::Finished => return None,
                Scanner::Text { .. } => self.step_text(turns).await,
                Scanner::Parquet(_) => self.step_parquet(turns).await,
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

    async fn step_text(mut self, turns: &Turns) -> io::Result<Self> {
        let Scanner::Text { source, rest, ended, .. } = &mut self.scanner else { return Ok(self) };
        // What the last turn left comes first.
        if rest.is_empty() && !*ended && !self.pipeline.turn_is_over() {
            match source.next().await? {
                Some(bytes) => *rest = bytes,
                None => *ended = true,
            }
        }
        turns.on_thread(move || Ok(self.step_text_blocking())).await
    }

    /// Processes one step, or the end of the blob.
    fn step_text_blocking(mut self) -> Self {
        let begun = Instant::now();
        let Scanner::Text { scanner, rest, ended, .. } = &mut self.scanner else { return self };
        let last = *ended;
        let until_progress = usize::try_from(self.pipeline.until_progress()).unwrap_or(usize::MAX);
        let is_behind = self.pipeline.turn_is_over();
        let step_bytes = if is_behind { 0 } else { self.step_bytes.min(until_progress) };
        let step = rest.split_to(rest.len().min(step_bytes));
        self.pipeline.begin_turn();
        match scanner.push(&step, last, &mut self.pipeline) {
            Ok(()) => {
                self.pipeline.scanned(step.len() as u64);
                let is_whole = last && !self.pipeline.turn_is_over();
                if is_whole || self.pipeline.is_done() {
                    let fatal = self.pipeline.take_fatal();
                    self.finish(fatal);
                }
            }
            Err(error) => self.finish(Some(error)),
        }
        let took = begun.elapsed();
        if took > STEP_TIME {
            self.step_bytes = (self.step_bytes / 2).max(STEP_BYTES_MIN);
        } else if took < STEP_TIME / 4 {
            self.step_bytes = (self.step_bytes * 2).min(STEP_BYTES_MAX);
        }
        self
    }

    async fn step_parquet(self, turns: &Turns) -> io::Result<Self> {
        let runtime = Handle::current();
        turns.on_thread(move || self.step_parquet_blocking(runtime)).await
    }

    /// Opens the file, or processes one batch of it.
    fn step_parquet_blocking(mut self, runtime: Handle) -> io::Result<Self> {
        let Scanner::Parquet(scanner) = &mut self.scanner else { return Ok(self) };
        let pipeline = &mut self.pipeline;
        // An invalid file may make the decoder panic.
        let stepped = catch_unwind(AssertUnwindSafe(|| scanner.step(runtime, pipeline)));
        if let Some(fault) = scanner.take_fault() {
            return Err(fault);
        }
        match stepped {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => {
                let fatal = self.pipeline.take_fatal();
                if fatal.is_none() {
                    self.pipeline.scanned_all();
                }
                self.finish(fatal);
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
