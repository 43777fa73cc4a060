//! Turns the records of an input into frames of the answer: filter, projection, limit.

use bytes::Bytes;

use crate::aggregate::Accumulator;
use crate::evaluate::{Evaluator, Record};
use crate::frames::{Frames, QueryError};
use crate::output::{Name, Writer};
use crate::request::Query;
use crate::sql::{Expression, Output, Projection, Reference};
use crate::timestamp::Timestamp;
use crate::value::{Problem, Value};
use crate::work::{GivenUp, Work};

/// Progress is reported after each such amount, as by the service.
pub const PROGRESS_BYTES: u64 = 4 * 1024 * 1024;
/// Errors wait for the data before them, but at most so many.
const PROBLEMS_MAX: usize = 1000;

/// A record whose fields can be listed.
pub trait Fields: Record {
    fn each(
        &self,
        visit: &mut dyn FnMut(Name<'_>, Value<'_>) -> Result<(), Problem>,
    ) -> Result<(), Problem>;
}

pub struct Pipeline {
    pub projection: Projection,
    pub references: Vec<Reference>,
    filter: Option<Expression>,
    remaining: u64,
    evaluator: Evaluator,
    accumulator: Option<Accumulator>,
    names: Vec<Option<String>>,
    writer: Writer,
    problems: Vec<QueryError>,
    /// What ended the query.
    fatal: Option<QueryError>,
    frames: Frames,
    scanned: u64,
}

impl Pipeline {
    pub fn new(query: Query, total: u64, now: Timestamp, given_up: GivenUp) -> Self {
        let statement = query.statement;
        let accumulator = match &statement.projection {
            Projection::Aggregate { function, .. } => Some(Accumulator::new(*function)),
            Projection::Star | Projection::Columns(_) | Projection::Split(_) => None,
        };
        Self {
            projection: statement.projection,
            references: statement.references,
            filter: statement.filter,
            remaining: statement.limit.unwrap_or(u64::MAX),
            evaluator: Evaluator { now, work: Work::new(given_up, total) },
            accumulator,
            names: Vec::new(),
            writer: Writer::new(&query.output),
            problems: Vec::new(),
            fatal: None,
            frames: Frames::new(total),
            scanned: 0,
        }
    }

    /// Sets the input's name of each reference, and all its columns if they are known.
    pub fn name_columns(&mut self, names: &[Option<String>], all: Option<&[String]>) {
        self.names = match &self.projection {
            Projection::Columns(columns) => {
                columns.iter().map(|column| output_name(column, names)).collect()
            }
            Projection::Aggregate { alias, .. } => vec![alias.clone()],
            Projection::Star | Projection::Split(_) => Vec::new(),
        };
        if !self.writer.wants_header() {
            return;
        }
        match (&self.projection, all) {
            (Projection::Star, None) => {}
            (Projection::Star, Some(all)) => {
                self.writer.header(all.iter().map(|name| Name::Text(name)));
            }
            (Projection::Split(_), _) => self.writer.header(std::iter::once(Name::Place(0))),
            (Projection::Columns(_) | Projection::Aggregate { .. }, _) => {
                let names = self.names.iter().enumerate();
                self.writer.header(names.map(|(place, name)| called(place, name.as_deref())));
            }
        }
    }

    /// Whether no further record can change the answer.
    pub fn is_done(&self) -> bool {
        self.remaining == 0 || self.fatal.is_some()
    }

    pub fn begin_turn(&self) {
        self.evaluator.work.begin_turn();
    }

    /// Whether to yield to other queries before the next record.
    pub fn turn_is_over(&self) -> bool {
        self.evaluator.work.turn_is_over()
    }

    /// The error that ended the query before the end of the blob, if any.
    pub fn take_fatal(&mut self) -> Option<QueryError> {
        self.fatal.take()
    }

    /// Processes the record that begins at this offset of the blob.
    pub fn record(&mut self, record: &impl Fields, position: u64) {
        self.evaluator.work.begin_record();
        if let Err(problem) = self.project(record) {
            self.writer.drop_record();
            let error = QueryError {
                fatal: problem.ends_query(),
                name: problem.name(),
                description: problem.description().to_owned(),
                position,
            };
            if error.fatal {
                self.fatal = Some(error);
            } else {
                self.problems.push(error);
            }
        }
        if self.writer.is_full() || self.problems.len() >= PROBLEMS_MAX {
            self.flush(false);
        }
    }

