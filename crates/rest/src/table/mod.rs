//! The Table service on HTTP: each operation is parse, call, respond.

mod continuation;
mod entity;
mod format;
mod query_entities;
mod read_entity;
mod tables;
mod write_entity;

pub use read_entity::EntityBodyRefusal;

use crate::answer::{Answer, AnswerBody};
use crate::error::{Code, Error};
use crate::operation::Operation;
use crate::request::Call;
use crate::request_body::RequestBody;
use format::{Level, Preference};
use hyper::StatusCode;

/// Runs an operation of the Table service that the operation table calls built.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "most operations belong to other services; test_support_matrix.py calls all that are \
              built"
)]
pub async fn dispatch(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    match call.operation {
        Operation::CreateTable => tables::create(call, body).await,
        Operation::GetEntity => entity::get(call).await,
        Operation::QueryEntities => query_entities::query(call).await,
        Operation::InsertEntity => entity::insert(call, body).await,
        _ => Err(Code::NotImplemented.into()),
    }
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
