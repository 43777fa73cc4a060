//! Puts the layers together: which store the services stand on, and which front end answers on
//! which listener. Nothing else in this crate names the insides of the other crates.

mod seed_target;

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdfast_domain::{Domain, recorded_time};
use holdfast_rest::metrics::Metrics;
use holdfast_rest::service::Service;
use holdfast_store::embedded::{
    self, DataFolder, EmbeddedEngine, EngineOptions, OpenError, SegmentExtents, SegmentOptions,
};
use holdfast_store::memory::{MemoryEngine, MemoryExtents};
use holdfast_store::{Engine, Extents};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{DATE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::admin::{Figures, Observed};
use crate::clock::SteadyClock;
use crate::settings::{Durability, Limits, Settings, Storage};

const EXTENTS_FOLDER: &str = "extents";

/// An open store with the services on top of it.
pub struct Node {
    domain: Domain,
    metrics: Metrics,
    limits: Limits,
}

impl Node {
    pub async fn open(settings: &Settings) -> Result<Self, OpenError> {
        let (engine, extents) = match &settings.storage {
            Storage::Memory => in_memory(),
            Storage::Folder { path, durability } => in_folder(path, *durability)?,
        };
        let mut clock = SteadyClock::new();
        if let Some(recorded) = recorded_time(&*engine).await? {
            clock = clock.starting_at_least(recorded);
        }
        let domain = Domain::open(engine, extents, Arc::new(clock)).await?;
        Ok(Self { domain, metrics: Metrics::new(), limits: settings.limits })
    }

    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Answers on `listener` until `shutdown` says so and what is running has finished.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        service: Service,
        tls: Option<TlsAcceptor>,
        mut shutdown: watch::Receiver<bool>,
    ) {
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = shutdown.wait_for(|stop| *stop) => break,
            };
            while connections.try_join_next().is_some() {}
            match accepted {
                Ok((stream, _)) => {
                    let (node, tls, shutdown) = (self.clone(), tls.clone(), shutdown.clone());
                    connections.spawn(async move {
                        let _open = node.metrics.connection_opened(service);
                        match tls {
                            None => node.answer(stream, service, shutdown).await,
                            Some(tls) => match tls.accept(stream).await {
                                Ok(stream) => node.answer(stream, service, shutdown).await,
                                Err(error) => tracing::debug!(%error, "TLS handshake failed"),
                            },
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, %service, "a connection cannot be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        drop(listener);
        while connections.join_next().await.is_some() {}
    }

    async fn answer(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        service: Service,
        mut shutdown: watch::Receiver<bool>,
    ) {
        let handler = service_fn(move |_request: Request<Incoming>| {
            let begun = Instant::now();
            let response = self.not_implemented();
            let code = Some("NotImplemented");
            self.metrics.record(service, "Unknown", 501, begun.elapsed(), 0, 0, code);
            async move { Ok::<_, Infallible>(response) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.idle_timeout)
            .max_buf_size(self.limits.header_bytes_max)
            .serve_connection(TokioIo::new(stream), handler);
        tokio::pin!(connection);
        let stopping = async { drop(shutdown.wait_for(|stop| *stop).await) };
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stopping => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, %service, "a connection ended early");
        }
    }

    fn not_implemented(&self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
        let headers = response.headers_mut();
        headers.insert("x-ms-error-code", HeaderValue::from_static("NotImplemented"));
        if let Ok(date) = HeaderValue::try_from(self.domain.now().rfc1123().to_string()) {
            headers.insert(DATE, date);
        }
        response
    }
}

impl Observed for Node {
    fn unhealthy(&self) -> Option<String> {
        self.domain.engine().poisoned().map(|fault| format!("{fault:?}"))
    }

    fn figures(&self) -> Figures {
        Figures {
            engine: self.domain.engine().statistics(),
            extents: self.domain.extents().statistics(),
            leases_live: None,
        }
    }

    fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}

type Store = (Arc<dyn Engine>, Arc<dyn Extents>);

fn in_memory() -> Store {
    (Arc::new(MemoryEngine::default()), Arc::new(MemoryExtents::default()))
}

fn in_folder(path: &Path, durability: Durability) -> Result<Store, OpenError> {
    let durability = match durability {
        Durability::Fsync => embedded::Durability::Fsync,
        Durability::Relaxed => embedded::Durability::Relaxed,
    };
    let folder = DataFolder::open(path)?;
    let options = EngineOptions { durability, ..EngineOptions::default() };
    let engine = EmbeddedEngine::open(&folder, &options)?;
    let options = SegmentOptions { durability, ..SegmentOptions::default() };
    let extents = SegmentExtents::open(&folder.subfolder(EXTENTS_FOLDER)?, options)?;
    Ok((Arc::new(engine), Arc::new(extents)))
}
