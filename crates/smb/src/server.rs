//! Accepting connections, and a shutdown that finishes what is running.

use std::sync::Arc;
use std::time::Duration;

use holdfast_places::Entrance;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::frontend::Frontend;

/// After a failed accept (no more file descriptors, say) trying again at once would only spin.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);
/// A client that says nothing is asked after this long whether it is still there: what it has open
/// is in the way of others.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(60);

/// Serves one listener until `shutdown` turns true, then waits for the requests at work. The
/// caller bounds that wait by dropping the future.
pub async fn serve(
    listener: TcpListener,
    frontend: Arc<Frontend>,
    entrance: Entrance,
    mut shutdown: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            _ = shutdown.wait_for(|down| *down) => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        let place = tokio::select! {
            _ = shutdown.wait_for(|down| *down) => break,
            place = entrance.take(address.ip()) => place,
        };
        let Some(place) = place else {
            tracing::debug!(%address, "the address has all the connections that it can have");
            continue;
        };
        let (frontend, shutdown) = (Arc::clone(&frontend), shutdown.clone());
        connections.spawn(async move {
            // Answers are written whole: waiting to fill a packet would only delay them.
            if stream.set_nodelay(true).is_ok() && keep_alive(&stream).is_ok() {
                let _open = frontend.observer().connection_opened();
                Connection::serve(&frontend, stream, address.ip(), place, shutdown).await;
            }
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

fn keep_alive(stream: &TcpStream) -> std::io::Result<()> {
    let keep_alive = TcpKeepalive::new().with_time(KEEP_ALIVE_AFTER);
    SockRef::from(stream).set_tcp_keepalive(&keep_alive)
}
