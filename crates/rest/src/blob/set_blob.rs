//! Set Blob Metadata and Set Blob Properties.

use holdfast_domain::blob::{Blob, SetBlobMetadata, SetBlobProperties};
use hyper::StatusCode;

use super::{encryption, headers};
use crate::answer::Answer;
use crate::error::Error;
use crate::request::Call;

pub async fn set_metadata(call: &Call<'_>) -> Result<Answer, Error> {
    let command = SetBlobMetadata {
        path: call.blob_path()?,
        metadata: call.metadata()?,
        conditions: headers::write_conditions(call)?,
        lease_id: call.lease_id()?,
        key: encryption::customer_key(call)?,
    };
    let blob = call.frontend.domain().set_blob_metadata(command).await?;
    let mut answer = changed(call, &blob);
    headers::version_id(&mut answer, call, &blob);
    encryption::describe(&mut answer, &blob.encryption);
    answer.header("x-ms-request-server-encrypted", "true");
    Ok(answer)
}

pub async fn set_properties(call: &Call<'_>) -> Result<Answer, Error> {
    let command = SetBlobProperties {
        path: call.blob_path()?,
        headers: headers::content_headers(call, false)?,
        conditions: headers::write_conditions(call)?,
        lease_id: call.lease_id()?,
    };
    let blob = call.frontend.domain().set_blob_properties(command).await?;
    Ok(changed(call, &blob))
}

fn changed(call: &Call<'_>, blob: &Blob) -> Answer {
    let mut answer = Answer::new(StatusCode::OK);
    headers::identity(&mut answer, blob.etag, blob.last_modified, call.version);
    answer
}
