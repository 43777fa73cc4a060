//! LOCK: locks ranges of a file, perhaps waiting for others, and unlocks them.

use holdfast_domain::share::handles::LockRequest;
use holdfast_domain::share::opens::range_locks::{LockKind, Range};

use super::Result;
use super::waiting::at_once_or_pending;
use crate::answer::Answer;
use crate::call::Call;
use crate::opens::OpenFile;
use crate::refusals;
use crate::rules::lock::{self, Asked, LockedRange};
use crate::status::Status;
use crate::wire::lock::Request;

pub async fn handle(call: &mut Call) -> Result {
    let request = Request::decode(&call.message)?;
    let open = call.open(request.file_id)?;
    let file = open.file()?;
    let repeated = Repeated::of(&request, file);
    if repeated.is_some_and(|it| file.handle.is_lock_replayed(it.index, it.number)) {
        return Ok(Answer::empty());
    }
    match lock::decide(&request.elements)? {
        Asked::Lock { ranges, waits } => take(call, file, &ranges, waits).await?,
        Asked::Unlock { ranges, and_then } => {
            release(call, file, &ranges).await?;
            and_then.map_or(Ok(()), Err)?;
        }
    }
    if let Some(repeated) = repeated {
        file.handle.note_lock(repeated.index, repeated.number);
    }
    Ok(Answer::empty())
}

/// The number of a request that a client repeats if its connection was lost: only of opens that
/// survive that.
#[derive(Clone, Copy)]
struct Repeated {
    index: u8,
    number: u8,
}

impl Repeated {
    const INDEX_MAX: u32 = 64;

    fn of(request: &Request, file: &OpenFile) -> Option<Self> {
        let (index, number) = (request.sequence >> 4, request.sequence & 0xF);
        let counts = file.is_durable && (1..=Self::INDEX_MAX).contains(&index);
        counts.then_some(Self { index: index as u8, number: number as u8 })
    }
}

async fn take(call: &Call, file: &OpenFile, ranges: &[LockedRange], waits: bool) -> Result<()> {
    let locks = ranges.iter().map(|lock| {
        let range = Range::new(lock.offset, lock.length).ok_or(Status::INVALID_LOCK_RANGE)?;
        let kind = if lock.is_exclusive { LockKind::Exclusive } else { LockKind::Shared };
        Ok(LockRequest { range, kind })
    });
    let locks = locks.collect::<Result<Vec<_>>>()?;
    let domain = &call.connection.frontend.domain;
    let taking = domain.lock_handle(&file.handle, &locks, waits);
    match at_once_or_pending(&call.ticket, taking).await?.map_err(refusals::of_handle) {
        // The file was closed while this waited.
        Err(Status::FILE_CLOSED) => Err(Status::RANGE_NOT_LOCKED),
        outcome => outcome,
    }
}

async fn release(call: &Call, file: &OpenFile, ranges: &[(u64, u64)]) -> Result<()> {
    let ranges = ranges.iter().map(|(offset, length)| Range::new(*offset, *length));
    let ranges = ranges.collect::<Option<Vec<_>>>().ok_or(Status::INVALID_LOCK_RANGE)?;
    let domain = &call.connection.frontend.domain;
    domain.unlock_handle(&file.handle, &ranges).await.map_err(refusals::of_handle)
}
