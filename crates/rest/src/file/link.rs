//! Symbolic and hard links, in NFS shares.

use holdfast_domain::names::{FilePath, TrailingDots};
use holdfast_domain::share::{
    CreateHardLink, CreateSymbolicLink, GetNode, LinkTarget, NodeAddress, NodeKind, Wanted,
};
use hyper::StatusCode;

use super::{node_address, node_headers, requested_properties, rest_call};
use crate::answer::Answer;
use crate::auth::NamedResource;
use crate::error::{Code, Error};
use crate::headers::resource_headers;
use crate::request::Call;
use crate::url_query::{Plus, decode};

const LINK_TEXT: &str = "x-ms-link-text";
const TARGET: &str = "x-ms-file-target-file";

/// The target is stored and returned as sent.
pub async fn create_symbolic(call: &Call<'_>) -> Result<Answer, Error> {
    let address = node_address::file(call)?;
    let target = LinkTarget(call.required_header(LINK_TEXT)?.to_owned());
    let properties = requested_properties::new(call, &address.share, false).await?;
    let command = CreateSymbolicLink {
        address,
        target,
        metadata: call.metadata()?,
        properties,
        lease_id: call.lease_id()?,
    };
    let located = rest_call::run(call, command).await?;
    let mut answer = Answer::new(StatusCode::CREATED);
    node_headers::node(&mut answer, call, &located);
    answer.header("x-ms-request-server-encrypted", "true");
    Ok(answer)
}

pub async fn get_symbolic(call: &Call<'_>) -> Result<Answer, Error> {
    let command = GetNode { wanted: Wanted::SymbolicLink, ..node_address::read_file(call)? };
    let node = rest_call::run(call, command).await?.node;
    let NodeKind::SymbolicLink(LinkTarget(target)) = &node.kind else {
        return Err(Code::ResourceTypeMismatch.into());
    };
    let mut answer = Answer::new(StatusCode::OK);
    resource_headers::identity(&mut answer, node.etag, node.last_modified, call.version);
    answer.header(LINK_TEXT, target);
    Ok(answer)
}

/// The target is a path from the root of the share.
pub async fn create_hard(call: &Call<'_>) -> Result<Answer, Error> {
    let address = node_address::file(call)?;
    let text = call.required_header(TARGET)?;
    let invalid = || Error::invalid_header(TARGET, text);
    let path = decode(text, Plus::IsPlus).ok_or_else(invalid)?;
    let path = path.strip_prefix('/').unwrap_or(&path);
    let named = NamedResource { object: Some(path), ..call.named_resource() };
    call.authorize_second(&named)?;
    let path = FilePath::file(path, TrailingDots::Kept).map_err(|_| invalid())?;
    let target = NodeAddress::path(address.share.clone(), path);
    let command = CreateHardLink { address, target, lease_id: call.lease_id()? };
    let located = rest_call::run(call, command).await?;
    let mut answer = Answer::new(StatusCode::CREATED);
    node_headers::node(&mut answer, call, &located);
    Ok(answer)
}
