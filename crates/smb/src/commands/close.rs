//! CLOSE.

use std::sync::Arc;

use super::Result;
use crate::answer::Answer;
use crate::call::Call;
use crate::connection::Connection;
use crate::opens::{Open, OpenKind};
use crate::status::Status;
use crate::wire::close::{Request, Response};

pub async fn handle(call: &mut Call) -> Result {
    let request = Request::decode(&call.message)?;
    let open = call.open(request.file_id)?;
    let removed = call.session()?.opens.remove(open.id).ok_or(Status::FILE_CLOSED)?;
    close(&call.connection, &removed).await;
    Ok(Answer::success(|out| Response::default().encode(out)))
}

/// What the end of an open entails, whether its client asks for it or is gone.
pub async fn close(_connection: &Connection, open: &Arc<Open>) {
    match &open.kind {
        OpenKind::Pipe(_) => {}
    }
}
