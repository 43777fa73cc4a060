//! Commands that take a while: the client gets STATUS_PENDING first, and can cancel.

use std::pin::pin;
use std::time::Duration;

use crate::connection::Ticket;
use crate::status::Status;

/// Most work is done before this, without STATUS_PENDING.
const PATIENCE: Duration = Duration::from_millis(20);

/// The outcome of `work`. The client gets STATUS_PENDING if it takes longer than `PATIENCE`.
pub async fn patiently<T>(
    ticket: &Ticket,
    work: impl Future<Output = T>,
) -> std::result::Result<T, Status> {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        outcome = &mut work => return Ok(outcome),
        () = ticket.cancelled() => return Err(Status::CANCELLED),
        () = tokio::time::sleep(PATIENCE) => {}
    }
    pending(ticket, work).await
}

/// As [`patiently`], for work that is either done at once or waits for other clients.
pub async fn at_once_or_pending<T>(
    ticket: &Ticket,
    work: impl Future<Output = T>,
) -> std::result::Result<T, Status> {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        outcome = &mut work => return Ok(outcome),
        () = std::future::ready(()) => {}
    }
    pending(ticket, work).await
}

async fn pending<T>(
    ticket: &Ticket,
    work: impl Future<Output = T>,
) -> std::result::Result<T, Status> {
    ticket.tell_pending();
    tokio::select! {
        biased;
        outcome = work => Ok(outcome),
        () = ticket.cancelled() => Err(Status::CANCELLED),
    }
}
