//! Ranges of files: written and cleared in place, and told from those never written.

use std::ops::Range;

use super::node::{GetNode, Wanted, check_change, check_writable};
use super::properties::{TimeChange, Touch, touch};
use super::tree::{Answer, Located, Tree};
use super::{File, FileRefusal, Node, NodeAddress, NodeKind};
use crate::blob::ReadRange;
use crate::content::{Content, Difference, Differences, Entry, Map, Received};
use crate::domain::{Domain, Stamp};
use crate::failure::Failure;
use crate::lease::LeaseId;
use crate::time::Timestamp;
use crate::transact::Transaction;
use holdfast_store::Fault;

/// Ranges are told in such pieces.
pub const RANGE_BYTES: u64 = 512;

/// The most that one Put Range writes.
pub const PUT_RANGE_BYTES_MAX: u64 = 4 * 1024 * 1024;

pub struct PutRange {
    pub address: NodeAddress,
    pub offset: u64,
    pub change: RangeChange,
    pub past_end: PastEnd,
    /// By default now.
    pub written: Option<TimeChange>,
    /// Through an open that was granted: neither lease nor attributes are asked again.
    pub by_handle: bool,
    pub lease_id: Option<LeaseId>,
}

pub enum RangeChange {
    Write(Received),
    /// So many bytes become zeros; whole pieces of [`RANGE_BYTES`] are as if never written.
    Clear(u64),
}

/// What a change past the end of a file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastEnd {
    Refused,
    Grows,
}

pub struct ListRanges {
    pub file: GetNode,
    /// The snapshot of the share to compare with; without one, all ranges that were written are told.
    pub previous: Option<Timestamp>,
    /// Whether a file that has been renamed since is compared with what it was before.
    pub follow_rename: bool,
    pub range: Option<ReadRange>,
    /// What is before this is passed over.
    pub start_from: u64,
}

/// Ranges of a file, read as they are asked for.
pub struct FileRanges {
    pub located: Located,
    differences: Differences,
}

impl FileRanges {
    pub async fn next(&mut self) -> Result<Option<(Difference, Range<u64>)>, Fault> {
        self.differences.next().await
    }
}

impl Domain {
    pub async fn put_range(&self, command: PutRange) -> Answer<Located> {
        let address = &command.address;
        let written = self
            .transact(&[address.latch()], async |mut transaction| {
                let stamp = self.stamp();
                let tree = Tree::open(&mut transaction, &address.share).await?;
                let found = tree.find(&mut transaction, address).await?;
                let node = found.node.ok_or(Failure::Refused(FileRefusal::NotFound))?;
                let mut node = tree.begin_change(&mut transaction, &found.place, &node).await?;
                let range = decide_put(&mut node, &command, stamp).map_err(Failure::Refused)?;
                if let NodeKind::File(file) = &mut node.kind {
                    let length = file.length.max(range.end);
                    self.note_usage(&tree, file.length, length)?;
                    change_range(&mut transaction, file, range, &command.change, stamp).await?;
                    file.length = length;
                }
                tree.put(&mut transaction, &found.place, &node);
                Ok((Located { place: found.place, node, now: stamp.now }, transaction))
            })
            .await;
        match command.change {
            RangeChange::Write(received) => received.conclude(written),
            RangeChange::Clear(_) => written,
        }
    }

    pub async fn list_ranges(&self, command: &ListRanges) -> Answer<FileRanges> {
        let _ = command;
        Err(Failure::Fault(Fault::new("not built yet")))
    }
}

/// Every rule of Put Range; the node with its stamp, and the bytes that change.
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
    let end = command.offset.checked_add(length).ok_or(FileRefusal::RangePastEnd)?;
    if end > node.length() && command.past_end == PastEnd::Refused {
        return Err(FileRefusal::RangePastEnd);
    }
    let before = node.times.written;
    touch(node, Touch::Data, stamp);
    if let Some(written) = command.written {
        node.times.written = written.apply(before, stamp.now);
    }
    Ok(command.offset..end)
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
        RangeChange::Clear(_) if file.content == Content::Empty => {}
        RangeChange::Clear(_) => {
            let mut map = Map::own(transaction, &file.content, id).await?;
            map.clear(transaction, range).await?;
            file.content = map.content();
        }
    }
    Ok(())
}
