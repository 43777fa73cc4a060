//! Set Blob Metadata and Set Blob Properties.

use holdfast_domain::blob::{Blob, SetBlobMetadata, SetBlobProperties};
use holdfast_domain::condition::{SequenceAction, SequenceActionInvalid};
use holdfast_domain::content::ContentHeaders;
use hyper::StatusCode;

use super::encryption::{self, Chosen};
use super::{headers, page, put_blob};
use crate::answer::Answer;
use crate::error::Error;
use crate::request::Call;

pub async fn set_metadata(call: &Call<'_>) -> Result<Answer, Error> {
    let command = SetBlobMetadata {
        path: call.blob_path()?,
        metadata: call.metadata()?,
        conditions: headers::write_conditions(call)?,
        lease_id: call.lease_id()?,
        encryption: Chosen::read(call)?.encryption(),
    };
    let blob = call.frontend.domain().set_blob_metadata(command).await?;
    let mut answer = changed(call, &blob);
    headers::version_id(&mut answer, call, &blob);
    encryption::describe(&mut answer, &blob.encryption);
    answer.header("x-ms-request-server-encrypted", "true");
    Ok(answer)
}

pub async fn set_properties(call: &Call<'_>) -> Result<Answer, Error> {
    let (length, sequence) = (put_blob::page_blob_length(call)?, sequence_action(call)?);
    let command = SetBlobProperties {
        path: call.blob_path()?,
        headers: header_group(call, length.is_some() || sequence.is_some())?,
        length,
        sequence,
        conditions: headers::write_conditions(call)?,
        lease_id: call.lease_id()?,
    };
    let blob = call.frontend.domain().set_blob_properties(command).await?;
    let mut answer = changed(call, &blob);
    headers::sequence_number(&mut answer, blob.kind);
    Ok(answer)
}

/// The stored headers, which are set together; if something `else_` is set, they may be left
/// unchanged.
fn header_group(call: &Call<'_>, else_: bool) -> Result<Option<ContentHeaders>, Error> {
    let sent = headers::content_headers(call, false)?;
    Ok(Some(sent).filter(|sent| !else_ || *sent != ContentHeaders::default()))
}

fn sequence_action(call: &Call<'_>) -> Result<Option<SequenceAction>, Error> {
    const ACTION: &str = "x-ms-sequence-number-action";
    const NUMBER: &str = "x-ms-blob-sequence-number";
    let number = page::sequence_number(call, NUMBER)?;
    let action = match (call.header(ACTION)?, number) {
        (None, None) => return Ok(None),
        (None, Some(_)) => return Err(Error::missing_header(ACTION)),
        (Some(action), _) => action,
    };
    SequenceAction::new(action, number).map(Some).map_err(|invalid| match (invalid, number) {
        (SequenceActionInvalid::NumberMissing, _) => Error::missing_header(NUMBER),
        (SequenceActionInvalid::NumberNotAllowed, Some(number)) => {
            Error::invalid_header(NUMBER, number.get().to_string())
        }
        (SequenceActionInvalid::Unknown | SequenceActionInvalid::NumberNotAllowed, _) => {
            Error::invalid_header(ACTION, action)
        }
    })
}

fn changed(call: &Call<'_>, blob: &Blob) -> Answer {
    let mut answer = Answer::new(StatusCode::OK);
    headers::identity(&mut answer, blob.etag, blob.last_modified, call.version);
    answer
}
