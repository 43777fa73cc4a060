//! The life of the process: bind, open, announce, serve, and stop in order at a signal.

use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::process;
use std::sync::Arc;
use std::time::Duration;

use holdfast_rest::lanes::Lanes;
use holdfast_rest::service::{Endpoint, Service};
use holdfast_rest::source::SourceSettings;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::admin::{self, Status};
use crate::announce::{self, Served};
use crate::background;
use crate::open_files::{self, Shares};
use crate::seed::{self, Seed};
use crate::settings::{Bearer, Listen, Settings};
use crate::token_keys;
use crate::wiring::{self, Node, Tokens};

type Fault = Box<dyn Error + Send + Sync>;

/// Connections the system holds for us while all threads are busy.
const BACKLOG: u32 = 1024;
/// How long remaining tasks of the runtime may take after the timeout of requests.
const RUNTIME_GRACE: Duration = Duration::from_secs(1);

/// Settings, and the contents of the files they name.
pub struct Prepared {
    pub settings: Settings,
    pub tls: Option<TlsAcceptor>,
    pub tokens: Tokens,
    pub sources: SourceSettings,
    pub seed: Option<Seed>,
}

pub fn run(prepared: Prepared) -> Result<(), Fault> {
    let runtime = Runtime::new()?;
    let ended = runtime.block_on(serve_until_stopped(prepared));
    runtime.shutdown_timeout(RUNTIME_GRACE);
    ended
}

async fn serve_until_stopped(prepared: Prepared) -> Result<(), Fault> {
    let Prepared { settings, tls, tokens, mut sources, seed } = prepared;
    let mut stop_signals = StopSignals::new()?;
    warn(&settings);
    let status = Arc::new(Status::new());
    let admin = settings.admin.as_ref().map(|listen| bind("admin", listen)).transpose()?;
    let listeners = bind_services(&settings)?;
    let smb = settings.smb.as_ref().map(|listen| bind("smb", listen)).transpose()?;

    let admin_address = admin.as_ref().map(TcpListener::local_addr).transpose()?;
    let admin = admin.map(|listener| tokio::spawn(admin::serve(listener, status.clone())));

    for (endpoint, listen, listener) in &listeners {
        sources.own_addresses.extend(wiring::own_address(*endpoint, listen, listener)?);
    }
    let shares = share_open_files(&settings)?;
    let node = Node::open(&settings, shares, tokens.settings, sources.clone()).await?;
    let node = Arc::new(node);
    if let Some(seed) = seed {
        let created = seed::apply(&seed, &settings.accounts[0].name, &*node).await?;
        tracing::info!(created, "the seed has been applied");
    }
    let (stop, stopped) = watch::channel(false);
    let mut running = JoinSet::new();
    running.spawn(background::work(node.clone()));
    if let Some((source, ring)) = tokens.keys {
        running.spawn(token_keys::follow(source, ring, sources, node.clone()));
    }
    let lanes = Arc::new(Lanes::start()?);
    let mut served = Vec::new();
    for (endpoint, listen, listener) in listeners {
        served.push(Served {
            endpoint,
            host: listen.host.clone(),
            requested_port: listen.address.port(),
            bound: listener.local_addr()?,
            tls: tls.is_some(),
        });
        let (node, lanes) = (node.clone(), lanes.clone());
        running.spawn(node.serve(listener, endpoint, lanes, tls.clone(), stopped.clone()));
    }
    let smb_address = smb.as_ref().map(TcpListener::local_addr).transpose()?;
    if let Some(listener) = smb {
        running.spawn(node.clone().serve_smb(listener, stopped.clone()));
    }
    status.ready(node.clone());
    announce::started(settings.announcement, &served, smb_address, admin_address);

    stop_signals.next().await;
    tracing::info!("stopping: no new requests; a second signal ends the process at once");
    announce::closing(settings.announcement, &served);
    status.stopping();
    stop.send_replace(true);
    node.domain().workers().stop();
    match finish(&mut running, settings.shutdown_timeout, stop_signals.next()).await {
        Ending::Finished => {}
        Ending::CutOff => tracing::warn!("some requests did not finish in time and are cut off"),
        Ending::SecondSignal => {
            tracing::warn!("ended by a second signal");
            process::exit(1);
        }
    }
    if let Some(admin) = admin {
        admin.abort();
    }
    announce::closed(settings.announcement, &served);
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Finished,
    CutOff,
    SecondSignal,
}

