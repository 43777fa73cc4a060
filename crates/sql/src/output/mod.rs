//! Writes the records of the answer.

mod arrow;
mod delimited;
mod json;
mod records;

use crate::request::OutputFormat;
use crate::value::{Problem, Value};
use arrow::ArrowWriter;
use delimited::DelimitedWriter;
use json::JsonWriter;
pub use json::put_escaped;

/// Data are sent when this much has been written; a record is never divided, because readers split
/// each piece at the separators.
const DATA_BYTES: usize = 256 * 1024;

/// The name of a column in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    Text(&'a str),
    /// `_1` for 0: a column without a name is named by its place in the answer.
    Place(usize),
    /// As between the quotes in a JSON document.
    Json(&'a [u8]),
}

pub enum Writer {
    Delimited(DelimitedWriter),
    Json(JsonWriter),
    Arrow(Box<ArrowWriter>),
}

impl Writer {
    pub fn new(format: &OutputFormat) -> Self {
        match format {
            OutputFormat::Delimited(settings) => Self::Delimited(DelimitedWriter::new(settings)),
            OutputFormat::Json(settings) => Self::Json(JsonWriter::new(settings)),
            OutputFormat::Arrow(fields) => Self::Arrow(Box::new(ArrowWriter::new(fields))),
        }
    }

    /// Whether a line of names comes before the records.
    pub fn wants_header(&self) -> bool {
        match self {
            Self::Delimited(writer) => writer.wants_header(),
            Self::Json(_) | Self::Arrow(_) => false,
        }
    }

    pub fn header<'a>(&mut self, names: impl Iterator<Item = Name<'a>>) {
        if let Self::Delimited(writer) = self {
            writer.header(names);
        }
    }

    /// Adds a field to the current record.
    pub fn field(&mut self, name: Name<'_>, value: &Value<'_>) -> Result<(), Problem> {
        match self {
            Self::Delimited(writer) => writer.field(value),
            Self::Json(writer) => writer.field(name, value),
            Self::Arrow(writer) => return writer.field(value),
        }
        Ok(())
    }

    pub fn end_record(&mut self) {
        match self {
            Self::Delimited(writer) => writer.end_record(),
            Self::Json(writer) => writer.end_record(),
            Self::Arrow(writer) => writer.end_record(),
        }
    }

    /// Drops the fields since the last record.
    pub fn drop_record(&mut self) {
        match self {
            Self::Delimited(writer) => writer.records.drop_record(),
            Self::Json(writer) => writer.records.drop_record(),
            Self::Arrow(writer) => writer.drop_record(),
        }
    }

    pub fn is_full(&self) -> bool {
        match self {
            Self::Delimited(writer) => writer.records.written() >= DATA_BYTES,
            Self::Json(writer) => writer.records.written() >= DATA_BYTES,
            Self::Arrow(writer) => writer.written() >= DATA_BYTES,
        }
    }

    /// The records written since the last call; with the end of the output if `last`.
    pub fn take(&mut self, last: bool) -> Vec<u8> {
        match self {
            Self::Delimited(writer) => writer.records.take(),
            Self::Json(writer) => writer.records.take(),
            Self::Arrow(writer) => writer.take(last),
        }
    }
}
