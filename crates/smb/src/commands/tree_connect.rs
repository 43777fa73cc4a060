//! TREE_CONNECT: to a share of the account, or to `IPC$`.

use std::sync::Arc;

use super::Result;
use crate::answer::Answer;
use crate::call::Call;
use crate::ipc::IPC_SHARE;
use crate::shares;
use crate::status::Status;
use crate::tree::{Tree, TreeKind};
use crate::wire::create::access;
use crate::wire::tree::{CONTINUOUS_AVAILABILITY, Request, Response, ShareType};

/// The client must not cache files offline.
const NO_OFFLINE_CACHING: u32 = 0x30;

pub async fn handle(call: &mut Call) -> Result {
    let request = Request::decode(&call.message)?;
    let name = request.share();
    let (kind, share_type, share_flags) = if name.eq_ignore_ascii_case(IPC_SHARE) {
        (TreeKind::Pipes, ShareType::Pipe, NO_OFFLINE_CACHING)
    } else {
        let domain = &call.connection.frontend.domain;
        let share = shares::find(domain, call.account()?, name).await?;
        let share = share.ok_or(Status::BAD_NETWORK_NAME)?;
        (TreeKind::Share(share), ShareType::Disk, 0)
    };
    let session = Arc::clone(call.session()?);
    let tree = session.add_tree(|id| Tree { id, kind });
    call.tree = Some(tree.ok_or(Status::INSUFFICIENT_RESOURCES)?);
    let is_available = share_type == ShareType::Disk && call.negotiated()?.has_persistent_handles();
    let capabilities = if is_available { CONTINUOUS_AVAILABILITY } else { 0 };
    let response =
        Response { share_type, share_flags, capabilities, maximal_access: access::FILE_ALL };
    Ok(Answer::success(|out| response.encode(out)))
}
