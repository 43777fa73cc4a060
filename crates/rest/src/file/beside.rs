//! Operations among the opens of SMB clients, who may have to write back what they cache first.

use std::time::Duration;

use holdfast_domain::failure::Failure;
use holdfast_domain::share::BesideOpens;

use crate::request::Call;

/// As long as the service waits for any of them.
const PATIENCE_MAX: Duration = Duration::from_secs(30);

pub async fn run<C: BesideOpens>(
    call: &Call<'_>,
    command: C,
) -> Result<C::Output, Failure<C::Refusal>> {
    call.frontend.domain().beside_opens(command, patience(call)).await
}

/// The timeout of the request, if that is shorter.
pub fn patience(call: &Call<'_>) -> Duration {
    let asked = call.query.integer("timeout", 1..=i64::from(i32::MAX)).ok().flatten();
    let asked = asked.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    asked.map_or(PATIENCE_MAX, |asked| asked.min(PATIENCE_MAX))
}
