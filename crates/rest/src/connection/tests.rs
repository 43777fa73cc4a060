//! Whole connections, against a handler that reports what it received.

use std::convert::Infallible;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use holdfast_random::Random;
use http_body_util::{BodyExt as _, Full};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::*;
use crate::answer::AnswerBody;
use crate::headers::request_headers::ascii;
use crate::lanes::heavy_pool::HeavyPool;
use crate::metrics::Metrics;

const LIMITS: Limits = Limits {
    header_bytes_max: 4096,
    idle_timeout: Duration::from_secs(20),
    head_timeout: Duration::from_secs(20),
    stall_timeout: Duration::from_secs(20),
};
const HASTY: Limits = Limits {
    idle_timeout: Duration::from_millis(50),
    head_timeout: Duration::from_millis(50),
    stall_timeout: Duration::from_millis(50),
    ..LIMITS
};
/// The length of an answer that is sent in many turns.
const LONG_BYTES: usize = 3 * 1024 * 1024;
const IN_TIME: Duration = Duration::from_secs(60);

/// Answers with the path and the body; some paths select another answer.
#[derive(Default)]
struct Echo {
    handled: AtomicUsize,
    seen: Mutex<Vec<String>>,
}

impl Handler for Echo {
    fn handle(self: &Arc<Self>, head: RequestHead, body: Incoming) -> Work<Answer> {
        let this = Arc::clone(self);
        Box::pin(async move {
            let answer = this.answer(head, body).await;
            this.handled.fetch_add(1, Ordering::Relaxed);
            answer
        })
    }
}

impl Echo {
    async fn answer(&self, head: RequestHead, mut body: Incoming) -> Answer {
        let path = head.parts.uri.path().to_owned();
        let mut answer = Answer::new(StatusCode::OK);
        for (name, value) in head.parts.headers.iter() {
            let (name, value) = (ascii(name).unwrap_or_default(), ascii(value));
            if let Some(name) = name.strip_prefix("x-ms-meta-") {
                let value = value.unwrap_or_default();
                answer.metadata_header(head.case.original(name), value);
            }
        }
        let mut text = path.clone().into_bytes();
        if path == "/unread" {
            return answer;
        }
        let mut is_whole = true;
        while let Some(bytes) = body.next().await {
            match bytes {
                Ok(bytes) => text.extend_from_slice(&bytes),
                Err(_) => is_whole = false,
            }
        }
        let seen = format!("{} {path} {is_whole} {}", head.parts.method, text.len() - path.len());
        self.seen.lock().push(seen);
        let pieces = [b"ab".as_slice(), b"", b"cde"].map(|piece| Ok(Bytes::from_static(piece)));
        answer.body = match path.as_str() {
            "/chunks" => AnswerBody::Stream(None, Box::pin(stream::iter(pieces))),
            "/stream" => AnswerBody::Stream(Some(5), Box::pin(stream::iter(pieces))),
            "/short" => AnswerBody::Stream(Some(9), Box::pin(stream::iter(pieces))),
            "/long" => AnswerBody::Whole(vec![b'l'; LONG_BYTES].into()),
            "/long-stream" => AnswerBody::Stream(
                Some(LONG_BYTES as u64),
                Box::pin(stream::iter([Ok(vec![b'l'; LONG_BYTES].into())])),
            ),
            "/endless" => AnswerBody::Stream(None, Box::pin(stream::pending())),
            "/nothing" => {
                answer.status = StatusCode::NO_CONTENT;
                AnswerBody::Empty
            }
            _ => AnswerBody::Whole(text.into()),
        };
        answer
    }
}

/// Serves a connection as a lane does.
async fn serve_one(
    server: DuplexStream,
    limits: Limits,
    stopping: impl Future<Output = ()>,
    handler: &Arc<impl Handler>,
) -> Result<(), Ended> {
    static POOL: LazyLock<HeavyPool> = LazyLock::new(|| HeavyPool::start(1).expect("a thread"));
    static METRICS: LazyLock<Arc<Metrics>> = LazyLock::new(Arc::default);
    let share = LaneShare::new(Handle::current(), POOL.entrance().clone(), Arc::clone(&METRICS));
    let serving = serve(server, limits, stopping, handler, &share);
    share.count_turns(serving).await
}

