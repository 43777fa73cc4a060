//! The time by which opens wait. It is no time of day, nobody stores it, and a test that pauses the
//! clock of the runtime decides when it goes on; so it needs to be handed to nobody.

use tokio::time::Instant;

#[expect(
    clippy::disallowed_methods,
    reason = "deadlines of waits are compared with the runtime's clock"
)]
pub fn now() -> Instant {
    Instant::now()
}
