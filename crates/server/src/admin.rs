//! The admin listener: `/healthz`, `/readyz`, `/metrics` and `/background`, without authentication and
//! without secrets. It answers from before the store is open until the process ends.

mod background;

use std::convert::Infallible;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::workers::Workers;
use holdfast_rest::metrics::{Metrics, family, sample};
use holdfast_store::engine::EngineStatistics;
use holdfast_store::extents::ExtentStatistics;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// A few scrapers and probes; more is a mistake or an attack, and waits in the backlog.
const CONNECTIONS_MAX: usize = 64;
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// What the admin listener reports on.
pub trait Observed: Send + Sync + 'static {
    /// Why writes can no longer be accepted, if they cannot.
    fn unhealthy(&self) -> Option<String>;
    fn figures(&self) -> Figures;
    fn metrics(&self) -> &Metrics;
    fn workers(&self) -> &Workers;
}

pub struct Figures {
    pub engine: EngineStatistics,
    pub extents: ExtentStatistics,
    pub leases_live: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Phase {
    Starting,
    Ready,
    Stopping,
}

/// Shared by the process and its admin listener.
pub struct Status<O> {
    observed: OnceLock<Arc<O>>,
    phase: AtomicU8,
}

impl<O: Observed> Status<O> {
    pub fn new() -> Self {
        Self { observed: OnceLock::new(), phase: AtomicU8::new(Phase::Starting as u8) }
    }

    pub fn ready(&self, observed: Arc<O>) {
        let _ = self.observed.set(observed);
        self.phase.store(Phase::Ready as u8, Ordering::Release);
    }

    pub fn stopping(&self) {
        self.phase.store(Phase::Stopping as u8, Ordering::Release);
    }

    fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Starting,
            1 => Phase::Ready,
            _ => Phase::Stopping,
        }
    }

    fn answer(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        if method != Method::GET && method != Method::HEAD {
            let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".into());
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refusal;
        }
        match path {
            "/healthz" => self.health(),
            "/readyz" => self.readiness(),
            "/metrics" => {
                let mut answer = text(StatusCode::OK, self.metrics());
                let format = "text/plain; version=0.0.4; charset=utf-8";
                answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format));
                answer
            }
            "/background" => self.background(),
            _ => {
                let known = "/healthz, /readyz, /metrics or /background\n";
                text(StatusCode::NOT_FOUND, known.into())
            }
        }
    }

    fn health(&self) -> Response<Full<Bytes>> {
        match self.observed.get().and_then(|observed| observed.unhealthy()) {
            Some(reason) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
            None => text(StatusCode::OK, "ok\n".into()),
        }
    }

    fn readiness(&self) -> Response<Full<Bytes>> {
        match self.phase() {
            Phase::Starting => text(StatusCode::SERVICE_UNAVAILABLE, "starting\n".into()),
            Phase::Stopping => text(StatusCode::SERVICE_UNAVAILABLE, "stopping\n".into()),
            Phase::Ready => match self.health() {
                healthy if healthy.status() == StatusCode::OK => {
                    text(StatusCode::OK, "ready\n".into())
                }
                unhealthy => unhealthy,
            },
        }
    }

    fn background(&self) -> Response<Full<Bytes>> {
        let Some(observed) = self.observed.get() else {
            return text(StatusCode::SERVICE_UNAVAILABLE, "starting\n".into());
        };
        let mut answer = text(StatusCode::OK, background::page(observed.workers()));
        let json = HeaderValue::from_static("application/json");
        answer.headers_mut().insert(CONTENT_TYPE, json);
        answer
    }

    fn metrics(&self) -> String {
        let mut text = String::new();
        family(&mut text, "holdfast_build_info", "gauge", "Which version this is.");
        let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
        sample(&mut text, "holdfast_build_info", &version, 1);
        if let Some(observed) = self.observed.get() {
            let healthy = u8::from(observed.unhealthy().is_none());
            single(&mut text, "holdfast_healthy", "gauge", "1 while writes are accepted.", healthy);
            store(&mut text, &observed.figures());
            background::metrics(&mut text, observed.workers());
            observed.metrics().render(&mut text);
        }
        text
    }
}

fn store(text: &mut String, figures: &Figures) {
    let Figures { engine, extents, leases_live } = figures;
    #[rustfmt::skip]
    let rows = [
        ("holdfast_commits_total", "counter", "Batches of rows committed.", engine.commits),
        ("holdfast_conflicts_total", "counter", "Batches refused because rows had changed.", engine.conflicts),
        ("holdfast_syncs_total", "counter", "Syncs of the row log; fewer than commits, which share them.", engine.syncs),
        ("holdfast_rows", "gauge", "Rows in the store, approximately.", engine.rows),
        ("holdfast_extent_segments", "gauge", "Segment files that hold extents.", extents.segments),
        ("holdfast_extent_bytes_written_total", "counter", "Bytes appended to extents.", extents.bytes_written),
        ("holdfast_extent_bytes_freed_total", "counter", "Bytes of extents given back.", extents.bytes_freed),
        ("holdfast_extent_syncs_total", "counter", "Syncs of segment files.", extents.syncs),
    ];
    for (name, kind, help, value) in rows {
        single(text, name, kind, help, value);
    }
    let about = "Leases held now, of those that were granted or changed since the start.";
    single(text, "holdfast_leases_live", "gauge", about, leases_live);
}

