//! List Handles and Force Close Handles: what SMB clients have open.

use holdfast_domain::share::FoundHandles;
use holdfast_domain::share::opens::{OpenHandle, OpenId};
use hyper::StatusCode;

use super::list_entries::write_text;
use super::{node_address, parameters};
use crate::answer::Answer;
use crate::error::Error;
use crate::listing::{self, PAGE_MAX};
use crate::request::Call;
use crate::url_query::QueryRefusal;
use crate::version::Version;
use crate::xml::Writer;

const MARKER: &str = "marker";
const RECURSIVE: &str = "x-ms-recursive";
const HANDLE_ID: &str = "x-ms-handle-id";
/// All of them.
const EVERY_HANDLE: &str = "*";

pub async fn list(call: &Call<'_>) -> Result<Answer, Error> {
    let limit = call.query.page_size(PAGE_MAX)? as usize;
    let first = first(call)?;
    let found = find(call, is_recursive(call)?).await?;
    let mut handles = match &found.scope {
        Some(scope) => call.frontend.domain().opens().list_handles(scope, first, limit + 1),
        None => Vec::new(),
    };
    let next = handles.get(limit).map(|handle| handle.id.to_string());
    handles.truncate(limit);

    let mut xml = Writer::document();
    let endpoint = listing::endpoint(call);
    let share = call.address.resource.container().unwrap_or_default();
    xml.open_with(
        "EnumerationResults",
        &[("ServiceEndpoint", endpoint.as_str()), ("ShareName", share)],
    );
    xml.optional("MaxResults", call.query.get_nonempty("maxresults"));
    xml.open("Entries");
    for handle in &handles {
        write_handle(&mut xml, call.version, handle);
    }
    xml.close("Entries");
    xml.element("NextMarker", next.as_deref().unwrap_or_default());
    xml.close("EnumerationResults");
    Ok(Answer::xml(StatusCode::OK, xml.finish()))
}

pub async fn force_close(call: &Call<'_>) -> Result<Answer, Error> {
    let text = call.required_header(HANDLE_ID)?;
    let only: Option<OpenId> = match text {
        EVERY_HANDLE => None,
        _ => Some(text.parse().map_err(|_| Error::invalid_header(HANDLE_ID, text))?),
    };
    let recursive = is_recursive(call)?;
    let found = find(call, recursive).await?;
    if recursive && !found.is_directory {
        return Err(Error::invalid_header(RECURSIVE, "true"));
    }
    let (closed, failed) = match &found.scope {
        None => (0, 0),
        Some(scope) => match call.frontend.domain().force_close_handles(scope, only).await {
            Ok(closed) => (closed, 0),
            Err(failure) => {
                let refusal = failure.refusal()?;
                tracing::debug!(?refusal, "a handle could not be closed");
                (0, 1)
            }
        },
    };
    let mut answer = Answer::new(StatusCode::OK);
    answer.show("x-ms-number-of-handles-closed", closed);
    if call.version >= Version::V2019_07_07 {
        answer.show("x-ms-number-of-handles-failed", failed);
    }
    Ok(answer)
}

async fn find(call: &Call<'_>, recursive: bool) -> Result<FoundHandles, Error> {
    Ok(call.frontend.domain().find_handles(node_address::either(call)?, recursive).await?)
}

fn is_recursive(call: &Call<'_>) -> Result<bool, Error> {
    Ok(parameters::boolean(call, RECURSIVE)?.unwrap_or(false))
}

/// The marker is the number of the first handle that was not listed yet.
fn first(call: &Call<'_>) -> Result<OpenId, Error> {
    let Some(value) = call.query.get_nonempty(MARKER) else { return Ok(0) };
    let invalid = |_| QueryRefusal::InvalidValue { name: MARKER, value: value.to_owned() };
    Ok(value.parse().map_err(invalid)?)
}

fn write_handle(xml: &mut Writer, version: Version, handle: &OpenHandle) {
    xml.open("Handle");
    xml.element("HandleId", &handle.id.to_string());
    write_text(xml, version, "Path", &handle.path.to_string());
    xml.element("FileId", &handle.node.to_string());
    xml.element("ParentId", &handle.directory.to_string());
    xml.element("SessionId", &handle.session.to_string());
    xml.element("ClientIp", &handle.client_address.to_string());
    if version >= Version::V2024_05_04 {
        xml.element("ClientName", &handle.client_name);
    }
    xml.element("OpenTime", &handle.opened.rfc1123().to_string());
    if let Some(reconnected) = handle.reconnected {
        xml.element("LastReconnectTime", &reconnected.rfc1123().to_string());
    }
    if version >= Version::V2023_01_03 {
        xml.open("AccessRightList");
        for (right, granted) in
            [("Read", handle.reads), ("Write", handle.writes), ("Delete", handle.deletes)]
        {
            if granted {
                xml.element("AccessRight", right);
            }
        }
        xml.close("AccessRightList");
    }
    xml.close("Handle");
}
