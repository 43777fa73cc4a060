//! Opens a file or directory of a share.

use std::sync::Arc;

use holdfast_domain::share::handles::{
    Action as DomainAction, Disposition as DomainDisposition, OpenNode, Opened, Options,
};
use holdfast_domain::share::opens::{AccessMask, ShareMode};

use super::{contexts, reconnect};
use crate::answer::Answer;
use crate::call::Call;
use crate::commands::pending_answer::patiently;
use crate::commands::{Result, close};
use crate::info::facts::{NodeFacts, attributes_from_wire};
use crate::info::{path, security, time};
use crate::opens::{Open, OpenFile, OpenKind};
use crate::status::Status;
use crate::wire::FileId;
use crate::wire::create::{Action, Disposition, Request, Response, options};
use crate::{refusals, rules, snapshots};

pub async fn open(call: &mut Call, request: &Request) -> Result {
    contexts::check_durable(&request.contexts)?;
    let reconnects = request.contexts.durable_reconnect.is_some()
        || request.contexts.durable_reconnect_v2.is_some();
    let opened = if reconnects {
        reconnect::reconnect(call, request).await?
    } else {
        rules::create::check(request)?;
        let command = command(call, request).await?;
        let domain = Arc::clone(&call.connection.frontend.domain);
        patiently(&call.ticket, domain.open_handle(&command)).await?.map_err(refusals::of_handle)?
    };
    enter(call, request, &opened).await
}

async fn command(call: &Call, request: &Request) -> Result<OpenNode> {
    let connected = call.share()?;
    let share = connected.path.clone();
    let path = path::parse(&request.name)?;
    let domain = &call.connection.frontend.domain;
    let snapshot = match request.contexts.timewarp {
        None | Some(0) => None,
        Some(ticks) => {
            let moment = time::from_wire(ticks).ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
            Some(snapshots::find(domain, &share, moment).await?)
        }
    };
    let has = |option: u32| request.options & option != 0;
    let dialect = call.dialect()?;
    Ok(OpenNode {
        share,
        share_number: Some(connected.connected.number),
        path,
        snapshot,
        opener: call.opener()?,
        access: AccessMask::from_bits_retain(request.desired_access),
        allowed: AccessMask::ALL,
        sharing: ShareMode::from_bits(request.share_access).ok_or(Status::INVALID_PARAMETER)?,
        disposition: disposition(request.disposition.ok_or(Status::INVALID_PARAMETER)?),
        options: Options {
            directory: has(options::DIRECTORY_FILE),
            non_directory: has(options::NON_DIRECTORY_FILE),
            delete_on_close: has(options::DELETE_ON_CLOSE),
            write_through: has(options::WRITE_THROUGH),
        },
        attributes: attributes_from_wire(request.file_attributes),
        allocation: request.contexts.allocation_size.unwrap_or(0),
        descriptor: descriptor(request),
        caching: contexts::caching_wanted(request, dialect),
        durable: contexts::durable_wanted(&request.contexts, call.negotiated()?),
        is_replay: call.is_replay(),
    })
}

/// Adds what was opened to the opens of its session.
async fn enter(call: &mut Call, request: &Request, opened: &Opened) -> Result {
    let id = opened.handle.id;
    let file_id = FileId { persistent: id, volatile: id };
    let file = OpenFile {
        handle: Arc::clone(&opened.handle),
        mode: rules::create::mode(request.options),
        is_durable: opened.durable.is_some(),
    };
    let (tree_id, sequence) = (call.tree()?.id, call.header.channel_sequence());
    let open = Arc::new(Open::new(file_id, tree_id, OpenKind::File(file), sequence));
    if !call.session()?.opens.insert(Arc::clone(&open)) {
        close::close(&call.connection, &open).await;
        return Err(Status::INSUFFICIENT_RESOURCES);
    }
    call.chain.file_id = Some(file_id);
    let facts = NodeFacts::from(&opened.information);
    let response = Response {
        oplock_level: contexts::oplock_level(opened.caching),
        action: action(opened.action),
        times: facts.times,
        allocation_size: facts.allocation_size,
        end_of_file: facts.end_of_file,
        file_attributes: facts.attributes,
        file_id,
        contexts: contexts::granted(&request.contexts, opened),
    };
    Ok(Answer::success(|out| response.encode(out)))
}

/// A descriptor without a list counts as none: the directory's is inherited.
fn descriptor(request: &Request) -> Option<Vec<u8>> {
    let bytes = request.contexts.security_descriptor.as_ref()?;
    security::has_dacl(bytes).then(|| bytes.to_vec())
}

fn disposition(disposition: Disposition) -> DomainDisposition {
    match disposition {
        Disposition::Supersede => DomainDisposition::Supersede,
        Disposition::Open => DomainDisposition::Open,
        Disposition::Create => DomainDisposition::Create,
        Disposition::OpenIf => DomainDisposition::OpenIf,
        Disposition::Overwrite => DomainDisposition::Overwrite,
        Disposition::OverwriteIf => DomainDisposition::OverwriteIf,
    }
}

fn action(action: DomainAction) -> Action {
    match action {
        DomainAction::Superseded => Action::Superseded,
        DomainAction::Opened => Action::Opened,
        DomainAction::Created => Action::Created,
        DomainAction::Overwritten => Action::Overwritten,
    }
}
