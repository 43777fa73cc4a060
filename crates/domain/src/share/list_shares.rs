//! List Shares. A page costs a seek and as many rows as it has entries; with snapshots one more
//! seek per share, with deleted shares one more per page. It shows one state of the store.

use std::collections::VecDeque;

use bytes::Bytes;
use holdfast_store::{Fault, KeyRange, Order, Row, Snapshot};

use super::deleted_share::DeletedShare;
use super::model::Share;
use super::rows;
use super::snapshot::SNAPSHOTS_MAX;
use crate::cursor::Cursor;
use crate::domain::Domain;
use crate::names::AccountName;
use crate::names::DeletedVersion;
use crate::rows::Stored;
use crate::time::Timestamp;
use crate::yield_budget::ROWS_IN_TURN;

/// Entries returned at a time.
const BATCH_ENTRIES: usize = ROWS_IN_TURN;

pub struct ListShares {
    pub account: AccountName,
    pub prefix: String,
    pub marker: Option<ShareMarker>,
    pub limit: usize,
    pub snapshots: bool,
    /// Also those that can be restored.
    pub deleted: bool,
}

#[derive(Clone, Debug)]
pub struct ListedShare {
    pub name: String,
    pub share: Share,
    pub state: ListedState,
}

/// For one name the snapshots come first, then the share, then the deleted ones, oldest first, each
/// after its snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedState {
    Snapshot(Timestamp),
    Live,
    Deleted {
        version: DeletedVersion,
        /// The moment of a snapshot that was deleted with its share.
        snapshot: Option<Timestamp>,
        at: Timestamp,
        until: Timestamp,
    },
}

/// Where a page begins, from the page before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareMarker {
    name: String,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Snapshot(u64),
    Live,
    /// A snapshot of the deleted share, or else the share itself.
    Deleted(u64, Option<u64>),
}

impl ShareMarker {
    /// The name alone, or followed by a slash, which no name has, and the first of its entries.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, place) = text.split_once('/').unwrap_or((text, "s0"));
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        let place = match place.split_at_checked(1)? {
            ("s", moment) => Place::Snapshot(number(moment)?),
            ("l", "") => Place::Live,
            ("d", deleted) => match deleted.split_once('.') {
                Some((version, moment)) => Place::Deleted(number(version)?, Some(number(moment)?)),
                None => Place::Deleted(number(deleted)?, None),
            },
            _ => return None,
        };
        Some(Self { name: name.to_owned(), place })
    }
}

impl std::fmt::Display for ShareMarker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.place {
            Place::Snapshot(moment) => write!(formatter, "{}/s{moment:x}", self.name),
            Place::Live => write!(formatter, "{}/l", self.name),
            Place::Deleted(version, None) => write!(formatter, "{}/d{version:x}", self.name),
            Place::Deleted(version, Some(moment)) => {
                write!(formatter, "{}/d{version:x}.{moment:x}", self.name)
            }
        }
    }
}

pub struct ShareListing {
    snapshot: Box<dyn Snapshot>,
    account: AccountName,
    live: Cursor,
    deleted: Cursor,
    with_snapshots: bool,
    /// Entries of the current name that are ready, in order.
    ready: VecDeque<ListedShare>,
    /// Entries before it are on the page before.
    marker: Option<ShareMarker>,
    /// Entries that the page still has room for.
    room: usize,
    next_marker: Option<String>,
    pub now: Timestamp,
}

impl Domain {
    pub async fn list_shares(&self, command: ListShares) -> Result<ShareListing, Fault> {
        let account = command.account.as_str();
        let mut live = KeyRange::prefix(rows::shares(account, &command.prefix));
        let mut deleted = KeyRange::prefix(rows::deleted_shares(account, &command.prefix));
        let marker = command.marker.filter(|marker| marker.name >= command.prefix);
        if let Some(ShareMarker { name, place }) = &marker {
            let past_name = format!("{name}\0");
            let (from_live, from_deleted) = match place {
                Place::Snapshot(_) | Place::Live => (name, rows::deleted_shares(account, name)),
                Place::Deleted(version, _) => {
                    (&past_name, rows::deleted_share(account, name, *version))
                }
            };
            live = live.starting_at(rows::share(account, from_live));
            deleted = deleted.starting_at(from_deleted);
        }
        Ok(ShareListing {
            snapshot: self.engine.snapshot().await?,
            live: Cursor::new(live, true),
            deleted: Cursor::new(deleted, command.deleted),
            account: command.account,
            with_snapshots: command.snapshots,
            ready: VecDeque::new(),
            marker,
            room: command.limit,
            next_marker: None,
            now: self.now(),
        })
    }
}

