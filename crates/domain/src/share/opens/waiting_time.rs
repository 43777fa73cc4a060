//! The clock for waiting opens. It is not a time of day, it is never stored, and tests can pause
//! the clock of the runtime; so it need not be injected.

use tokio::time::Instant;

#[expect(
    clippy::disallowed_methods,
    reason = "deadlines of waits are compared with the runtime's clock"
)]
pub fn now() -> Instant {
    Instant::now()
}
