//! Operations on one entity.

use holdfast_domain::failure::Failure;
use holdfast_domain::table::{Change, EntityKey, TablePath, TableRefusal};
use hyper::StatusCode;

use super::entity_change::{ChangeAnswer, ChangeKind, ChangeRequest, check_range};
use super::json_format::check_content_type;
use super::write_entity::EntityWriter;
use super::{Endpoint, Speech, json_answer};
use crate::address::Resource;
use crate::answer::Answer;
use crate::body::RequestBody;
use crate::error::{Code, Error};
use crate::request::Call;

/// An entity of 1 MiB, with every two bytes of text written as an escape of six.
const BODY_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// As many as an entity can have.
const SELECTED_MAX: usize = 255;

pub async fn get(call: &Call<'_>) -> Result<Answer, Error> {
    let speech = Speech::of(call)?;
    let path = call.table_path()?;
    let Resource::Entity { partition_key, row_key, .. } = &call.address.resource else {
        return Err(Code::InvalidUri.into());
    };
    let key = EntityKey::new(partition_key.as_ref(), row_key.as_ref())?;
    check_range(call.granted.scope().key_range.as_ref(), &key)?;
    let select = select(call)?;
    let stored = call.frontend.domain().get_entity(&path, &key).await?;
    let entity = stored.view()?;
    // Base64 takes a third more space than the bytes.
    let mut body = Vec::with_capacity(512 + stored.length() * 4 / 3);
    let writer = EntityWriter {
        level: speech.level,
        endpoint: &Endpoint(call),
        account: call.address.account,
        table: path.table.as_str(),
        select: select.as_deref(),
    };
    writer.element(&mut body, &entity);
    let mut answer = json_answer(StatusCode::OK, speech.level, body);
    answer.show("etag", entity.etag());
    Ok(answer)
}

/// Insert, Update, Merge, both upserts and Delete.
pub async fn change(call: &Call<'_>, kind: ChangeKind, body: RequestBody) -> Result<Answer, Error> {
    let speech = Speech::of(call)?;
    let path = call.table_path()?;
    if kind != ChangeKind::Delete {
        check_content_type(call.header("content-type")?)?;
    }
    let body = body.whole(call, BODY_BYTES_MAX).await?;
    let request = ChangeRequest {
        kind,
        resource: &call.address.resource,
        if_match: call.header("if-match")?,
        if_none_match: call.header("if-none-match")?,
        body: &body,
    };
    let change = match request.parse() {
        Ok(change) => change,
        Err(error) if error.code == Code::PropertiesNeedValue => {
            // A missing table is reported first (azure-sdk-for-python,
            // test_client_with_url_ends_with_table_name).
            check_table(call, &path).await?;
            return Err(error);
        }
        Err(error) => return Err(error),
    };
    check_range(call.granted.scope().key_range.as_ref(), &change.key)?;
    let etag = call.frontend.domain().change_entity(&path, &change).await?;
    let answer = match &change.change {
        Change::Insert(properties) => {
            let writer = EntityWriter {
                level: speech.level,
                endpoint: &Endpoint(call),
                account: call.address.account,
                table: path.table.as_str(),
                select: None,
            };
            ChangeAnswer::inserted(&writer, speech.preference, &change.key, properties, etag)
        }
        Change::Replace(..) | Change::Merge(..) | Change::Delete(_) => {
            ChangeAnswer::changed(kind, etag)
        }
    };
    Ok(answer.into_answer())
}

async fn check_table(call: &Call<'_>, path: &TablePath) -> Result<(), Error> {
    match call.frontend.domain().get_table(path).await {
        Ok(_) => Ok(()),
        Err(Failure::Refused(TableRefusal::NotFound)) => Err(Code::TableNotFound.into()),
        Err(failure) => Err(failure.into()),
    }
}

/// The properties that `$select` names, each once; `None` for all.
pub fn select<'a>(call: &'a Call<'_>) -> Result<Option<Vec<&'a str>>, Error> {
    let Some(text) = call.query.get_nonempty("$select") else { return Ok(None) };
    parse_select(text).ok_or_else(|| Code::InvalidInput.into())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_names_properties_once() {
        assert_eq!(parse_select("a"), Some(Some(vec!["a"])));
        assert_eq!(parse_select("a, b,a"), Some(Some(vec!["a", "b"])));
        assert_eq!(parse_select("*"), Some(None));
        assert_eq!(parse_select("a,*"), Some(None));
        assert_eq!(parse_select("a,,b"), None);
        let many =
            |count: usize| (0..count).map(|at| format!("p{at}")).collect::<Vec<_>>().join(",");
        assert!(parse_select(&many(255)).is_some(), "4.5 up to 255 names");
        assert!(parse_select(&many(256)).is_none(), "4.5 up to 255 names");
    }
}
