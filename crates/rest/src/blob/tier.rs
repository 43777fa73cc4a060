//! Set Blob Tier, and the tier that a new blob is given.

use holdfast_domain::blob::{AccessTier, RehydratePriority, SetBlobTier, TierOutcome, Which};
use hyper::StatusCode;

use super::{headers, parameters};
use crate::answer::Answer;
use crate::error::{Code, Error};
use crate::request::Call;
use crate::version::Version;

const TIER: &str = "x-ms-access-tier";
const PRIORITY: &str = "x-ms-rehydrate-priority";

pub async fn set(call: &Call<'_>) -> Result<Answer, Error> {
    let command = SetBlobTier {
        path: call.blob_path()?,
        which: which(call)?,
        tier: requested(call)?,
        priority: priority(call)?,
        conditions: headers::write_conditions(call)?,
        lease_id: call.lease_id()?,
    };
    let outcome = call.frontend.domain().set_blob_tier(command).await?;
    Ok(Answer::new(match outcome {
        TierOutcome::Changed => StatusCode::OK,
        TierOutcome::Rehydrating => StatusCode::ACCEPTED,
    }))
}

/// The tier of snapshots and versions can be set since 2019-12-12.
fn which(call: &Call<'_>) -> Result<Which, Error> {
    match parameters::which(call)? {
        Which::Snapshot(_) | Which::Version(_) if call.version < Version::V2019_12_12 => {
            Err(Code::InvalidQueryParameterValue.into())
        }
        which @ (Which::Current | Which::Snapshot(_) | Which::Version(_)) => Ok(which),
    }
}

/// The requested tier. This operation has its own error for an unknown tier; new blobs and copies,
/// where the tier is one header among others, do not.
fn requested(call: &Call<'_>) -> Result<AccessTier, Error> {
    let text = call.required_header(TIER)?;
    if headers::parse_tier(text).is_none() {
        return Err(Error::from(Code::InvalidBlobTier)
            .detail("HeaderName", TIER)
            .detail("HeaderValue", text));
    }
    chosen(call)?.ok_or_else(|| Error::missing_header(TIER))
}

/// The tier that the request names, if it names one that its version knows.
pub fn chosen(call: &Call<'_>) -> Result<Option<AccessTier>, Error> {
    let Some(text) = call.header(TIER)? else { return Ok(None) };
    match headers::parse_tier(text) {
        Some(tier) if first_version(tier) <= call.version => Ok(Some(tier)),
        Some(_) | None => Err(Error::invalid_header(TIER, text)),
    }
}

/// Also `None` in versions without the header.
fn priority(call: &Call<'_>) -> Result<Option<RehydratePriority>, Error> {
    match call.header(PRIORITY)? {
        Some(_) if call.version < Version::V2019_02_02 => Ok(None),
        Some(text) if text.eq_ignore_ascii_case("Standard") => {
            Ok(Some(RehydratePriority::Standard))
        }
        Some(text) if text.eq_ignore_ascii_case("High") => Ok(Some(RehydratePriority::High)),
        Some(text) => Err(Error::invalid_header(PRIORITY, text)),
        None => Ok(None),
    }
}

fn first_version(tier: AccessTier) -> Version {
    match tier {
        AccessTier::Cold => Version::V2021_12_02,
        AccessTier::Smart => Version::V2026_06_06,
        AccessTier::Hot
        | AccessTier::Cool
        | AccessTier::Archive
        | AccessTier::P4
        | AccessTier::P6
        | AccessTier::P10
        | AccessTier::P15
        | AccessTier::P20
        | AccessTier::P30
        | AccessTier::P40
        | AccessTier::P50
        | AccessTier::P60
        | AccessTier::P70
        | AccessTier::P80 => Version::V2017_04_17,
    }
}
