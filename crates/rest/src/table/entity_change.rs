//! A change of an entity, from its request to its answer. Separate requests and parts of a batch
//! have the same form.

use holdfast_domain::condition::{EntityCondition, IfMatchUse};
use holdfast_domain::etag::EntityETag;
use holdfast_domain::table::{Change, EntityChange, EntityKey, EntityView, KeyRange, Properties};
use hyper::StatusCode;

use super::batch::put;
use super::json_format::{Level, Preference};
use super::read_entity::read;
use super::write_entity::{EntityWriter, entity_link};
use super::{json_answer, odata_answer};
use crate::address::Resource;
use crate::answer::Answer;
use crate::error::{Code, Error};
use crate::operation::TableOperation;

/// The operations that change an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Insert,
    Update,
    Merge,
    InsertOrReplace,
    InsertOrMerge,
    Delete,
}

impl ChangeKind {
    const ALL: [Self; 6] = [
        Self::Insert,
        Self::Update,
        Self::Merge,
        Self::InsertOrReplace,
        Self::InsertOrMerge,
        Self::Delete,
    ];

    pub fn of(operation: TableOperation) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.operation() == operation)
    }

    pub const fn operation(self) -> TableOperation {
        match self {
            Self::Insert => TableOperation::InsertEntity,
            Self::Update => TableOperation::UpdateEntity,
            Self::Merge => TableOperation::MergeEntity,
            Self::InsertOrReplace => TableOperation::InsertOrReplaceEntity,
            Self::InsertOrMerge => TableOperation::InsertOrMergeEntity,
            Self::Delete => TableOperation::DeleteEntity,
        }
    }

    /// An update with an empty If-Match is refused: without a condition it would be an upsert,
    /// which needs other permissions.
    const fn if_match_use(self) -> IfMatchUse {
        match self {
            Self::Insert => IfMatchUse::Ignored,
            Self::InsertOrReplace | Self::InsertOrMerge => IfMatchUse::Optional,
            Self::Update | Self::Merge | Self::Delete => IfMatchUse::Required,
        }
    }
}

/// The part of a request for a change that describes the entity.
pub struct ChangeRequest<'a> {
    pub kind: ChangeKind,
    pub resource: &'a Resource<'a>,
    pub if_match: Option<&'a str>,
    pub if_none_match: Option<&'a str>,
    pub body: &'a [u8],
}

impl ChangeRequest<'_> {
    pub fn parse(&self) -> Result<EntityChange, Error> {
        let usage = self.kind.if_match_use();
        let condition = EntityCondition::read(usage, self.if_match, self.if_none_match)?;
        let Resource::Entity { partition_key, row_key, .. } = self.resource else {
            let mut sent = read(self.body)?;
            let key = sent.key()?;
            return Ok(EntityChange { key, change: Change::Insert(sent.properties) });
        };
        let key = EntityKey::new(partition_key.as_ref(), row_key.as_ref())?;
        if let (ChangeKind::Delete, Some(condition)) = (self.kind, condition) {
            return Ok(EntityChange { key, change: Change::Delete(condition) });
        }
        let sent = read(self.body)?;
        sent.check_key(&key)?;
        let change = match self.kind {
            ChangeKind::Merge | ChangeKind::InsertOrMerge => {
                Change::Merge(sent.properties, condition)
            }
            ChangeKind::Insert
            | ChangeKind::Update
            | ChangeKind::InsertOrReplace
            | ChangeKind::Delete => Change::Replace(sent.properties, condition),
        };
        Ok(EntityChange { key, change })
    }
}

/// Whether the entity is in the range of the caller's signature.
pub fn check_range(range: Option<&KeyRange>, key: &EntityKey) -> Result<(), Error> {
    let inside = range.is_none_or(|range| range.contains(key.partition_key(), key.row_key()));
    if inside { Ok(()) } else { Err(Code::AuthorizationFailure.into()) }
}

