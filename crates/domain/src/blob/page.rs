//! Page blobs: pages are written and cleared in place, and distinguished from those never written.

use std::ops::Range;

use holdfast_store::{Fault, Snapshot};

use super::entry::{BlobEntry, find_blob};
use super::get::decide_range;
use super::properties::decide_change;
use super::{Blob, BlobPath, BlobRefusal, Encryption, GetBlob, Kind, ReadBlob, Which};
use crate::condition::{Conditions, SequenceConditions};
use crate::content::{self, Content, Difference, Differences, Entry, Map, ReadRange, Received};
use crate::domain::{Domain, Stamp};
use crate::failure::Failure;
use crate::lease::LeaseId;
use crate::time::Timestamp;
use crate::transact::Transaction;

const PAGE_BYTES: u64 = 512;

/// 8 TiB.
const PAGE_BLOB_BYTES_MAX: u64 = 8 << 40;

/// The most that one Put Page writes.
pub const PUT_PAGES_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Whether a page blob can have this length.
pub fn is_page_blob_length(length: u64) -> bool {
    length.is_multiple_of(PAGE_BYTES) && length <= PAGE_BLOB_BYTES_MAX
}

/// Whole pages, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRange(Range<u64>);

impl PageRange {
    /// `last` is the last byte.
    pub fn new(first: u64, last: u64) -> Option<Self> {
        let end = last.checked_add(1)?;
        let whole = first.is_multiple_of(PAGE_BYTES) && end.is_multiple_of(PAGE_BYTES);
        (whole && first < end).then_some(Self(first..end))
    }

    pub fn length(&self) -> u64 {
        self.0.end - self.0.start
    }
}

pub struct PutPages {
    pub path: BlobPath,
    pub range: PageRange,
    pub change: PageChange,
    pub conditions: Conditions,
    pub sequence: SequenceConditions,
    pub lease_id: Option<LeaseId>,
    pub encryption: Encryption,
}

pub enum PageChange {
    Update(Received),
    Clear,
}

pub struct GetPageRanges {
    pub blob: GetBlob,
    /// The snapshot to compare with; without one, all written pages are listed.
    pub previous: Option<Timestamp>,
    pub range: Option<ReadRange>,
    /// Pages before this are skipped.
    pub start_from: u64,
}

/// Ranges of pages, read as they are asked for.
pub struct PageRanges {
    pub read: ReadBlob,
    differences: Differences,
}

impl PageRanges {
    pub async fn next(&mut self) -> Result<Option<(Difference, Range<u64>)>, Fault> {
        self.differences.next().await
    }
}

impl Domain {
    pub async fn put_pages(&self, command: PutPages) -> Result<Blob, Failure<BlobRefusal>> {
        let written = self
            .transact_pipelined(&[command.path.latch()], async |mut transaction| {
                let stamp = self.stamp();
                let blob_entry = BlobEntry::read(&mut transaction, &command.path).await?;
                let mut blob = decide_pages(blob_entry.current.clone(), &command, stamp)
                    .map_err(Failure::Refused)?;
                blob_entry
                    .check_encryption(&blob, &command.encryption)
                    .map_err(Failure::Refused)?;
                blob.content = change_pages(&mut transaction, &blob, &command, stamp).await?;
                blob_entry.put(&mut transaction, &blob);
                Ok((blob, transaction))
            })
            .await;
        match command.change {
            PageChange::Update(received) => received.conclude(written),
            PageChange::Clear => written,
        }
    }

    pub async fn get_page_ranges(
        &self,
        command: &GetPageRanges,
    ) -> Result<PageRanges, Failure<BlobRefusal>> {
        let snapshot = self.engine.snapshot().await?;
        let read = self.find_readable(&*snapshot, &command.blob).await?;
        read.check_bytes().map_err(Failure::Refused)?;
        let Kind::Page { lineage, .. } = read.blob.kind else {
            return Err(Failure::Refused(BlobRefusal::WrongKind));
        };
        let older = match command.previous {
            None => None,
            Some(moment) => {
                Some(find_previous(&*snapshot, &command.blob, moment, lineage, read.now).await?)
            }
        };
        let range = decide_range(command.range, read.blob.length).map_err(Failure::Refused)?;
        let range = widen(range, command.start_from);
        let older = older.as_ref().map(|older| &older.content);
        let differences = Differences::new(snapshot, older, &read.blob.content, range)?;
        Ok(PageRanges { read, differences })
    }
}

/// Every rule of Put Page; the blob as the write finds it, with its stamp.
fn decide_pages(
    existing: Option<Blob>,
    command: &PutPages,
    stamp: Stamp,
) -> Result<Blob, BlobRefusal> {
    let sequence_number = match existing.as_ref().map(|blob| blob.kind) {
        None => None,
        Some(Kind::Page { sequence_number, .. }) => Some(sequence_number),
        Some(Kind::Block | Kind::Append { .. }) => return Err(BlobRefusal::WrongKind),
    };
    let copy = existing.as_ref().and_then(|blob| blob.copy.clone());
    let blob = decide_change(existing, &command.conditions, command.lease_id, stamp)?;
    if sequence_number.is_some_and(|number| command.sequence.check(number).is_err()) {
        return Err(BlobRefusal::SequenceConditionNotMet);
    }
    if command.range.0.end > blob.length {
        return Err(BlobRefusal::InvalidPageRange);
    }
    match &command.change {
        PageChange::Update(received) if received.length() != command.range.length() => {
            Err(BlobRefusal::PagesLengthMismatch)
        }
        // A write of pages keeps what the blob was copied from.
        PageChange::Update(_) | PageChange::Clear => Ok(Blob { copy, ..blob }),
    }
}

