//! READ.

use super::Result;
use crate::answer::Answer;
use crate::call::Call;
use crate::opens::OpenKind;
use crate::status::Status;
use crate::wire::read::{Request, encode_head};

pub async fn handle(call: &mut Call) -> Result {
    let request = Request::decode(&call.message)?;
    if request.channel != 0 {
        return Err(Status::INVALID_PARAMETER);
    }
    let open = call.open(request.file_id)?;
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
    }
}
