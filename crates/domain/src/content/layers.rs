//! Layered maps. The first change of a shared map would copy all of its entries. For a long one it
//! copies none: the content gets an empty map layered on the shared one, which is read where the
//! upper map has no entry. The upper map is filled in the background, a few entries per commit,
//! until it no longer needs the lower one (`docs/design/0005-maps.md`).

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use holdfast_store::{Fault, KeyRange, Order, Snapshot};
use serde::{Deserialize, Serialize};

use super::map::{Entry, decode};
use super::rows;
use crate::domain::{Domain, read};
use crate::failure::Failure;
use crate::rows::{Stored, condemned_id};
use crate::transact::Transaction;

/// Rows of one map read at a time; each may hold a part of up to [`super::INLINE_PART_BYTES_MAX`].
pub(super) const ROWS_PER_SCAN: usize = 256;

/// Entries that one commit brings up from the maps below.
const FILLED_PER_COMMIT: usize = if cfg!(test) { 2 } else { 256 };

/// What lies below a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ground {
    pub map: u64,
    /// Up to here the map above is filled.
    pub from: u64,
}

impl Stored for Ground {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "what a map lies upon";
}

pub(super) async fn ground(snapshot: &dyn Snapshot, map: u64) -> Result<Option<Ground>, Fault> {
    snapshot.get(&rows::map_ground(map)).await?.map(|row| Ground::decode(&row)).transpose()
}

/// How many maps lie below this one.
pub(super) async fn depth(snapshot: &dyn Snapshot, map: u64) -> Result<usize, Fault> {
    let (mut depth, mut at) = (0, map);
    while let Some(ground) = ground(snapshot, at).await? {
        (depth, at) = (depth + 1, ground.map);
    }
    Ok(depth)
}

/// The first entries that touch `range`, of a map and, where it has none, of those below, each with
/// its offset; as many as are read at a time. In a map without layers an entry may begin before the
/// range or end after it.
pub(crate) async fn entries(
    snapshot: &dyn Snapshot,
    map: u64,
    range: Range<u64>,
) -> Result<Vec<(u64, Entry)>, Fault> {
    Walk::new(map, range).next(snapshot).await
}

/// Reads a range of a map, always with the same snapshot.
#[derive(Clone)]
pub(super) struct Walk {
    map: u64,
    /// Where entries have not been looked for yet.
    rest: Range<u64>,
    /// An entry that begins before `rest` may reach into it.
    inside: bool,
    /// Whether the map lies upon another, once that is known.
    layered: Option<bool>,
}

impl Walk {
    pub fn new(map: u64, range: Range<u64>) -> Self {
        Self { map, inside: range.start > 0, rest: range, layered: None }
    }

    /// Goes through a part of the rest.
    pub fn part(&self, range: Range<u64>) -> Self {
        Self { layered: self.layered, ..Self::new(self.map, range) }
    }

    pub fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next entries, as [`entries`] has them; none at the end.
    pub async fn next(&mut self, snapshot: &dyn Snapshot) -> Result<Vec<(u64, Entry)>, Fault> {
        let mut found = Vec::new();
        while found.is_empty() && !self.is_done() {
            found = match self.is_layered(snapshot).await? {
                true => {
                    let seen = visible(snapshot, self.map, self.rest.clone(), ROWS_PER_SCAN);
                    seen.await?.into_iter().map(|seen| (seen.offset, seen.entry)).collect()
                }
                false if self.inside => own_entries(snapshot, self.map, self.rest.clone()).await?,
                false => entries_from(snapshot, self.map, self.rest.clone()).await?,
            };
            self.inside = false;
            self.rest.start = match found.last() {
                Some((offset, entry)) if found.len() >= ROWS_PER_SCAN => offset + entry.length,
                Some(_) | None => self.rest.end,
            };
            // With nothing below, a cover that was left has no effect.
            found.retain(|(_, entry)| !entry.is_cover());
        }
        Ok(found)
    }

    async fn is_layered(&mut self, snapshot: &dyn Snapshot) -> Result<bool, Fault> {
        if let Some(layered) = self.layered {
            return Ok(layered);
        }
        let layered = ground(snapshot, self.map).await?.is_some();
        self.layered = Some(layered);
        Ok(layered)
    }
}