async fn change_pages(
    transaction: &mut Transaction,
    blob: &Blob,
    command: &PutPages,
    stamp: Stamp,
) -> Result<Content, Fault> {
    let id = stamp.etag.ticks();
    match &command.change {
        PageChange::Update(received) => {
            let entry = Entry::whole(received.claim_part(transaction), id);
            let map = Map::own(transaction, &blob.content, id).await?;
            map.write(transaction, command.range.0.start, &entry).await?;
            Ok(map.content())
        }
        PageChange::Clear => clear_pages(transaction, blob, command.range.0.clone(), id).await,
    }
}

/// The content of `blob` with the pages in `range` cleared. `id` is unused by any other content.
async fn clear_pages(
    transaction: &mut Transaction,
    blob: &Blob,
    range: Range<u64>,
    id: u64,
) -> Result<Content, Fault> {
    if range == (0..blob.length) {
        content::release(transaction, &blob.content);
        return Ok(content::all_cleared(transaction, blob.length, id));
    }
    let mut map = Map::own(transaction, &blob.content, id).await?;
    map.clear(transaction, range, id).await?;
    Ok(map.content())
}

/// The content of `blob` cut off at `length`. `id` is unused by any other content.
pub(super) async fn cut_off_pages(
    transaction: &mut Transaction,
    blob: &Blob,
    length: u64,
    id: u64,
) -> Result<Content, Fault> {
    if blob.content == Content::Empty {
        return Ok(Content::Empty);
    }
    if length == 0 {
        content::release(transaction, &blob.content);
        return Ok(Content::Empty);
    }
    let mut map = Map::own(transaction, &blob.content, id).await?;
    map.cut_off(transaction, length..blob.length).await?;
    Ok(map.content())
}

/// The snapshot to compare the blob of `asked` with.
async fn find_previous(
    snapshot: &dyn Snapshot,
    asked: &GetBlob,
    moment: Timestamp,
    lineage: u64,
    now: Timestamp,
) -> Result<Blob, Failure<BlobRefusal>> {
    check_older(moment, asked.which).map_err(Failure::Refused)?;
    let found = find_blob(snapshot, &asked.path, Which::Snapshot(moment), now).await?;
    let (previous, _) = found.ok_or(Failure::Refused(BlobRefusal::PreviousSnapshotNotFound))?;
    match previous.kind {
        Kind::Page { lineage: same, .. } if same == lineage => Ok(*previous),
        Kind::Page { .. } | Kind::Block | Kind::Append { .. } => {
            Err(Failure::Refused(BlobRefusal::Overwritten))
        }
    }
}

fn check_older(previous: Timestamp, which: Which) -> Result<(), BlobRefusal> {
    match which {
        Which::Snapshot(moment) | Which::Version(moment) if previous >= moment => {
            Err(BlobRefusal::PreviousSnapshotNewer)
        }
        Which::Current | Which::Snapshot(_) | Which::Version(_) => Ok(()),
    }
}

/// The pages that `range` touches, from `start_from` on.
fn widen(range: Range<u64>, start_from: u64) -> Range<u64> {
    let start = range.start / PAGE_BYTES * PAGE_BYTES;
    let end = range.end.next_multiple_of(PAGE_BYTES);
    start.max(start_from).min(end)..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_written_whole() {
        for (cell, first, last, expected) in [
            ("3.3 the first page", 0, 511, Some(512)),
            ("3.3 several pages", 512, 2047, Some(1536)),
            ("3.3 start is no multiple", 1, 511, None),
            ("3.3 end is no multiple minus one", 0, 512, None),
            ("3.3 end is no multiple minus one", 0, 510, None),
            ("3.3 nothing", 512, 511, None),
            ("the largest end", 0, u64::MAX, None),
        ] {
            let range = PageRange::new(first, last);
            assert_eq!(range.map(|range| range.length()), expected, "{cell}: {first}-{last}");
        }
    }

    #[test]
    fn page_blobs_are_of_whole_pages_up_to_eight_tebibytes() {
        for (cell, length, expected) in [
            ("3.1 none", 0, true),
            ("3.1 a page", 512, true),
            ("3.1 no multiple of 512", 511, false),
            ("12 8 TiB", 8 << 40, true),
            ("12 over 8 TiB", (8 << 40) + 512, false),
        ] {
            assert_eq!(is_page_blob_length(length), expected, "{cell}");
        }
    }

    #[test]
    fn only_an_older_snapshot_can_be_compared_with() {
        let moment = Timestamp::from_ticks;
        let newer = Err(BlobRefusal::PreviousSnapshotNewer);
        for (cell, previous, which, expected) in [
            ("3.3 the blob itself", 5, Which::Current, Ok(())),
            ("3.3 a newer snapshot", 5, Which::Snapshot(moment(6)), Ok(())),
            ("3.3 the same snapshot", 5, Which::Snapshot(moment(5)), newer.clone()),
            ("3.3 an older snapshot", 5, Which::Snapshot(moment(4)), newer),
        ] {
            assert_eq!(check_older(moment(previous), which), expected, "{cell}");
        }
    }

    #[test]
    fn ranges_are_told_in_whole_pages() {
        for (case, range, start_from, expected) in [
            ("whole pages", 512..1024, 0, 512..1024),
            ("parts of pages", 513..1025, 0, 512..1536),
            ("from a marker", 0..2048, 1024, 1024..2048),
            ("a marker before the range", 1024..2048, 512, 1024..2048),
            ("a marker behind the range", 0..1024, 4096, 1024..1024),
        ] {
            assert_eq!(widen(range, start_from), expected, "{case}");
        }
    }
}
