//! Reading, writing and resizing a file through a handle.

use std::ops::Range as Bytes;

use super::refusal::HandleRefusal;
use super::{Answer, WriteAt, change_events};
use crate::content::{ContentReader, ReadRange, Received};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::share::opens::breaks::Cause;
use crate::share::opens::range_locks::Range;
use crate::share::opens::{AccessMask, EnterRefusal, Handle};
use crate::share::{
    FileRefusal, GetNode, NodeProperties, PastEnd, PutRange, RangeChange, SetNodeProperties,
    TimeChange, Wanted,
};

impl Domain {
    /// At most `length` bytes from `offset` on, at least one of which exists.
    pub async fn read_handle(
        &self,
        handle: &Handle,
        offset: u64,
        length: u64,
    ) -> Answer<ContentReader> {
        check_file(handle)?;
        if !handle.access.reads() {
            return Err(Failure::Refused(HandleRefusal::AccessDenied));
        }
        if length == 0 {
            return Err(Failure::Refused(HandleRefusal::EndOfFile));
        }
        let range = Range::new(offset, length);
        let range = range.ok_or(Failure::Refused(HandleRefusal::InvalidParameter))?;
        let checked = self.opens.check_read(handle, range);
        checked.map_err(|_| Failure::Refused(HandleRefusal::LockConflict))?;
        let last = offset.saturating_add(length.saturating_sub(1));
        let range = ReadRange { first: offset, last: Some(last) };
        let download = self
            .at_place(handle, async |address| {
                let get =
                    GetNode { address, state: state(handle), wanted: Wanted::File, lease_id: None };
                self.get_file(&get, Some(range)).await
            })
            .await?;
        Ok(download.reader)
    }

    /// Writes bytes that have been received. The file grows if it has to.
    pub async fn write_handle(&self, handle: &Handle, at: WriteAt, bytes: Received) -> Answer<()> {
        check_file(handle)?;
        if !handle.access.writes() {
            return Err(Failure::Refused(HandleRefusal::AccessDenied));
        }
        if let WriteAt::Offset(offset) = at {
            let range = Range::new(offset, bytes.length());
            let range = range.ok_or(Failure::Refused(HandleRefusal::InvalidParameter))?;
            let checked = self.opens.check_write(handle, range);
            checked.map_err(|_| Failure::Refused(HandleRefusal::LockConflict))?;
        }
        self.opens.disturb(handle, Cause::Write).await;
        self.remove_rows_of_closed().await?;
        let frozen = handle.state.lock().frozen;
        let written = frozen.written.then_some(TimeChange::Preserve);
        let put = PutRange {
            address: self.address(handle),
            at,
            change: RangeChange::Write(bytes),
            past_end: PastEnd::Grows,
            written,
            by_handle: true,
            lease_id: None,
        };
        // The end of the file is known only here, and a lock may have been taken meanwhile.
        let unlocked = |range: &Bytes<u64>| {
            let range = Range::new(range.start, range.end - range.start);
            let checked = range.map_or(Ok(()), |range| self.opens.check_write(handle, range));
            checked.map_err(|_| FileRefusal::Opens(EnterRefusal::LockConflict))
        };
        let written = self
            .at_place(handle, async |address| self.put_range_at(&address, &put, unlocked).await)
            .await;
        let written = put.conclude_put(written)?;
        self.opens.note_written(handle.key, written.node.times.written);
        self.tell(handle.key.share, &[change_events::written(&handle.path())]);
        Ok(())
    }

    /// Everything that was answered is durable already.
    pub async fn flush_handle(&self, handle: &Handle) -> Answer<()> {
        check_open(handle)?;
        let writes = AccessMask::WRITE_DATA.union(AccessMask::APPEND_DATA);
        if handle.access.intersects(writes) {
            self.opens.reveal_written(handle.key);
            Ok(())
        } else {
            Err(Failure::Refused(HandleRefusal::AccessDenied))
        }
    }

    pub async fn set_handle_length(&self, handle: &Handle, length: u64) -> Answer<()> {
        check_file(handle)?;
        if !handle.access.contains(AccessMask::WRITE_DATA) {
            return Err(Failure::Refused(HandleRefusal::AccessDenied));
        }
        self.opens.disturb(handle, Cause::Write).await;
        self.remove_rows_of_closed().await?;
        let frozen = handle.state.lock().frozen;
        let change =
            |frozen: bool| Some(if frozen { TimeChange::Preserve } else { TimeChange::Now });
        let properties = NodeProperties {
            written: change(frozen.written),
            changed: change(frozen.changed),
            ..Default::default()
        };
        self.at_place(handle, async |address| {
            self.set_node_properties(&SetNodeProperties {
                address,
                wanted: Wanted::File,
                properties: properties.clone(),
                headers: None,
                length: Some(length),
                by_handle: true,
                lease_id: None,
            })
            .await
        })
        .await?;
        self.opens.reveal_written(handle.key);
        self.tell(handle.key.share, &[change_events::written(&handle.path())]);
        Ok(())
    }

    /// Records an allocation, which takes no space, or truncates a file that is longer.
    pub async fn set_handle_allocation(&self, handle: &Handle, bytes: u64) -> Answer<()> {
        check_file(handle)?;
        if !handle.access.contains(AccessMask::WRITE_DATA) {
            return Err(Failure::Refused(HandleRefusal::AccessDenied));
        }
        let length = self.query_handle(handle).await?.length;
        self.opens.set_allocation(handle.key, bytes);
        if bytes < length {
            return self.set_handle_length(handle, bytes).await;
        }
        self.opens.disturb(handle, Cause::Write).await;
        Ok(())
    }
}

pub(super) fn state(handle: &Handle) -> crate::share::ShareState {
    handle.snapshot.map_or(crate::share::ShareState::Current, crate::share::ShareState::Snapshot)
}

pub(super) fn check_open(handle: &Handle) -> Answer<()> {
    if handle.is_closed() { Err(Failure::Refused(HandleRefusal::Closed)) } else { Ok(()) }
}

pub(super) fn check_file(handle: &Handle) -> Answer<()> {
    check_open(handle)?;
    if handle.is_directory {
        return Err(Failure::Refused(HandleRefusal::InvalidRequest));
    }
    Ok(())
}
