//! Lease Share.

use holdfast_domain::lease::LeaseKind;
use holdfast_domain::share::LeaseShare;

use super::parameters;
use crate::answer::Answer;
use crate::error::Error;
use crate::headers::lease_headers::{action, answer, fresh_id};
use crate::request::Call;

pub async fn share(call: &Call<'_>) -> Result<Answer, Error> {
    let command = LeaseShare {
        path: call.share_path()?,
        snapshot: parameters::snapshot(call)?,
        action: action(call, LeaseKind::Share)?,
        fresh_id: fresh_id(),
    };
    let (share, outcome) = call.frontend.domain().lease_share(command).await?;
    Ok(answer(call, outcome, share.etag, share.last_modified))
}
