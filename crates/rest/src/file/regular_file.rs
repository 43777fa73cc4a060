//! Create, Set and Delete File, and the properties and metadata of files.

use holdfast_domain::content::Received;
use holdfast_domain::share::{
    CreateFile, DeleteNode, FILE_BYTES_MAX, FileHeaders, GetNode, Located, PUT_RANGE_BYTES_MAX,
    SetNodeMetadata, SetNodeProperties, Wanted,
};
use hyper::StatusCode;

use super::property_headers::Purpose;
use super::{node_address, node_headers, requested_properties, rest_call};
use crate::answer::Answer;
use crate::body::{ContentBody, RequestBody};
use crate::error::{Code, Error};
use crate::headers::content_headers;
use crate::headers::resource_headers;
use crate::request::Call;
use crate::version::Version;

const LENGTH: &str = "x-ms-content-length";
const FILE_TYPE: &str = "x-ms-file-file-type";

pub async fn create(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let address = node_address::file(call)?;
    let length = length(call)?.ok_or_else(|| Error::missing_header(LENGTH))?;
    check_kind(call)?;
    let headers = content_headers(call)?;
    let properties = requested_properties::new(call, &address.share, false).await?;
    let metadata = call.metadata()?;
    let lease_id = call.lease_id()?;
    let mut first = first_bytes(call, body, length)?;
    let content = match &mut first {
        Some(body) => Some(call.frontend.domain().receive(body).await?),
        None => None,
    };
    check_length(content.as_ref(), length)?;
    let command = CreateFile {
        address,
        id: None,
        length,
        content,
        headers,
        metadata,
        properties,
        overwrite: !call.granted.create_only,
        lease_id,
    };
    let located = rest_call::run(call, command).await?;
    let mut answer = written(call, StatusCode::CREATED, &located);
    if let Some(body) = &first {
        content_headers::digests(&mut answer, call, body);
    }
    Ok(answer)
}

/// From 2026-02-06 on a file is created with its first bytes.
fn first_bytes(
    call: &Call<'_>,
    body: RequestBody,
    length: u64,
) -> Result<Option<ContentBody>, Error> {
    if body.declared_length() == 0 {
        return Ok(None);
    }
    if call.version < Version::V2026_02_06 {
        return Err(Error::invalid_header("content-length", body.declared_length().to_string()));
    }
    body.open_part(call, PUT_RANGE_BYTES_MAX.min(length.max(1))).map(Some)
}

fn check_length(content: Option<&Received>, length: u64) -> Result<(), Error> {
    match content {
        Some(received) if received.length() > length => {
            Err(Error::invalid_header(LENGTH, length.to_string()))
        }
        Some(_) | None => Ok(()),
    }
}

/// Directories and links have operations of their own.
fn check_kind(call: &Call<'_>) -> Result<(), Error> {
    if call.version < Version::V2025_05_05 {
        return Ok(());
    }
    match call.header(FILE_TYPE)? {
        None => Ok(()),
        Some(text) if text.eq_ignore_ascii_case("Regular") => Ok(()),
        Some(text) => Err(Error::invalid_header(FILE_TYPE, text)),
    }
}

pub async fn get_properties(call: &Call<'_>) -> Result<Answer, Error> {
    let command = GetNode { wanted: Wanted::FileOrLink, ..node_address::read_file(call)? };
    let state = command.state;
    let located = rest_call::look(call, command).await?;
    let mut answer = Answer::new(StatusCode::OK);
    node_headers::node(&mut answer, call, &located);
    resource_headers::metadata(&mut answer, &located.node.metadata);
    if let Some(file) = located.node.file() {
        node_headers::file(&mut answer, call, file, located.now, state);
        answer.show("content-length", file.length);
        answer.optional_header(
            "content-md5",
            file.headers.content_md5.as_ref().map(content_headers::encode_md5),
        );
    }
    Ok(answer)
}

pub async fn get_metadata(call: &Call<'_>) -> Result<Answer, Error> {
    let command = GetNode { wanted: Wanted::FileOrLink, ..node_address::read_file(call)? };
    let located = rest_call::look(call, command).await?;
    Ok(node_headers::metadata(call, &located.node))
}

/// A request with one of the content headers clears those that it does not send.
pub async fn set_properties(call: &Call<'_>) -> Result<Answer, Error> {
    let address = node_address::file(call)?;
    let headers = Some(content_headers(call)?).filter(|sent| *sent != FileHeaders::default());
    let properties =
        requested_properties::changed(call, &address.share, Purpose::Set, false).await?;
    let command = SetNodeProperties {
        address,
        wanted: Wanted::FileOrLink,
        properties,
        headers,
        length: length(call)?,
        by_handle: false,
        lease_id: call.lease_id()?,
    };
    let located = rest_call::run(call, command).await?;
    Ok(written(call, StatusCode::OK, &located))
}

pub async fn set_metadata(call: &Call<'_>) -> Result<Answer, Error> {
    let (address, metadata, lease_id) =
        (node_address::file(call)?, call.metadata()?, call.lease_id()?);
    let command = SetNodeMetadata { address, wanted: Wanted::FileOrLink, metadata, lease_id };
    let located = rest_call::run(call, command).await?;
    Ok(node_headers::changed(call, &located.node))
}

pub async fn delete(call: &Call<'_>) -> Result<Answer, Error> {
    let (address, lease_id) = (node_address::file(call)?, call.lease_id()?);
    let command = DeleteNode { address, wanted: Wanted::FileOrLink, lease_id };
    let deleted = rest_call::run(call, command).await?;
    let mut answer = Answer::new(StatusCode::ACCEPTED);
    if call.version >= Version::V2025_05_05 {
        let links = deleted.links.map(|links| links.to_string());
        answer.optional_header("x-ms-link-count", links);
    }
    Ok(answer)
}

fn length(call: &Call<'_>) -> Result<Option<u64>, Error> {
    let Some(text) = call.header(LENGTH)? else { return Ok(None) };
    let length = text.parse().ok().filter(|length| *length <= FILE_BYTES_MAX);
    length.map(Some).ok_or_else(|| match text.parse::<u64>() {
        Ok(_) => Error::from(Code::OutOfRangeInput).detail("HeaderName", LENGTH),
        Err(_) => Error::invalid_header(LENGTH, text),
    })
}

/// The headers `x-ms-content-*` that are kept with a file.
fn content_headers(call: &Call<'_>) -> Result<FileHeaders, Error> {
    let sent = |name: &'static str| Ok::<_, Error>(call.header(name)?.map(str::to_owned));
    Ok(FileHeaders {
        content_type: sent("x-ms-content-type")?,
        content_encoding: sent("x-ms-content-encoding")?,
        content_language: sent("x-ms-content-language")?,
        content_disposition: sent("x-ms-content-disposition")?,
        cache_control: sent("x-ms-cache-control")?,
        content_md5: content_headers::md5_header(call, "x-ms-content-md5")?,
    })
}

fn written(call: &Call<'_>, status: StatusCode, located: &Located) -> Answer {
    let mut answer = Answer::new(status);
    node_headers::node(&mut answer, call, located);
    answer.header("x-ms-request-server-encrypted", "true");
    answer
}
