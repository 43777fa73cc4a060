//! The dialect of the query language reference: one SELECT over one blob.

mod ast;
mod lexer;
mod parser;

pub use ast::{
    Aggregate, Arithmetic, Comparison, DatePart, Expression, Function, Kind, LikePattern, Output,
    Projection, Reference, Segment, Statement, TrimSide,
};
pub use parser::parse;

/// A syntax error and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at character {at}")]
pub struct SyntaxError {
    pub reason: String,
    /// The offset in bytes, from 0.
    pub at: usize,
}
