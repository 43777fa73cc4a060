//! Find Blobs by Tags. One page reads a bounded number of rows of the index of tags, however many
//! blobs have tags; a page may be short or empty and still have a marker for the next.

use std::collections::HashMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use bytes::Bytes;
use holdfast_store::engine::successor_of_prefix;
use holdfast_store::{Fault, KeyRange, Order, Snapshot};

use super::container::find_container;
use super::entry::find_in;
use super::model::ContainerPlace;
use super::rows::{self, Tagged};
use super::{Blob, Container, ContainerPath, Which};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::names::{AccountName, ContainerName};
use crate::rows::Stored;
use crate::tags::{TagQuery, TagRange};
use crate::time::Timestamp;
use crate::yield_budget::{ROWS_IN_TURN, YieldBudget};

/// Rows of the index that one page reads at most. More than a page has blobs, so that a query with
/// several conditions does not return empty pages all the time.
const ROWS_PER_PAGE_MAX: usize = 20_000;
const ROWS_PER_SCAN: usize = ROWS_IN_TURN;
/// Rows read to estimate which of several conditions selects the fewest blobs.
const ROWS_PER_PROBE: usize = 64;

pub struct FindBlobs {
    pub account: AccountName,
    /// The only container to look in.
    pub container: Option<ContainerName>,
    pub query: TagQuery,
    /// Earlier versions too.
    pub versions: bool,
    /// Where to begin, from the page before.
    pub marker: Option<Bytes>,
    pub limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindRefusal {
    ContainerNotFound,
    /// The query names no tag.
    NoTag,
    /// It is not from a page of this query.
    InvalidMarker,
}

#[derive(Debug)]
pub struct FoundBlob {
    pub container: String,
    pub name: String,
    pub blob: Blob,
    pub current: bool,
}

#[derive(Debug)]
pub struct FoundBlobs {
    pub blobs: Vec<FoundBlob>,
    pub next_marker: Option<Bytes>,
}

impl Domain {
    pub async fn find_blobs(&self, command: FindBlobs) -> Result<FoundBlobs, Failure<FindRefusal>> {
        let tags = command.query.ranges();
        if tags.is_empty() {
            return Err(Failure::Refused(FindRefusal::NoTag));
        }
        let snapshot = self.engine.snapshot().await?;
        let mut search = Search {
            snapshot: &*snapshot,
            account: &command.account,
            query: &command.query,
            places: HashMap::new(),
            only: None,
            now: self.now(),
        };
        let named = match (&command.container, command.query.container()) {
            (None, None) => None,
            (Some(container), _) => Some(Some(container.clone())),
            // A name that is not valid matches no container.
            (None, Some(name)) => Some(ContainerName::new(name).ok()),
        };
        if let Some(named) = named {
            search.only = search.container_id(named).await?;
            match search.only {
                Some(_) => {}
                None if command.container.is_some() => {
                    return Err(Failure::Refused(FindRefusal::ContainerNotFound));
                }
                None => return Ok(FoundBlobs { blobs: Vec::new(), next_marker: None }),
            }
        }
        let ranges = search.ranges(&tags, &command).await?;
        search.page(ranges, command.limit).await.map_err(Failure::Fault)
    }
}

struct Search<'a> {
    snapshot: &'a dyn Snapshot,
    account: &'a AccountName,
    query: &'a TagQuery,
    /// The names of the containers met so far; none for one that is deleted.
    places: HashMap<u64, Option<String>>,
    /// The only container to look in.
    only: Option<u64>,
    now: Timestamp,
}

