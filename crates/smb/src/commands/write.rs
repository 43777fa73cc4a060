//! WRITE.

use super::Result;
use crate::answer::Answer;
use crate::call::Call;
use crate::ipc;
use crate::opens::OpenKind;
use crate::status::Status;
use crate::wire::write::{Request, Response};

pub async fn handle(call: &mut Call) -> Result {
    let request = Request::decode(&call.message)?;
    if request.channel != 0 {
        return Err(Status::INVALID_PARAMETER);
    }
    let open = call.open(request.file_id)?;
    match &open.kind {
        OpenKind::Pipe(pipe) => {
            ipc::write(call, pipe, &request.data).await?;
            let response = Response { count: request.data.len() as u32 };
            Ok(Answer::success(|out| response.encode(out)))
        }
    }
}
