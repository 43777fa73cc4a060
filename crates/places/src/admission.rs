//! The loop of a listener: connections are accepted, get a place and are served, until the server
//! stops; then running ones may finish. The front end provides the functions that accept and serve
//! them.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::{Entrance, Place};

/// After a failed accept (no more file descriptors, say) trying again at once would only spin.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// A connection that has its place.
pub struct Admitted<Stream> {
    pub stream: Stream,
    pub address: SocketAddr,
    pub place: Place,
}

/// Admits connections until `shutdown` turns true, then waits for those that `carry` has spawned. The
/// caller bounds that wait by dropping the future. `poll_accept` owns the listener, which is closed
/// before the wait.
pub async fn admit<Stream>(
    mut poll_accept: impl FnMut(&mut Context<'_>) -> Poll<io::Result<(Stream, SocketAddr)>>,
    entrance: Entrance,
    mut shutdown: watch::Receiver<bool>,
    mut carry: impl FnMut(Admitted<Stream>, &mut JoinSet<()>),
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            _ = shutdown.wait_for(|down| *down) => break,
            accepted = poll_fn(&mut poll_accept) => accepted,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        // After accepting: an idle listener must not hold a place that another could use.
        let place = tokio::select! {
            _ = shutdown.wait_for(|down| *down) => break,
            place = entrance.take(address.ip()) => place,
        };
        let Some(place) = place else {
            tracing::debug!(%address, "the address has all the connections that it can have");
            continue;
        };
        carry(Admitted { stream, address, place }, &mut connections);
        while connections.try_join_next().is_some() {}
    }
    drop(poll_accept);
    while connections.join_next().await.is_some() {}
}
