//! Server-side copy: ranges of one open file into another, [MS-SMB2] 3.3.5.15.6.

use std::sync::Arc;

use holdfast_domain::share::handles::WriteAt;

use super::answer;
use crate::call::Call;
use crate::commands::Result;
use crate::commands::pending_answer::patiently;
use crate::commands::read::read_pieces;
use crate::commands::write::write_pieces;
use crate::info::fsctl::{CopyOutcome, copy_limits};
use crate::opens::{Open, OpenFile};
use crate::status::Status;
use crate::wire::FileId;
use crate::wire::create::access;
use crate::wire::ioctl::{Chunk, CopyChunks, Request, codes};

/// A key that identifies an open in its session.
pub fn resume_key(open: &Open) -> Result<[u8; 24]> {
    open.file()?;
    let mut key = [0; 24];
    key[..8].copy_from_slice(&open.id.persistent.to_le_bytes());
    key[8..16].copy_from_slice(&open.id.volatile.to_le_bytes());
    Ok(key)
}

fn source(call: &Call, key: &[u8; 24]) -> Result<Arc<Open>> {
    let number = |at: usize| key[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let id = FileId { persistent: number(0), volatile: number(8) };
    call.session()?.opens.get(id).ok_or(Status::OBJECT_NAME_NOT_FOUND)
}

pub async fn copy(call: &Call, request: &Request, open: &Open) -> Result<crate::answer::Answer> {
    if (request.output_bytes_max as usize) < CopyOutcome::BYTES {
        return Err(Status::INVALID_PARAMETER);
    }
    let asked = CopyChunks::decode(&request.input)?;
    let source = source(call, &asked.source_key)?;
    let (from, to) = (source.file()?, open.file()?);
    let is_read_too = request.code == codes::SRV_COPYCHUNK;
    check_access(from, to, is_read_too)?;
    if !is_within_limits(&asked.chunks) {
        return Ok(answer(request, Status::INVALID_PARAMETER, CopyOutcome::LIMITS.encode()));
    }
    let copying = copy_chunks(call, from, to, &asked.chunks);
    let (copied, status) = patiently(&call.ticket, copying).await?;
    Ok(answer(request, status, copied.encode()))
}

fn check_access(from: &OpenFile, to: &OpenFile, is_read_too: bool) -> Result<()> {
    if from.handle.is_directory || to.handle.is_directory {
        return Err(Status::INVALID_DEVICE_REQUEST);
    }
    let (source, target) = (from.handle.access.bits(), to.handle.access.bits());
    let reads = source & (access::READ_DATA | access::EXECUTE) != 0
        && (!is_read_too || target & access::READ_DATA != 0);
    let writes = target & (access::WRITE_DATA | access::APPEND_DATA) != 0;
    if reads && writes { Ok(()) } else { Err(Status::ACCESS_DENIED) }
}

fn is_within_limits(chunks: &[Chunk]) -> bool {
    let total: u64 = chunks.iter().map(|chunk| u64::from(chunk.length)).sum();
    let each =
        chunks.iter().all(|chunk| (1..=copy_limits::CHUNK_BYTES_MAX).contains(&chunk.length));
    each && chunks.len() <= copy_limits::CHUNKS_MAX as usize
        && total <= u64::from(copy_limits::TOTAL_BYTES_MAX)
}

/// How much was copied, and the error that ended it.
async fn copy_chunks(
    call: &Call,
    from: &OpenFile,
    to: &OpenFile,
    chunks: &[Chunk],
) -> (CopyOutcome, Status) {
    let mut outcome = CopyOutcome { chunks: 0, chunk_bytes: 0, total_bytes: 0 };
    for chunk in chunks {
        if let Err(status) = copy_chunk(call, from, to, chunk).await {
            return (outcome, status);
        }
        outcome.chunks += 1;
        outcome.total_bytes += chunk.length;
    }
    (outcome, Status::SUCCESS)
}

async fn copy_chunk(call: &Call, from: &OpenFile, to: &OpenFile, chunk: &Chunk) -> Result<()> {
    let pieces = match read_pieces(call, from, chunk.source_offset, chunk.length).await {
        Err(Status::END_OF_FILE) => return Err(Status::INVALID_VIEW_SIZE),
        pieces => pieces?,
    };
    let length: usize = pieces.iter().map(bytes::Bytes::len).sum();
    if length < chunk.length as usize {
        return Err(Status::INVALID_VIEW_SIZE);
    }
    write_pieces(call, to, WriteAt::Offset(chunk.target_offset), pieces).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_copied_at_a_time_than_the_limits_say() {
        let chunk = |length| Chunk { source_offset: 0, target_offset: 0, length };
        let mib = copy_limits::CHUNK_BYTES_MAX;
        for (chunks, expected) in [
            (vec![], true),
            (vec![chunk(1)], true),
            (vec![chunk(0)], false),
            (vec![chunk(mib)], true),
            (vec![chunk(mib + 1)], false),
            (vec![chunk(1); 256], true),
            (vec![chunk(1); 257], false),
            (vec![chunk(mib); 16], true),
            (vec![chunk(mib); 17], false),
        ] {
            assert_eq!(is_within_limits(&chunks), expected, "{} chunks", chunks.len());
        }
    }
}
