//! CLOSE.

use std::sync::Arc;

use super::Result;
use crate::answer::Answer;
use crate::call::Call;
use crate::connection::Connection;
use crate::info::facts::NodeFacts;
use crate::opens::{Open, OpenKind};
use crate::refusals;
use crate::status::Status;
use crate::wire::close::{Attributes, Request, Response};

pub async fn handle(call: &mut Call) -> Result {
    let request = Request::decode(&call.message)?;
    let open = call.open(request.file_id)?;
    // A client may send CLOSE without waiting for earlier answers.
    let _alone = open.at_work.write().await;
    let removed = call.session()?.opens.remove(open.id).ok_or(Status::FILE_CLOSED)?;
    let facts = close(&call.connection, &removed).await;
    let attributes = facts.filter(|_| request.wants_attributes).map(|facts| Attributes {
        times: facts.times,
        allocation_size: facts.allocation_size,
        end_of_file: facts.end_of_file,
        file_attributes: facts.attributes,
    });
    Ok(Answer::success(|out| Response { attributes }.encode(out)))
}

/// Closes an open, whether its client asks for it or is gone. Returns the final state of a file.
pub async fn close(connection: &Connection, open: &Arc<Open>) -> Option<NodeFacts> {
    match &open.kind {
        OpenKind::Pipe(_) => None,
        OpenKind::File(file) => {
            let closed = connection.frontend.domain.close_handle(&file.handle).await;
            closed.map_err(refusals::of_handle).ok().map(|last| NodeFacts::from(&last))
        }
    }
}
