//! The Table service on HTTP: each operation is parse, call, respond.

use crate::answer::Answer;
use crate::error::{Code, Error};
use crate::request::Call;
use crate::request_body::RequestBody;

/// Runs an operation of the Table service that the operation table calls built.
pub async fn dispatch(_call: &Call<'_>, _body: RequestBody) -> Result<Answer, Error> {
    Err(Code::NotImplemented.into())
}
