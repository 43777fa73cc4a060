//! List Blobs, flat and by hierarchy. One page costs a seek and as many rows as
//! it has entries, however many there are; with a delimiter, one seek for each common prefix.
//!
//! A page is walked in batches on one snapshot, so that it is one state of the store and is never
//! held whole.

use bytes::Bytes;
use holdfast_store::engine::successor_of_prefix;
use holdfast_store::{Fault, KeyRange, Order, Row, Snapshot};

use super::container::find_container;
use super::{Blob, ContainerPath, ContainerRefusal};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::rows::{self, Stored};
use crate::time::Timestamp;

/// Entries handed out at a time.
const BATCH_ENTRIES: usize = 500;
/// Rows fetched at a time while looking for common prefixes: most of them are skipped by the seek
/// that follows, so few are wasted.
const HIERARCHY_SCAN_ROWS: usize = 64;

pub struct ListBlobs {
    pub container: ContainerPath,
    pub prefix: String,
    pub delimiter: Option<String>,
    /// The name to begin at: from the page before, or where the caller wants to start.
    pub marker: Option<String>,
    pub limit: usize,
}

#[derive(Debug)]
pub enum Listed {
    Blob(String, Box<Blob>),
    /// What the names below it have in common, the delimiter included.
    Prefix(String),
}

/// A page of blobs.
pub struct BlobListing {
    walk: Walk,
    container: u64,
    prefix: String,
    delimiter: Option<String>,
    next_marker: Option<String>,
    pub now: Timestamp,
}

/// Where a page has got to.
struct Walk {
    snapshot: Box<dyn Snapshot>,
    range: KeyRange,
    /// Entries that the page still has room for.
    room: usize,
    /// Whether the range may hold more rows.
    more: bool,
}

impl Domain {
    pub async fn list_blobs(
        &self,
        command: ListBlobs,
    ) -> Result<BlobListing, Failure<ContainerRefusal>> {
        let snapshot = self.engine.snapshot().await?;
        let container = find_container(&*snapshot, &command.container).await?;
        let container = container.ok_or(Failure::Refused(ContainerRefusal::NotFound))?.id;
        let mut range = KeyRange::prefix(rows::blobs(container, &command.prefix));
        if let Some(marker) = command.marker.filter(|marker| *marker >= command.prefix) {
            range = range.starting_at(rows::blobs(container, &marker));
        }
        Ok(BlobListing {
            walk: Walk { snapshot, range, room: command.limit, more: true },
            container,
            prefix: command.prefix,
            delimiter: command.delimiter.filter(|delimiter| !delimiter.is_empty()),
            next_marker: None,
            now: self.now(),
        })
    }
}

impl BlobListing {
    /// The next entries of the page; none at its end.
    pub async fn next(&mut self) -> Result<Vec<Listed>, Fault> {
        let rows_at_once =
            if self.delimiter.is_some() { HIERARCHY_SCAN_ROWS } else { BATCH_ENTRIES };
        let mut entries = Vec::new();
        while entries.len() < BATCH_ENTRIES {
            let found = self.walk.rows(rows_at_once).await?;
            if found.is_empty() {
                break;
            }
            let mut seek = None;
            for row in &found {
                if seek.as_ref().is_some_and(|seek: &Bytes| row.key < *seek) {
                    continue;
                }
                let entry = self.entry(row)?;
                if let Listed::Prefix(common) = &entry {
                    seek = successor_of_prefix(&rows::blobs(self.container, common));
                }
                entries.push(entry);
                self.walk.room -= 1;
            }
            if let Some(seek) = seek {
                self.walk.skip_to(seek);
            }
        }
        if entries.is_empty() {
            let next = self.walk.row_after_page().await?;
            let name = next.map(|row| rows::blob_name(&row.key).map(str::to_owned));
            self.next_marker = name.transpose()?;
        }
        Ok(entries)
    }

    /// Where the next page begins, if there is one; known at the end of this one.
    pub fn next_marker(&self) -> Option<&str> {
        self.next_marker.as_deref()
    }

    fn entry(&self, row: &Row) -> Result<Listed, Fault> {
        let name = rows::blob_name(&row.key)?;
        if let Some(delimiter) = &self.delimiter
            && let Some(rest) = name.get(self.prefix.len()..)
            && let Some(at) = rest.find(delimiter.as_str())
        {
            let end = self.prefix.len() + at + delimiter.len();
            return Ok(Listed::Prefix(name[..end].to_owned()));
        }
        Ok(Listed::Blob(name.to_owned(), Box::new(Blob::decode(&row.value)?)))
    }
}

impl Walk {
    /// The next rows, no more than the page has room for entries; none at its end.
    async fn rows(&mut self, at_once: usize) -> Result<Vec<Row>, Fault> {
        let limit = at_once.min(self.room);
        if !self.more || limit == 0 || self.range.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.snapshot.scan(&self.range, Order::Ascending, limit).await?;
        self.more = found.len() == limit;
        if let Some(last) = found.last() {
            self.range = self.range.clone().after(last.key.clone());
        }
        Ok(found)
    }

    /// Goes on at `key`, if that is further.
    fn skip_to(&mut self, key: Bytes) {
        let skipped = self.range.clone().starting_at(key.clone());
        if self.range.contains(&key) || skipped.is_empty() {
            self.range = skipped;
        }
    }

    /// The first row that the page had no room for.
    async fn row_after_page(&mut self) -> Result<Option<Row>, Fault> {
        self.room += 1;
        let next = self.rows(1).await?.pop();
        self.more = false;
        Ok(next)
    }
}
