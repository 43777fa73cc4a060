//! IOCTL: what does not fit any other command, by number.

use bytes::BufMut as _;

use super::Result;
use crate::answer::Answer;
use crate::call::Call;
use crate::dialect::Dialect;
use crate::ipc;
use crate::opens::OpenKind;
use crate::status::Status;
use crate::wire::FileId;
use crate::wire::ioctl::{Request, Response, ValidateNegotiate, codes};

pub async fn handle(call: &mut Call) -> Result {
    let request = Request::decode(&call.message)?;
    if !request.is_fsctl {
        return Err(Status::NOT_SUPPORTED);
    }
    match request.code {
        codes::VALIDATE_NEGOTIATE_INFO => validate_negotiate(call, &request),
        codes::DFS_GET_REFERRALS | codes::DFS_GET_REFERRALS_EX => Err(Status::FS_DRIVER_REQUIRED),
        codes::QUERY_NETWORK_INTERFACE_INFO => Err(Status::NOT_SUPPORTED),
        codes::PIPE_TRANSCEIVE => transceive(call, &request).await,
        codes::PIPE_WAIT => Err(Status::NOT_SUPPORTED),
        _ => {
            if request.file_id != FileId::RELATED || call.is_related() {
                call.open(request.file_id)?;
            }
            Err(Status::INVALID_DEVICE_REQUEST)
        }
    }
}

/// Whether client and server remember the same NEGOTIATE; if not, somebody in between has changed
/// it and the connection ends, [MS-SMB2] 3.3.5.15.12.
fn validate_negotiate(call: &mut Call, request: &Request) -> Result {
    let asked = ValidateNegotiate::decode(&request.input)?;
    let negotiated = call.connection.negotiated().ok_or(Status::INVALID_PARAMETER)?;
    let is_same = asked.client_guid == negotiated.client_guid
        && asked.capabilities == negotiated.client_capabilities
        && asked.security_mode == negotiated.client_security_mode
        && Dialect::best_of(&asked.dialects) == Some(negotiated.dialect);
    let mut output = Vec::with_capacity(24);
    output.put_u32_le(negotiated.capabilities);
    output.extend_from_slice(&call.connection.frontend.guid);
    output.put_u16_le(negotiated.security_mode);
    output.put_u16_le(negotiated.dialect as u16);
    if !is_same {
        call.disconnects = true;
        return Err(Status::ACCESS_DENIED);
    }
    Ok(answer(request, Status::SUCCESS, output))
}

async fn transceive(call: &mut Call, request: &Request) -> Result {
    let open = call.open(request.file_id)?;
    match &open.kind {
        OpenKind::Pipe(pipe) => {
            ipc::write(call, pipe, &request.input).await?;
            let (output, is_all) = pipe.lock().read(request.output_bytes_max as usize);
            let status = if is_all { Status::SUCCESS } else { Status::BUFFER_OVERFLOW };
            Ok(answer(request, status, output))
        }
    }
}

fn answer(request: &Request, status: Status, output: Vec<u8>) -> Answer {
    let response = Response { code: request.code, file_id: request.file_id, output };
    Answer::new(status, |out| response.encode(out))
}
