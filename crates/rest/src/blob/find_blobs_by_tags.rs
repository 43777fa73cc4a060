//! Find Blobs by Tags, in the account or in one container.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use holdfast_domain::blob::{FindBlobs, FoundBlob};
use holdfast_domain::names::ContainerName;
use holdfast_domain::tags::{QueryScope, TagPredicateInvalid, TagQuery};
use hyper::StatusCode;

use super::{list_blobs, tags};
use crate::answer::Answer;
use crate::error::Error;
use crate::lanes::lane_share::leave_lane_for;
use crate::listing;
use crate::request::Call;
use crate::url_query::QueryRefusal;
use crate::version::Version;
use crate::xml::Writer;

pub async fn in_account(call: &Call<'_>) -> Result<Answer, Error> {
    find(call, QueryScope::Account, None).await
}

pub async fn in_container(call: &Call<'_>) -> Result<Answer, Error> {
    let container = call.container_path()?.container;
    find(call, QueryScope::Container, Some(container)).await
}

async fn find(
    call: &Call<'_>,
    scope: QueryScope,
    container: Option<ContainerName>,
) -> Result<Answer, Error> {
    let text = call.query.required("where")?;
    let query = TagQuery::parse(text, scope).map_err(|refusal| not_a_query(text, refusal))?;
    let command = FindBlobs {
        account: call.account()?,
        container: container.clone(),
        query: query.clone(),
        versions: includes_versions(call)?,
        marker: marker(call)?,
        limit: call.query.page_size(listing::PAGE_MAX)? as usize,
    };
    let with_versions = command.versions;
    let found = call.frontend.domain().find_blobs(command).await?;

    leave_lane_for(found.blobs.len()).await;
    let mut xml = Writer::document();
    let endpoint = listing::endpoint(call);
    let mut attributes = vec![("ServiceEndpoint", endpoint.as_str())];
    attributes.extend(container.as_ref().map(|container| ("ContainerName", container.as_str())));
    xml.open_with("EnumerationResults", &attributes);
    xml.element("Where", text);
    xml.open("Blobs");
    for blob in &found.blobs {
        write(&mut xml, call.version, &query, blob, with_versions);
    }
    xml.close("Blobs");
    let next_marker = found.next_marker.map(|key| URL_SAFE_NO_PAD.encode(key));
    xml.element("NextMarker", &next_marker.unwrap_or_default());
    xml.close("EnumerationResults");
    Ok(Answer::xml(StatusCode::OK, xml.finish()))
}

/// The service has a sentence for each error. Known are those for a container named twice
/// (azure-sdk-for-net, issue 27610) and for too many tags (Azurite,
/// tests/blob/apis/service.test.ts); of the others only the beginning.
fn not_a_query(text: &str, refusal: TagPredicateInvalid) -> Error {
    let why = match refusal {
        TagPredicateInvalid::TwoContainers => "Cannot have container in both uri and query".into(),
        TagPredicateInvalid::TooManyOperators => {
            "there can be at most 10 unique tags in a query".into()
        }
        TagPredicateInvalid::Empty
        | TagPredicateInvalid::Syntax
        | TagPredicateInvalid::TooDeep
        | TagPredicateInvalid::OperatorNotAllowed
        | TagPredicateInvalid::NotARange
        | TagPredicateInvalid::Characters
        | TagPredicateInvalid::TooLong => refusal.to_string(),
    };
    invalid("where", text).with_message(format!("Error parsing query: {why}"))
}

/// Only the tags that the query names are shown.
fn write(
    xml: &mut Writer,
    version: Version,
    query: &TagQuery,
    found: &FoundBlob,
    with_versions: bool,
) {
    let named = query.named(&found.blob.tags);
    xml.open("Blob");
    list_blobs::write_name(xml, version, &found.name);
    xml.element("ContainerName", &found.container);
    if let (true, Some(version)) = (with_versions, found.blob.version) {
        xml.element("VersionId", &version.iso8601().to_string());
        xml.optional("IsCurrentVersion", found.current.then_some("true"));
    }
    if version >= Version::V2020_04_08 {
        tags::write(xml, named.into_iter());
    } else {
        xml.element("TagValue", named.first().map_or("", |(_, value)| value));
    }
    xml.close("Blob");
}

fn includes_versions(call: &Call<'_>) -> Result<bool, Error> {
    let mut versions = false;
    let lists = call.query.all("include").flat_map(|list| list.split(','));
    for name in lists.map(str::trim).filter(|name| !name.is_empty()) {
        match name {
            _ if name.eq_ignore_ascii_case("versions") => versions = true,
            _ if name.eq_ignore_ascii_case("none") => {}
            _ => return Err(invalid("include", name)),
        }
    }
    Ok(versions)
}

fn marker(call: &Call<'_>) -> Result<Option<Bytes>, Error> {
    let Some(text) = call.query.get_nonempty("marker") else { return Ok(None) };
    match URL_SAFE_NO_PAD.decode(text) {
        Ok(key) => Ok(Some(key.into())),
        Err(_) => Err(invalid("marker", text)),
    }
}

fn invalid(name: &'static str, value: &str) -> Error {
    QueryRefusal::InvalidValue { name, value: value.to_owned() }.into()
}