/// The answer to a change.
pub struct ChangeAnswer {
    pub status: StatusCode,
    pub preference: Option<Preference>,
    /// The URL of an inserted entity.
    pub location: Option<String>,
    /// `None` for a deleted entity.
    pub etag: Option<EntityETag>,
    /// The inserted entity.
    pub content: Option<(Level, Vec<u8>)>,
}

impl ChangeAnswer {
    /// The answer to any change except an insert.
    pub fn changed(kind: ChangeKind, etag: EntityETag) -> Self {
        let etag = (kind != ChangeKind::Delete).then_some(etag);
        Self {
            status: StatusCode::NO_CONTENT,
            preference: None,
            location: None,
            etag,
            content: None,
        }
    }

    pub fn inserted(
        writer: &EntityWriter<'_>,
        preference: Option<Preference>,
        key: &EntityKey,
        properties: &Properties,
        etag: EntityETag,
    ) -> Self {
        let link = entity_link(writer.table, key.partition_key(), key.row_key());
        let content = (preference != Some(Preference::NoContent)).then(|| {
            let mut body = Vec::with_capacity(1024);
            let entity = EntityView::written(key, etag.timestamp(), properties);
            writer.element(&mut body, &entity);
            (writer.level, body)
        });
        Self {
            status: match content {
                Some(_) => StatusCode::CREATED,
                None => StatusCode::NO_CONTENT,
            },
            preference,
            location: Some(format!("{}/{link}", writer.endpoint)),
            etag: Some(etag),
            content,
        }
    }

    pub fn into_answer(self) -> Answer {
        let has_content = self.content.is_some();
        let mut answer = match self.content {
            Some((level, body)) => json_answer(self.status, level, body),
            None => odata_answer(self.status),
        };
        answer.optional_header("preference-applied", self.preference.map(Preference::as_str));
        if let Some(location) = &self.location {
            answer.header("location", location);
            if !has_content {
                answer.header("dataserviceid", location);
            }
        }
        if let Some(etag) = self.etag {
            answer.show("etag", etag);
        }
        answer
    }

    /// The answer as a part of a batch. The JavaScript SDK searches for `ETag` in this spelling.
    pub fn write_part(&self, text: &mut Vec<u8>, content_id: Option<&str>) {
        let reason = self.status.canonical_reason().unwrap_or_default();
        put(text, &["HTTP/1.1 ", self.status.as_str(), " ", reason, "\r\n"]);
        let mut line = |name: &str, value: &str| put(text, &[name, ": ", value, "\r\n"]);
        if let Some(content_id) = content_id {
            line("Content-ID", content_id);
        }
        line("X-Content-Type-Options", "nosniff");
        line("Cache-Control", "no-cache");
        if let Some(preference) = self.preference {
            line("Preference-Applied", preference.as_str());
        }
        line("DataServiceVersion", if self.location.is_some() { "3.0;" } else { "1.0;" });
        if let Some((level, _)) = &self.content {
            line("Content-Type", level.content_type());
        }
        if let Some(location) = &self.location {
            line("Location", location);
            if self.content.is_none() {
                line("DataServiceId", location);
            }
        }
        if let Some(etag) = self.etag {
            line("ETag", &etag.to_string());
        }
        text.extend_from_slice(b"\r\n");
        if let Some((_, body)) = &self.content {
            text.extend_from_slice(body);
        }
        text.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    const ETAG: &str = "W/\"datetime'2024-01-31T12%3A34%3A56.1234567Z'\"";

    fn parsed(
        kind: ChangeKind,
        if_match: Option<&str>,
        if_none_match: Option<&str>,
    ) -> Result<&'static str, Code> {
        let text = |text| Cow::Borrowed(text);
        let resource = match kind {
            ChangeKind::Insert => Resource::Table { table: text("T") },
            ChangeKind::Update
            | ChangeKind::Merge
            | ChangeKind::InsertOrReplace
            | ChangeKind::InsertOrMerge
            | ChangeKind::Delete => {
                Resource::Entity { table: text("T"), partition_key: text("p"), row_key: text("r") }
            }
        };
        let body = br#"{"PartitionKey":"p","RowKey":"r","a":1}"#;
        let request = ChangeRequest { kind, resource: &resource, if_match, if_none_match, body };
        let change = request.parse().map_err(|error| error.code)?;
        Ok(match change.change {
            Change::Insert(_) => "insert",
            Change::Replace(_, None) => "insert or replace",
            Change::Replace(_, Some(EntityCondition::Any)) => "update any",
            Change::Replace(_, Some(EntityCondition::Exactly(_))) => "update",
            Change::Replace(_, Some(EntityCondition::Nothing)) => "update nothing",
            Change::Merge(_, None) => "insert or merge",
            Change::Merge(_, Some(EntityCondition::Any)) => "merge any",
            Change::Merge(_, Some(EntityCondition::Exactly(_))) => "merge",
            Change::Merge(_, Some(EntityCondition::Nothing)) => "merge nothing",
            Change::Delete(EntityCondition::Any) => "delete any",
            Change::Delete(EntityCondition::Exactly(_)) => "delete",
            Change::Delete(EntityCondition::Nothing) => "delete nothing",
        })
    }

