//! The Table service on HTTP: each operation is parse, call, respond.

mod acl;
mod batch;
mod batch_body;
mod batch_query;
mod change;
mod continuation;
mod entity;
mod format;
mod metadata;
mod query_entities;
mod read_entity;
mod tables;
mod write_entity;

pub use batch_body::BatchRefusal;
pub use read_entity::{EntityBody, EntityBodyRefusal, read as read_entity};

use holdfast_domain::condition::{EntityCondition, IfMatchUse};
use hyper::StatusCode;

use crate::answer::{Answer, AnswerBody};
use crate::error::{Code, Error};
use crate::operation::Operation;
use crate::request::{Call, RequestId};
use crate::request_body::RequestBody;
use crate::service_operations;
use format::{Level, Preference};

/// Whether bytes are an entity group transaction.
pub(crate) fn can_be_batch(body: &[u8], boundary: &str) -> bool {
    batch_body::parse(body, boundary, batch::CHANGES_MAX).is_ok()
}

/// Runs an operation of the Table service that the operation table calls built.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "most operations belong to other services; test_support_matrix.py calls all that are \
              built"
)]
pub(crate) async fn dispatch(
    call: &Call<'_>,
    id: RequestId,
    body: RequestBody,
) -> Result<Answer, Error> {
    match call.operation {
        Operation::GetTableServiceProperties => service_operations::get_properties(call).await,
        Operation::SetTableServiceProperties => {
            service_operations::set_properties(call, body).await
        }
        Operation::GetTableServiceStats => service_operations::statistics(call),
        Operation::QueryTables => tables::list(call).await,
        Operation::GetTable => tables::get(call).await,
        Operation::CreateTable => tables::create(call, body).await,
        Operation::DeleteTable => tables::delete(call).await,
        Operation::GetTableAcl => acl::get(call).await,
        Operation::SetTableAcl => acl::set(call, body).await,
        Operation::GetODataMetadata => metadata::get(call).await,
        Operation::GetEntity | Operation::QueryEntities => read(call).await,
        Operation::InsertEntity
        | Operation::UpdateEntity
        | Operation::MergeEntity
        | Operation::InsertOrReplaceEntity
        | Operation::InsertOrMergeEntity
        | Operation::DeleteEntity => entity::change(call, body).await,
        Operation::EntityGroupTransaction => batch::run(call, id, body).await,
        _ => Err(Code::NotImplemented.into()),
    }
}

/// Get Entity and Query Entities.
async fn read(call: &Call<'_>) -> Result<Answer, Error> {
    if call.operation == Operation::GetEntity {
        return entity::get(call).await;
    }
    query_entities::query(call).await
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

/// How a request speaks, and how it wants to be answered.
struct Speech {
    level: Level,
    preference: Option<Preference>,
}

impl Speech {
    fn of(call: &Call<'_>) -> Result<Self, Error> {
        format::check_versions(
            call.version,
            call.header("dataserviceversion")?,
            call.header("maxdataserviceversion")?,
        )?;
        let level = format::accepted(call.header("accept")?, call.query.get_nonempty("$format"))?;
        Ok(Self { level, preference: Preference::parse(call.header("prefer")?) })
    }
}

/// Of an operation on something that has no ETag.
fn refuse_conditions(call: &Call<'_>) -> Result<(), Error> {
    let (if_match, if_none_match) = (call.header("if-match")?, call.header("if-none-match")?);
    EntityCondition::read(IfMatchUse::Refused, if_match, if_none_match)?;
    Ok(())
}

/// The address of the service as the client wrote it, without a slash at its end.
fn endpoint(call: &Call<'_>) -> String {
    if call.address.path_style {
        [call.origin.as_str(), "/", call.address.account].concat()
    } else {
        call.origin.clone()
    }
}

/// An answer of the protocol that tables speak, without a body.
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
