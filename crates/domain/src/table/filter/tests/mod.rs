//! Tables of what filters mean.

mod grammar;
mod random;
mod spans;
mod types;

use super::*;
use crate::table::Value;

/// Properties in a list.
struct Sample(Vec<(&'static str, Value)>);

impl PropertyLookup for Sample {
    fn property(&self, name: &str) -> Option<ValueRef<'_>> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_ref())
    }
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn parsed(filter: &str) -> Filter {
    Filter::parse(filter).unwrap_or_else(|refusal| panic!("{filter}: {refusal}"))
}

fn matches(filter: &str, row: &Sample) -> bool {
    parsed(filter).matches(row)
}
