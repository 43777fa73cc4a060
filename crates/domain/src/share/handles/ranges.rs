//! Which ranges of a file were written, and zeroing them again.

use std::ops::Range as Bytes;

use super::Answer;
use super::change_events;
use super::refusal::{HandleRefusal, refused};
use super::transfer::{check_file, state};
use crate::content::{Difference, ReadRange};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::share::opens::breaks::Cause;
use crate::share::opens::range_locks::Range;
use crate::share::opens::{AccessMask, Handle};
use crate::share::{
    Attributes, GetNode, ListRanges, PastEnd, PutRange, RangeChange, TimeChange, Wanted, WriteAt,
};

impl Domain {
    /// The parts of `range` that were written, at most `limit` of them; all of `range` in a file
    /// without the sparse attribute.
    pub async fn handle_ranges(
        &self,
        handle: &Handle,
        range: Bytes<u64>,
        limit: usize,
    ) -> Answer<Vec<Bytes<u64>>> {
        check_file(handle)?;
        let file = self.query_handle(handle).await?;
        let end = range.end.min(file.length);
        if range.start >= end {
            return Ok(Vec::new());
        }
        if !file.attributes.contains(Attributes::SPARSE) {
            return Ok(std::iter::once(range.start..end).collect());
        }
        let mut ranges = self
            .at_place(handle, async |address| {
                let file =
                    GetNode { address, state: state(handle), wanted: Wanted::File, lease_id: None };
                self.list_ranges(&ListRanges {
                    file,
                    previous: None,
                    follow_rename: false,
                    range: Some(ReadRange { first: range.start, last: Some(end - 1) }),
                    start_from: 0,
                })
                .await
            })
            .await?;
        let mut written: Vec<Bytes<u64>> = Vec::new();
        while written.len() < limit
            && let Some((difference, found)) = ranges.next().await?
        {
            let found = found.start.max(range.start)..found.end.min(end);
            match (difference, written.last_mut()) {
                (Difference::Cleared, _) => {}
                (Difference::Written, Some(last)) if last.end == found.start => {
                    last.end = found.end;
                }
                (Difference::Written, _) => written.push(found),
            }
        }
        Ok(written)
    }

    /// Whether clients are told that the file has holes.
    pub async fn set_handle_sparse(&self, handle: &Handle, is_sparse: bool) -> Answer<()> {
        check_file(handle)?;
        self.at_place(handle, async |address| {
            self.change_node(&address, |node, stamp| {
                (node.etag, node.last_modified) = (stamp.etag, stamp.now);
                node.attributes = if is_sparse {
                    node.attributes.union(Attributes::SPARSE)
                } else {
                    node.attributes.difference(Attributes::SPARSE)
                };
                Ok(())
            })
            .await
        })
        .await?;
        Ok(())
    }

    /// Bytes of a file become zeros, as far as the file goes.
    pub async fn zero_handle(&self, handle: &Handle, range: Bytes<u64>) -> Answer<()> {
        check_file(handle)?;
        if !handle.access.contains(AccessMask::WRITE_DATA) {
            return Err(Failure::Refused(HandleRefusal::AccessDenied));
        }
        let length = self.query_handle(handle).await?.length;
        let end = range.end.min(length);
        if range.start >= end {
            return Ok(());
        }
        let locked = Range::new(range.start, end - range.start);
        let locked = locked.ok_or(Failure::Refused(HandleRefusal::InvalidParameter))?;
        let checked = self.opens.check_write(handle, locked);
        checked.map_err(|_| Failure::Refused(HandleRefusal::LockConflict))?;
        self.opens.disturb(handle, Cause::Write).await;
        let frozen = handle.state.lock().frozen;
        let put = PutRange {
            address: self.address(handle),
            at: WriteAt::Offset(range.start),
            change: RangeChange::Clear(end - range.start),
            past_end: PastEnd::Refused,
            written: frozen.written.then_some(TimeChange::Preserve),
            by_handle: true,
            lease_id: None,
        };
        self.put_range(put).await.map_err(|failure| failure.map(refused))?;
        self.tell(handle.key.share, &[change_events::written(&handle.path())]);
        Ok(())
    }
}
