//! Ranges of files: written and cleared in place, and distinguished from those never written.

use std::ops::Range;

use super::file::decide_range;
use super::node::{GetNode, Wanted, check_change, check_writable};
use super::properties::{TimeChange, Touch, touch};
use super::tree::{Answer, Located, NodeRows, Reading, Tree, View, snapshot_number};
use super::{At, Expected, File, FileRefusal, Node, NodeAddress, NodeKind};
use crate::content::{self, Content, Difference, Differences, Entry, Map, ReadRange, Received};
use crate::domain::{Domain, Stamp};
use crate::failure::Failure;
use crate::lease::LeaseId;
use crate::time::Timestamp;
use crate::transact::Transaction;
use holdfast_store::Fault;

/// Ranges are reported in pieces of this size.
pub const RANGE_BYTES: u64 = 512;

/// The most that one Put Range writes.
pub const PUT_RANGE_BYTES_MAX: u64 = 4 * 1024 * 1024;

pub struct PutRange {
    pub address: NodeAddress,
    pub at: WriteAt,
    pub change: RangeChange,
    pub past_end: PastEnd,
    /// By default now.
    pub written: Option<TimeChange>,
    /// Through an open that was granted: lease and attributes are not checked again.
    pub by_handle: bool,
    pub lease_id: Option<LeaseId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteAt {
    Offset(u64),
    /// At the end of the file at the time of the change, even if it has grown meanwhile.
    End,
}

pub enum RangeChange {
    Write(Received),
    /// So many bytes become zeros, also past the end; whole pieces of [`RANGE_BYTES`] become as if never
    /// written.
    Clear(u64),
}

/// What a change past the end of a file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastEnd {
    Refused,
    Grows,
}

#[derive(Clone)]
pub struct ListRanges {
    pub file: GetNode,
    /// The snapshot of the share to compare with; without one, all written ranges are listed.
    pub previous: Option<Timestamp>,
    /// Whether a file that has been renamed since is compared with its earlier state.
    pub follow_rename: bool,
    pub range: Option<ReadRange>,
    /// Ranges before this are skipped.
    pub start_from: u64,
}

/// Ranges of a file in whole pieces of [`RANGE_BYTES`], except at its end, read on demand.
pub struct FileRanges {
    pub located: Located,
    differences: Differences,
}

impl FileRanges {
    pub async fn next(&mut self) -> Result<Option<(Difference, Range<u64>)>, Fault> {
        self.differences.next().await
    }
}

impl PutRange {
    pub(super) fn conclude_put<R>(
        self,
        written: Result<Located, Failure<R>>,
    ) -> Result<Located, Failure<R>> {
        match self.change {
            RangeChange::Write(received) => received.conclude(written),
            RangeChange::Clear(_) => written,
        }
    }
}

impl Domain {
    pub(super) async fn put_range(&self, command: PutRange) -> Answer<Located> {
        let written = self.try_put_range(&command).await;
        command.conclude_put(written)
    }

    /// As [`Domain::put_range`], but the bytes are kept for another attempt.
    pub(super) async fn try_put_range(&self, command: &PutRange) -> Answer<Located> {
        self.put_range_at(&command.address, command, |_| Ok(())).await
    }

    /// As [`Domain::try_put_range`], at the current place of the file, and only if `check` accepts
    /// the range.
    pub(super) async fn put_range_at(
        &self,
        address: &NodeAddress,
        command: &PutRange,
        check: impl Fn(&Range<u64>) -> Result<(), FileRefusal>,
    ) -> Answer<Located> {
        self.transact(&[address.latch()], async |mut transaction| {
            let stamp = self.stamp();
            let tree = Tree::open(&mut transaction, &address.share).await?;
            let found = tree.find(&mut transaction, address).await?;
            let node = found.node.ok_or(Failure::Refused(FileRefusal::NotFound))?;
            let mut node = tree.begin_change(&mut transaction, &found.place, &node).await?;
            let range = decide_put(&mut node, command, stamp).map_err(Failure::Refused)?;
            check(&range).map_err(Failure::Refused)?;
            if let NodeKind::File(file) = &mut node.kind {
                let length = length_after(file.length, &range);
                self.make_room(&mut transaction, &tree, file.length, length).await?;
                change_range(&mut transaction, file, range, &command.change, stamp).await?;
                file.length = length;
            }
            tree.put(&mut transaction, &found.place, &node);
            Ok((Located { place: found.place, node, now: stamp.now }, transaction))
        })
        .await
    }