async fn talk(mut client: DuplexStream, bytes: &[u8]) -> String {
    let (mut reader, mut writer) = tokio::io::split(&mut client);
    let writing = async {
        // An invalid request is not read to its end.
        let _ = writer.write_all(bytes).await;
        let _ = writer.shutdown().await;
    };
    let mut answers = Vec::new();
    let (_, read) = tokio::join!(writing, reader.read_to_end(&mut answers));
    read.expect("read");
    String::from_utf8_lossy(&answers).into_owned()
}

/// The answer when the bytes are sent in pieces of `piece` and the client then closes.
async fn exchange(echo: &Arc<Echo>, bytes: &[u8], piece: usize) -> (String, Result<(), Ended>) {
    let (client, server) = duplex(piece);
    let serving = serve_one(server, LIMITS, std::future::pending(), echo);
    let both = async { tokio::join!(talk(client, bytes), serving) };
    tokio::time::timeout(IN_TIME, both).await.expect("in time")
}

#[tokio::test]
async fn an_answer_that_is_being_worked_out_is_given_up_with_its_client() {
    let (mut client, server) = duplex(1024);
    let echo = Arc::<Echo>::default();
    let serving = serve_one(server, LIMITS, std::future::pending(), &echo);
    let leaving = async {
        client.write_all(b"GET /endless HTTP/1.1\r\n\r\n").await.expect("sent");
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(client);
    };
    let both = async { tokio::join!(serving, leaving).0 };
    let ended = tokio::time::timeout(IN_TIME, both).await.expect("in time");
    assert!(matches!(ended, Err(Ended::Failed(_))), "{ended:?}");
}

#[tokio::test]
async fn answers_have_the_form_that_requests_ask_for() {
    let kept = "HTTP/1.1 200 OK\r\n";
    for (case, request, expected) in [
        (
            "a body",
            "PUT /a HTTP/1.1\r\ncontent-length: 2\r\n\r\nxy",
            "content-length: 4\r\n\r\n/axy",
        ),
        ("no body", "GET /a HTTP/1.1\r\n\r\n", "content-length: 2\r\n\r\n/a"),
        ("HEAD", "HEAD /a HTTP/1.1\r\n\r\n", "\r\n"),
        ("a stream", "GET /stream HTTP/1.1\r\n\r\n", "content-length: 5\r\n\r\nabcde"),
        (
            "a stream of unknown length",
            "GET /chunks HTTP/1.1\r\n\r\n",
            "transfer-encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n",
        ),
        (
            "a stream of unknown length for an old client",
            "GET /chunks HTTP/1.0\r\nconnection: keep-alive\r\n\r\n",
            "connection: close\r\n\r\nabcde",
        ),
        (
            "an old client that stays",
            "GET /a HTTP/1.0\r\nconnection: keep-alive\r\n\r\n",
            "content-length: 2\r\nconnection: keep-alive\r\n\r\n/a",
        ),
        (
            "an old client",
            "GET /a HTTP/1.0\r\n\r\n",
            "content-length: 2\r\nconnection: close\r\n\r\n/a",
        ),
        (
            "the last request",
            "GET /a HTTP/1.1\r\nconnection: close\r\n\r\nGET /b HTTP/1.1\r\n\r\n",
            "content-length: 2\r\nconnection: close\r\n\r\n/a",
        ),
        (
            "the case of metadata",
            "GET /a HTTP/1.1\r\nX-Ms-Meta-Two: 2\r\nx-ms-meta-one: 1\r\n\r\n",
            "x-ms-meta-Two: 2\r\nx-ms-meta-one: 1\r\ncontent-length: 2\r\n\r\n/a",
        ),
        (
            "chunks of a client",
            "PUT /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n",
            "content-length: 4\r\n\r\n/axy",
        ),
    ] {
        for piece in [1, 7, 64 * 1024] {
            let (answer, ended) = exchange(&Arc::default(), request.as_bytes(), piece).await;
            assert_eq!(answer, format!("{kept}{expected}"), "{case}, {piece} at a time");
            assert!(ended.is_ok(), "{case}: {ended:?}");
        }
    }
    let (answer, _) = exchange(&Arc::default(), b"GET /nothing HTTP/1.1\r\n\r\n", 99).await;
    assert_eq!(answer, "HTTP/1.1 204 No Content\r\n\r\n");
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order_whatever_is_left_unread() {
    let requests = b"PUT /a HTTP/1.1\r\ncontent-length: 1\r\n\r\nx\
                     PUT /unread HTTP/1.1\r\ncontent-length: 30\r\n\r\nGET /c HTTP/1.1\r\n\r\n0123456789a\
                     PUT /unread HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n\
                     GET /b HTTP/1.1\r\n\r\n";
    for piece in [1, 11, 64 * 1024] {
        let echo = Arc::<Echo>::default();
        let (answers, ended) = exchange(&echo, requests, piece).await;
        assert!(ended.is_ok(), "{ended:?}");
        assert_eq!(*echo.seen.lock(), ["PUT /a true 1", "GET /b true 0"]);
        assert!(answers.ends_with("\r\n\r\n/b"), "{answers}");
        assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 4, "{answers}");
    }
}

