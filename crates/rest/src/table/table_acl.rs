//! Get and Set Table ACL: stored access policies.

use holdfast_domain::failure::Failure;
use holdfast_domain::table::TableRefusal;
use hyper::StatusCode;

use super::refuse_conditions;
use crate::answer::Answer;
use crate::body::RequestBody;
use crate::error::{Code, Error};
use crate::request::Call;
use crate::service::Service;
use crate::service::signed_identifiers;

pub async fn get(call: &Call<'_>) -> Result<Answer, Error> {
    let table = call.frontend.domain().get_table(&call.table_path()?).await.map_err(failure)?;
    Ok(Answer::xml(StatusCode::OK, signed_identifiers::write(&table.policies)))
}

pub async fn set(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    refuse_conditions(call)?;
    let path = call.table_path()?;
    let policies = signed_identifiers::parse(Service::Table, &body.document(call).await?)?;
    call.frontend.domain().set_table_policies(&path, &policies).await.map_err(failure)?;
    Ok(Answer::new(StatusCode::NO_CONTENT))
}

/// The missing table is the one of the operation, not one that it looks for.
fn failure(failure: Failure<TableRefusal>) -> Error {
    match failure {
        Failure::Refused(TableRefusal::NotFound) => Code::TableNotFound.into(),
        Failure::Refused(TableRefusal::AlreadyExists | TableRefusal::BeingDeleted)
        | Failure::Busy
        | Failure::OutcomeUnknown(_)
        | Failure::Fault(_) => failure.into(),
    }
}
