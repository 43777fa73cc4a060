//! Puts the layers together: which store the services stand on, and which front end answers on
//! which listener. Nothing else in this crate names the insides of the other crates.

use std::convert::Infallible;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdfast_domain::time::Clock;
use holdfast_rest::metrics::Metrics;
use holdfast_rest::service::Service;
use holdfast_store::memory::{MemoryEngine, MemoryExtents};
use holdfast_store::{Engine, Extents, Fault};
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
use crate::settings::{Limits, Settings, Storage};

/// An open store with the services on top of it.
pub struct Node {
    engine: Arc<dyn Engine>,
    extents: Arc<dyn Extents>,
    metrics: Metrics,
    clock: SteadyClock,
    limits: Limits,
    /// Held for as long as the folder is in use.
    _lock: Option<File>,
}

impl Node {
    pub async fn open(settings: &Settings) -> Result<Self, Fault> {
        let lock = match &settings.storage {
            Storage::Memory => None,
            Storage::Folder { path, .. } => Some(lock(path)?),
        };
        Ok(Self {
            engine: Arc::new(MemoryEngine::default()),
            extents: Arc::new(MemoryExtents::default()),
            metrics: Metrics::new(),
            clock: SteadyClock::new(),
            limits: settings.limits,
            _lock: lock,
        })
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
        if let Ok(date) = HeaderValue::try_from(self.clock.now().rfc1123().to_string()) {
            headers.insert(DATE, date);
        }
        response
    }
}

impl Observed for Node {
    fn unhealthy(&self) -> Option<String> {
        self.engine.poisoned().map(|fault| format!("{fault:?}"))
    }

    fn figures(&self) -> Figures {
        Figures {
            engine: self.engine.statistics(),
            extents: self.extents.statistics(),
            leases_live: None,
        }
    }

    fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}

fn lock(folder: &Path) -> Result<File, Fault> {
    let shown = folder.display();
    std::fs::create_dir_all(folder)
        .map_err(|error| Fault::because(format!("cannot create data folder {shown}"), error))?;
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.join("LOCK"))
        .map_err(|error| {
        Fault::because(format!("cannot write to data folder {shown}"), error)
    })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Fault::new(format!("data folder {shown} is in use by another process")))
        }
        Err(TryLockError::Error(error)) => {
            Err(Fault::because(format!("cannot lock data folder {shown}"), error))
        }
    }
}
