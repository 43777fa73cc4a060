//! List Blobs, flat and by hierarchy: blobs and their earlier states, in one order of names and
//! moments. Each kind of state is a source of its own, so a page reads about as many rows of a
//! source as it shows; with a delimiter, a seek in each source for each common prefix.
//!
//! A page is read in batches from one snapshot, so it shows one state of the store and is never
//! held whole.

use std::collections::VecDeque;

use bytes::Bytes;
use holdfast_store::engine::successor_of_prefix;
use holdfast_store::{Fault, KeyRange, Order, Row, Snapshot};

use super::container::find_container;
use super::model::{PastBlob, Role};
use super::rows::{self, PastBlobGroup};
use super::{Blob, ContainerPath, ContainerRefusal, Deletion};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::rows::Stored;
use crate::time::Timestamp;
use crate::yield_budget::{ROWS_IN_TURN, YieldBudget};

/// Entries returned at a time.
const BATCH_ENTRIES: usize = ROWS_IN_TURN;
/// Rows fetched at a time while looking for common prefixes: most of them are skipped by the seek
/// that follows, so few are wasted.
const HIERARCHY_SCAN_ROWS: usize = 64;

pub struct ListBlobs {
    pub container: ContainerPath,
    pub prefix: String,
    pub delimiter: Option<String>,
    /// Where to begin: from the page before, or where the caller wants to start.
    pub start: Option<Position>,
    /// The listing ends before this name.
    pub end_before: Option<String>,
    pub limit: usize,
    pub show: Show,
}

/// Which states of blobs are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Show {
    pub current: bool,
    pub snapshots: bool,
    pub versions: bool,
    /// Blobs that are deleted and can be restored; also their snapshots and versions, where those
    /// are shown.
    pub deleted: bool,
    /// Blobs that are deleted but have versions.
    pub deleted_with_versions: bool,
    /// Names with uncommitted blocks and no blob.
    pub uncommitted: bool,
}

impl Default for Show {
    fn default() -> Self {
        Self {
            current: true,
            snapshots: false,
            versions: false,
            deleted: false,
            deleted_with_versions: false,
            uncommitted: false,
        }
    }
}

/// A place in the order of a listing. Of the states of one name the current one is the last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub name: String,
    pub moment: Timestamp,
}

impl Position {
    /// Before all states of a name.
    pub fn at_name(name: impl Into<String>) -> Self {
        Self { name: name.into(), moment: Timestamp::from_ticks(0) }
    }
}

#[derive(Debug)]
pub enum Listed {
    Blob(String, Box<ListedBlob>),
    /// A name that has only uncommitted blocks.
    Uncommitted(String),
    /// The common prefix of several names, including the delimiter.
    Prefix(String),
}

/// A state of a blob, and which one it is.
#[derive(Debug)]
pub struct ListedBlob {
    pub blob: Blob,
    pub state: ListedState,
    pub deleted: Option<Deletion>,
    /// There is no current state; this is the latest version.
    pub has_versions_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedState {
    /// The blob itself, deleted or not.
    Base,
    Snapshot(Timestamp),
    Version(Timestamp),
}

/// A page of blobs.
pub struct BlobListing {
    snapshot: Box<dyn Snapshot>,
    sources: Vec<Source>,
    container: u64,
    prefix: String,
    delimiter: Option<String>,
    show: Show,
    /// Entries that the page still has room for.
    room: usize,
    next_marker: Option<Position>,
    yield_budget: YieldBudget,
    pub now: Timestamp,
}

impl Domain {
    pub async fn list_blobs(
        &self,
        command: ListBlobs,
    ) -> Result<BlobListing, Failure<ContainerRefusal>> {
        let snapshot = self.engine.snapshot().await?;
        let container = find_container(&*snapshot, &command.container).await?;
        let container = container.ok_or(Failure::Refused(ContainerRefusal::NotFound))?.id;
        let sources = Kind::shown(command.show).map(|kind| Source::new(kind, container, &command));
        Ok(BlobListing {
            snapshot,
            sources: sources.collect(),
            container,
            prefix: command.prefix,
            delimiter: command.delimiter.filter(|delimiter| !delimiter.is_empty()),
            show: command.show,
            room: command.limit,
            next_marker: None,
            yield_budget: YieldBudget::default(),
            now: self.now(),
        })
    }
}

impl BlobListing {
    /// The next entries of the page; none at its end.
    pub async fn next(&mut self) -> Result<Vec<Listed>, Fault> {
        let mut entries = Vec::new();
        while entries.len() < BATCH_ENTRIES && self.room > 0 {
            let Some((entry, _)) = self.next_entry().await? else { break };
            entries.push(entry);
            self.room -= 1;
        }
        if entries.is_empty() && self.room == 0 {
            self.next_marker = self.next_entry().await?.map(|(entry, moment)| match entry {
                Listed::Blob(name, _) | Listed::Uncommitted(name) => Position { name, moment },
                Listed::Prefix(common) => Position::at_name(common),
            });
            self.sources.clear();
        }
        Ok(entries)
    }

