//! SET_INFO: changes properties of a file or directory, renames or deletes it.

use holdfast_domain::share::handles::{BasicChange, RenameTo, SetTime};
use holdfast_domain::share::security::{Descriptor, assigned};

use super::Result;
use super::pending_answer::patiently;
use crate::answer::Answer;
use crate::call::Call;
use crate::info::facts::{attributes, attributes_from_wire};
use crate::info::set::{self, Basic, Change, TimeSetting};
use crate::info::{path, security};
use crate::opens::OpenFile;
use crate::refusals;
use crate::status::Status;
use crate::wire::create::access;
use crate::wire::query_info::kind;
use crate::wire::query_info::security::{DACL, GROUP, OWNER, SACL};
use crate::wire::set_info::{Request, encode_response};

pub async fn handle(call: &mut Call) -> Result {
    let request = Request::decode(&call.message)?;
    let open = call.open(request.file_id)?;
    let _at_work = open.at_work.read().await;
    let file = open.file()?;
    match request.kind {
        kind::FILE => {
            let change = set::decode(request.class, &request.data)?;
            patiently(&call.ticket, apply(call, file, change)).await??;
        }
        kind::SECURITY => set_descriptor(call, file, &request).await?,
        kind::FILE_SYSTEM | kind::QUOTA => return Err(Status::NOT_SUPPORTED),
        _ => return Err(Status::INVALID_PARAMETER),
    }
    Ok(Answer::success(encode_response))
}

async fn apply(call: &Call, file: &OpenFile, change: Change) -> Result<()> {
    let domain = &call.connection.frontend.domain;
    let handle = &file.handle;
    let changed = match change {
        Change::Basic(basic) => domain.set_handle_basic(handle, &basic_change(basic)?).await,
        Change::Rename(rename) => {
            let target = rename.target.strip_prefix('\\').unwrap_or(&rename.target);
            let to = RenameTo { path: path::parse(target)?, replace: rename.replace };
            domain.rename_handle(handle, &to).await
        }
        Change::Disposition { delete, .. } => domain.set_handle_disposition(handle, delete).await,
        Change::Allocation(length) => domain.set_handle_allocation(handle, length).await,
        Change::EndOfFile(length) => domain.set_handle_length(handle, length).await,
        Change::Position(offset) => {
            handle.set_offset(offset);
            Ok(())
        }
        // The mode only affects the client.
        Change::Mode(_) => Ok(()),
    };
    changed.map_err(refusals::of_handle)
}

fn basic_change(basic: Basic) -> Result<BasicChange> {
    let time = |setting: TimeSetting| match setting {
        TimeSetting::Leave => SetTime::Keep,
        TimeSetting::At(time) => SetTime::At(time),
        TimeSetting::Freeze => SetTime::Freeze,
        TimeSetting::Thaw => SetTime::Thaw,
    };
    Ok(BasicChange {
        created: time(basic.created),
        accessed: time(basic.accessed),
        written: time(basic.written),
        changed: time(basic.changed),
        attributes: basic.attributes.map(attributes_from_wire),
        directory: basic.attributes.is_some_and(|bits| bits & attributes::DIRECTORY != 0),
    })
}

async fn set_descriptor(call: &Call, file: &OpenFile, request: &Request) -> Result<()> {
    let set = request.additional;
    let mut needed = 0;
    for (parts, right) in [
        (OWNER | GROUP, access::WRITE_OWNER),
        (DACL, access::WRITE_DAC),
        (SACL, access::ACCESS_SYSTEM_SECURITY),
    ] {
        if set & parts != 0 {
            needed |= right;
        }
    }
    let handle = &file.handle;
    if handle.access.bits() & needed != needed {
        return Err(Status::ACCESS_DENIED);
    }
    let domain = &call.connection.frontend.domain;
    let before = domain.handle_descriptor(handle).await.map_err(refusals::of_handle)?;
    let read = |bytes: &[u8]| Descriptor::from_bytes(bytes).ok_or(Status::INVALID_SECURITY_DESCR);
    let given = assigned(read(&request.data)?).to_bytes();
    let after = read(&security::merge(&before.to_bytes(), &given, set)?)?;
    domain.set_handle_descriptor(handle, &after).await.map_err(refusals::of_handle)
}