    fn project(&mut self, record: &impl Fields) -> Result<(), Problem> {
        if let Some(filter) = &self.filter
            && !self.evaluator.passes(filter, record)?
        {
            return Ok(());
        }
        let writer = &mut self.writer;
        match &self.projection {
            Projection::Star => {
                if writer.wants_header() {
                    let mut names = Vec::new();
                    record.each(&mut |name, _| {
                        names.push(String::from_utf8_lossy(&text_of(name)).into_owned());
                        Ok(())
                    })?;
                    writer.header(names.iter().map(|name| Name::Text(name)));
                }
                record.each(&mut |name, value| writer.field(name, &value))?;
            }
            Projection::Columns(columns) => {
                for (place, column) in columns.iter().enumerate() {
                    let value = self.evaluator.evaluate(&column.expression, record)?;
                    let name = self.names.get(place).and_then(Option::as_deref);
                    writer.field(called(place, name), &value)?;
                }
            }
            Projection::Aggregate { argument, .. } => {
                let value = match argument {
                    Some(argument) => self.evaluator.evaluate(argument, record)?,
                    None => Value::Boolean(true),
                };
                if let Some(accumulator) = &mut self.accumulator {
                    accumulator.add(&value)?;
                }
                return Ok(());
            }
            Projection::Split(_) => return Ok(()),
        }
        writer.end_record();
        self.remaining -= 1;
        Ok(())
    }

    /// Writes a record of one value.
    pub fn single(&mut self, value: &Value<'_>) {
        let name = self.names.first().and_then(Option::as_deref);
        match self.writer.field(called(0, name), value) {
            Ok(()) => self.writer.end_record(),
            Err(problem) => {
                self.writer.drop_record();
                self.problems.push(QueryError {
                    fatal: false,
                    name: problem.name(),
                    description: problem.description().to_owned(),
                    position: self.scanned,
                });
            }
        }
    }

    /// How many bytes may be read before progress must be reported.
    pub fn until_progress(&self) -> u64 {
        PROGRESS_BYTES - self.scanned % PROGRESS_BYTES
    }

    pub fn scanned(&mut self, bytes: u64) {
        self.scanned += bytes;
        if bytes > 0 && self.scanned.is_multiple_of(PROGRESS_BYTES) {
            self.flush(false);
            self.frames.progress(self.scanned);
        }
    }

    /// For an input that is not read sequentially.
    pub fn scanned_all(&mut self) {
        self.scanned = self.frames.total();
    }

    /// Ends the answer; afterwards only [`Pipeline::take`] may be called.
    pub fn finish(&mut self, fatal: Option<QueryError>) {
        if let Some(accumulator) = self.accumulator.take()
            && fatal.is_none()
            && self.remaining > 0
        {
            self.single(&accumulator.finish());
        }
        self.flush(true);
        if let Some(error) = fatal {
            self.frames.error(&error, self.scanned);
        }
        self.frames.progress(self.scanned);
        self.frames.end();
    }

    /// Writes data, then the errors of the records among them.
    fn flush(&mut self, last: bool) {
        let data = self.writer.take(last);
        if !data.is_empty() {
            self.frames.data(&data);
        }
        for problem in self.problems.drain(..) {
            self.frames.error(&problem, self.scanned);
        }
    }

    pub fn take(&mut self) -> Option<Bytes> {
        self.frames.take()
    }
}

fn output_name(column: &Output, names: &[Option<String>]) -> Option<String> {
    match (&column.alias, &column.expression) {
        (Some(alias), _) => Some(alias.clone()),
        (None, Expression::Column(reference)) => names.get(*reference).cloned().flatten(),
        (None, _) => None,
    }
}

fn called(place: usize, name: Option<&str>) -> Name<'_> {
    name.map_or(Name::Place(place), Name::Text)
}

fn text_of(name: Name<'_>) -> Vec<u8> {
    match name {
        Name::Text(text) => text.as_bytes().to_vec(),
        Name::Place(place) => format!("_{}", place + 1).into_bytes(),
        Name::Json(text) => crate::input::document::decode(text).into_owned(),
    }
}
