//! List Blobs, flat and by hierarchy. One page costs a seek and as many rows as it has entries,
//! however many blobs there are; with a delimiter, one seek for each common prefix.

use bytes::Bytes;
use holdfast_store::engine::successor_of_prefix;
use holdfast_store::{Fault, KeyRange, Order, Row, Snapshot};

use super::container::find_container;
use super::{Blob, ContainerPath, ContainerRefusal};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::rows::{self, Stored};
use crate::time::Timestamp;

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

pub struct BlobPage {
    pub entries: Vec<Listed>,
    pub next_marker: Option<String>,
    pub now: Timestamp,
}

/// Rows fetched at a time while looking for common prefixes: most of them are skipped by the seek
/// that follows, so few are wasted.
const HIERARCHY_SCAN_ROWS: usize = 64;

impl Domain {
    pub async fn list_blobs(
        &self,
        command: ListBlobs,
    ) -> Result<BlobPage, Failure<ContainerRefusal>> {
        let snapshot = self.engine.snapshot().await?;
        let container = find_container(&*snapshot, &command.container).await?;
        let container = container.ok_or(Failure::Refused(ContainerRefusal::NotFound))?;
        let walk = Walk { snapshot: &*snapshot, container: container.id, command: &command };
        let (entries, next_marker) = walk.page().await?;
        Ok(BlobPage { entries, next_marker, now: self.now() })
    }
}

struct Walk<'listing> {
    snapshot: &'listing dyn Snapshot,
    container: u64,
    command: &'listing ListBlobs,
}

impl Walk<'_> {
    async fn page(&self) -> Result<(Vec<Listed>, Option<String>), Fault> {
        let ListBlobs { prefix, delimiter, marker, limit, .. } = self.command;
        let mut range = KeyRange::prefix(rows::blobs(self.container, prefix));
        if let Some(marker) = marker.as_ref().filter(|marker| *marker >= prefix) {
            range = range.starting_at(rows::blobs(self.container, marker));
        }
        let rows_at_once = match delimiter {
            Some(_) => HIERARCHY_SCAN_ROWS.min(limit + 1),
            None => limit + 1,
        };
        let mut entries = Vec::new();
        loop {
            if range.is_empty() {
                return Ok((entries, None));
            }
            let found = self.snapshot.scan(&range, Order::Ascending, rows_at_once).await?;
            let complete = found.len() < rows_at_once;
            let mut seek = None;
            for row in &found {
                if seek.as_ref().is_some_and(|seek: &Bytes| row.key < *seek) {
                    continue;
                }
                if entries.len() == *limit {
                    return Ok((entries, Some(rows::blob_name(&row.key)?.to_owned())));
                }
                let entry = self.entry(row)?;
                if let Listed::Prefix(common) = &entry {
                    seek = successor_of_prefix(&rows::blobs(self.container, common));
                }
                entries.push(entry);
            }
            let Some(last) = found.last() else { return Ok((entries, None)) };
            let past_last = seek.filter(|seek| *seek > last.key);
            if complete && past_last.is_none() {
                return Ok((entries, None));
            }
            range = match past_last {
                Some(seek) => range.starting_at(seek),
                None => range.after(last.key.clone()),
            };
        }
    }

    fn entry(&self, row: &Row) -> Result<Listed, Fault> {
        let name = rows::blob_name(&row.key)?;
        let delimiter = self.command.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty());
        if let Some(delimiter) = delimiter
            && let Some(rest) = name.get(self.command.prefix.len()..)
            && let Some(at) = rest.find(delimiter)
        {
            let end = self.command.prefix.len() + at + delimiter.len();
            return Ok(Listed::Prefix(name[..end].to_owned()));
        }
        Ok(Listed::Blob(name.to_owned(), Box::new(Blob::decode(&row.value)?)))
    }
}
