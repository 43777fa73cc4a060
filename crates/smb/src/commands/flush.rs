//! FLUSH: everything written before is durable already.

use super::Result;
use super::pending_answer::patiently;
use crate::answer::Answer;
use crate::call::Call;
use crate::opens::OpenKind;
use crate::refusals;
use crate::wire::flush::Request;

pub async fn handle(call: &mut Call) -> Result {
    let request = Request::decode(&call.message)?;
    let open = call.open(request.file_id)?;
    let _at_work = open.at_work.read().await;
    match &open.kind {
        OpenKind::Pipe(_) => {}
        OpenKind::File(file) => {
            let domain = &call.connection.frontend.domain;
            patiently(&call.ticket, domain.flush_handle(&file.handle))
                .await?
                .map_err(refusals::of_handle)?;
        }
    }
    Ok(Answer::empty())
}