    /// Where the next page begins, if there is one; known at the end of this one.
    pub fn next_marker(&self) -> Option<&Position> {
        self.next_marker.as_ref()
    }

    /// The next entry and its moment.
    async fn next_entry(&mut self) -> Result<Option<(Listed, Timestamp)>, Fault> {
        loop {
            let Some((at, Position { name, moment })) = self.first_source().await? else {
                return Ok(None);
            };
            if let Some(common) = self.common_prefix(&name) {
                if self.sources[at].drop_expired(self.now)? {
                    self.yield_budget.passed(1).await;
                    continue;
                }
                self.skip(&common);
                self.yield_budget.sought().await;
                return Ok(Some((Listed::Prefix(common), moment)));
            }
            let Some(row) = self.sources[at].fetched.pop_front() else { continue };
            self.yield_budget.passed(1).await;
            if matches!(self.sources[at].kind, Kind::Uncommitted) {
                self.yield_budget.sought().await;
                if !self.has_current(&name).await? {
                    return Ok(Some((Listed::Uncommitted(name), moment)));
                }
                continue;
            }
            if let Some(blob) = self.entry(at, &name, moment, &row).await? {
                return Ok(Some((Listed::Blob(name, Box::new(blob)), moment)));
            }
        }
    }

    /// The source that has the first of the rows that come next, and their position.
    async fn first_source(&mut self) -> Result<Option<(usize, Position)>, Fault> {
        let at_once = match self.delimiter {
            Some(_) => HIERARCHY_SCAN_ROWS,
            None => BATCH_ENTRIES.min(self.room + 1),
        };
        for source in &mut self.sources {
            source.fetch(&*self.snapshot, self.container, at_once).await?;
        }
        let mut first: Option<(usize, (&str, Timestamp))> = None;
        for (at, source) in self.sources.iter().enumerate() {
            if let Some(row) = source.fetched.front() {
                let position = source.kind.position(row)?;
                if first.is_none_or(|(_, first)| position < first) {
                    first = Some((at, position));
                }
            }
        }
        Ok(first.map(|(at, (name, moment))| (at, Position { name: name.to_owned(), moment })))
    }

    fn common_prefix(&self, name: &str) -> Option<String> {
        let delimiter = self.delimiter.as_deref()?;
        let at = name.get(self.prefix.len()..)?.find(delimiter)?;
        Some(name[..self.prefix.len() + at + delimiter.len()].to_owned())
    }

    /// Continues after all names that begin with `prefix`.
    fn skip(&mut self, prefix: &str) {
        for source in &mut self.sources {
            source.skip(self.container, prefix);
        }
    }

