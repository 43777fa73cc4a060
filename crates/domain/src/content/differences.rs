//! Where two contents that are maps differ. Their entries alone tell, since an entry names the
//! write that it came from; no bytes are read, and the maps only as far as is asked.

use std::collections::VecDeque;
use std::ops::Range;

use holdfast_store::{Fault, Snapshot};

use super::Content;
use super::layers;

/// What has happened to a range between two states of a content.
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
}

impl Differences {
    /// Of `range`. Against an empty content, all that is there has been written.
    pub fn new(
        snapshot: Box<dyn Snapshot>,
        older: &Content,
        newer: &Content,
        range: Range<u64>,
    ) -> Result<Self, Fault> {
        let older = Regions::of(older, range.clone())?;
        let newer = Regions::of(newer, range.clone())?;
        Ok(Self { snapshot, older, newer, rest: range })
    }

    /// The next range, as long as the same holds for all of it.
    pub async fn next(&mut self) -> Result<Option<(Difference, Range<u64>)>, Fault> {
        let mut found: Option<(Difference, Range<u64>)> = None;
        while self.rest.start < self.rest.end {
            let at = self.rest.start;
            let older = self.older.at(&*self.snapshot, at).await?;
            let newer = self.newer.at(&*self.snapshot, at).await?;
            let end = older.end.min(newer.end);
            let difference = match (older.written, newer.written) {
                (older, newer) if older == newer => None,
                (_, Some(_)) => Some(Difference::Written),
                (_, None) => Some(Difference::Cleared),
            };
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
}

/// The entries of a map and the gaps between them, from front to back.
struct Regions {
    map: Option<u64>,
    /// Entries that have been read: where each lies and which write it came from.
    read: VecDeque<(Range<u64>, u64)>,
    unread: Range<u64>,
}

/// From where it was looked up to its end, all came from one write or from none.
struct Region {
    written: Option<u64>,
    end: u64,
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
        Ok(Self { map, read: VecDeque::new(), unread: range })
    }

    /// The region that begins at or before `at`, which never goes back.
    async fn at(&mut self, snapshot: &dyn Snapshot, at: u64) -> Result<Region, Fault> {
        loop {
            match self.read.front() {
                Some((place, _)) if place.end <= at => drop(self.read.pop_front()),
                Some((place, written)) if place.start <= at => {
                    return Ok(Region { written: Some(*written), end: place.end });
                }
                Some((place, _)) => return Ok(Region { written: None, end: place.start }),
                None if self.unread.is_empty() => {
                    return Ok(Region { written: None, end: self.unread.end });
                }
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
            self.read.push_back((place, entry.written));
        }
        Ok(())
    }
}
