//! CHANGE_NOTIFY: waits for changes in a directory.

use holdfast_domain::share::handles::WatchFor;
use holdfast_domain::share::opens::{ChangeAction, Watched};

use super::Result;
use super::pending_answer::at_once_or_pending;
use crate::answer::Answer;
use crate::call::Call;
use crate::refusals;
use crate::status::Status;
use crate::wire::change_notify::{Request, encode_changes};
use crate::wire::create::access;
use crate::wire::query_info::encode_output;

pub async fn handle(call: &mut Call) -> Result {
    let request = Request::decode(&call.message)?;
    if request.output_bytes_max > call.dialect()?.transfer_bytes_max() {
        return Err(Status::INVALID_PARAMETER);
    }
    let open = call.open(request.file_id)?;
    let file = open.file()?;
    if !file.handle.is_directory || request.filter == 0 {
        return Err(Status::INVALID_PARAMETER);
    }
    if file.handle.access.bits() & access::READ_DATA == 0 {
        return Err(Status::ACCESS_DENIED);
    }
    let command = WatchFor {
        filter: request.filter,
        recursive: request.watch_tree,
        capacity: request.output_bytes_max as usize,
    };
    let domain = &call.connection.frontend.domain;
    let watching = domain.watch_handle(&file.handle, &command);
    let watched = at_once_or_pending(&call.ticket, watching).await?;
    let (status, output) = match watched.map_err(refusals::of_handle)? {
        Watched::Changes(changes) => {
            let names: Vec<String> =
                changes.iter().map(|change| change.name.replace('/', "\\")).collect();
            let actions = changes.iter().map(|change| number(change.action));
            let named = actions.zip(names.iter().map(String::as_str));
            (Status::SUCCESS, encode_changes(named))
        }
        Watched::Overflow => (Status::NOTIFY_ENUM_DIR, Vec::new()),
        Watched::Closed => (Status::NOTIFY_CLEANUP, Vec::new()),
        Watched::DeletePending => return Err(Status::DELETE_PENDING),
    };
    Ok(Answer::new(status, |out| encode_output(&output, out)))
}

/// [MS-FSCC] 2.7.1
fn number(action: ChangeAction) -> u32 {
    match action {
        ChangeAction::Added => 1,
        ChangeAction::Removed => 2,
        ChangeAction::Modified => 3,
        ChangeAction::RenamedFrom => 4,
        ChangeAction::RenamedTo => 5,
    }
}