    /// The entry for the row of source `at`, if it is listed.
    async fn entry(
        &mut self,
        at: usize,
        name: &str,
        moment: Timestamp,
        row: &Row,
    ) -> Result<Option<ListedBlob>, Fault> {
        let Kind::PastBlob { latest, .. } = self.sources[at].kind else {
            let blob = Blob::decode(&row.value)?;
            if blob.is_expired(self.now) {
                return Ok(None);
            }
            let (blob, state) = (blob.at(self.now), ListedState::Base);
            return Ok(Some(ListedBlob { blob, state, deleted: None, has_versions_only: false }));
        };
        let PastBlob { blob, role, deleted } = PastBlob::decode(&row.value)?.at(self.now);
        if deleted.is_some_and(|deleted| deleted.until <= self.now) {
            return Ok(None);
        }
        // The latest of these is listed as the deleted blob.
        let may_be_base = match role {
            Role::Replaced => true,
            Role::Version => self.show.deleted_with_versions && deleted.is_none(),
            Role::Snapshot => false,
        };
        if may_be_base {
            self.yield_budget.sought().await;
        }
        let is_base =
            may_be_base && self.is_last_of_name(at, name).await? && !self.has_current(name).await?;
        if latest && !is_base {
            return Ok(None);
        }
        let state = match role {
            Role::Replaced if is_base => ListedState::Base,
            Role::Replaced | Role::Snapshot => ListedState::Snapshot(moment),
            Role::Version => ListedState::Version(moment),
        };
        let has_versions_only = is_base && role == Role::Version;
        Ok(Some(ListedBlob { blob, state, deleted, has_versions_only }))
    }

    async fn is_last_of_name(&mut self, at: usize, name: &str) -> Result<bool, Fault> {
        let at_once = BATCH_ENTRIES.min(self.room + 1);
        let source = &mut self.sources[at];
        source.fetch(&*self.snapshot, self.container, at_once).await?;
        match source.fetched.front() {
            Some(row) => Ok(source.kind.position(row)?.0 != name),
            None => Ok(true),
        }
    }

    async fn has_current(&self, name: &str) -> Result<bool, Fault> {
        let row = self.snapshot.get(&rows::blob(self.container, name)).await?;
        let blob = row.map(|row| Blob::decode(&row)).transpose()?;
        Ok(blob.is_some_and(|blob| !blob.is_expired(self.now)))
    }
}

/// What the rows of a source are.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Current,
    Uncommitted,
    PastBlob {
        group: PastBlobGroup,
        /// Only the latest of each name.
        latest: bool,
    },
}

impl Kind {
    /// The kinds of rows that a listing shows something of.
    fn shown(show: Show) -> impl Iterator<Item = Self> {
        let past = |group, shown: bool, latest: bool| {
            (shown || latest).then_some(Self::PastBlob { group, latest: !shown })
        };
        let Show { current, snapshots, versions, deleted, deleted_with_versions, uncommitted } =
            show;
        [
            current.then_some(Self::Current),
            uncommitted.then_some(Self::Uncommitted),
            past(PastBlobGroup::Snapshots, snapshots, false),
            past(PastBlobGroup::Versions, versions, deleted_with_versions),
            past(PastBlobGroup::DeletedSnapshots, deleted && snapshots, false),
            past(PastBlobGroup::DeletedVersions, deleted && versions, false),
            past(PastBlobGroup::Replaced, deleted && snapshots, deleted),
        ]
        .into_iter()
        .flatten()
    }

    /// The rows of names that begin with `prefix`.
    fn rows(self, container: u64, prefix: &str) -> Bytes {
        match self {
            Self::Current => rows::blobs(container, prefix),
            Self::Uncommitted => rows::uploads(container, prefix),
            Self::PastBlob { group, .. } => rows::past_blobs(container, group, prefix),
        }
    }

    /// The key of the first row that is not before `position`.
    fn key(self, container: u64, position: &Position) -> Bytes {
        let Position { name, moment } = position;
        match self {
            // The current state comes after all moments.
            Self::Current => rows::blobs(container, name),
            Self::Uncommitted => rows::uploads(container, name),
            Self::PastBlob { group, .. } if moment.ticks() > 0 => {
                rows::past_blob(container, group, name, *moment)
            }
            Self::PastBlob { group, .. } => rows::past_blobs(container, group, name),
        }
    }