/// An entry, or a part of one, that no map above covers.
struct Seen {
    offset: u64,
    entry: Entry,
    /// It is not of the uppermost map.
    from_below: bool,
}

async fn visible(
    snapshot: &dyn Snapshot,
    map: u64,
    range: Range<u64>,
    limit: usize,
) -> Result<Vec<Seen>, Fault> {
    let mut layers = layers(snapshot, map, range.start).await?;
    let mut found = Vec::new();
    let mut at = range.start;
    while at < range.end && found.len() < limit {
        let mut end = range.end;
        for (depth, layer) in layers.iter_mut().enumerate() {
            match layer.at(snapshot, at, range.end).await? {
                Place::Entry(offset, entry) => {
                    end = end.min(offset + entry.length);
                    if !entry.is_cover() {
                        let whole = offset == at && offset + entry.length == end;
                        let (offset, entry) = match whole {
                            true => (offset, entry.clone()),
                            false => (at, entry.narrowed(at - offset, end - at)),
                        };
                        found.push(Seen { offset, entry, from_below: depth > 0 });
                    }
                    break;
                }
                Place::Gap(until) => {
                    end = end.min(until);
                    if at < layer.from {
                        end = end.min(layer.from);
                        break;
                    }
                }
            }
        }
        at = end;
    }
    Ok(found)
}

/// A map and what lies below it, from the top down, to be read from `start` on.
async fn layers(snapshot: &dyn Snapshot, map: u64, start: u64) -> Result<Vec<Layer>, Fault> {
    let mut layers = Vec::new();
    let mut next = Some(map);
    while let Some(map) = next {
        let ground = ground(snapshot, map).await?;
        let from = ground.map_or(u64::MAX, |ground| ground.from);
        layers.push(Layer { map, from, read: VecDeque::new(), unread: start, whole: false });
        next = ground.map(|ground| ground.map);
    }
    Ok(layers)
}

/// The entries of one map, from front to back.
struct Layer {
    map: u64,
    /// From here on the map below shows where this one has no entry.
    from: u64,
    read: VecDeque<(u64, Entry)>,
    unread: u64,
    /// Nothing is left to read.
    whole: bool,
}

enum Place<'a> {
    Entry(u64, &'a Entry),
    /// No entry up to there.
    Gap(u64),
}

impl Layer {
    /// What is at `at`, which never decreases. Reads nothing beyond `end`.
    async fn at(&mut self, snapshot: &dyn Snapshot, at: u64, end: u64) -> Result<Place<'_>, Fault> {
        while self.read.front().is_some_and(|(offset, entry)| offset + entry.length <= at) {
            self.read.pop_front();
        }
        // A range without entries here may be long, with many entries in other layers.
        self.unread = self.unread.max(at);
        if self.read.is_empty() && !self.whole {
            let found = own_entries(snapshot, self.map, self.unread..end).await?;
            self.whole = found.len() < ROWS_PER_SCAN;
            self.unread = found.last().map_or(end, |(offset, entry)| offset + entry.length);
            self.read = found.into();
        }
        Ok(match self.read.front() {
            Some((offset, entry)) if *offset <= at => Place::Entry(*offset, entry),
            Some((offset, _)) => Place::Gap(*offset),
            None => Place::Gap(end),
        })
    }
}

/// As [`entries`], of this map alone.
pub(super) async fn own_entries(
    snapshot: &dyn Snapshot,
    map: u64,
    range: Range<u64>,
) -> Result<Vec<(u64, Entry)>, Fault> {
    if range.start == 0 || range.is_empty() {
        return entries_from(snapshot, map, range).await;
    }
    // Often the range touches only the entry in which it begins.
    let first = entry_before(snapshot, map, range.start + 1).await?;
    let first = first.filter(|(offset, entry)| offset + entry.length > range.start);
    let mut found = Vec::from_iter(first);
    let from = found.last().map_or(range.start, |(offset, entry)| offset + entry.length);
    found.extend(entries_from(snapshot, map, from..range.end).await?);
    Ok(found)
}

