//! Create, Get, Set and Delete Directory, and the metadata of directories.

use holdfast_domain::share::{
    CreateDirectory, DeleteNode, Located, SetNodeMetadata, SetNodeProperties, Wanted,
};
use hyper::StatusCode;

use super::property_headers::Purpose;
use super::{node_address, node_headers, requested_properties, rest_call};
use crate::answer::Answer;
use crate::error::Error;
use crate::headers::resource_headers;
use crate::request::Call;

pub async fn create(call: &Call<'_>) -> Result<Answer, Error> {
    let address = node_address::directory(call)?;
    let metadata = call.metadata()?;
    let properties = requested_properties::new(call, &address.share, true).await?;
    let command = CreateDirectory { address, id: None, metadata, properties };
    let located = rest_call::run(call, command).await?;
    Ok(written(call, StatusCode::CREATED, &located))
}

pub async fn get_properties(call: &Call<'_>) -> Result<Answer, Error> {
    let located = rest_call::look(call, node_address::read_directory(call)?).await?;
    let mut answer = Answer::new(StatusCode::OK);
    node_headers::node(&mut answer, call, &located);
    resource_headers::metadata(&mut answer, &located.node.metadata);
    answer.header("x-ms-server-encrypted", "true");
    Ok(answer)
}

pub async fn get_metadata(call: &Call<'_>) -> Result<Answer, Error> {
    let located = rest_call::look(call, node_address::read_directory(call)?).await?;
    Ok(node_headers::metadata(call, &located.node))
}

pub async fn set_properties(call: &Call<'_>) -> Result<Answer, Error> {
    let address = node_address::directory(call)?;
    let properties =
        requested_properties::changed(call, &address.share, Purpose::Set, true).await?;
    let command = SetNodeProperties {
        address,
        wanted: Wanted::Directory,
        properties,
        headers: None,
        length: None,
        by_handle: false,
        lease_id: None,
    };
    let located = rest_call::run(call, command).await?;
    Ok(written(call, StatusCode::OK, &located))
}

pub async fn set_metadata(call: &Call<'_>) -> Result<Answer, Error> {
    let (address, metadata) = (node_address::directory(call)?, call.metadata()?);
    let command = SetNodeMetadata { address, wanted: Wanted::Directory, metadata, lease_id: None };
    let located = rest_call::run(call, command).await?;
    Ok(node_headers::changed(call, &located.node))
}

pub async fn delete(call: &Call<'_>) -> Result<Answer, Error> {
    let address = node_address::directory(call)?;
    let command = DeleteNode { address, wanted: Wanted::Directory, lease_id: None };
    rest_call::run(call, command).await?;
    Ok(Answer::new(StatusCode::ACCEPTED))
}

fn written(call: &Call<'_>, status: StatusCode, located: &Located) -> Answer {
    let mut answer = Answer::new(status);
    node_headers::node(&mut answer, call, located);
    answer.header("x-ms-request-server-encrypted", "true");
    answer
}
