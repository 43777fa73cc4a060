//! LOCK: locks ranges of a file, possibly waiting for others, and unlocks them.

use holdfast_domain::share::handles::LockRequest;
use holdfast_domain::share::opens::LockSequence;
use holdfast_domain::share::opens::range_locks::{LockKind, Range};

use super::Result;
use super::pending_answer::at_once_or_pending;
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
    let sequence = sequence(&request, file);
    if sequence.is_some_and(|sequence| file.handle.is_lock_replayed(sequence)) {
        return Ok(Answer::empty());
    }
    match lock::decide(&request.elements)? {
        Asked::Lock { ranges, waits } => take(call, file, &ranges, waits, sequence).await?,
        Asked::Unlock { ranges, and_then } => {
            let sequence = sequence.filter(|_| and_then.is_none());
            release(call, file, &ranges, sequence).await?;
            and_then.map_or(Ok(()), Err)?;
        }
    }
    Ok(Answer::empty())
}

/// The sequence number of a request that a client repeats after losing its connection; only for
/// opens that survive that.
fn sequence(request: &Request, file: &OpenFile) -> Option<LockSequence> {
    const INDEX_MAX: u32 = 64;
    let (index, number) = (request.sequence >> 4, request.sequence & 0xF);
    let counts = file.is_durable && (1..=INDEX_MAX).contains(&index);
    counts.then_some(LockSequence { index: index as u8, number: number as u8 })
}

async fn take(
    call: &Call,
    file: &OpenFile,
    ranges: &[LockedRange],
    waits: bool,
    sequence: Option<LockSequence>,
) -> Result<()> {
    let locks = ranges.iter().map(|lock| {
        let range = Range::new(lock.offset, lock.length).ok_or(Status::INVALID_LOCK_RANGE)?;
        let kind = if lock.is_exclusive { LockKind::Exclusive } else { LockKind::Shared };
        Ok(LockRequest { range, kind })
    });
    let locks = locks.collect::<Result<Vec<_>>>()?;
    let domain = &call.connection.frontend.domain;
    let taking = domain.lock_in_sequence(&file.handle, &locks, waits, sequence);
    match at_once_or_pending(&call.ticket, taking).await?.map_err(refusals::of_handle) {
        // The file was closed while this waited.
        Err(Status::FILE_CLOSED) => Err(Status::RANGE_NOT_LOCKED),
        outcome => outcome,
    }
}

async fn release(
    call: &Call,
    file: &OpenFile,
    ranges: &[(u64, u64)],
    sequence: Option<LockSequence>,
) -> Result<()> {
    let ranges = ranges.iter().map(|(offset, length)| Range::new(*offset, *length));
    let ranges = ranges.collect::<Option<Vec<_>>>().ok_or(Status::INVALID_LOCK_RANGE)?;
    let domain = &call.connection.frontend.domain;
    let released = domain.unlock_in_sequence(&file.handle, &ranges, sequence).await;
    released.map_err(refusals::of_handle)
}
