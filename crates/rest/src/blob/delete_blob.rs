//! Delete Blob.

use holdfast_domain::blob::{DeleteBlob, Which};
use hyper::StatusCode;

use super::{headers, parameters};
use crate::answer::Answer;
use crate::error::{Code, Error};
use crate::request::Call;

pub async fn delete(call: &Call<'_>) -> Result<Answer, Error> {
    check_delete_snapshots(call)?;
    if parameters::which(call)? != Which::Current {
        return Err(Code::BlobNotFound.into());
    }
    let command = DeleteBlob {
        path: call.blob_path()?,
        conditions: headers::write_conditions(call)?,
        tier_conditions: headers::tier_conditions(call)?,
        lease_id: call.lease_id()?,
    };
    call.frontend.domain().delete_blob(command).await?;
    let mut answer = Answer::new(StatusCode::ACCEPTED);
    answer.header("x-ms-delete-type-permanent", "true");
    Ok(answer)
}

/// A blob has no snapshots yet, so `include` changes nothing; `only` has nothing to delete.
fn check_delete_snapshots(call: &Call<'_>) -> Result<(), Error> {
    const NAME: &str = "x-ms-delete-snapshots";
    match call.header(NAME)? {
        None => Ok(()),
        Some(text) if text.eq_ignore_ascii_case("include") => Ok(()),
        Some(text) if text.eq_ignore_ascii_case("only") => Err(Code::NotImplemented.into()),
        Some(text) => Err(Error::invalid_header(NAME, text)),
    }
}
