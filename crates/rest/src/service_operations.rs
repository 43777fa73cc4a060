//! Operations that all services have alike: their properties, and keys for user delegation.

use hyper::StatusCode;

use crate::answer::Answer;
use crate::auth;
use crate::error::Error;
use crate::request::Call;
use crate::request_body::RequestBody;
use crate::service_properties;

pub async fn get_properties(call: &Call<'_>) -> Result<Answer, Error> {
    let (account, service) = (call.account()?, call.operation.service());
    let properties = call.frontend.domain().service_properties(&account, service.kind()).await?;
    let body = service_properties::write(service, &properties, call.version);
    Ok(Answer::xml(StatusCode::OK, body))
}

pub async fn set_properties(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let (account, service) = (call.account()?, call.operation.service());
    let document = body.document(call).await?;
    let update = service_properties::parse(service, &document)?;
    let domain = call.frontend.domain();
    domain.set_service_properties(&account, service.kind(), |stored| update.apply(stored)).await?;
    Ok(Answer::new(StatusCode::ACCEPTED))
}
