//! Sparse files: lists written ranges, and zeroes ranges.

use super::answer;
use crate::answer::Answer;
use crate::call::Call;
use crate::commands::Result;
use crate::commands::pending_answer::patiently;
use crate::info::fsctl::{self, Span};
use crate::opens::Open;
use crate::refusals;
use crate::status::Status;
use crate::wire::create::access;
use crate::wire::ioctl::Request;

pub async fn query_allocated(call: &Call, request: &Request, open: &Open) -> Result<Answer> {
    let file = open.file()?;
    if file.handle.is_directory {
        return Err(Status::INVALID_PARAMETER);
    }
    if file.handle.access.bits() & access::READ_DATA == 0 {
        return Err(Status::ACCESS_DENIED);
    }
    let asked = fsctl::asked_range(&request.input)?;
    let room = request.output_bytes_max as usize;
    let domain = &call.connection.frontend.domain;
    // One more than fits, to know whether there are more.
    let limit = room / 16 + 1;
    let ranges = domain.handle_ranges(&file.handle, asked.offset..asked.end, limit).await;
    let ranges: Vec<Span> = ranges
        .map_err(refusals::of_handle)?
        .into_iter()
        .map(|range| Span { offset: range.start, end: range.end })
        .collect();
    let output = fsctl::allocated_ranges(&ranges, room)?;
    Ok(answer(request, output.status, output.bytes))
}

pub async fn set_zero(call: &Call, request: &Request, open: &Open) -> Result<Answer> {
    let file = open.file()?;
    if file.handle.is_directory {
        return Err(Status::INVALID_PARAMETER);
    }
    if file.handle.access.bits() & access::WRITE_DATA == 0 {
        return Err(Status::ACCESS_DENIED);
    }
    let zeroed = fsctl::zeroed_range(&request.input)?;
    let domain = &call.connection.frontend.domain;
    patiently(&call.ticket, domain.zero_handle(&file.handle, zeroed.offset..zeroed.end))
        .await?
        .map_err(refusals::of_handle)?;
    Ok(answer(request, Status::SUCCESS, Vec::new()))
}

pub async fn set_sparse(call: &Call, request: &Request, open: &Open) -> Result<Answer> {
    let file = open.file()?;
    if file.handle.is_directory {
        return Err(Status::INVALID_PARAMETER);
    }
    let needed = access::WRITE_DATA | access::WRITE_ATTRIBUTES | access::APPEND_DATA;
    if file.handle.access.bits() & needed == 0 {
        return Err(Status::ACCESS_DENIED);
    }
    let domain = &call.connection.frontend.domain;
    let set = domain.set_handle_sparse(&file.handle, fsctl::sparse(&request.input)).await;
    set.map_err(refusals::of_handle)?;
    Ok(answer(request, Status::SUCCESS, Vec::new()))
}
