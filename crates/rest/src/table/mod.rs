//! The Table service on HTTP: each operation is parse, call, respond.

mod batch;
mod batch_body;
mod batch_query;
mod continuation_token;
mod entity;
mod entity_change;
mod json_format;
mod metadata;
mod query_entities;
mod read_entity;
mod table_acl;
mod tables;
mod write_entity;

pub use batch_body::BatchRefusal;
pub use read_entity::{EntityBody, EntityBodyRefusal, read as read_entity};

use std::fmt;
use std::future::ready;

use holdfast_domain::condition::{EntityCondition, IfMatchUse};
use hyper::StatusCode;

use crate::answer::{Answer, AnswerBody, Answering};
use crate::body::RequestBody;
use crate::error::{Code, Error};
use crate::operation::TableOperation;
use crate::request::{Call, RequestId};
use crate::service::service_operations;
use entity_change::ChangeKind;
use json_format::{Level, Preference};

/// Whether the bytes are an entity group transaction.
pub(crate) fn can_be_batch(body: &[u8], boundary: &str) -> bool {
    batch_body::parse(body, boundary, batch::CHANGES_MAX).is_ok()
}

/// Runs an operation of the Table service that is marked as built. Each is boxed: otherwise the largest
/// future would set the size of every request.
pub(crate) fn dispatch<'a>(
    call: &'a Call<'_>,
    operation: TableOperation,
    id: RequestId,
    body: RequestBody,
) -> Answering<'a> {
    match operation {
        TableOperation::GetTableServiceProperties => {
            Box::pin(service_operations::get_properties(call))
        }
        TableOperation::SetTableServiceProperties => {
            Box::pin(service_operations::set_properties(call, body))
        }
        TableOperation::GetTableServiceStats => {
            Box::pin(ready(service_operations::statistics(call)))
        }
        TableOperation::QueryTables => Box::pin(tables::list(call)),
        TableOperation::GetTable => Box::pin(tables::get(call)),
        TableOperation::CreateTable => Box::pin(tables::create(call, body)),
        TableOperation::DeleteTable => Box::pin(tables::delete(call)),
        TableOperation::GetTableAcl => Box::pin(table_acl::get(call)),
        TableOperation::SetTableAcl => Box::pin(table_acl::set(call, body)),
        TableOperation::GetODataMetadata => Box::pin(metadata::get(call)),
        TableOperation::GetEntity => Box::pin(entity::get(call)),
        TableOperation::QueryEntities => Box::pin(query_entities::query(call)),
        TableOperation::InsertEntity => Box::pin(entity::change(call, ChangeKind::Insert, body)),
        TableOperation::UpdateEntity => Box::pin(entity::change(call, ChangeKind::Update, body)),
        TableOperation::MergeEntity => Box::pin(entity::change(call, ChangeKind::Merge, body)),
        TableOperation::InsertOrReplaceEntity => {
            Box::pin(entity::change(call, ChangeKind::InsertOrReplace, body))
        }
        TableOperation::InsertOrMergeEntity => {
            Box::pin(entity::change(call, ChangeKind::InsertOrMerge, body))
        }
        TableOperation::DeleteEntity => Box::pin(entity::change(call, ChangeKind::Delete, body)),
        TableOperation::EntityGroupTransaction => Box::pin(batch::run(call, id, body)),
        // The front end answers it before authentication.
        TableOperation::PreflightTableRequest => Box::pin(ready(Err(Code::NotImplemented.into()))),
    }
}

/// The same error with the code that the Table service has for it.
#[allow(clippy::wildcard_enum_match_arm, reason = "most codes are the same in every service")]
pub(crate) fn in_its_words(mut error: Error) -> Error {
    error.code = match error.code {
        Code::UnsupportedHttpVerb | Code::InvalidHttpVerb => Code::MethodNotAllowed,
        Code::InvalidUri | Code::RequestUrlFailedToParse => Code::InvalidInput,
        code => code,
    };
    error
}

/// The formats of a request and of its answer.
struct Speech {
    level: Level,
    preference: Option<Preference>,
}

impl Speech {
    fn of(call: &Call<'_>) -> Result<Self, Error> {
        json_format::check_versions(
            call.version,
            call.header("dataserviceversion")?,
            call.header("maxdataserviceversion")?,
        )?;
        let level =
            json_format::accepted(call.header("accept")?, call.query.get_nonempty("$format"))?;
        Ok(Self { level, preference: Preference::parse(call.header("prefer")?) })
    }
}

/// For operations on resources without an ETag.
fn refuse_conditions(call: &Call<'_>) -> Result<(), Error> {
    let (if_match, if_none_match) = (call.header("if-match")?, call.header("if-none-match")?);
    EntityCondition::read(IfMatchUse::Refused, if_match, if_none_match)?;
    Ok(())
}

/// The address of the service as the client wrote it, without a slash at its end.
struct Endpoint<'a>(&'a Call<'a>);

impl fmt::Display for Endpoint<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.origin())?;
        if self.0.address.path_style {
            write!(formatter, "/{}", self.0.address.account)?;
        }
        Ok(())
    }
}

/// An OData answer without a body.
fn odata_answer(status: StatusCode) -> Answer {
    let mut answer = Answer::new(status);
    answer.header("x-content-type-options", "nosniff");
    answer.header("cache-control", "no-cache");
    answer
}

fn json_answer(status: StatusCode, level: Level, body: Vec<u8>) -> Answer {
    let mut answer = odata_answer(status);
    answer.header("content-type", level.content_type());
    answer.body = AnswerBody::Whole(body.into());
    answer
}