    pub(super) async fn list_ranges(&self, command: &ListRanges) -> Answer<FileRanges> {
        let mut reading = Reading(self.engine.snapshot().await?);
        let rows = &mut reading;
        let located = self.read_located(rows, &command.file).await?;
        let file = located.node.file().ok_or(Failure::Refused(FileRefusal::WrongKind))?;
        let older = match command.previous {
            None => None,
            Some(moment) => Some(find_previous(rows, command, &located, moment).await?),
        };
        let range = match command.range {
            None => 0..file.length,
            Some(range) => decide_range(Some(range), file.length).map_err(Failure::Refused)?,
        };
        let range = widen(range, command.start_from, file.length);
        let newer = file.content.clone();
        let differences = Differences::new(reading.0, older.as_ref(), &newer, range)?;
        Ok(FileRanges { located, differences: differences.in_pieces_of(RANGE_BYTES) })
    }
}

/// The content that the file had when a snapshot of the share was taken.
async fn find_previous(
    rows: &mut impl NodeRows,
    command: &ListRanges,
    located: &Located,
    moment: Timestamp,
) -> Answer<Content> {
    let address = &command.file.address;
    let tree = Tree::open_in(rows, &address.share, command.file.state).await?;
    let number = snapshot_number(rows, &tree.share, moment).await?;
    let number = number.ok_or(Failure::Refused(FileRefusal::PreviousSnapshotNotFound))?;
    if tree.view.is_before(number) {
        return Err(Failure::Refused(FileRefusal::PreviousSnapshotNewer));
    }
    let tree = Tree { view: View::Snapshot(number), ..tree };
    let place = located.node.place_at(&located.place, number);
    let was = tree.read(rows, &place).await?.filter(|was| was.id == located.node.id);
    let at_path = match &address.at {
        At::Place(_) => was.clone(),
        At::Path(_) => {
            let address = NodeAddress { expected: Expected::Anything, ..address.clone() };
            match tree.find(rows, &address).await {
                Ok(found) => found.node,
                Err(Failure::Refused(FileRefusal::ParentNotFound)) => None,
                Err(failure) => return Err(failure),
            }
        }
    };
    decide_previous(was, at_path, located.node.file(), command.follow_rename)
        .map_err(Failure::Refused)
}

/// The content to compare with: `was` is the earlier state of the same file, `at_path` what was at
/// its path then.
fn decide_previous(
    was: Option<Node>,
    at_path: Option<Node>,
    file: Option<&File>,
    follow_rename: bool,
) -> Result<Content, FileRefusal> {
    let Some(was) = was else {
        let replaced = at_path.is_some();
        return Err(if replaced { FileRefusal::GenerationMismatch } else { FileRefusal::NotFound });
    };
    let is_same_path = at_path.is_some_and(|node| node.id == was.id);
    match (was.file(), file) {
        (Some(was), Some(file))
            if was.lineage == file.lineage && (is_same_path || follow_rename) =>
        {
            Ok(was.content.clone())
        }
        (_, _) => Err(FileRefusal::GenerationMismatch),
    }
}

/// The pieces that `range` touches, from `start_from` on, of a file of this length.
fn widen(range: Range<u64>, start_from: u64, length: u64) -> Range<u64> {
    let start = range.start.max(start_from) / RANGE_BYTES * RANGE_BYTES;
    let end = range.end.next_multiple_of(RANGE_BYTES).min(length);
    start.min(end)..end
}

