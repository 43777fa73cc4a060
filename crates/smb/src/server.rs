//! A listener and its connections.

use std::sync::Arc;
use std::time::Duration;

use holdfast_places::{Admitted, Entrance, admit};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::frontend::Frontend;

/// After this idle time TCP keep-alive checks that a client is still there: its opens may block
/// others.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(60);

/// Serves one listener until `shutdown` turns true, then waits for running requests. The caller
/// bounds that wait by dropping the future.
pub async fn serve(
    listener: TcpListener,
    frontend: Arc<Frontend>,
    entrance: Entrance,
    shutdown: watch::Receiver<bool>,
) {
    let stopping = shutdown.clone();
    let carry = move |admitted: Admitted<TcpStream>, connections: &mut JoinSet<()>| {
        let Admitted { stream, address, place } = admitted;
        let (frontend, shutdown) = (Arc::clone(&frontend), shutdown.clone());
        connections.spawn(async move {
            // Answers are written whole: waiting to fill a packet would only delay them.
            if stream.set_nodelay(true).is_ok() && keep_alive(&stream).is_ok() {
                let _open = frontend.observer().connection_opened();
                Connection::serve(&frontend, stream, address.ip(), place, shutdown).await;
            }
        });
    };
    admit(move |context| listener.poll_accept(context), entrance, stopping, carry).await;
}

fn keep_alive(stream: &TcpStream) -> std::io::Result<()> {
    let keep_alive = TcpKeepalive::new().with_time(KEEP_ALIVE_AFTER);
    SockRef::from(stream).set_tcp_keepalive(&keep_alive)
}
