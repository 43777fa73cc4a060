//! List Containers. One page costs a seek and as many rows as it has entries, however many there
//! are; with the deleted ones, two seeks. It shows one state of the store and is never held whole.

use bytes::Bytes;
use holdfast_store::{Fault, KeyRange, Snapshot};

use super::Container;
use super::deleted_container::DeletedContainer;
use super::rows;
use crate::cursor::Cursor;
use crate::domain::Domain;
use crate::names::DeletedVersion;
use crate::names::{AccountName, is_hidden_container};
use crate::rows::Stored;
use crate::time::Timestamp;
use crate::yield_budget::ROWS_IN_TURN;

/// Entries returned at a time.
const BATCH_ENTRIES: usize = ROWS_IN_TURN;

pub struct ListContainers {
    pub account: AccountName,
    pub prefix: String,
    /// Where to begin, from the page before.
    pub marker: Option<String>,
    pub limit: usize,
    /// Also those that can be restored.
    pub deleted: bool,
    /// Also system containers.
    pub system: bool,
}

#[derive(Clone, Debug)]
pub struct ListedContainer {
    pub name: String,
    pub container: Container,
    pub deleted: Option<ListedDeletion>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedDeletion {
    pub version: DeletedVersion,
    pub at: Timestamp,
    pub until: Timestamp,
}

/// A page of containers by name; of one name first the existing one, then the deleted ones, oldest
/// first.
pub struct ContainerListing {
    snapshot: Box<dyn Snapshot>,
    account: AccountName,
    live: Cursor,
    deleted: Cursor,
    /// Entries that the page still has room for.
    room: usize,
    system: bool,
    next_marker: Option<String>,
    pub now: Timestamp,
}

impl Domain {
    pub async fn list_containers(
        &self,
        command: ListContainers,
    ) -> Result<ContainerListing, Fault> {
        let account = command.account.as_str();
        let mut live = KeyRange::prefix(rows::containers(account, &command.prefix));
        let mut deleted = KeyRange::prefix(rows::deleted_containers(account, &command.prefix));
        if let Some(marker) = command.marker.filter(|marker| *marker >= command.prefix) {
            let (from_live, from_deleted) = places(account, &marker);
            live = live.starting_at(from_live);
            deleted = deleted.starting_at(from_deleted);
        }
        Ok(ContainerListing {
            snapshot: self.engine.snapshot().await?,
            live: Cursor::new(live, true),
            deleted: Cursor::new(deleted, command.deleted),
            account: command.account,
            room: command.limit,
            system: command.system,
            next_marker: None,
            now: self.now(),
        })
    }
}

/// Where a page with this marker begins. A marker is the name of the first container, and after a
/// slash, which no name has, the version if that is a deleted one.
fn places(account: &str, marker: &str) -> (Bytes, Bytes) {
    match marker.split_once('/') {
        None => (rows::container(account, marker), rows::deleted_containers(account, marker)),
        Some((name, version)) => {
            let version = DeletedVersion::parse(version).map_or(0, |DeletedVersion(id)| id);
            let past_name = format!("{name}\0");
            let from_deleted = rows::deleted_container(account, name, version);
            (rows::container(account, &past_name), from_deleted)
        }
    }
}

impl ContainerListing {
    /// The next containers of the page; none at its end.
    pub async fn next(&mut self) -> Result<Vec<ListedContainer>, Fault> {
        let mut entries = Vec::new();
        while entries.len() < BATCH_ENTRIES.min(self.room) {
            match self.next_entry().await? {
                Some(entry) => entries.push(entry),
                None => break,
            }
        }
        self.room -= entries.len();
        if entries.is_empty() && self.room == 0 {
            self.next_marker = self.next_entry().await?.map(|entry| match entry.deleted {
                None => entry.name,
                Some(deletion) => format!("{}/{}", entry.name, deletion.version),
            });
        }
        Ok(entries)
    }

    /// Where the next page begins, if there is one; known at the end of this one.
    pub fn next_marker(&self) -> Option<&str> {
        self.next_marker.as_deref()
    }

    async fn next_entry(&mut self) -> Result<Option<ListedContainer>, Fault> {
        loop {
            let Some(entry) = self.next_of_both().await? else { return Ok(None) };
            let hidden = !self.system && is_hidden_container(&entry.name);
            let over = entry.deleted.is_some_and(|deletion| deletion.until <= self.now);
            if !hidden && !over {
                return Ok(Some(entry));
            }
        }
    }

    async fn next_of_both(&mut self) -> Result<Option<ListedContainer>, Fault> {
        let account = self.account.as_str();
        let live = match self.live.peek(&*self.snapshot).await? {
            Some(row) => Some(rows::container_name(account, &row.key)?),
            None => None,
        };
        let deleted = match self.deleted.peek(&*self.snapshot).await? {
            Some(row) => Some(rows::deleted_container_name(account, &row.key)?),
            None => None,
        };
        let live_first = match (live, deleted) {
            (Some(live), Some((deleted, _))) => live <= deleted,
            (live, _) => live.is_some(),
        };
        let cursor = if live_first { &mut self.live } else { &mut self.deleted };
        let Some(row) = cursor.take() else { return Ok(None) };
        if live_first {
            let name = rows::container_name(account, &row.key)?.to_owned();
            let container = Container::decode(&row.value)?;
            return Ok(Some(ListedContainer { name, container, deleted: None }));
        }
        let (name, version) = rows::deleted_container_name(account, &row.key)?;
        let DeletedContainer { container, at, until } = DeletedContainer::decode(&row.value)?;
        let deletion = ListedDeletion { version: DeletedVersion(version), at, until };
        Ok(Some(ListedContainer { name: name.to_owned(), container, deleted: Some(deletion) }))
    }
}