/// Every rule of Put Range; returns the node with its stamp, and the range that changes.
fn decide_put(
    node: &mut Node,
    command: &PutRange,
    stamp: Stamp,
) -> Result<Range<u64>, FileRefusal> {
    Wanted::File.check(node)?;
    if !command.by_handle {
        check_change(node, Wanted::File, command.lease_id, stamp.now)?;
        check_writable(node)?;
    }
    let length = match &command.change {
        RangeChange::Write(received) => received.length(),
        RangeChange::Clear(length) => *length,
    };
    let start = match command.at {
        WriteAt::Offset(offset) => offset,
        WriteAt::End => node.length(),
    };
    let end = start.checked_add(length).ok_or(FileRefusal::RangePastEnd)?;
    if length > 0 && end > node.length() && command.past_end == PastEnd::Refused {
        return Err(FileRefusal::RangePastEnd);
    }
    let before = node.times.written;
    touch(node, Touch::Data, stamp);
    if let Some(written) = command.written {
        node.times.written = written.apply(before, stamp.now);
    }
    Ok(start..end)
}

/// The length of a file after a write to `range`; an empty write does not extend it.
fn length_after(length: u64, range: &Range<u64>) -> u64 {
    if range.is_empty() { length } else { length.max(range.end) }
}

async fn change_range(
    transaction: &mut Transaction,
    file: &mut File,
    range: Range<u64>,
    change: &RangeChange,
    stamp: Stamp,
) -> Result<(), Fault> {
    let id = stamp.etag.ticks();
    match change {
        _ if range.is_empty() => {}
        RangeChange::Write(received) => {
            let entry = Entry::whole(received.claim_part(transaction), id);
            let map = Map::own(transaction, &file.content, id).await?;
            map.write(transaction, range.start, &entry).await?;
            file.content = map.content();
        }
        RangeChange::Clear(_) => {
            let freed = whole_pieces(&range, file.length);
            if freed == (0..file.length) {
                content::release(transaction, &file.content);
                file.content = content::all_cleared(transaction, file.length, id);
            } else {
                let mut map = Map::own(transaction, &file.content, id).await?;
                map.zero(transaction, range, freed, id).await?;
                file.content = map.content();
            }
        }
    }
    Ok(())
}

/// The whole pieces in a range; the last piece of a file counts as whole if the range reaches its
/// end. If there is none, an empty range within `range`.
fn whole_pieces(range: &Range<u64>, length: u64) -> Range<u64> {
    let start = range.start.next_multiple_of(RANGE_BYTES).min(range.end);
    let end = if range.end >= length { range.end } else { range.end / RANGE_BYTES * RANGE_BYTES };
    start..end.max(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_pieces_are_freed_and_the_rest_is_zeroed() {
        for (cell, range, length, freed) in [
            ("6.3 whole pieces", 512..1536, 4096, 512..1536),
            ("6.3 parts around", 100..1500, 4096, 512..1024),
            ("6.3 within a piece", 10..20, 4096, 20..20),
            ("6.3 within two pieces", 500..600, 4096, 512..512),
            ("6.3 up to the end", 512..700, 700, 512..700),
            ("6.3 all", 0..700, 700, 0..700),
            ("6.3 beyond the end", 512..9000, 700, 512..9000),
        ] {
            assert_eq!(whole_pieces(&range, length), freed, "{cell}");
        }
    }

    #[test]
    fn only_bytes_make_a_file_longer() {
        for (case, length, range, expected) in [
            ("within", 10, 2..5, 10),
            ("over the end", 10, 8..12, 12),
            ("behind the end", 10, 20..25, 25),
            ("nothing behind the end", 10, 20..20, 10),
        ] {
            assert_eq!(length_after(length, &range), expected, "{case}");
        }
    }

    #[test]
    fn ranges_are_told_in_whole_pieces_but_for_the_end_of_the_file() {
        for (case, range, start_from, expected) in [
            ("whole pieces", 512..1024, 0, 512..1024),
            ("parts of pieces", 513..1025, 0, 512..1536),
            ("up to the end", 0..2000, 0, 0..2000),
            ("from a marker", 0..2000, 1024, 1024..2000),
            ("a marker behind the range", 0..1024, 1536, 1024..1024),
        ] {
            assert_eq!(widen(range, start_from, 2000), expected, "{case}");
        }
    }
}
