//! Where two contents that are maps differ. Their entries are enough, since each names the write
//! that it came from; no bytes are read, and the maps only as far as needed.

use std::collections::VecDeque;
use std::ops::Range;

use holdfast_store::{Fault, Snapshot};

use super::layers;
use super::{Content, Part};

/// What happened to a range between two states of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    Written,
    Cleared,
}

/// The ranges that differ, one after the other.
pub(crate) struct Differences {
    snapshot: Box<dyn Snapshot>,
    older: Regions,
    newer: Regions,
    rest: Range<u64>,
    granularity: u64,
}

impl Differences {
    /// Differences in `range`. Without an older content, everything present counts as written, and
    /// nothing as cleared.
    pub fn new(
        snapshot: Box<dyn Snapshot>,
        older: Option<&Content>,
        newer: &Content,
        range: Range<u64>,
    ) -> Result<Self, Fault> {
        let newer = Regions { with_cleared: older.is_some(), ..Regions::of(newer, range.clone())? };
        let older = Regions::of(older.unwrap_or(&Content::Empty), range.clone())?;
        Ok(Self { snapshot, older, newer, rest: range, granularity: 1 })
    }

    /// Reports whole pieces of so many bytes: a piece differs if any byte differs, and is written if
    /// any byte is. The range begins at a piece.
    #[must_use]
    pub fn in_pieces_of(mut self, granularity: u64) -> Self {
        self.granularity = granularity;
        self
    }

    /// The next range, as long as the same holds for all of it.
    pub async fn next(&mut self) -> Result<Option<(Difference, Range<u64>)>, Fault> {
        let mut found: Option<(Difference, Range<u64>)> = None;
        while self.rest.start < self.rest.end {
            let at = self.rest.start;
            let (difference, end) = self.at(at).await?;
            match (&mut found, difference) {
                (None, None) => {}
                (None, Some(difference)) => found = Some((difference, at..end)),
                (Some((same, range)), Some(difference)) if *same == difference => range.end = end,
                (Some(_), _) => break,
            }
            self.rest.start = end;
        }
        Ok(found)
    }

    /// What happened to the pieces from `at` on, as far as it is the same for all, and where they
    /// end.
    async fn at(&mut self, at: u64) -> Result<(Option<Difference>, u64), Fault> {
        let piece_end = (at + self.granularity).min(self.rest.end);
        let (mut from, mut changed, mut written) = (at, false, false);
        while from < piece_end {
            let older = self.older.at(&*self.snapshot, from).await?;
            let newer = self.newer.at(&*self.snapshot, from).await?;
            changed |= older.changed_by != newer.changed_by;
            written |= newer.is_written;
            let end = older.end.min(newer.end).min(self.rest.end);
            // Many pieces at once, if no region begins or ends in them.
            let last = end == self.rest.end;
            let whole = if last { end } else { end - (end - at) % self.granularity };
            from = if from == at { whole.max(end.min(piece_end)) } else { end.min(piece_end) };
        }
        let difference = match (changed, written) {
            (false, _) => None,
            (true, true) => Some(Difference::Written),
            (true, false) => Some(Difference::Cleared),
        };
        Ok((difference, from))
    }
}

/// The entries of a map and the gaps between them, from front to back.
struct Regions {
    map: Option<u64>,
    /// Entries that have been read: where each lies, and what is there.
    read: VecDeque<(Range<u64>, Trace)>,
    unread: Range<u64>,
    /// Whether cleared is distinguished from never written.
    with_cleared: bool,
}

/// What a write or a clear has left.
#[derive(Clone, Copy)]
struct Trace {
    change: u64,
    is_written: bool,
}

/// From where it was looked up to its end, everything came from one write or clear, or none.
struct Region {
    changed_by: Option<u64>,
    is_written: bool,
    end: u64,
}

impl Region {
    fn untouched(end: u64) -> Self {
        Self { changed_by: None, is_written: false, end }
    }
}

impl Regions {
    fn of(content: &Content, range: Range<u64>) -> Result<Self, Fault> {
        let map = match content {
            Content::Empty => None,
            Content::Mapped(map) => Some(*map),
            Content::Inline(_) | Content::Extents(_) => {
                return Err(Fault::new("a content that has no map is compared"));
            }
        };
        Ok(Self { map, read: VecDeque::new(), unread: range, with_cleared: true })
    }

    /// The region that begins at or before `at`, which never goes back.
    async fn at(&mut self, snapshot: &dyn Snapshot, at: u64) -> Result<Region, Fault> {
        loop {
            match self.read.front() {
                Some((place, _)) if place.end <= at => drop(self.read.pop_front()),
                Some((place, trace)) if place.start <= at => {
                    let Trace { change, is_written } = *trace;
                    return Ok(Region { changed_by: Some(change), is_written, end: place.end });
                }
                Some((place, _)) => return Ok(Region::untouched(place.start)),
                None if self.unread.is_empty() => return Ok(Region::untouched(self.unread.end)),
                None => self.read_on(snapshot).await?,
            }
        }
    }

    async fn read_on(&mut self, snapshot: &dyn Snapshot) -> Result<(), Fault> {
        let found = match self.map {
            None => Vec::new(),
            Some(map) => layers::entries(snapshot, map, self.unread.clone()).await?,
        };
        let Range { start, end } = self.unread;
        self.unread.start = found.last().map_or(end, |(offset, entry)| offset + entry.length);
        for (offset, entry) in found {
            let place = offset.max(start)..(offset + entry.length).min(end);
            let trace = Trace { change: entry.written, is_written: entry.part != Part::Hole };
            if trace.is_written || self.with_cleared {
                self.read.push_back((place, trace));
            }
        }
        Ok(())
    }
}
