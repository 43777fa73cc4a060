//! READ.

use bytes::Bytes;
use futures_util::future::try_join_all;
use holdfast_domain::content::ContentReader;
use holdfast_domain::failure::Fault;
use tokio::sync::Semaphore;

use super::Result;
use super::pending_answer::patiently;
use crate::answer::Answer;
use crate::call::Call;
use crate::opens::{OpenFile, OpenKind};
use crate::refusals;
use crate::status::Status;
use crate::wire::read::{Request, encode_head};

/// A long read is split into ranges that are read concurrently: one at a time would leave the disk
/// mostly idle.
const STRETCH_BYTES: u64 = 1024 * 1024;

pub async fn handle(call: &mut Call) -> Result {
    let request = Request::decode(&call.message)?;
    if request.channel != 0 || request.length > call.dialect()?.transfer_bytes_max() {
        return Err(Status::INVALID_PARAMETER);
    }
    let open = call.open(request.file_id)?;
    let _at_work = open.at_work.read().await;
    match &open.kind {
        OpenKind::Pipe(pipe) => {
            let (data, is_all) = pipe.lock().read(request.length as usize);
            if data.is_empty() {
                return Err(Status::PIPE_EMPTY);
            }
            let status = if is_all { Status::SUCCESS } else { Status::BUFFER_OVERFLOW };
            let answer = Answer::new(status, |out| encode_head(data.len() as u32, out));
            Ok(answer.with_payload(vec![data.into()]))
        }
        OpenKind::File(file) => read_file(call, &request, file).await,
    }
}

async fn read_file(call: &Call, request: &Request, file: &OpenFile) -> Result {
    if i64::try_from(request.offset).is_err() {
        return Err(Status::INVALID_PARAMETER);
    }
    let reading = read_pieces(call, file, request.offset, request.length);
    let pieces = patiently(&call.ticket, reading).await??;
    let length: usize = pieces.iter().map(Bytes::len).sum();
    if length < request.minimum_count as usize {
        return Err(Status::END_OF_FILE);
    }
    file.handle.set_offset(request.offset + length as u64);
    let answer = Answer::success(|out| encode_head(length as u32, out));
    Ok(answer.with_payload(pieces))
}

/// The bytes as pieces from the store.
pub async fn read_pieces(
    call: &Call,
    file: &OpenFile,
    offset: u64,
    length: u32,
) -> Result<Vec<Bytes>> {
    if length == 0 {
        return nothing(file);
    }
    let domain = &call.connection.frontend.domain;
    let reader = domain.read_handle(&file.handle, offset, length.into()).await;
    let reader = reader.map_err(refusals::of_handle)?;
    let length = reader.remaining();
    let stretches = (0..length).step_by(STRETCH_BYTES as usize);
    let stretches = stretches.map(|start| {
        let part = reader.part(start..length.min(start + STRETCH_BYTES));
        in_turn(&call.connection.reading, read_all(part))
    });
    let pieces = try_join_all(stretches).await.map_err(|fault| refusals::of_fault(&fault))?;
    Ok(pieces.concat())
}

/// Clients process reads in order: one that gets a later answer first keeps it and asks for no more
/// meanwhile, so that the disk is idle until it has caught up.
async fn in_turn<T>(turns: &Semaphore, reading: impl Future<Output = T>) -> T {
    let _turn = turns.acquire().await.expect("never closed");
    reading.await
}

async fn read_all(mut reader: ContentReader) -> std::result::Result<Vec<Bytes>, Fault> {
    let mut pieces = Vec::new();
    while let Some(piece) = reader.next().await? {
        pieces.push(piece);
    }
    Ok(pieces)
}

/// A read of no bytes succeeds anywhere, even past the end or in a locked range.
fn nothing(file: &OpenFile) -> Result<Vec<Bytes>> {
    if file.handle.is_directory {
        Err(Status::INVALID_DEVICE_REQUEST)
    } else if file.handle.access.reads() {
        Ok(Vec::new())
    } else {
        Err(Status::ACCESS_DENIED)
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::task::Poll;

    use futures_util::poll;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_later_read_waits_for_the_stretches_of_an_earlier_one() {
        let turns = Semaphore::new(2);
        let (first_ends, first) = oneshot::channel::<()>();
        let (_second_never_ends, second) = oneshot::channel::<()>();
        let mut earlier =
            Box::pin(try_join_all([first, second].map(|stretch| in_turn(&turns, stretch))));
        let mut later = Box::pin(in_turn(&turns, ready(())));
        assert!(poll!(&mut earlier).is_pending());
        assert_eq!(poll!(&mut later), Poll::Pending, "although it has all it needs");
        first_ends.send(()).expect("it is waited for");
        assert!(poll!(&mut earlier).is_pending());
        assert_eq!(poll!(&mut later), Poll::Ready(()), "there is a turn again");
    }

    #[tokio::test]
    async fn a_read_that_is_given_up_gives_back_its_turn() {
        let turns = Semaphore::new(1);
        let (_never_ends, first) = oneshot::channel::<()>();
        let mut given_up = Box::pin(in_turn(&turns, first));
        assert!(poll!(&mut given_up).is_pending());
        drop(given_up);
        in_turn(&turns, ready(())).await;
    }
}
