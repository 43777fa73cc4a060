//! WRITE.

use std::convert::Infallible;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_domain::content::{ByteSource, ReceiveFailure};
use holdfast_domain::share::handles::WriteAt;

use super::Result;
use super::pending_answer::patiently;
use crate::answer::Answer;
use crate::call::Call;
use crate::opens::{OpenFile, OpenKind};
use crate::status::Status;
use crate::wire::write::{Request, Response};
use crate::{ipc, refusals};

/// The offset that means the end of the file.
const AT_END: u64 = u64::MAX;

pub async fn handle(call: &mut Call) -> Result {
    let request = Request::decode(&call.message)?;
    let length_max = call.dialect()?.transfer_bytes_max() as usize;
    if request.channel != 0 || request.data.len() > length_max {
        return Err(Status::INVALID_PARAMETER);
    }
    let open = call.open(request.file_id)?;
    let _at_work = open.at_work.read().await;
    match &open.kind {
        OpenKind::Pipe(pipe) => ipc::write(call, pipe, &request.data).await?,
        OpenKind::File(file) => {
            let at = match request.offset {
                AT_END => WriteAt::End,
                offset => WriteAt::Offset(offset),
            };
            write_file(call, file, at, request.data.clone()).await?;
        }
    }
    let response = Response { count: request.data.len() as u32 };
    Ok(Answer::success(|out| response.encode(out)))
}

async fn write_file(call: &Call, file: &OpenFile, at: WriteAt, data: Bytes) -> Result<()> {
    let length = data.len() as u64;
    patiently(&call.ticket, write_pieces(call, file, at, vec![data])).await??;
    if let WriteAt::Offset(offset) = at {
        file.handle.set_offset(offset + length);
    }
    Ok(())
}

/// The bytes go to the store as they were received.
pub async fn write_pieces(
    call: &Call,
    file: &OpenFile,
    at: WriteAt,
    pieces: Vec<Bytes>,
) -> Result<()> {
    let length: usize = pieces.iter().map(Bytes::len).sum();
    if let WriteAt::Offset(offset) = at {
        let end = offset.checked_add(length as u64);
        if end.is_none_or(|end| i64::try_from(end).is_err()) {
            return Err(Status::INVALID_PARAMETER);
        }
    }
    let domain = &call.connection.frontend.domain;
    let received = match domain.receive(&mut Pieces(pieces.into_iter())).await {
        Ok(received) => received,
        Err(ReceiveFailure::Source(never)) => match never {},
        Err(ReceiveFailure::Fault(fault)) => return Err(refusals::of_fault(&fault)),
    };
    domain.write_handle(&file.handle, at, received).await.map_err(refusals::of_handle)
}

/// A content that is in memory already.
struct Pieces(std::vec::IntoIter<Bytes>);

#[async_trait]
impl ByteSource for Pieces {
    type Refusal = Infallible;

    async fn next(&mut self) -> std::result::Result<Option<Bytes>, Infallible> {
        Ok(self.0.find(|piece| !piece.is_empty()))
    }
}