impl Search<'_> {
    async fn container_id(&self, named: Option<ContainerName>) -> Result<Option<u64>, Fault> {
        let Some(container) = named else { return Ok(None) };
        let path = ContainerPath { account: self.account.clone(), container };
        Ok(find_container(self.snapshot, &path).await?.map(|container| container.id))
    }

    /// The ranges of the index to read, one after the other.
    async fn ranges(
        &self,
        tags: &[TagRange<'_>],
        command: &FindBlobs,
    ) -> Result<Vec<KeyRange>, Failure<FindRefusal>> {
        let all = [Tagged::Current, Tagged::Version];
        let indexes = if command.versions { &all[..] } else { &all[..1] };
        if let Some(marker) = &command.marker {
            for tag in tags {
                let mut ranges: Vec<_> = indexes.iter().map(|of| self.range(*of, tag)).collect();
                if let Some(at) = ranges.iter().position(|range| range.contains(marker)) {
                    ranges[at] = ranges[at].clone().starting_at(marker.clone());
                    return Ok(ranges.split_off(at));
                }
            }
            return Err(Failure::Refused(FindRefusal::InvalidMarker));
        }
        let Some(tag) = self.most_selective(tags).await? else { return Ok(Vec::new()) };
        Ok(indexes.iter().map(|of| self.range(*of, tag)).collect())
    }

    /// Of several conditions, the one that fewest blobs meet, as estimated from a few rows.
    async fn most_selective<'tags, 'query>(
        &self,
        tags: &'tags [TagRange<'query>],
    ) -> Result<Option<&'tags TagRange<'query>>, Fault> {
        let mut best: Option<(usize, &TagRange<'_>)> = None;
        for tag in tags {
            let range = self.range(Tagged::Current, tag);
            let rows = if range.is_empty() {
                0
            } else {
                self.snapshot.scan(&range, Order::Ascending, ROWS_PER_PROBE).await?.len()
            };
            // Of two with equal estimates the one with an exact value selects less.
            let rank = rows * 2 + usize::from(tag.value().is_none());
            if best.is_none_or(|(least, _)| rank < least) {
                best = Some((rank, tag));
            }
        }
        Ok(best.map(|(_, tag)| tag))
    }

    /// The rows of the index for the values of a tag.
    fn range(&self, of: Tagged, tag: &TagRange<'_>) -> KeyRange {
        let account = self.account.as_str();
        match (tag.value(), self.only) {
            (Some(value), Some(container)) => {
                let prefix = rows::tags_in_container(of, account, tag.name, value, container);
                return KeyRange::prefix(prefix);
            }
            (Some(value), None) => {
                return KeyRange::prefix(rows::tags_equal(of, account, tag.name, value));
            }
            (None, _) => {}
        }
        let first = |value| rows::tags_equal(of, account, tag.name, value);
        let behind = |value| successor_of_prefix(&first(value));
        let mut range = KeyRange::prefix(rows::tags_named(of, account, tag.name));
        let from = match tag.from {
            Included(value) => Some(first(value)),
            Excluded(value) => behind(value),
            Unbounded => None,
        };
        let to = match tag.to {
            Included(value) => behind(value),
            Excluded(value) => Some(first(value)),
            Unbounded => None,
        };
        if let Some(from) = from {
            range = range.starting_at(from);
        }
        if let Some(to) = to {
            range = range.ending_before(to);
        }
        range
    }

    async fn page(&mut self, ranges: Vec<KeyRange>, limit: usize) -> Result<FoundBlobs, Fault> {
        let mut blobs = Vec::new();
        let (mut seen, mut yield_budget) = (0, YieldBudget::default());
        for mut range in ranges {
            while !range.is_empty() {
                let rows = self.snapshot.scan(&range, Order::Ascending, ROWS_PER_SCAN).await?;
                for row in &rows {
                    if blobs.len() == limit || seen == ROWS_PER_PAGE_MAX {
                        return Ok(FoundBlobs { blobs, next_marker: Some(row.key.clone()) });
                    }
                    seen += 1;
                    blobs.extend(self.blob(&row.key).await?);
                    yield_budget.sought().await;
                }
                match rows.last() {
                    Some(last) if rows.len() == ROWS_PER_SCAN => {
                        range = range.after(last.key.clone());
                    }
                    Some(_) | None => break,
                }
            }
        }
        Ok(FoundBlobs { blobs, next_marker: None })
    }

    /// The blob that a row of the index is about, if it meets the whole query.
    async fn blob(&mut self, key: &[u8]) -> Result<Option<FoundBlob>, Fault> {
        let (id, name, moment) = rows::tagged(self.account.as_str(), key)?;
        if self.only.is_some_and(|only| only != id) {
            return Ok(None);
        }
        let Some(container) = self.place(id).await? else { return Ok(None) };
        let which = moment.map_or(Which::Current, Which::Version);
        let Some((blob, current)) = find_in(self.snapshot, id, name, which, self.now).await? else {
            return Ok(None);
        };
        let matches = self.query.matches(&container, &blob.tags);
        let name = name.to_owned();
        Ok(matches.then_some(FoundBlob { container, name, blob: *blob, current }))
    }

    /// The name of a container that is there.
    async fn place(&mut self, id: u64) -> Result<Option<String>, Fault> {
        if let Some(known) = self.places.get(&id) {
            return Ok(known.clone());
        }
        let name = self.find_place(id).await?;
        self.places.insert(id, name.clone());
        Ok(name)
    }

    async fn find_place(&self, id: u64) -> Result<Option<String>, Fault> {
        let Some(row) = self.snapshot.get(&rows::container_place(id)).await? else {
            return Ok(None);
        };
        let ContainerPlace { account, name } = ContainerPlace::decode(&row)?;
        let container = self.snapshot.get(&rows::container(&account, &name)).await?;
        let container = container.map(|row| Container::decode(&row)).transpose()?;
        // A container that was deleted keeps its place until it is empty.
        Ok(container.filter(|container| container.id == id).map(|_| name))
    }
}