#[tokio::test]
async fn what_is_no_request_is_told_so_and_ends_the_connection() {
    let large = format!("GET / HTTP/1.1\r\na: {}", "x".repeat(LIMITS.header_bytes_max));
    for (request, status) in [
        ("nonsense\r\n\r\n", "400 Bad Request"),
        (
            "PUT / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
            "400 Bad Request",
        ),
        ("PUT / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n", "501 Not Implemented"),
        (&large, "431 Request Header Fields Too Large"),
    ] {
        let echo = Arc::<Echo>::default();
        let bytes = format!("GET /a HTTP/1.1\r\n\r\n{request}GET /b HTTP/1.1\r\n\r\n");
        let (answers, ended) = exchange(&echo, bytes.as_bytes(), 64 * 1024).await;
        let last = format!("/aHTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        assert!(answers.ends_with(&last), "{answers}");
        assert!(matches!(ended, Err(Ended::Refused(_))), "{ended:?}");
        assert_eq!(echo.handled.load(Ordering::Relaxed), 1, "{request:.40}");
    }
}

#[tokio::test]
async fn a_body_that_is_broken_off_is_not_taken_for_whole() {
    for request in [
        "PUT /a HTTP/1.1\r\ncontent-length: 5\r\n\r\nxy",
        "PUT /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\nxy",
        "PUT /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nxy\r\n",
        "PUT /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nxy\r\n",
    ] {
        let echo = Arc::<Echo>::default();
        exchange(&echo, request.as_bytes(), 64 * 1024).await.1.ok();
        let seen = echo.seen.lock().clone();
        assert!(matches!(&seen[..], [it] if it.starts_with("PUT /a false")), "{request}: {seen:?}");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_ends_the_connection() {
    let (answer, ended) = exchange(&Arc::default(), b"GET /short HTTP/1.1\r\n\r\n", 999).await;
    assert!(answer.ends_with("content-length: 9\r\n\r\nabcde"), "{answer}");
    assert!(matches!(ended, Err(Ended::Failed(_))), "{ended:?}");
}

#[tokio::test]
async fn a_client_that_waits_is_told_to_go_on_only_if_its_body_is_wanted() {
    let head = |path: &str| {
        format!("PUT {path} HTTP/1.1\r\ncontent-length: 2\r\nExpect: 100-continue\r\n\r\n")
    };
    let echo = Arc::<Echo>::default();
    let (mut client, server) = duplex(64 * 1024);
    let serving = serve_one(server, LIMITS, std::future::pending(), &echo);
    let talking = async {
        client.write_all(head("/a").as_bytes()).await.expect("sent");
        let mut told = [0; 25];
        client.read_exact(&mut told).await.expect("told");
        assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
        client.write_all(b"xy").await.expect("sent");
        client.write_all(head("/unread").as_bytes()).await.expect("sent");
        let mut answers = String::new();
        client.read_to_string(&mut answers).await.expect("read");
        answers
    };
    let (answers, ended) = tokio::join!(talking, serving);
    ended.expect("a clean end");
    let last = "/axyHTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    assert!(answers.ends_with(last), "nobody can tell whether the body comes: {answers}");
}

#[tokio::test]
async fn stopping_ends_an_idle_connection_and_lets_a_request_finish() {
    let echo = Arc::<Echo>::default();
    let (mut client, server) = duplex(64 * 1024);
    let (stop, stopped) = oneshot::channel();
    let serving = serve_one(server, LIMITS, async { drop(stopped.await) }, &echo);
    let talking = async {
        client.write_all(b"PUT /a HTTP/1.1\r\ncontent-length: 1\r\n\r\n").await.expect("sent");
        tokio::task::yield_now().await;
        stop.send(()).expect("waited for");
        tokio::task::yield_now().await;
        client.write_all(b"x").await.expect("sent");
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("read");
        answer
    };
    let (answer, ended) = tokio::join!(talking, serving);
    ended.expect("a clean end");
    assert!(answer.ends_with("connection: close\r\n\r\n/ax"), "{answer}");

    let (mut client, server) = duplex(64 * 1024);
    serve_one(server, LIMITS, std::future::ready(()), &echo).await.expect("ends at once");
    assert_eq!(client.read(&mut [0]).await.expect("read"), 0);
}

/// Told to close when the first request has arrived; handles it until it is released.
#[derive(Default)]
struct Evicted {
    has_come: tokio::sync::Notify,
    goes_on: tokio::sync::Notify,
    closed: AtomicUsize,
    finished: AtomicUsize,
}

impl Handler for Evicted {
    fn handle(self: &Arc<Self>, _head: RequestHead, mut body: Incoming) -> Work<Answer> {
        let this = Arc::clone(self);
        Box::pin(async move {
            this.has_come.notify_one();
            this.goes_on.notified().await;
            let mut received = 0;
            while let Some(Ok(bytes)) = body.next().await {
                received += bytes.len();
            }
            assert!(received <= 1, "nobody sends more");
            this.finished.fetch_add(1, Ordering::Relaxed);
            Answer::new(StatusCode::OK)
        })
    }

    fn told_to_close(&self) -> impl Future<Output = ()> + Send {
        self.has_come.notified()
    }

    fn closed(&self) {
        self.closed.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn connection_told_to_close_does_so_at_once_and_its_request_is_finished() {
    for request in ["GET /a HTTP/1.1\r\n\r\n", "PUT /a HTTP/1.1\r\ncontent-length: 9\r\n\r\nx"] {
        let evicted = Arc::<Evicted>::default();
        let (mut client, server) = duplex(64 * 1024);
        let serving = serve_one(server, LIMITS, std::future::pending(), &evicted);
        let talking = async {
            client.write_all(request.as_bytes()).await.expect("sent");
            let read = client.read(&mut [0]).await;
            let finished_before = evicted.finished.load(Ordering::Relaxed);
            evicted.goes_on.notify_one();
            (read.ok(), finished_before)
        };
        let both = async { tokio::join!(talking, serving) };
        let ((read, finished_before), ended) =
            tokio::time::timeout(IN_TIME, both).await.expect("in time");
        assert_eq!((read, finished_before), (Some(0), 0), "closed while it is at work");
        assert!(ended.is_err(), "its answer cannot be sent");
        let counts = [&evicted.closed, &evicted.finished].map(|it| it.load(Ordering::Relaxed));
        assert_eq!(counts, [1, 1]);
    }
}

#[tokio::test]
async fn a_connection_that_waits_too_long_is_ended() {
    for sent in ["", "GET / HTT", "GET /a HTTP/1.1\r\n\r\n"] {
        let (mut client, server) = duplex(64 * 1024);
        client.write_all(sent.as_bytes()).await.expect("sent");
        let begun = Instant::now();
        let ended = serve_one(server, HASTY, std::future::pending(), &Arc::<Echo>::default()).await;
        assert!(matches!(ended, Err(Ended::Idle)), "{sent:?}: {ended:?}");
        let waited = begun.elapsed();
        assert!(waited >= HASTY.idle_timeout, "{waited:?}");
    }
}

#[tokio::test]
async fn a_head_that_trickles_is_cut_off_long_before_an_idle_connection() {
    let limits = Limits { head_timeout: Duration::from_millis(200), ..LIMITS };
    for before in ["", "GET /a HTTP/1.1\r\n\r\n", "GET /a HTTP/1.1\r\n\r\nG"] {
        let (mut client, server) = duplex(64 * 1024);
        client.write_all(before.as_bytes()).await.expect("sent");
        let begun = Instant::now();
        let trickle = async {
            while client.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let echo = Arc::<Echo>::default();
        let serving = serve_one(server, limits, std::future::pending(), &echo);
        let ended = tokio::select! {
            ended = serving => ended,
            () = trickle => panic!("the server ends it"),
        };
        assert!(matches!(ended, Err(Ended::Idle)), "{before:?}: {ended:?}");
        let waited = begun.elapsed();
        assert!(waited >= limits.head_timeout, "{before:?}: {waited:?}");
        assert!(waited < limits.idle_timeout / 2, "{before:?}: {waited:?}");
    }
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_given_up() {
    let ((mut client, server), echo) = (duplex(16), Arc::<Echo>::default());
    let serving = serve_one(server, HASTY, std::future::pending(), &echo);
    client.write_all(b"GET / HTTP/1.1\r\n").await.ok();
    let (ended, _) = tokio::join!(serving, client.write_all(b"\r\n"));
    assert!(matches!(ended, Err(Ended::Failed(_))), "{ended:?}");
}

/// Pieces of requests, valid and broken.
const FRAGMENTS: &[&[u8]] = &[
    b"GET /a HTTP/1.1\r\n",
    b"PUT /b HTTP/1.1\r\n",
    b"PUT /c HTTP/1.1\r\n",
    b"POST /d HTTP/1.0\nconnection: keep-alive\n",
    b"x-ms-meta-Aa: Aa\r\n",
    b"X-Ms-Meta-bB:bB \r\n",
    b"x-ms-meta-CC: CC\n",
    b"connection: keep-alive\r\n",
    b"content-length: 9\r\n",
    b"content-length: 0\r\n",
    b"Content-Length:  9 \r\n",
    b"content-length: 9, 9\r\n",
    b"content-length : 9\r\n",
    b"transfer-encoding: chunked\r\n",
    b"transfer-encoding: gzip,\tchunked\r\n",
    b"transfer-encoding: chunked, gzip\r\n",
    b" folded: 1\r\n",
    b"\r\n",
    b"\n",
    b"\r",
    b"123456789",
    b"9\r\n123456789\r\n",
    b"0a \t;x=y\r\n\r\n\r\n\r\n\r\n\r\n\r\n",
    b"0\r\n\r\n",
    b"0\r\n",
    b"trailer: 1\r\n",
    b"\0\xff",
];

/// Framing that fits its body.
const BODIES: &[(&[u8], &[u8])] = &[
    (b"", b""),
    (b"content-length: 9\r\n", b"\r\nGET / H\n"),
    (b"transfer-encoding: chunked\r\n", b"9;e\r\n\r\n\r\nGET /\r\n2\r\n\r\n\r\n0\r\na: b\r\n\r\n"),
];

/// Requests in order, with some strays among them.
fn random_requests(random: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let mut requests = Vec::new();
    for _ in 0..1 + random(5) {
        let strays = random(3) == 0;
        let (framing, body) = BODIES[random(BODIES.len())];
        requests.extend_from_slice(FRAGMENTS[random(4)]);
        requests.extend_from_slice(framing);
        for _ in 0..random(4) {
            let kinds = if strays { 13 } else { 4 };
            requests.extend_from_slice(FRAGMENTS[4 + random(kinds)]);
        }
        requests.extend_from_slice(b"\r\n");
        requests.extend_from_slice(body);
        if strays {
            requests.extend_from_slice(FRAGMENTS[random(FRAGMENTS.len())]);
        }
    }
    requests
}

/// The requests that hyper finds in the same bytes.
async fn seen_by_hyper(bytes: &[u8], piece: usize) -> Vec<String> {
    let (client, server) = duplex(piece);
    let seen = Mutex::new(Vec::new());
    let service = service_fn(async |request: Request<hyper::body::Incoming>| {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes().len());
        let (path, is_whole, length) = (parts.uri.path(), body.is_ok(), body.unwrap_or(0));
        seen.lock().push(format!("{} {path} {is_whole} {length}", parts.method));
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
    });
    let serving =
        http1::Builder::new().half_close(true).serve_connection(TokioIo::new(server), service);
    let both = async { tokio::join!(talk(client, bytes), serving) };
    let (_, _served) = tokio::time::timeout(IN_TIME, both).await.expect("in time");
    seen.into_inner()
}

/// A proxy in front of this server must see the same requests in a stream of bytes. So hyper must
/// find every request that is handled here, in the same order; only if the bytes are refused may
/// there be fewer here.
#[tokio::test]
async fn no_request_is_seen_that_others_do_not_see() {
    let mut choices = Random::new(1);
    let mut random = |bound: usize| choices.within(0..bound);
    let (mut handled, mut alike) = (0, 0);
    for round in 0..10_000 {
        let bytes = random_requests(&mut random);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let piece = 1 + random(200);
        let echo = Arc::<Echo>::default();
        let (_, ended) = exchange(&echo, &bytes, piece).await;
        let ours = std::mem::take(&mut *echo.seen.lock());
        let theirs = seen_by_hyper(&bytes, piece).await;
        let whole = |seen: &[String]| {
            seen.iter().filter(|it| it.contains(" true ")).cloned().collect::<Vec<_>>()
        };
        let (ours, theirs) = (whole(&ours), whole(&theirs));
        assert!(theirs.starts_with(&ours), "round {round}: {ours:?} {theirs:?} in {text:?}");
        let refused = ended.is_err();
        assert!(refused || ours == theirs, "round {round}: {ours:?} {theirs:?} in {text:?}");
        handled += ours.len();
        alike += usize::from(ours == theirs);
    }
    assert!(handled > 10_000 && alike > 8_000, "{handled} requests, {alike} rounds alike");
}

#[tokio::test]
async fn requests_that_have_come_are_all_handled_before_the_first_is_answered() {
    let echo = Arc::<Echo>::default();
    let [(mut client, server), (mut other_client, other_server)] = [duplex(1024), duplex(1024)];
    for client in [&mut client, &mut other_client] {
        client.write_all(b"GET /a HTTP/1.1\r\n\r\n").await.expect("sent");
    }
    let answered = async {
        client.read_exact(&mut [0]).await.expect("an answer");
        drop((client, other_client));
        echo.handled.load(Ordering::Relaxed)
    };
    let serve = |server| serve_one(server, LIMITS, std::future::pending(), &echo);
    let (_, handled, _) = tokio::join!(biased; serve(server), answered, serve(other_server));
    assert_eq!(handled, 2);
}

#[tokio::test]
async fn a_long_answer_is_whole_wherever_it_is_sent_from() {
    for path in ["/long", "/long-stream"] {
        let echo = Arc::<Echo>::default();
        let request = format!("GET {path} HTTP/1.1\r\n\r\nGET /next HTTP/1.1\r\n\r\n");
        let (answers, ended) = exchange(&echo, request.as_bytes(), 64 * 1024).await;
        assert!(ended.is_ok());
        let bodies: Vec<_> = answers.split("\r\n\r\n").collect();
        let [_, long, next] = bodies[..] else { panic!("{} answers", bodies.len() - 1) };
        let sent = long.bytes().take_while(|byte| *byte == b'l').count();
        assert_eq!((sent, next), (LONG_BYTES, "/next"), "{path}");
    }
}

#[test]
fn no_turn_sends_more_than_its_bytes() {
    const TURN_BYTES: usize = 128 * 1024;
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let piece = || Bytes::from(vec![0; 100_000]);
    let bodies = [
        AnswerBody::Whole(vec![0; LONG_BYTES].into()),
        AnswerBody::Stream(
            Some(1_000_000),
            Box::pin(stream::repeat_with(move || Ok(piece())).take(10)),
        ),
        AnswerBody::Stream(None, Box::pin(stream::repeat_with(move || Ok(piece())).take(10))),
    ];
    for body in bodies {
        let length = body.length().unwrap_or(1_000_000);
        let mut answer = Answer::new(StatusCode::OK);
        answer.body = body;
        let (mut client, server) = duplex(2 * LONG_BYTES);
        let io = Arc::new(Mutex::new(Io::new(server)));
        let sending =
            Output::new(&io, LIMITS.stall_timeout).send(answer, Version::HTTP_11, After::Kept);
        let mut sending = pin!(sending);
        let (mut is_sent, mut received) = (false, 0);
        while !is_sent {
            is_sent = sending.as_mut().poll(&mut context).is_ready();
            let mut room = vec![0; 2 * LONG_BYTES];
            let mut room = tokio::io::ReadBuf::new(&mut room);
            let _ = Pin::new(&mut client).poll_read(&mut context, &mut room);
            assert!(room.filled().len() <= TURN_BYTES, "{} bytes in a turn", room.filled().len());
            received += room.filled().len();
        }
        assert!(received as u64 > length, "{received} of {length}");
    }
}
