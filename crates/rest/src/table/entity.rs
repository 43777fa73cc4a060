//! Operations on one entity.

use holdfast_domain::table::{Change, EntityChange, EntityKey, EntityView};
use hyper::StatusCode;

use super::format::{Preference, check_content_type};
use super::read_entity::read;
use super::write_entity::{EntityWriter, entity_link};
use super::{Speech, endpoint, json_answer, odata_answer};
use crate::address::Resource;
use crate::answer::Answer;
use crate::error::{Code, Error};
use crate::request::Call;
use crate::request_body::RequestBody;

/// An entity of 1 MiB, whose texts may all be written as escapes of six bytes for two.
const BODY_BYTES_MAX: u64 = 4 * 1024 * 1024;

pub async fn get(call: &Call<'_>) -> Result<Answer, Error> {
    let speech = Speech::of(call)?;
    let (path, key) = (call.table_path()?, entity_key(call)?);
    let select = select(call)?;
    let stored = call.frontend.domain().get_entity(&path, &key).await?;
    let entity = stored.view()?;
    let mut body = Vec::with_capacity(1024);
    writer(call, &speech, &endpoint(call), path.table.as_str(), select.as_deref())
        .element(&mut body, &entity);
    let mut answer = json_answer(StatusCode::OK, speech.level, body);
    answer.header("etag", entity.etag().to_string());
    Ok(answer)
}

pub async fn insert(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let speech = Speech::of(call)?;
    check_content_type(call.header("content-type")?)?;
    let path = call.table_path()?;
    let mut sent = read(&body.whole(call, BODY_BYTES_MAX).await?)?;
    let key = sent.key()?;
    check_range(call, &key)?;
    let returned = (speech.preference != Some(Preference::NoContent))
        .then(|| (key.clone(), sent.properties.clone()));
    let change = EntityChange { key: key.clone(), change: Change::Insert(sent.properties) };
    let etag = call.frontend.domain().change_entity(&path, change).await?;

    let endpoint = endpoint(call);
    let table = path.table.as_str();
    let link = format!("{endpoint}/{}", entity_link(table, key.partition_key(), key.row_key()));
    let mut answer = match &returned {
        Some((key, properties)) => {
            let entity = EntityView::written(key, etag.timestamp(), properties);
            let mut body = Vec::with_capacity(1024);
            writer(call, &speech, &endpoint, table, None).element(&mut body, &entity);
            json_answer(StatusCode::CREATED, speech.level, body)
        }
        None => {
            let mut answer = odata_answer(StatusCode::NO_CONTENT);
            answer.header("dataserviceid", &link);
            answer
        }
    };
    answer.optional_header("preference-applied", speech.preference.map(Preference::as_str));
    answer.header("location", &link);
    answer.header("etag", etag.to_string());
    Ok(answer)
}

fn writer<'a>(
    call: &'a Call<'_>,
    speech: &Speech,
    endpoint: &'a str,
    table: &'a str,
    select: Option<&'a [&'a str]>,
) -> EntityWriter<'a> {
    EntityWriter { level: speech.level, endpoint, account: call.address.account, table, select }
}

/// The entity that the address names, if the caller may touch it.
fn entity_key(call: &Call<'_>) -> Result<EntityKey, Error> {
    let Resource::Entity { partition_key, row_key, .. } = &call.address.resource else {
        return Err(Code::InvalidUri.into());
    };
    let key = EntityKey::new(partition_key.as_ref(), row_key.as_ref())?;
    check_range(call, &key)?;
    Ok(key)
}

fn check_range(call: &Call<'_>, key: &EntityKey) -> Result<(), Error> {
    let inside = call
        .granted
        .key_range
        .as_ref()
        .is_none_or(|range| range.contains(key.partition_key(), key.row_key()));
    if inside { Ok(()) } else { Err(Code::AuthorizationFailure.into()) }
}

/// The properties that `$select` names, each once; none if all are asked for.
pub fn select<'a>(call: &'a Call<'_>) -> Result<Option<Vec<&'a str>>, Error> {
    let Some(text) = call.query.get_nonempty("$select") else { return Ok(None) };
    parse_select(text).ok_or_else(|| Code::InvalidInput.into())
}

/// As many as an entity can have.
const SELECTED_MAX: usize = 255;

fn parse_select(text: &str) -> Option<Option<Vec<&str>>> {
    let mut names = Vec::new();
    for name in text.split(',').map(str::trim) {
        match name {
            "*" => return Some(None),
            "" => return None,
            name if names.contains(&name) => {}
            name => names.push(name),
        }
    }
    (names.len() <= SELECTED_MAX).then_some(Some(names))
}
