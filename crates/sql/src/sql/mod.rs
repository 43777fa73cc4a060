//! The dialect of the query language reference: one SELECT over one blob.

mod ast;
mod lexer;
mod parser;

pub use ast::{
    Aggregate, Arithmetic, Comparison, DatePart, Expression, Function, Kind, LikePattern, Output,
    Projection, Reference, Segment, Statement, TrimSide,
};
pub use parser::parse;

/// Why an expression is not one of the dialect, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at character {at}")]
pub struct SyntaxError {
    pub reason: String,
    /// Counted in bytes from the first, which is 0.
    pub at: usize,
}