impl ShareListing {
    /// The next shares of the page; none at its end.
    pub async fn next(&mut self) -> Result<Vec<ListedShare>, Fault> {
        let mut entries = Vec::new();
        while entries.len() < BATCH_ENTRIES.min(self.room) {
            match self.next_entry().await? {
                Some(entry) => entries.push(entry),
                None => break,
            }
        }
        self.room -= entries.len();
        if entries.is_empty() && self.room == 0 {
            self.next_marker = self.next_entry().await?.map(|entry| {
                let place = match entry.state {
                    ListedState::Snapshot(moment) => Place::Snapshot(moment.ticks()),
                    ListedState::Live => Place::Live,
                    ListedState::Deleted { version, snapshot, .. } => {
                        Place::Deleted(version.0, snapshot.map(Timestamp::ticks))
                    }
                };
                ShareMarker { name: entry.name, place }.to_string()
            });
        }
        Ok(entries)
    }

    /// Where the next page begins, if there is one; known at the end of this one.
    pub fn next_marker(&self) -> Option<&str> {
        self.next_marker.as_deref()
    }

    async fn next_entry(&mut self) -> Result<Option<ListedShare>, Fault> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Ok(Some(ready));
            }
            let live_first = match (self.live_name().await?, self.deleted_name().await?) {
                (Some(live), Some(deleted)) => live <= deleted,
                (live, _) => live.is_some(),
            };
            let cursor = if live_first { &mut self.live } else { &mut self.deleted };
            let Some(row) = cursor.take() else { return Ok(None) };
            match live_first {
                true => self.make_live_ready(row).await?,
                false => self.make_deleted_ready(row).await?,
            }
        }
    }

    async fn make_live_ready(&mut self, row: Row) -> Result<(), Fault> {
        let name = rows::share_name(self.account.as_str(), &row.key)?.to_owned();
        let share = Share::decode(&row.value)?;
        let from = match self.begins_at(&name) {
            None => Some(0),
            Some(Place::Snapshot(moment)) => Some(moment),
            Some(Place::Live | Place::Deleted(..)) => None,
        };
        self.make_ready(&name, share, from, |snapshot| {
            snapshot.map_or(ListedState::Live, ListedState::Snapshot)
        })
        .await
    }

    async fn make_deleted_ready(&mut self, row: Row) -> Result<(), Fault> {
        let (name, version) = rows::deleted_share_name(self.account.as_str(), &row.key)?;
        let DeletedShare { share, at, until } = DeletedShare::decode(&row.value)?;
        if until <= self.now {
            return Ok(());
        }
        let from = match self.begins_at(name) {
            Some(Place::Deleted(begun, moment)) if begun == version => moment,
            Some(_) | None => Some(0),
        };
        let version = DeletedVersion(version);
        self.make_ready(name, share, from, |snapshot| ListedState::Deleted {
            version,
            snapshot,
            at,
            until,
        })
        .await
    }

    /// Where among the entries of a name the page begins, if it begins there.
    fn begins_at(&mut self, name: &str) -> Option<Place> {
        self.marker.take().filter(|marker| marker.name == name).map(|marker| marker.place)
    }

    /// Prepares a share after those of its snapshots that are not before a moment.
    async fn make_ready(
        &mut self,
        name: &str,
        share: Share,
        from: Option<u64>,
        state: impl Fn(Option<Timestamp>) -> ListedState,
    ) -> Result<(), Fault> {
        let name = name.to_owned();
        if let Some(from) = from.filter(|_| self.with_snapshots) {
            let from = rows::snapshot(share.id, Timestamp::from_ticks(from));
            let range = KeyRange::prefix(rows::snapshots(share.id)).starting_at(from);
            for row in self.snapshot.scan(&range, Order::Ascending, SNAPSHOTS_MAX).await? {
                let state = state(Some(rows::snapshot_moment(&row.key)?));
                let share = Share::decode(&row.value)?;
                self.ready.push_back(ListedShare { name: name.clone(), share, state });
            }
        }
        self.ready.push_back(ListedShare { name, share, state: state(None) });
        Ok(())
    }

    async fn live_name(&mut self) -> Result<Option<Bytes>, Fault> {
        let Some(row) = self.live.peek(&*self.snapshot).await? else { return Ok(None) };
        let name = rows::share_name(self.account.as_str(), &row.key)?;
        Ok(Some(Bytes::copy_from_slice(name.as_bytes())))
    }

    async fn deleted_name(&mut self) -> Result<Option<Bytes>, Fault> {
        let Some(row) = self.deleted.peek(&*self.snapshot).await? else { return Ok(None) };
        let (name, _) = rows::deleted_share_name(self.account.as_str(), &row.key)?;
        Ok(Some(Bytes::copy_from_slice(name.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_come_back_as_they_were_given_out() {
        for place in [
            Place::Snapshot(0xAB),
            Place::Live,
            Place::Deleted(7, None),
            Place::Deleted(7, Some(0xAB)),
        ] {
            let marker = ShareMarker { name: "photos".to_owned(), place };
            assert_eq!(ShareMarker::parse(&marker.to_string()), Some(marker));
        }
        let name_alone = ShareMarker { name: "photos".to_owned(), place: Place::Snapshot(0) };
        assert_eq!(ShareMarker::parse("photos"), Some(name_alone));
        for text in ["photos/", "photos/x", "photos/l1", "photos/sx", "photos/d1.", "photos/é"] {
            assert_eq!(ShareMarker::parse(text), None, "{text}");
        }
    }
}
