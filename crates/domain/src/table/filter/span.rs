//! Places and spans in the order of a table's entities: PartitionKey before RowKey, both ordinal.

use std::cmp::Ordering;

use crate::table::{KeyRange, compare_ordinal};

/// A PartitionKey or a RowKey, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a>(pub &'a str);

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_ordinal(self.0, other.0)
    }
}

/// A place between two values of one key. Places are ordered as declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cut<'a> {
    First,
    At(Key<'a>, Side),
    Last,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Before,
    After,
}

impl<'a> Cut<'a> {
    pub fn before(text: &'a str) -> Self {
        Self::next_to(text, Side::Before)
    }

    pub fn after(text: &'a str) -> Self {
        Self::next_to(text, Side::After)
    }

    /// No key has a zero character, and rows rely on that. A text with one is placed right after
    /// the text before that character: no key is between.
    fn next_to(text: &'a str, side: Side) -> Self {
        match text.split_once('\0') {
            Some((before, _)) => Self::At(Key(before), Side::After),
            None => Self::At(Key(text), side),
        }
    }
}

/// A place between two entities of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyCut<'a> {
    First,
    /// Within a partition, or at one of its ends.
    At(Key<'a>, Cut<'a>),
    Last,
}

impl<'a> KeyCut<'a> {
    /// Before the first entity of these partitions that comes after `rows` in its partition.
    pub(super) fn first_of(partitions: Cut<'a>, rows: Cut<'a>) -> Self {
        match partitions {
            Cut::First => Self::First,
            Cut::At(partition, Side::Before) => Self::At(partition, rows),
            Cut::At(partition, Side::After) => Self::At(partition, Cut::Last),
            Cut::Last => Self::Last,
        }
    }

    /// After the last entity of these partitions that comes before `rows` in its partition.
    pub(super) fn last_of(partitions: Cut<'a>, rows: Cut<'a>) -> Self {
        match partitions {
            Cut::First => Self::First,
            Cut::At(partition, Side::Before) => Self::At(partition, Cut::First),
            Cut::At(partition, Side::After) => Self::At(partition, rows),
            Cut::Last => Self::Last,
        }
    }
}

/// The entities from one place to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpan<'a> {
    pub start: KeyCut<'a>,
    pub end: KeyCut<'a>,
}

impl<'a> KeySpan<'a> {
    pub const ALL: Self = Self { start: KeyCut::First, end: KeyCut::Last };

    /// From this entity on, or from the first of the partition.
    pub fn starting_at(partition: &'a str, row: Option<&'a str>) -> Self {
        let row = row.map_or(Cut::First, Cut::before);
        Self { start: KeyCut::first_of(Cut::before(partition), row), end: KeyCut::Last }
    }

    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    #[must_use]
    pub fn within(self, other: Self) -> Self {
        Self { start: self.start.max(other.start), end: self.end.min(other.end) }
    }

    /// The partition and the row, if the span holds just one.
    pub fn single(&self) -> Option<(&'a str, &'a str)> {
        match (self.start, self.end) {
            (
                KeyCut::At(partition, Cut::At(row, Side::Before)),
                KeyCut::At(end_partition, Cut::At(end_row, Side::After)),
            ) if partition == end_partition && row == end_row => Some((partition.0, row.0)),
            _ => None,
        }
    }
}

impl<'a> From<&'a KeyRange> for KeySpan<'a> {
    fn from(range: &'a KeyRange) -> Self {
        let KeyRange { start_partition, start_row, end_partition, end_row } = range;
        let start = start_partition.as_deref().map_or(KeyCut::First, |partition| {
            let row = start_row.as_deref().map_or(Cut::First, Cut::before);
            KeyCut::first_of(Cut::before(partition), row)
        });
        let end = end_partition.as_deref().map_or(KeyCut::Last, |partition| {
            let row = end_row.as_deref().map_or(Cut::Last, Cut::after);
            KeyCut::last_of(Cut::after(partition), row)
        });
        Self { start, end }
    }
}
