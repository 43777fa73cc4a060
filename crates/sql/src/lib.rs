//! SQL over the bytes of one blob. Input is delimited text, JSON or Parquet from a [`Source`];
//! output is delimited text, JSON or Arrow, framed as the Avro records that the SDKs read. Knows
//! neither HTTP nor where the bytes are kept; the time is an argument.
//!
//! Memory is bounded whatever the length of the blob: a record of text up to 4 MiB, a batch and the
//! pages of the named columns of Parquet, and the answer up to 256 KiB before it is sent.

#![forbid(unsafe_code)]

mod aggregate;
mod evaluate;
mod frames;
mod input;
mod like;
mod output;
mod pipeline;
mod request;
mod run;
mod sql;
mod threads;
mod timestamp;
mod value;
mod work;

pub use like::Pattern as LikePattern;
pub use request::{
    ArrowField, ArrowKind, Delimited, EXPRESSION_BYTES_MAX, InputFormat, JsonText, OutputFormat,
    Query, QueryRequest, Refusal,
};
pub use run::Source;
pub use sql::SyntaxError;
