//! The language of `$filter`: which entities, or tables, a query returns.
//!
//! A filter is read once into steps in reverse Polish order, without recursion, so that no nesting
//! in a request overflows the stack. The steps are compiled to the program that tests every row,
//! and to the spans of keys outside of which no row can match. Nothing here reads rows.

mod compare;
mod keys;
mod lexer;
mod literal;
mod parser;
mod program;
mod span;
mod step;

#[cfg(test)]
mod tests;

pub use span::{Cut, Key, KeyCut, KeySpan, Side};

use program::Program;
use step::Step;

use super::{EntityView, ValueRef};

/// The reference allows 15 comparisons. Neither Azurite nor, by all reports, the service counts
/// them, and clients send more (one comparison for each of a list of row keys is common), so that
/// refusing the sixteenth would break what works elsewhere. This bound only limits the time per
/// row.
const COMPARISONS_MAX: usize = 1000;

/// The properties that a filter reads.
pub trait PropertyLookup {
    /// `None` if there is no such property. The keys and the timestamp are properties too.
    fn property(&self, name: &str) -> Option<ValueRef<'_>>;
}

impl PropertyLookup for EntityView<'_> {
    fn property(&self, name: &str) -> Option<ValueRef<'_>> {
        EntityView::property(self, name)
    }
}

/// A table as a filter sees it, with one property.
pub struct NamedTable<'a>(pub &'a str);

impl PropertyLookup for NamedTable<'_> {
    fn property(&self, name: &str) -> Option<ValueRef<'_>> {
        (name == "TableName").then_some(ValueRef::String(self.0))
    }
}

/// A parsed filter.
#[derive(Clone, Debug)]
pub struct Filter {
    steps: Vec<Step>,
    program: Program,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the filter cannot be read from character {at} on: {why}")]
pub struct InvalidFilter {
    /// The offset in bytes.
    pub at: usize,
    pub why: &'static str,
}

impl Filter {
    /// An empty filter, or one of spaces, matches everything, as the service does
    /// (github.com/Azure/Azurite/issues/1573).
    pub fn parse(text: &str) -> Result<Self, InvalidFilter> {
        let steps = parser::parse(text)?;
        let program = Program::new(&steps);
        Ok(Self { steps, program })
    }

    pub fn matches(&self, row: &impl PropertyLookup) -> bool {
        self.program.accepts(row)
    }

    /// The most comparisons for one row.
    pub fn comparisons(&self) -> usize {
        self.program.len()
    }

    /// The spans that contain the keys of all matching entities, sorted and disjoint.
    pub fn key_spans(&self) -> Vec<KeySpan<'_>> {
        keys::spans(&self.steps)
    }
}
