//! Immutability policies and legal holds, of existing and of new blobs.

use holdfast_domain::blob::{
    DeleteImmutabilityPolicy, Immutability, SetImmutabilityPolicy, SetLegalHold,
};
use hyper::StatusCode;

use super::{headers, parameters};
use crate::answer::Answer;
use crate::error::{Code, Error};
use crate::request::Call;

const UNTIL: &str = "x-ms-immutability-policy-until-date";
const MODE: &str = "x-ms-immutability-policy-mode";
const HOLD: &str = "x-ms-legal-hold";

pub async fn set(call: &Call<'_>) -> Result<Answer, Error> {
    let policy = policy(call)?.ok_or_else(|| Error::missing_header(UNTIL))?;
    let command = SetImmutabilityPolicy {
        path: call.blob_path()?,
        which: parameters::which(call)?,
        policy,
        if_unmodified_since: call.date_header("if-unmodified-since")?,
    };
    call.frontend.domain().set_immutability_policy(command).await?;
    let mut answer = Answer::new(StatusCode::OK);
    describe_policy(&mut answer, policy);
    Ok(answer)
}

pub async fn delete(call: &Call<'_>) -> Result<Answer, Error> {
    let (path, which) = (call.blob_path()?, parameters::which(call)?);
    let command = DeleteImmutabilityPolicy { path, which };
    call.frontend.domain().delete_immutability_policy(command).await?;
    Ok(Answer::new(StatusCode::OK))
}

pub async fn set_legal_hold(call: &Call<'_>) -> Result<Answer, Error> {
    let hold = legal_hold(call)?.ok_or_else(|| Error::missing_header(HOLD))?;
    let (path, which) = (call.blob_path()?, parameters::which(call)?);
    call.frontend.domain().set_legal_hold(SetLegalHold { path, which, hold }).await?;
    let mut answer = Answer::new(StatusCode::OK);
    answer.header(HOLD, if hold { "true" } else { "false" });
    Ok(answer)
}

/// The policy and the hold that a request sets on a new blob, if the caller may set them.
pub fn of_new_blob(call: &Call<'_>) -> Result<(Option<Immutability>, bool), Error> {
    let (policy, hold) = (policy(call)?, legal_hold(call)?.unwrap_or(false));
    let asks = policy.is_some() || hold;
    if asks && !call.granted.may('i', "blobServices/containers/write") {
        return Err(Code::AuthorizationPermissionMismatch.into());
    }
    Ok((policy, hold))
}

fn describe_policy(answer: &mut Answer, policy: Immutability) {
    answer.header(UNTIL, policy.until.rfc1123().to_string());
    answer.header(MODE, headers::policy_mode(policy));
}

fn policy(call: &Call<'_>) -> Result<Option<Immutability>, Error> {
    let locked = match call.header(MODE)? {
        None => None,
        Some(mode) if mode.eq_ignore_ascii_case("Unlocked") => Some(false),
        Some(mode) if mode.eq_ignore_ascii_case("Locked") => Some(true),
        Some(mode) => return Err(Error::invalid_header(MODE, mode)),
    };
    match (call.date_header(UNTIL)?, locked) {
        (Some(until), locked) => Ok(Some(Immutability { until, locked: locked == Some(true) })),
        (None, Some(_)) => Err(Error::missing_header(UNTIL)),
        (None, None) => Ok(None),
    }
}

fn legal_hold(call: &Call<'_>) -> Result<Option<bool>, Error> {
    match call.header(HOLD)? {
        None => Ok(None),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
        Some(text) => Err(Error::invalid_header(HOLD, text)),
    }
}
