//! QUERY_DIRECTORY: lists a directory, in parts that fit the client's buffer.

use holdfast_domain::share::handles::ListFrom;

use super::Result;
use crate::answer::Answer;
use crate::call::Call;
use crate::info::directory::{Entries, EntryClass};
use crate::info::facts::NodeFacts;
use crate::refusals;
use crate::status::Status;
use crate::wire::query_directory::{REOPEN, RESTART_SCANS, RETURN_SINGLE_ENTRY, Request};
use crate::wire::query_info::encode_output;

/// The most names that are read at a time.
const ENTRIES_MAX: usize = 1024;
/// Most names are longer; entries that do not fit are read again.
const NAME_BYTES_GUESS: usize = 16;

pub async fn handle(call: &mut Call) -> Result {
    let request = Request::decode(&call.message)?;
    if request.output_bytes_max > call.dialect()?.transfer_bytes_max() {
        return Err(Status::INVALID_PARAMETER);
    }
    let open = call.open(request.file_id)?;
    let _at_work = open.at_work.read().await;
    let file = open.file()?;
    if !file.handle.is_directory {
        return Err(Status::INVALID_PARAMETER);
    }
    let class = EntryClass::from_code(request.class).ok_or(Status::INVALID_INFO_CLASS)?;
    let room = request.output_bytes_max as usize;
    if room < class.fixed_bytes() {
        return Err(Status::INFO_LENGTH_MISMATCH);
    }
    if request.pattern.contains(['\\', '/']) {
        return Err(Status::OBJECT_NAME_INVALID);
    }
    let is_single = request.flags & RETURN_SINGLE_ENTRY != 0;
    let guess = room / (class.fixed_bytes() + NAME_BYTES_GUESS) + 1;
    let command = ListFrom {
        pattern: request.pattern.clone(),
        restart: request.flags & (RESTART_SCANS | REOPEN) != 0,
        limit: if is_single { 1 } else { guess.min(ENTRIES_MAX) },
    };
    let domain = &call.connection.frontend.domain;
    let listing = tokio::select! {
        biased;
        listing = domain.list_handle(&file.handle, &command) => listing,
        () = call.ticket.cancelled() => return Err(Status::CANCELLED),
    };
    let listing = listing.map_err(refusals::of_handle)?;
    let mut entries = Entries::new(class, room);
    let mut last_told = None;
    for listed in &listing.entries {
        let facts = NodeFacts::from(&listed.information);
        if entries.push(&listed.name, &facts).is_err() {
            // Entries that do not fit come first the next time.
            if let Some(last_told) = last_told {
                file.handle.unlist(last_told);
            }
            break;
        }
        last_told = Some(&listed.name);
    }
    if entries.is_empty() {
        // The client may retry with a larger buffer.
        file.handle.list_again(listing.from);
        return Err(Status::INFO_LENGTH_MISMATCH);
    }
    Ok(Answer::success(|out| encode_output(&entries.into_bytes(), out)))
}