fn single(text: &mut String, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
    family(text, name, kind, help);
    sample(text, name, "", value);
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

/// Serves until it is dropped.
pub async fn serve<O: Observed>(listener: TcpListener, status: Arc<Status<O>>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "the admin listener cannot accept a connection");
                // Probably out of file descriptors: trying again at once would only spin.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let status = status.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |request: Request<Incoming>| {
                let response = status.answer(request.method(), request.uri().path());
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .serve_connection(TokioIo::new(stream), answer);
            if let Err(error) = connection.await {
                tracing::debug!(%error, "an admin connection ended early");
            }
            drop(place);
        });
    }
}

#[cfg(test)]
mod tests {
    use holdfast_rest::service::Service;
    use http_body_util::BodyExt;

    use super::*;

    struct Fake {
        reason: Option<&'static str>,
        metrics: Metrics,
        workers: Workers,
    }

    impl Observed for Fake {
        fn unhealthy(&self) -> Option<String> {
            self.reason.map(str::to_owned)
        }

        fn figures(&self) -> Figures {
            let engine = EngineStatistics { commits: 11, conflicts: 2, syncs: 3, rows: 40 };
            let extents =
                ExtentStatistics { segments: 5, bytes_written: 600, bytes_freed: 70, syncs: 8 };
            Figures { engine, extents, leases_live: 9 }
        }

        fn metrics(&self) -> &Metrics {
            &self.metrics
        }

        fn workers(&self) -> &Workers {
            &self.workers
        }
    }

    fn fake(reason: Option<&'static str>) -> Fake {
        Fake { reason, metrics: Metrics::new(), workers: Workers::default() }
    }

    fn status(reason: Option<&'static str>) -> Status<Fake> {
        let status = Status::new();
        status.ready(Arc::new(fake(reason)));
        status
    }

    async fn get(status: &Status<Fake>, path: &str) -> (u16, String) {
        let response = status.answer(&Method::GET, path);
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.expect("infallible").to_bytes();
        (code, String::from_utf8(body.to_vec()).expect("UTF-8"))
    }

    #[tokio::test]
    async fn readiness_follows_the_life_of_the_process() {
        let status = Status::<Fake>::new();
        assert_eq!(get(&status, "/readyz").await, (503, "starting\n".into()));
        assert_eq!(get(&status, "/healthz").await, (200, "ok\n".into()));
        status.ready(Arc::new(fake(None)));
        assert_eq!(get(&status, "/readyz").await, (200, "ready\n".into()));
        status.stopping();
        assert_eq!(get(&status, "/readyz").await, (503, "stopping\n".into()));
        assert_eq!(get(&status, "/healthz").await, (200, "ok\n".into()));
    }

    #[tokio::test]
    async fn a_poisoned_store_is_neither_healthy_nor_ready() {
        let status = status(Some("a sync failed"));
        assert_eq!(get(&status, "/healthz").await, (503, "a sync failed\n".into()));
        assert_eq!(get(&status, "/readyz").await, (503, "a sync failed\n".into()));
        assert!(get(&status, "/metrics").await.1.contains("\nholdfast_healthy 0\n"));
    }

    #[tokio::test]
    async fn metrics_have_the_store_and_the_requests() {
        let status = status(None);
        let observed = status.observed.get().expect("set");
        observed.metrics.record(Service::Blob, "GetBlob", 200, Duration::ZERO, 0, 0, None);
        let (code, text) = get(&status, "/metrics").await;
        assert_eq!(code, 200);
        for line in [
            "holdfast_commits_total 11",
            "holdfast_conflicts_total 2",
            "holdfast_syncs_total 3",
            "holdfast_rows 40",
            "holdfast_extent_segments 5",
            "holdfast_extent_bytes_written_total 600",
            "holdfast_extent_bytes_freed_total 70",
            "holdfast_extent_syncs_total 8",
            "holdfast_leases_live 9",
            "holdfast_healthy 1",
            "holdfast_requests_total{service=\"blob\",operation=\"GetBlob\",status=\"200\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }

    #[tokio::test]
    async fn background_work_is_listed_as_soon_as_there_is_any() {
        assert_eq!(get(&Status::<Fake>::new(), "/background").await.0, 503);
        let status = status(None);
        let observed = status.observed.get().expect("set");
        let worker = observed.workers.start("garbage", None);
        assert!(get(&status, "/background").await.1.contains("\"name\": \"garbage\""));
        let line = "\nholdfast_background_workers{worker=\"garbage\"} 1\n";
        assert!(get(&status, "/metrics").await.1.contains(line));
        drop(worker);
        assert_eq!(get(&status, "/background").await, (200, "{\n  \"workers\": []\n}\n".into()));
    }

    #[tokio::test]
    async fn only_reads_of_known_paths_are_answered() {
        let status = status(None);
        assert_eq!(get(&status, "/").await.0, 404);
        let refusal = status.answer(&Method::POST, "/healthz");
        assert_eq!(refusal.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
}
