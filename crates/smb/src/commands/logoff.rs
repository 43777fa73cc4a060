//! LOGOFF: ends a session and its opens, except durable ones.

use std::sync::Arc;

use super::Result;
use crate::answer::Answer;
use crate::call::Call;
use crate::connection::Ending;
use crate::wire;

pub async fn handle(call: &mut Call) -> Result {
    wire::tree::decode_empty(&call.message)?;
    let session = Arc::clone(call.session()?);
    call.connection.end_session(&session, Ending::Lost).await;
    Ok(Answer::empty())
}
