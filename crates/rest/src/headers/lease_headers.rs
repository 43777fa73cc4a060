//! The headers of lease actions, the same for all resources.

use holdfast_domain::etag::ETag;
use holdfast_domain::lease::{
    BreakPeriod, LeaseAction, LeaseDuration, LeaseId, LeaseKind, LeaseOutcome,
};
use holdfast_domain::time::Timestamp;
use hyper::StatusCode;

use crate::answer::Answer;
use crate::error::Error;
use crate::headers::resource_headers;
use crate::request::Call;
use crate::version::Version;

const LEASE_ID: &str = "x-ms-lease-id";
const PROPOSED_ID: &str = "x-ms-proposed-lease-id";
const DURATION: &str = "x-ms-lease-duration";
const BREAK_PERIOD: &str = "x-ms-lease-break-period";

pub fn fresh_id() -> LeaseId {
    LeaseId::from_u128(uuid::Uuid::new_v4().as_u128())
}

pub fn action(call: &Call<'_>, kind: LeaseKind) -> Result<LeaseAction, Error> {
    const ACTION: &str = "x-ms-lease-action";
    let id = || call.lease_id_header(LEASE_ID)?.ok_or_else(|| Error::missing_header(LEASE_ID));
    let name = call.required_header(ACTION)?;
    for (header, its_action) in [(DURATION, "acquire"), (BREAK_PERIOD, "break")] {
        if let Some(value) = call.header(header)?
            && !name.eq_ignore_ascii_case(its_action)
        {
            return Err(Error::invalid_header(header, value));
        }
    }
    let action = match name.to_ascii_lowercase().as_str() {
        "acquire" => LeaseAction::Acquire {
            proposed: call.lease_id_header(PROPOSED_ID)?,
            duration: duration(call, kind)?,
        },
        "renew" => LeaseAction::Renew { id: id()? },
        "change" => LeaseAction::Change {
            id: id()?,
            proposed: call
                .lease_id_header(PROPOSED_ID)?
                .ok_or_else(|| Error::missing_header(PROPOSED_ID))?,
        },
        "release" => LeaseAction::Release { id: id()? },
        "break" if call.version < Version::V2012_02_12 => LeaseAction::BreakOnce,
        "break" => LeaseAction::Break { period: break_period(call)? },
        _ => return Err(Error::invalid_header(ACTION, name)),
    };
    Ok(action)
}

fn duration(call: &Call<'_>, kind: LeaseKind) -> Result<LeaseDuration, Error> {
    let text = match call.header(DURATION)? {
        // Every lease was for one minute then, and there was no header for it.
        _ if call.version < Version::V2012_02_12 => "60",
        None => return Err(Error::missing_header(DURATION)),
        Some(text) => text,
    };
    let duration = text.parse().ok().and_then(|seconds| LeaseDuration::parse(seconds, kind));
    duration.ok_or_else(|| Error::invalid_header(DURATION, text))
}

fn break_period(call: &Call<'_>) -> Result<Option<BreakPeriod>, Error> {
    let Some(text) = call.header(BREAK_PERIOD)? else { return Ok(None) };
    let period = text.parse().ok().and_then(BreakPeriod::parse);
    period.map(Some).ok_or_else(|| Error::invalid_header(BREAK_PERIOD, text))
}

pub fn answer(
    call: &Call<'_>,
    outcome: LeaseOutcome,
    etag: ETag,
    last_modified: Timestamp,
) -> Answer {
    let (status, id, time) = match outcome {
        LeaseOutcome::Acquired(id) => (StatusCode::CREATED, Some(id), None),
        LeaseOutcome::Renewed(id) | LeaseOutcome::Changed(id) => (StatusCode::OK, Some(id), None),
        LeaseOutcome::Released => (StatusCode::OK, None, None),
        LeaseOutcome::Broken { remaining_seconds } => {
            (StatusCode::ACCEPTED, None, Some(remaining_seconds))
        }
    };
    let mut answer = Answer::new(status);
    resource_headers::identity(&mut answer, etag, last_modified, call.version);
    answer.optional_header(LEASE_ID, id.map(|id| id.to_string()));
    answer.optional_header("x-ms-lease-time", time.map(|time| time.to_string()));
    answer
}
