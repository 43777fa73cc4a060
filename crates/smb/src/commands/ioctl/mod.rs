//! IOCTL: operations by control code.

mod copy;
mod ranges;

use bytes::BufMut as _;

use super::Result;
use crate::answer::Answer;
use crate::call::Call;
use crate::dialect::Dialect;
use crate::info::{fsctl, time};
use crate::ipc;
use crate::opens::{Open, OpenKind};
use crate::snapshots;
use crate::status::Status;
use crate::wire::ioctl::{Request, Response, ValidateNegotiate, codes};

/// COMPRESSION_FORMAT_NONE.
const NO_COMPRESSION: [u8; 2] = [0; 2];

pub async fn handle(call: &mut Call) -> Result {
    let request = Request::decode(&call.message)?;
    if !request.is_fsctl {
        return Err(Status::NOT_SUPPORTED);
    }
    if request.output_bytes_max > call.dialect()?.transfer_bytes_max() {
        return Err(Status::INVALID_PARAMETER);
    }
    match request.code {
        codes::VALIDATE_NEGOTIATE_INFO => return validate_negotiate(call, &request),
        codes::DFS_GET_REFERRALS | codes::DFS_GET_REFERRALS_EX => {
            return Err(Status::FS_DRIVER_REQUIRED);
        }
        codes::QUERY_NETWORK_INTERFACE_INFO | codes::PIPE_WAIT => {
            return Err(Status::NOT_SUPPORTED);
        }
        _ => {}
    }
    let open = call.open(request.file_id)?;
    let _at_work = open.at_work.read().await;
    let request = Request { file_id: open.id, ..request };
    let room = request.output_bytes_max as usize;
    match request.code {
        codes::PIPE_TRANSCEIVE => transceive(call, &request, &open).await,
        codes::SRV_REQUEST_RESUME_KEY => {
            let key = copy::resume_key(&open)?;
            Ok(answer(&request, Status::SUCCESS, fsctl::resume_key(key, room)?))
        }
        codes::SRV_COPYCHUNK | codes::SRV_COPYCHUNK_WRITE => {
            copy::copy(call, &request, &open).await
        }
        codes::SRV_ENUMERATE_SNAPSHOTS => enumerate_snapshots(call, &request).await,
        codes::QUERY_ALLOCATED_RANGES => ranges::query_allocated(call, &request, &open).await,
        codes::SET_ZERO_DATA => ranges::set_zero(call, &request, &open).await,
        codes::SET_SPARSE => ranges::set_sparse(call, &request, &open).await,
        codes::GET_COMPRESSION => Ok(answer(&request, Status::SUCCESS, NO_COMPRESSION.to_vec())),
        codes::SET_COMPRESSION => match request.input.first_chunk() {
            // No file is compressed anyway.
            Some(&NO_COMPRESSION) => Ok(answer(&request, Status::SUCCESS, Vec::new())),
            Some(_) => Err(Status::NOT_SUPPORTED),
            None => Err(Status::INVALID_PARAMETER),
        },
        codes::CREATE_OR_GET_OBJECT_ID => {
            let mut output = Vec::with_capacity(64);
            output.put_u64_le(open.file()?.handle.key.node);
            output.resize(64, 0);
            Ok(answer(&request, Status::SUCCESS, output))
        }
        codes::GET_REPARSE_POINT => Err(Status::NOT_A_REPARSE_POINT),
        _ => Err(Status::INVALID_DEVICE_REQUEST),
    }
}

async fn enumerate_snapshots(call: &Call, request: &Request) -> Result {
    let share = &call.share()?.path;
    let moments = snapshots::list(&call.connection.frontend.domain, share).await?;
    // Newest first, and only one per second: clients cannot distinguish them.
    let mut tokens: Vec<String> = moments.into_iter().rev().map(time::snapshot_token).collect();
    tokens.dedup();
    let output = fsctl::snapshots(&tokens, request.output_bytes_max as usize)?;
    Ok(answer(request, Status::SUCCESS, output))
}

/// Whether client and server have seen the same NEGOTIATE; if not, it was changed on the way and
/// the connection ends, [MS-SMB2] 3.3.5.15.12.
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

async fn transceive(call: &Call, request: &Request, open: &Open) -> Result {
    match &open.kind {
        OpenKind::Pipe(pipe) => {
            ipc::write(call, pipe, &request.input).await?;
            let (output, is_all) = pipe.lock().read(request.output_bytes_max as usize);
            let status = if is_all { Status::SUCCESS } else { Status::BUFFER_OVERFLOW };
            Ok(answer(request, status, output))
        }
        OpenKind::File(_) => Err(Status::INVALID_DEVICE_REQUEST),
    }
}

fn answer(request: &Request, status: Status, output: Vec<u8>) -> Answer {
    let response = Response { code: request.code, file_id: request.file_id, output };
    Answer::new(status, |out| response.encode(out))
}