    #[test]
    fn each_operation_reads_its_conditions() {
        use ChangeKind::{Delete, Insert, InsertOrMerge, InsertOrReplace, Merge, Update};
        let missing = Err(Code::MissingRequiredHeader);
        let invalid = Err(Code::InvalidInput);
        for (kind, if_match, if_none_match, expected) in [
            (Insert, None, None, Ok("insert")),
            (Insert, Some("garbage"), None, Ok("insert")),
            (Update, Some(ETAG), None, Ok("update")),
            (Update, Some("*"), None, Ok("update any")),
            (Update, None, None, missing),
            (Update, Some("\"0x8D\""), None, invalid),
            (Update, Some(ETAG), Some(ETAG), invalid),
            (Merge, Some(ETAG), None, Ok("merge")),
            (Merge, Some("*"), None, Ok("merge any")),
            (Merge, None, None, missing),
            (Merge, Some("W/\"wrong\""), None, Ok("merge nothing")),
            (InsertOrReplace, None, None, Ok("insert or replace")),
            (InsertOrReplace, None, Some("*"), invalid),
            (InsertOrMerge, None, None, Ok("insert or merge")),
            (Delete, Some(ETAG), None, Ok("delete")),
            (Delete, Some("*"), None, Ok("delete any")),
            (Delete, None, None, missing),
            (Delete, Some("*"), Some("*"), invalid),
        ] {
            let case = format!("4.4 {kind:?} {if_match:?} {if_none_match:?}");
            assert_eq!(parsed(kind, if_match, if_none_match), expected, "{case}");
        }
    }

    #[test]
    fn the_etag_of_what_was_deleted_is_not_told() {
        let etag = EntityETag::parse(ETAG).expect("an ETag");
        let updated = ChangeAnswer::changed(ChangeKind::Update, etag);
        let mut text = Vec::new();
        updated.write_part(&mut text, Some("7"));
        assert_eq!(
            String::from_utf8_lossy(&text),
            format!(
                "HTTP/1.1 204 No Content\r\nContent-ID: 7\r\nX-Content-Type-Options: nosniff\r\n\
                 Cache-Control: no-cache\r\nDataServiceVersion: 1.0;\r\nETag: {ETAG}\r\n\r\n\r\n"
            )
        );
        assert_eq!(updated.into_answer().headers.get("etag"), Some(ETAG));
        let deleted = ChangeAnswer::changed(ChangeKind::Delete, etag).into_answer();
        assert!(!deleted.headers.contains("etag"), "4.4 Delete");
    }
}
