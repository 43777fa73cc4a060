//! Delete Blob and Undelete Blob.

use holdfast_domain::blob::{DeleteBlob, DeleteSnapshots, Deleted, Which};
use hyper::StatusCode;

use super::{headers, parameters};
use crate::answer::Answer;
use crate::error::{Code, Error};
use crate::request::Call;
use crate::url_query::QueryRefusal;
use crate::version::Version;

pub async fn delete(call: &Call<'_>) -> Result<Answer, Error> {
    let which = parameters::which(call)?;
    let command = DeleteBlob {
        path: call.blob_path()?,
        which,
        snapshots: delete_snapshots(call, which)?,
        permanent: is_permanent(call)?,
        conditions: headers::write_conditions(call)?,
        tier_conditions: headers::tier_conditions(call)?,
        lease_id: call.lease_id()?,
    };
    let deleted = call.frontend.domain().delete_blob(command).await?;
    let mut answer = Answer::new(StatusCode::ACCEPTED);
    if call.version >= Version::V2017_07_29 {
        let for_good = deleted == Deleted::ForGood;
        answer.header("x-ms-delete-type-permanent", if for_good { "true" } else { "false" });
    }
    Ok(answer)
}

pub async fn undelete(call: &Call<'_>) -> Result<Answer, Error> {
    call.frontend.domain().undelete_blob(&call.blob_path()?).await?;
    Ok(Answer::new(StatusCode::OK))
}

/// What happens to the snapshots; only if the blob itself is addressed.
fn delete_snapshots(call: &Call<'_>, which: Which) -> Result<Option<DeleteSnapshots>, Error> {
    const NAME: &str = "x-ms-delete-snapshots";
    let Some(text) = call.header(NAME)? else { return Ok(None) };
    match which {
        Which::Current => {}
        Which::Snapshot(_) => return Err(Code::InvalidOperation.into()),
        Which::Version(_) => return Err(Error::invalid_header(NAME, text)),
    }
    if text.eq_ignore_ascii_case("include") {
        Ok(Some(DeleteSnapshots::Include))
    } else if text.eq_ignore_ascii_case("only") {
        Ok(Some(DeleteSnapshots::Only))
    } else {
        Err(Error::invalid_header(NAME, text))
    }
}

fn is_permanent(call: &Call<'_>) -> Result<bool, Error> {
    const NAME: &str = "deletetype";
    match call.query.get_nonempty(NAME) {
        Some(value) if value.eq_ignore_ascii_case("permanent") => Ok(true),
        Some(value) => {
            Err(QueryRefusal::InvalidValue { name: NAME, value: value.to_owned() }.into())
        }
        None => Ok(false),
    }
}
