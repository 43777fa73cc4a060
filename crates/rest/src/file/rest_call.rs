//! Operations among the opens of SMB clients, which may have to write back their caches first.

use std::time::Duration;

use holdfast_domain::failure::Failure;
use holdfast_domain::share::{FileRefusal, GetNode, Located, RestCall};

use crate::error::{Code, Error};
use crate::request::Call;

/// As long as the service waits for them.
const PATIENCE_MAX: Duration = Duration::from_secs(30);

pub async fn run<C: RestCall>(
    call: &Call<'_>,
    command: C,
) -> Result<C::Output, Failure<C::Refusal>> {
    call.frontend.domain().rest_call(command, patience(call)).await
}

/// The node, if it has the wanted kind. Clients ask whether a file is a directory, and accept only
/// "not found" as a no: az does so for each file that it has uploaded.
pub async fn look(call: &Call<'_>, command: GetNode) -> Result<Located, Error> {
    match run(call, command).await {
        Err(Failure::Refused(FileRefusal::WrongKind)) => Err(Code::ResourceNotFound.into()),
        looked => Ok(looked?),
    }
}

/// The timeout of the request, if that is shorter.
pub fn patience(call: &Call<'_>) -> Duration {
    let asked = call.query.integer("timeout", 1..=i64::from(i32::MAX)).ok().flatten();
    let asked = asked.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    asked.map_or(PATIENCE_MAX, |asked| asked.min(PATIENCE_MAX))
}
