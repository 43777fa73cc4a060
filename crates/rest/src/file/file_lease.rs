//! Lease File: four actions on infinite leases.

use holdfast_domain::lease::LeaseKind;
use holdfast_domain::share::LeaseFile;

use super::{node_address, rest_call};
use crate::answer::Answer;
use crate::error::Error;
use crate::headers::lease_headers::{action, answer, fresh_id};
use crate::request::Call;

pub async fn lease(call: &Call<'_>) -> Result<Answer, Error> {
    const BREAK_PERIOD: &str = "x-ms-lease-break-period";
    if let Some(period) = call.header(BREAK_PERIOD)? {
        return Err(Error::invalid_header(BREAK_PERIOD, period));
    }
    let action = action(call, LeaseKind::File)?;
    let command = LeaseFile { address: node_address::file(call)?, action, fresh_id: fresh_id() };
    let (located, outcome) = rest_call::run(call, command).await?;
    Ok(answer(call, outcome, located.node.etag, located.node.last_modified))
}
