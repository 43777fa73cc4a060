//! Listeners and their connections: which lane carries them, TLS, limits and time-outs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use holdfast_places::{Admitted, Entrance, Place, admit};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::answer::Answer;
use crate::connection::{self, Incoming, RequestHead};
use crate::frontend::{Frontend, Peer, Sender};
use crate::lanes::Lanes;
use crate::lanes::heavy_pool::Work;
use crate::lanes::lane_share::LaneShare;
use crate::service::Endpoint;

#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// The request line and all headers together.
    pub header_bytes_max: usize,
    /// How long a connection may be idle.
    pub idle_timeout: Duration,
    /// How long a request's headers may take, from their first byte on.
    pub head_timeout: Duration,
    /// How long a client may leave bytes unread, or a body unsent, without any progress.
    pub stall_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            header_bytes_max: 64 * 1024,
            idle_timeout: Duration::from_secs(120),
            head_timeout: HEAD_TIMEOUT,
            stall_timeout: Duration::from_secs(30),
        }
    }
}

impl ConnectionLimits {
    fn connection(&self) -> connection::Limits {
        let Self { header_bytes_max, idle_timeout, head_timeout, stall_timeout } = *self;
        connection::Limits { header_bytes_max, idle_timeout, head_timeout, stall_timeout }
    }
}

/// Headers usually fit one packet; a client that takes this long only wants to hold the connection.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(20);
const TLS_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves one listener until `shutdown` turns true, then waits for running requests. The caller
/// bounds that wait by dropping the future.
pub async fn serve(
    listener: TcpListener,
    endpoint: Endpoint,
    frontend: Arc<Frontend>,
    lanes: Arc<Lanes>,
    tls: Option<TlsAcceptor>,
    entrance: Entrance,
    shutdown: watch::Receiver<bool>,
) {
    let stopping = shutdown.clone();
    let carry = move |admitted: Admitted<TcpStream>, connections: &mut JoinSet<()>| {
        let Admitted { stream, address, place } = admitted;
        let (frontend, shutdown) = (Arc::clone(&frontend), shutdown.clone());
        let connection = Connection { endpoint, frontend, shutdown };
        let tls = tls.clone();
        let carried = lanes.next(connection.frontend.metrics());
        let lane = carried.lane().clone();
        let carry = async move {
            let frontend = Arc::clone(&connection.frontend);
            let _open = frontend.metrics().connection_opened(connection.endpoint.service());
            let stream = match stream.into_std().and_then(TcpStream::from_std) {
                Ok(stream) => stream,
                Err(error) => {
                    return tracing::warn!(%error, "a connection could not be continued");
                }
            };
            let running = connection.run(stream, address, tls, place, carried.share());
            carried.share().count_turns(running).await;
        };
        connections.spawn_on(carry, &lane);
    };
    admit(move |context| listener.poll_accept(context), entrance, stopping, carry).await;
}

struct Connection {
    endpoint: Endpoint,
    frontend: Arc<Frontend>,
    shutdown: watch::Receiver<bool>,
}

impl Connection {
    async fn run(
        self,
        stream: TcpStream,
        address: SocketAddr,
        tls: Option<TlsAcceptor>,
        place: Place,
        share: &Arc<LaneShare>,
    ) {
        // Answers are written whole: waiting to fill a packet would only delay them.
        if stream.set_nodelay(true).is_err() {
            return;
        }
        let ip = address.ip().to_canonical();
        match tls {
            None => self.talk(stream, Peer { ip, tls: false }, place, share).await,
            Some(tls) => {
                let accepting = tokio::time::timeout(TLS_HANDSHAKE_TIMEOUT, tls.accept(stream));
                let accepted = tokio::select! {
                    biased;
                    accepted = accepting => accepted,
                    () = place.taken_away() => return,
                };
                match accepted {
                    Ok(Ok(stream)) => self.talk(stream, Peer { ip, tls: true }, place, share).await,
                    Ok(Err(error)) => tracing::debug!(%error, %ip, "TLS handshake failed"),
                    Err(_) => tracing::debug!(%ip, "TLS handshake took too long"),
                }
            }
        }
    }

    async fn talk(
        mut self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: Peer,
        place: Place,
        share: &Arc<LaneShare>,
    ) {
        let limits = self.frontend.limits().connection();
        let stopping = async { drop(self.shutdown.wait_for(|down| *down).await) };
        let (frontend, endpoint, share) = (self.frontend, self.endpoint, Arc::clone(share));
        let requests = Arc::new(Requests { frontend, endpoint, peer, place, share });
        let share = &requests.share;
        if let Err(reason) = connection::serve(stream, limits, stopping, &requests, share).await {
            tracing::debug!(?reason, ip = %peer.ip, "connection ended");
        }
    }
}

/// The requests of one connection. Each connection has its own reference count, so that requests
/// that leave their lane share no counter with other connections.
struct Requests {
    frontend: Arc<Frontend>,
    endpoint: Endpoint,
    peer: Peer,
    place: Place,
    share: Arc<LaneShare>,
}

impl connection::Handler for Requests {
    fn handle(self: &Arc<Self>, head: RequestHead, body: Incoming) -> Work<Answer> {
        self.place.works(true);
        let this = Arc::clone(self);
        Box::pin(async move {
            let Self { frontend, endpoint, peer, place, share } = &*this;
            let sender = Sender { peer: *peer, place, share };
            frontend.handle(*endpoint, sender, head, body).await
        })
    }

    fn begins_answer(&self) {
        // An unauthenticated client can read its answer as long as its place is not needed.
        if !self.place.is_authenticated() {
            self.place.works(false);
        }
    }

    fn answered(&self) {
        self.place.works(false);
    }

    fn told_to_close(&self) -> impl Future<Output = ()> + Send {
        self.place.taken_away()
    }

    fn closed(&self) {
        tracing::debug!(ip = %self.peer.ip, "a connection gave its place up");
        self.place.closed();
    }
}