/// Waits for the services to finish, for a limited time or until a second signal.
async fn finish(running: &mut JoinSet<()>, timeout: Duration, second: impl Future) -> Ending {
    let all = async { while running.join_next().await.is_some() {} };
    tokio::select! {
        () = all => Ending::Finished,
        () = tokio::time::sleep(timeout) => Ending::CutOff,
        _ = second => Ending::SecondSignal,
    }
}

fn share_open_files(settings: &Settings) -> Result<Shares, Fault> {
    let limit = open_files::raise_limit()
        .map_err(|error| format!("cannot raise the limit of open files: {error}"))?;
    let copies = !settings.copy_sources.hosts.is_empty();
    let shares = Shares::of(limit, if copies { 2 } else { 1 });
    let wanted = settings.limits.connections_max;
    if shares.connections < wanted {
        tracing::warn!(
            limit,
            wanted,
            connections = shares.connections,
            "the system lets this process have too few files open for all the connections it was \
             told to take"
        );
    }
    Ok(shares)
}

fn warn(settings: &Settings) {
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    match settings.bearer {
        Some(Bearer::Development { .. }) => tracing::warn!(
            "BEARER TOKENS ARE ACCEPTED WITHOUT CHECKING THEIR SIGNATURE: anyone who can reach \
             this server can be anyone. For development only"
        ),
        Some(Bearer::Issuer { .. }) | None => {}
    }
}

fn bind_services(settings: &Settings) -> Result<Vec<(Endpoint, Listen, TcpListener)>, Fault> {
    let services = [
        (Endpoint::Service(Service::Blob), &settings.blob),
        (Endpoint::Service(Service::Queue), &settings.queue),
        (Endpoint::Service(Service::Table), &settings.table),
        (Endpoint::Service(Service::File), &settings.file),
        (Endpoint::Website, &settings.web),
    ];
    services
        .into_iter()
        .filter_map(|(endpoint, listen)| Some((endpoint, listen.clone()?)))
        .map(|(endpoint, listen)| {
            let listener = bind(endpoint.name(), &listen)?;
            Ok((endpoint, listen, listener))
        })
        .collect()
}

fn bind(what: &str, listen: &Listen) -> Result<TcpListener, Fault> {
    listen_on(listen.address).map_err(|error| {
        format!("cannot listen on {} for the {what} service: {error}", listen.address).into()
    })
}

fn listen_on(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of a run that has just ended must not block the port for the next one.
    socket.set_reuseaddr(true)?;
    if address.ip().is_loopback() {
        // Within a machine there is no congestion, but some congestion control (BBR) measures and paces
        // every packet; the simplest one makes small requests cheaper. Connections inherit it from
        // their listener. If it is not available, any other works.
        let _ = SockRef::from(&socket).set_tcp_congestion(b"reno");
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    fn new() -> Result<Self, Fault> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn what_is_running_is_waited_for_until_the_time_is_up_or_a_signal_comes() {
        let mut running = JoinSet::new();
        running.spawn(tokio::time::sleep(Duration::from_millis(20)));
        assert_eq!(finish(&mut running, LONG, pending::<()>()).await, Ending::Finished);
        running.spawn(pending());
        let short = Duration::from_millis(20);
        assert_eq!(finish(&mut running, short, pending::<()>()).await, Ending::CutOff);
        assert_eq!(finish(&mut running, LONG, ready(())).await, Ending::SecondSignal);
    }

    #[tokio::test]
    async fn congestion_is_not_controlled_within_the_machine_and_as_usual_elsewhere() {
        let control = |socket: SockRef<'_>| {
            let name = socket.tcp_congestion().expect("it has one");
            String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned()
        };
        let usual = control(SockRef::from(&TcpSocket::new_v4().expect("a socket")));
        for (address, expected) in [("127.0.0.1:0", "reno"), ("0.0.0.0:0", usual.as_str())] {
            let listener = listen_on(address.parse().expect("an address")).expect("it is free");
            let bound = listener.local_addr().expect("it is bound");
            let client = tokio::net::TcpStream::connect(("127.0.0.1", bound.port()));
            let (accepted, client) = tokio::join!(listener.accept(), client);
            client.expect("it is listened for");
            assert_eq!(control(SockRef::from(&accepted.expect("a client").0)), expected);
        }
    }
}
