//! The key ranges in which a filter can match.
//!
//! Conditions on the keys are rectangles: a range of partitions and a range of rows in each. Every
//! other condition is the rectangle of everything, so the result is never too small. Keys are
//! ordered by PartitionKey, then RowKey; in that order a rectangle becomes one span, from its first
//! possible row to its last.

use super::span::{Cut, KeyCut, KeySpan};
use super::step::{Operator, Step, Test, negations};
use crate::table::{PARTITION_KEY, ROW_KEY, Value};

/// The most rectangles of a conjunction; beyond it, one of its two sides is used alone, which is
/// larger but not wrong. Otherwise `(…or…) and (…or…) and …` would double with every term.
const RECTANGLES_MAX: usize = 1024;

/// A range in the order of one key.
#[derive(Clone, Copy)]
struct Interval<'a> {
    start: Cut<'a>,
    end: Cut<'a>,
}

impl Interval<'_> {
    const ALL: Self = Self { start: Cut::First, end: Cut::Last };

    fn within(self, other: Self) -> Self {
        Self { start: self.start.max(other.start), end: self.end.min(other.end) }
    }

    fn is_empty(&self) -> bool {
        self.start >= self.end
    }
}

#[derive(Clone, Copy)]
struct Rectangle<'a> {
    partitions: Interval<'a>,
    rows: Interval<'a>,
}

impl<'a> Rectangle<'a> {
    const ALL: Self = Self { partitions: Interval::ALL, rows: Interval::ALL };

    fn within(self, other: Self) -> Self {
        Self {
            partitions: self.partitions.within(other.partitions),
            rows: self.rows.within(other.rows),
        }
    }

    fn is_empty(&self) -> bool {
        self.partitions.is_empty() || self.rows.is_empty()
    }

    fn span(&self) -> KeySpan<'a> {
        KeySpan {
            start: KeyCut::first_of(self.partitions.start, self.rows.start),
            end: KeyCut::last_of(self.partitions.end, self.rows.end),
        }
    }
}

/// Sorted, disjoint spans that hold the keys of everything that the filter matches.
pub(super) fn spans(steps: &[Step]) -> Vec<KeySpan<'_>> {
    let mut operands: Vec<Vec<Rectangle<'_>>> = Vec::new();
    for (step, negated) in steps.iter().zip(negations(steps)) {
        let both = match (step, negated) {
            (Step::Test(test), negated) => {
                operands.push(rectangles(test, negated));
                continue;
            }
            // The negation was passed to the operand already.
            (Step::Not, _) => continue,
            (Step::And, false) | (Step::Or, true) => true,
            (Step::And, true) | (Step::Or, false) => false,
        };
        if let (Some(right), Some(left)) = (operands.pop(), operands.pop()) {
            operands.push(if both { intersection(left, right) } else { union(left, right) });
        }
    }
    let whole = operands.pop().unwrap_or_else(|| vec![Rectangle::ALL]);
    merged(whole.iter().map(Rectangle::span).collect())
}

/// The keys for which a test can be true, or false if negated.
fn rectangles<'a>(test: &'a Test, negated: bool) -> Vec<Rectangle<'a>> {
    let (property, operator, constant) = match test {
        Test::Constant(constant) if *constant == negated => return Vec::new(),
        Test::Constant(_) => return vec![Rectangle::ALL],
        Test::Compare { property, operator, constant } => (property, *operator, constant),
    };
    let rectangle: fn(Interval<'a>) -> Rectangle<'a> = match property.as_str() {
        PARTITION_KEY => |partitions| Rectangle { partitions, rows: Interval::ALL },
        ROW_KEY => |rows| Rectangle { partitions: Interval::ALL, rows },
        _ => return vec![Rectangle::ALL],
    };
    // Every entity has both keys as text, so the negation is the opposite operator.
    let Value::String(text) = constant else {
        return if negated { vec![Rectangle::ALL] } else { Vec::new() };
    };
    let operator = if negated { operator.opposite() } else { operator };
    intervals(operator, text).into_iter().map(rectangle).collect()
}

fn intervals(operator: Operator, text: &str) -> Vec<Interval<'_>> {
    let (before, after) = (Cut::before(text), Cut::after(text));
    let (first, last) = (Cut::First, Cut::Last);
    match operator {
        Operator::Equal => vec![Interval { start: before, end: after }],
        Operator::NotEqual => {
            vec![Interval { start: first, end: before }, Interval { start: after, end: last }]
        }
        Operator::Greater => vec![Interval { start: after, end: last }],
        Operator::GreaterOrEqual => vec![Interval { start: before, end: last }],
        Operator::Less => vec![Interval { start: first, end: before }],
        Operator::LessOrEqual => vec![Interval { start: first, end: after }],
    }
}

fn union<'a>(left: Vec<Rectangle<'a>>, right: Vec<Rectangle<'a>>) -> Vec<Rectangle<'a>> {
    let (mut longer, shorter) =
        if left.len() >= right.len() { (left, right) } else { (right, left) };
    longer.extend(shorter);
    longer
}

fn intersection<'a>(left: Vec<Rectangle<'a>>, right: Vec<Rectangle<'a>>) -> Vec<Rectangle<'a>> {
    if left.len().saturating_mul(right.len()) > RECTANGLES_MAX {
        // Partitions limit a scan more than rows do.
        let by_partition = |side: &[Rectangle<'_>]| {
            side.iter().all(|rectangle| {
                rectangle.partitions.start != Cut::First && rectangle.partitions.end != Cut::Last
            })
        };
        let right_is_narrower = match (by_partition(&left), by_partition(&right)) {
            (true, false) => false,
            (false, true) => true,
            (true, true) | (false, false) => right.len() < left.len(),
        };
        return if right_is_narrower { right } else { left };
    }
    let pairs = left.iter().flat_map(|one| right.iter().map(|other| one.within(*other)));
    pairs.filter(|rectangle| !rectangle.is_empty()).collect()
}

/// The same keys in spans that are sorted and do not touch.
fn merged(mut spans: Vec<KeySpan<'_>>) -> Vec<KeySpan<'_>> {
    spans.retain(|span| !span.is_empty());
    spans.sort_unstable_by_key(|span| span.start);
    let mut merged: Vec<KeySpan<'_>> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => merged.push(span),
        }
    }
    merged
}
