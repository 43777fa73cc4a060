//! CREATE: opens a pipe, or a file or directory of a share.

mod contexts;
mod file;
mod pipe;
mod reconnect;

pub use contexts::level_to_wire;

use super::Result;
use crate::call::Call;
use crate::tree::TreeKind;
use crate::wire::create::Request;

pub async fn handle(call: &mut Call) -> Result {
    let request = Request::decode(&call.message)?;
    match &call.tree()?.kind {
        TreeKind::Pipes => pipe::open(call, &request),
        TreeKind::Share(_) => file::open(call, &request).await,
    }
}
