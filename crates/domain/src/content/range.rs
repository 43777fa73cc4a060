//! The part of a content that a read asks for.

use std::ops::Range;

/// The part of a content that is asked for; the length of the content is not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRange {
    pub first: u64,
    /// The last byte, inclusive, if one is named; it may lie past the end.
    pub last: Option<u64>,
}

impl ReadRange {
    /// The bytes that exist of the range, in a content of `length` bytes.
    pub fn within(self, length: u64) -> Option<Range<u64>> {
        let end = self.last.map_or(length, |last| last.saturating_add(1).min(length));
        (self.first < end).then_some(self.first..end)
    }
}
