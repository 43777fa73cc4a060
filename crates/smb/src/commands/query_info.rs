//! QUERY_INFO: properties of a file or a share, and security descriptors.

use holdfast_domain::failure::Failure;
use holdfast_domain::share::handles::HandleRefusal;

use super::Result;
use crate::answer::Answer;
use crate::call::Call;
use crate::info::facts::{NodeFacts, OpenFacts};
use crate::info::file_system::ShareFacts;
use crate::info::{Output, file, file_system, path, security, time};
use crate::opens::OpenFile;
use crate::refusals;
use crate::shares::Share;
use crate::status::Status;
use crate::wire::create::access;
use crate::wire::query_info::security::{DACL, GROUP, OWNER, SACL};
use crate::wire::query_info::{Request, encode_output, kind};

const GIB: u64 = 1 << 30;

pub async fn handle(call: &mut Call) -> Result {
    let request = Request::decode(&call.message)?;
    if request.output_bytes_max > call.dialect()?.transfer_bytes_max() {
        return Err(Status::INVALID_PARAMETER);
    }
    let open = call.open(request.file_id)?;
    let _at_work = open.at_work.read().await;
    let opened = open.file()?;
    let room = request.output_bytes_max as usize;
    let output = match request.kind {
        kind::FILE => file::query(request.class, &facts(call, opened).await?, room)?,
        kind::FILE_SYSTEM => file_system::query(request.class, &share_facts(call).await?, room)?,
        kind::SECURITY => return descriptor(call, opened, &request).await,
        kind::QUOTA => return Err(Status::NOT_SUPPORTED),
        _ => return Err(Status::INVALID_PARAMETER),
    };
    let Output { bytes, status } = output;
    Ok(Answer::new(status, |out| encode_output(&bytes, out)))
}

async fn facts(call: &Call, opened: &OpenFile) -> Result<OpenFacts> {
    let domain = &call.connection.frontend.domain;
    let handle = &opened.handle;
    let information = domain.query_handle(handle).await.map_err(refusals::of_handle)?;
    Ok(OpenFacts {
        node: NodeFacts::from(&information),
        path: path::to_wire(&handle.path()),
        access: handle.access.bits(),
        mode: opened.mode,
        position: handle.offset(),
        delete_pending: information.delete_pending,
    })
}

async fn share_facts(call: &Call) -> Result<ShareFacts> {
    let Share { path, connected } = call.share()?;
    let domain = &call.connection.frontend.domain;
    let usage = domain.share_usage(path).await;
    let gone = |failure: Failure<_>| failure.map(|_| HandleRefusal::ShareNotFound);
    let (share, bytes_used) = usage.map_err(|failure| refusals::of_handle(gone(failure)))?;
    if share.root() != connected.number {
        return Err(Status::NETWORK_NAME_DELETED);
    }
    let bytes_total = u64::from(share.quota_gib) * GIB;
    Ok(ShareFacts {
        name: path.share.as_str().to_owned(),
        id: share.root(),
        created: time::to_wire(share.last_modified),
        bytes_total,
        bytes_free: bytes_total.saturating_sub(bytes_used),
    })
}

async fn descriptor(call: &Call, opened: &OpenFile, request: &Request) -> Result {
    let asked = request.additional;
    let mut needed = 0;
    if asked & (OWNER | GROUP | DACL) != 0 {
        needed |= access::READ_CONTROL;
    }
    if asked & SACL != 0 {
        needed |= access::ACCESS_SYSTEM_SECURITY;
    }
    if opened.handle.access.bits() & needed != needed {
        return Err(Status::ACCESS_DENIED);
    }
    let domain = &call.connection.frontend.domain;
    let whole = domain.handle_descriptor(&opened.handle).await.map_err(refusals::of_handle)?;
    let bytes = security::select(&whole.to_bytes(), asked)?;
    if bytes.len() > request.output_bytes_max as usize {
        let length = (bytes.len() as u32).to_le_bytes();
        return Ok(Answer::refusal_with(Status::BUFFER_TOO_SMALL, &length));
    }
    Ok(Answer::success(|out| encode_output(&bytes, out)))
}
