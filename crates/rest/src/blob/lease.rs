//! Lease Container and Lease Blob: one set of headers, five actions.

use holdfast_domain::blob::{LeaseBlob, LeaseContainer};
use holdfast_domain::lease::LeaseKind;

use super::headers;
use crate::answer::Answer;
use crate::error::Error;
use crate::headers::lease_headers::{action, answer, fresh_id};
use crate::request::Call;

pub async fn container(call: &Call<'_>) -> Result<Answer, Error> {
    let command = LeaseContainer {
        path: call.container_path()?,
        action: action(call, LeaseKind::Container)?,
        fresh_id: fresh_id(),
        conditions: headers::date_conditions(call)?,
    };
    let (container, outcome) = call.frontend.domain().lease_container(command).await?;
    Ok(answer(call, outcome, container.etag, container.last_modified))
}

pub async fn blob(call: &Call<'_>) -> Result<Answer, Error> {
    let command = LeaseBlob {
        path: call.blob_path()?,
        action: action(call, LeaseKind::Blob)?,
        fresh_id: fresh_id(),
        conditions: headers::write_conditions(call)?,
    };
    let (blob, outcome) = call.frontend.domain().lease_blob(command).await?;
    Ok(answer(call, outcome, blob.etag, blob.last_modified))
}