    fn position(self, row: &Row) -> Result<(&str, Timestamp), Fault> {
        match self {
            Self::Current | Self::Uncommitted => Ok((rows::blob_name(&row.key)?, Timestamp::MAX)),
            Self::PastBlob { .. } => rows::past_blob_name(&row.key),
        }
    }
}

/// Rows of one kind, in order.
struct Source {
    kind: Kind,
    /// What has not been fetched yet.
    range: KeyRange,
    fetched: VecDeque<Row>,
    /// Whether the range may hold more rows.
    more: bool,
}

impl Source {
    /// Skips the next row if its blob has expired; returns whether it did.
    fn drop_expired(&mut self, now: Timestamp) -> Result<bool, Fault> {
        let (Kind::Current, Some(row)) = (self.kind, self.fetched.front()) else {
            return Ok(false);
        };
        let expired = Blob::decode(&row.value)?.is_expired(now);
        if expired {
            self.fetched.pop_front();
        }
        Ok(expired)
    }

    fn new(kind: Kind, container: u64, command: &ListBlobs) -> Self {
        let mut range = KeyRange::prefix(kind.rows(container, &command.prefix));
        if let Some(start) = &command.start
            && start.name >= command.prefix
        {
            range = range.starting_at(kind.key(container, start));
        }
        if let Some(end) = &command.end_before {
            let end = kind.rows(container, end);
            if range.contains(&end) {
                range = range.ending_before(end);
            } else if *end < *kind.rows(container, &command.prefix) {
                range = KeyRange::prefix(end.clone()).ending_before(end);
            }
        }
        Self { kind, range, fetched: VecDeque::new(), more: true }
    }

    /// Makes sure that the next row, if there is one, is fetched.
    async fn fetch(
        &mut self,
        snapshot: &dyn Snapshot,
        container: u64,
        at_once: usize,
    ) -> Result<(), Fault> {
        if !self.fetched.is_empty() || !self.more || self.range.is_empty() {
            return Ok(());
        }
        if let Kind::PastBlob { group, latest: true } = self.kind {
            return self.fetch_latest(snapshot, container, group).await;
        }
        let found = snapshot.scan(&self.range, Order::Ascending, at_once).await?;
        self.more = found.len() == at_once;
        if let Some(last) = found.last() {
            self.range = self.range.clone().after(last.key.clone());
        }
        self.fetched = found.into();
        Ok(())
    }

    /// Fetches the latest row of the next name.
    async fn fetch_latest(
        &mut self,
        snapshot: &dyn Snapshot,
        container: u64,
        group: PastBlobGroup,
    ) -> Result<(), Fault> {
        let Some(first) = snapshot.scan(&self.range, Order::Ascending, 1).await?.pop() else {
            self.more = false;
            return Ok(());
        };
        let (name, _) = rows::past_blob_name(&first.key)?;
        let of_name = rows::past_states_of_blob(container, group, name);
        let range = KeyRange::prefix(of_name.clone());
        self.fetched = snapshot.scan(&range, Order::Descending, 1).await?.into();
        self.skip_to(successor_of_prefix(&of_name));
        Ok(())
    }

    /// Continues after all names that begin with `prefix`.
    fn skip(&mut self, container: u64, prefix: &str) {
        let next = successor_of_prefix(&self.kind.rows(container, prefix));
        match &next {
            Some(next) => self.fetched.retain(|row| row.key >= *next),
            None => self.fetched.clear(),
        }
        if self.fetched.is_empty() {
            self.skip_to(next);
        }
    }

    /// Continues at `key`, if that is further; at the end if there is no key.
    fn skip_to(&mut self, key: Option<Bytes>) {
        let Some(key) = key else {
            self.more = false;
            return;
        };
        let skipped = self.range.clone().starting_at(key.clone());
        if self.range.contains(&key) || skipped.is_empty() {
            self.range = skipped;
        }
    }
}