/// Entries of this map alone that begin in `range`.
async fn entries_from(
    snapshot: &dyn Snapshot,
    map: u64,
    range: Range<u64>,
) -> Result<Vec<(u64, Entry)>, Fault> {
    if range.is_empty() {
        return Ok(Vec::new());
    }
    let within = KeyRange::prefix(rows::map_entries(map));
    let within = within.starting_at(rows::map_entry(map, range.start));
    let within = within.ending_before(rows::map_entry(map, range.end));
    let rows = snapshot.scan(&within, Order::Ascending, ROWS_PER_SCAN).await?;
    rows.iter().map(decode).collect()
}

/// The last entry of this map alone that begins before `offset`.
async fn entry_before(
    snapshot: &dyn Snapshot,
    map: u64,
    offset: u64,
) -> Result<Option<(u64, Entry)>, Fault> {
    let before =
        KeyRange::prefix(rows::map_entries(map)).ending_before(rows::map_entry(map, offset));
    let row = snapshot.scan(&before, Order::Descending, 1).await?.pop();
    row.as_ref().map(decode).transpose()
}

/// Expects that no entry of this map alone that touches `range` is added or removed. An entry that
/// begins before the range cannot reach into it without touching the last entry before it.
pub(super) async fn expect_entries(
    transaction: &mut Transaction,
    map: u64,
    range: &Range<u64>,
) -> Result<(), Fault> {
    let before = entry_before(transaction.snapshot(), map, range.start).await?;
    let start = before.map_or(0, |(offset, _)| offset);
    let keys = KeyRange::prefix(rows::map_entries(map)).starting_at(rows::map_entry(map, start));
    transaction.expect_range(keys.ending_before(rows::map_entry(map, range.end)));
    Ok(())
}

/// The first map that is layered on another, if there is one.
pub(crate) async fn first_layered_map(snapshot: &dyn Snapshot) -> Result<Option<u64>, Fault> {
    let all = KeyRange::prefix(rows::map_grounds());
    let row = snapshot.scan(&all, Order::Ascending, 1).await?.pop();
    row.map(|row| condemned_id(&row.key)).transpose()
}

/// Copies some entries of the map below into a layered map; after the last one releases the map
/// below.
pub(crate) async fn fill_layered_map(domain: &Domain, map: u64) -> Result<(), Failure<()>> {
    domain
        .transact(&[], async |mut transaction| {
            fill(&mut transaction, map).await?;
            Ok(((), transaction))
        })
        .await
}

pub(super) async fn fill(transaction: &mut Transaction, map: u64) -> Result<(), Fault> {
    let key = rows::map_ground(map);
    let ground: Option<Ground> = read(transaction, &key).await?;
    let Some(ground) = ground else { return Ok(()) };
    let rest = ground.from..u64::MAX;
    let found = visible(transaction.snapshot(), map, rest.clone(), FILLED_PER_COMMIT).await?;
    let Some(last) = found.last() else {
        remove_covers(transaction, map, rest).await?;
        transaction.delete(key);
        transaction.references.release_map(ground.map);
        return Ok(());
    };
    let filled = ground.from..last.offset + last.entry.length;
    expect_entries(transaction, map, &filled).await?;
    remove_covers(transaction, map, filled.clone()).await?;
    for Seen { offset, entry, .. } in found.iter().filter(|seen| seen.from_below) {
        transaction.references.retain(entry.part.pieces());
        transaction.put(rows::map_entry(map, *offset), entry.encode());
    }
    transaction.put(key, Ground { from: filled.end, ..ground }.encode());
    Ok(())
}

/// With nothing below, covers hide nothing: removes those that end in `range`, at most as many as are
/// read at a time. One that stays reads as zeros.
async fn remove_covers(
    transaction: &mut Transaction,
    map: u64,
    range: Range<u64>,
) -> Result<(), Fault> {
    let found = own_entries(transaction.snapshot(), map, range.clone()).await?;
    for (offset, entry) in found {
        if entry.is_cover() && offset + entry.length <= range.end {
            let key: Bytes = rows::map_entry(map, offset);
            transaction.expect(key.clone());
            transaction.delete(key);
        }
    }
    Ok(())
}
