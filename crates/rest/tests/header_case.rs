//! The case of metadata names through hyper, down to the bytes on the wire.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdfast_rest::header_case::{CaseKeeping, HeadScanner, HeaderCase, RequestCase};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

const HEAD_BYTES_MAX: usize = 64 * 1024;
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Looks like heads, placeholders and their beginnings, none of which may be touched.
fn large_body() -> Vec<u8> {
    let text = "x-hf-x-ms-meta-Body: 1\r\n\r\nHTTP/1.1 200 OK\r\nx-hf-0123456789abcdef0123456789abcdef-0000: x-h";
    text.as_bytes().repeat(3000)
}

/// Takes few bytes at a time, and none now and then.
struct Trickle<S> {
    inner: S,
    calls: usize,
    vectored: bool,
}

impl<S: AsyncRead + Unpin> AsyncRead for Trickle<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Trickle<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.calls += 1;
        if self.calls.is_multiple_of(11) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let count = bytes.len().min(1 + self.calls % 7);
        Pin::new(&mut self.inner).poll_write(context, &bytes[..count])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = slices.iter().find(|slice| !slice.is_empty());
        self.poll_write(context, first.map_or(&[], |slice| slice))
    }

    fn is_write_vectored(&self) -> bool {
        self.vectored
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// `/large` answers with a large body, everything else with the metadata and body of the request.
async fn answer(
    header_case: HeaderCase,
    case: RequestCase,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.uri().path() == "/large" {
        return Ok(Response::new(Full::new(Bytes::from(large_body()))));
    }
    let (parts, body) = request.into_parts();
    let body = body.collect().await.expect("body").to_bytes();
    let mut response = Response::new(Full::new(body));
    let mut names = Vec::new();
    for (name, value) in &parts.headers {
        if let Some(lower_case) = name.as_str().strip_prefix("x-ms-meta-") {
            names.push(case.original(lower_case));
            response.headers_mut().insert(name.clone(), value.clone());
        }
    }
    header_case.answer_names(response.headers_mut(), names);
    Ok(response)
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, pipeline_flush: bool) {
    let (stream, header_case) = CaseKeeping::new(stream, HEAD_BYTES_MAX);
    let service = service_fn(|request| {
        let case = header_case.next_request();
        answer(header_case.clone(), case, request)
    });
    let mut builder = http1::Builder::new();
    builder.auto_date_header(false).pipeline_flush(pipeline_flush);
    builder.serve_connection(TokioIo::new(stream), service).await.expect("served");
}

#[derive(Clone, Copy, Debug)]
enum Socket {
    Plain,
    Trickle { vectored: bool },
}

#[derive(Clone, Copy, Debug)]
struct Setup {
    socket: Socket,
    pipeline_flush: bool,
}

fn setups() -> Vec<Setup> {
    let sockets =
        [Socket::Plain, Socket::Trickle { vectored: true }, Socket::Trickle { vectored: false }];
    let both = |socket| [true, false].map(|pipeline_flush| Setup { socket, pipeline_flush });
    sockets.into_iter().flat_map(both).collect()
}

/// A client's connection to a server that ends with it.
async fn connect(setup: Setup) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("listener");
    let address = listener.local_addr().expect("address");
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("accepted");
        match setup.socket {
            Socket::Plain => serve(stream, setup.pipeline_flush).await,
            Socket::Trickle { vectored } => {
                serve(Trickle { inner: stream, calls: 0, vectored }, setup.pipeline_flush).await;
            }
        }
    });
    let stream = TcpStream::connect(address).await.expect("connected");
    stream.set_nodelay(true).expect("no delay");
    stream
}

/// Sends the pieces, and returns all that comes until the server closes.
async fn exchange(setup: Setup, pieces: Vec<Vec<u8>>) -> Vec<u8> {
    let exchange = async {
        let (mut reader, mut writer) = connect(setup).await.into_split();
        let sending = tokio::spawn(async move {
            for piece in pieces {
                writer.write_all(&piece).await.expect("sent");
            }
            writer
        });
        let mut received = Vec::new();
        reader.read_to_end(&mut received).await.expect("received");
        sending.await.expect("sender");
        received
    };
    tokio::time::timeout(TEST_TIMEOUT, exchange).await.expect("in time")
}

#[track_caller]
fn assert_same(received: &[u8], expected: &[u8], what: &str) {
    let differ = received.iter().zip(expected).position(|(one, other)| one != other);
    let at = differ.unwrap_or(received.len().min(expected.len()));
    let near = |bytes: &[u8]| {
        let end = bytes.len().min(at + 80);
        String::from_utf8_lossy(&bytes[at.saturating_sub(80).min(end)..end]).into_owned()
    };
    assert!(received == expected, "{what}, at {at}: {:?} not {:?}", near(received), near(expected));
}

const REQUESTS: &[&[u8]] = &[
    b"PUT /a HTTP/1.1\r\nhost: x\r\nx-ms-meta-MixedCase: v\r\ncontent-length: 3\r\n\r\nabc",
    b"GET /b HTTP/1.1\r\nhost: x\r\nx-ms-meta-lower: v\r\n\r\n",
    b"GET /large HTTP/1.1\r\nhost: x\r\nx-ms-meta-Unused: v\r\n\r\n",
    b"PUT /c HTTP/1.1\r\nhost: x\r\nx-ms-meta-plain: 0\r\nX-MS-META-One: 1\r\nx-ms-meta-TWO: 2\r\n\
      transfer-encoding: chunked\r\n\r\n14\r\nx-ms-meta-MIXEDCASE:\r\n0\r\nx-ms-meta-Trailer: 1\r\n\r\n",
    b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET /d HTTP/1.1\r\nhost: x\r\nx-ms-meta-aBSENTfromnext: v\r\n\r\n",
    b"GET /e HTTP/1.1\r\nhost: x\r\nx-ms-meta-absentfromnext: v\r\nconnection: close\r\n\r\n",
];

fn answers() -> Vec<u8> {
    let body = large_body();
    let large = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    [
        b"HTTP/1.1 200 OK\r\nx-ms-meta-MixedCase: v\r\ncontent-length: 3\r\n\r\nabc".as_slice(),
        b"HTTP/1.1 200 OK\r\nx-ms-meta-lower: v\r\ncontent-length: 0\r\n\r\n",
        large.as_bytes(),
        &body,
        b"HTTP/1.1 200 OK\r\nx-ms-meta-plain: 0\r\nx-ms-meta-One: 1\r\nx-ms-meta-TWO: 2\r\n\
          content-length: 20\r\n\r\nx-ms-meta-MIXEDCASE:",
        large.as_bytes(),
        &body,
        b"HTTP/1.1 200 OK\r\nx-ms-meta-aBSENTfromnext: v\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx-ms-meta-absentfromnext: v\r\nconnection: close\r\n\
          content-length: 0\r\n\r\n",
    ]
    .concat()
}

#[tokio::test]
async fn pipelined_requests_get_their_names_back() {
    for setup in setups() {
        let received = exchange(setup, vec![REQUESTS.concat()]).await;
        assert_same(&received, &answers(), &format!("{setup:?}"));
    }
}

#[tokio::test]
async fn requests_sent_in_crumbs_get_their_names_back() {
    for setup in setups() {
        let crumbs = REQUESTS.concat().chunks(5).map(<[u8]>::to_vec).collect();
        let received = exchange(setup, crumbs).await;
        assert_same(&received, &answers(), &format!("{setup:?}"));
    }
}

#[tokio::test]
async fn requests_one_after_the_other_get_their_names_back() {
    for setup in setups() {
        let mut client = connect(setup).await;
        let expected = answers();
        let mut begin = 0;
        for (index, request) in REQUESTS.iter().enumerate() {
            let length = match index {
                2 | 4 => {
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", large_body().len())
                        .len()
                        + large_body().len()
                }
                _ => {
                    let next = memchr::memmem::find(&expected[begin + 1..], b"HTTP/1.1 200 OK");
                    next.map_or(expected.len() - begin, |next| next + 1)
                }
            };
            client.write_all(request).await.expect("sent");
            let mut received = vec![0; length];
            let reading = client.read_exact(&mut received);
            tokio::time::timeout(TEST_TIMEOUT, reading).await.expect("in time").expect("received");
            let what = format!("{setup:?}, request {index}");
            assert_same(&received, &expected[begin..begin + length], &what);
            begin += length;
        }
        assert_eq!(begin, expected.len());
    }
}

/// What reached the network, by call.
#[derive(Debug, PartialEq, Eq)]
enum Written {
    Plain(Vec<u8>),
    /// Where the slices lie: they were not copied if that is where the caller's lie.
    Vectored(Vec<(*const u8, usize)>),
    Flush,
    Shutdown,
}

/// Takes `room` bytes and then nothing more until there is room again.
struct Recorder {
    written: Vec<Written>,
    room: usize,
}

impl AsyncWrite for Recorder {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.room == 0 {
            return Poll::Pending;
        }
        let count = bytes.len().min(self.room);
        self.room -= count;
        self.written.push(Written::Plain(bytes[..count].to_vec()));
        Poll::Ready(Ok(count))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let places = slices.iter().map(|slice| (slice.as_ptr(), slice.len())).collect();
        self.written.push(Written::Vectored(places));
        Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.written.push(Written::Flush);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.written.push(Written::Shutdown);
        Poll::Ready(Ok(()))
    }
}

/// Announces `names` on the connection and returns the placeholders.
fn announce(header_case: &HeaderCase, names: &[&str]) -> Vec<HeaderName> {
    let mut headers = HeaderMap::new();
    for name in names {
        let name = HeaderName::from_bytes(format!("x-ms-meta-{name}").as_bytes()).expect("name");
        headers.insert(name, HeaderValue::from_static("v"));
    }
    header_case.answer_names(&mut headers, names.iter().copied());
    headers.keys().cloned().collect()
}

async fn write_once(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Poll<usize> {
    let write = poll_fn(|context| {
        Poll::Ready(
            Pin::new(&mut *stream).poll_write(context, bytes).map(|count| count.expect("written")),
        )
    });
    write.await
}

async fn write_vectored_once(stream: &mut (impl AsyncWrite + Unpin), pieces: &[&[u8]]) -> usize {
    let slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    poll_fn(|context| Pin::new(&mut *stream).poll_write_vectored(context, &slices))
        .await
        .expect("written")
}

#[tokio::test]
async fn only_announced_heads_are_copied() {
    let recorder = Recorder { written: Vec::new(), room: usize::MAX };
    let (mut stream, header_case) = CaseKeeping::new(recorder, HEAD_BYTES_MAX);
    assert!(stream.is_write_vectored());
    let body = vec![7; 1 << 20];
    let place = |bytes: &[u8]| (bytes.as_ptr(), bytes.len());

    let head = b"HTTP/1.1 200 OK\r\n\r\n".as_slice();
    assert_eq!(write_vectored_once(&mut stream, &[head, &body]).await, head.len() + body.len());

    let placeholders = announce(&header_case, &["Category"]);
    let announced = format!("{}: v\r\n\r\n", placeholders[0]);
    let copied = write_vectored_once(&mut stream, &[announced.as_bytes(), &body]).await;
    assert_eq!(copied, 16 * 1024);
    let rest = &body[copied - announced.len()..];
    assert_eq!(write_vectored_once(&mut stream, &[rest]).await, rest.len());

    let mut rewritten = b"x-ms-meta-Category: v\r\n\r\n".to_vec();
    rewritten.extend_from_slice(&body[..copied - announced.len()]);
    let expected = [
        Written::Vectored(vec![place(head), place(&body)]),
        Written::Plain(rewritten),
        Written::Vectored(vec![place(rest)]),
    ];
    assert!(stream.get_ref().written == expected);
}

#[tokio::test]
async fn nothing_overtakes_rewritten_bytes() {
    let recorder = Recorder { written: Vec::new(), room: 10 };
    let (mut stream, header_case) = CaseKeeping::new(recorder, HEAD_BYTES_MAX);
    let placeholders = announce(&header_case, &["Category"]);
    let head = format!("{}: v\r\n", placeholders[0]);
    // The head is taken over whole, though the network takes a part of it only.
    assert_eq!(write_once(&mut stream, head.as_bytes()).await, Poll::Ready(head.len()));
    assert_eq!(write_once(&mut stream, b"later").await, Poll::Pending);
    let flushed = poll_fn(|context| Poll::Ready(Pin::new(&mut stream).poll_flush(context))).await;
    assert!(flushed.is_pending());
    let shut = poll_fn(|context| Poll::Ready(Pin::new(&mut stream).poll_shutdown(context))).await;
    assert!(shut.is_pending());
    stream.get_mut().room = usize::MAX;
    assert_eq!(write_once(&mut stream, b"later").await, Poll::Ready(5));
    stream.shutdown().await.expect("shut down");
    let expected = [
        Written::Plain(b"x-ms-meta-".to_vec()),
        Written::Plain(b"Category: v\r\n".to_vec()),
        Written::Plain(b"later".to_vec()),
        Written::Shutdown,
    ];
    assert_eq!(stream.get_ref().written, expected);
}

#[tokio::test]
async fn what_may_begin_a_placeholder_is_held_until_flush_or_shutdown() {
    let recorder = Recorder { written: Vec::new(), room: usize::MAX };
    let (mut stream, header_case) = CaseKeeping::new(recorder, HEAD_BYTES_MAX);
    let placeholders = announce(&header_case, &["A", "B"]);
    let (begin, end) = placeholders[0].as_str().split_at(20);
    stream.write_all(begin.as_bytes()).await.expect("written");
    assert_eq!(stream.get_ref().written, []);
    stream.write_all(end.as_bytes()).await.expect("written");
    stream.write_all(b"x-hf").await.expect("written");
    assert_eq!(stream.get_ref().written, [Written::Plain(b"x-ms-meta-A".to_vec())]);
    stream.flush().await.expect("flushed");
    stream.write_all(b"x").await.expect("written");
    stream.shutdown().await.expect("shut down");
    let expected = [
        Written::Plain(b"x-ms-meta-A".to_vec()),
        Written::Plain(b"x-hf".to_vec()),
        Written::Flush,
        Written::Plain(b"x".to_vec()),
        Written::Shutdown,
    ];
    assert_eq!(stream.get_ref().written, expected);
}

#[tokio::test]
async fn a_network_that_takes_nothing_is_an_error() {
    struct Closed;
    impl AsyncWrite for Closed {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(0))
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }
    let (mut stream, header_case) = CaseKeeping::new(Closed, HEAD_BYTES_MAX);
    let placeholders = announce(&header_case, &["A"]);
    let error = stream.write(placeholders[0].as_str().as_bytes()).await.expect_err("no room");
    assert_eq!(error.kind(), io::ErrorKind::WriteZero);
}

#[tokio::test]
async fn a_name_is_put_in_only_where_its_header_stands() {
    let (mut stream, header_case) =
        CaseKeeping::new(Recorder { written: Vec::new(), room: usize::MAX }, HEAD_BYTES_MAX);
    let mut headers = HeaderMap::new();
    headers.insert("x-ms-meta-lower", HeaderValue::from_static("v"));
    let before = headers.clone();
    header_case.answer_names(&mut headers, ["lower", "Absent", "A\r\nEvil: 1", "A b", ""]);
    assert_eq!(headers, before);
    // Nothing is announced, so nothing is held back.
    assert_eq!(write_once(&mut stream, b"x-hf-").await, Poll::Ready(5));
    assert_eq!(stream.get_ref().written, [Written::Plain(b"x-hf-".to_vec())]);
}

#[tokio::test]
async fn each_request_gets_its_own_names() {
    let requests =
        b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nx-ms-meta-A: 1\r\nx-ms-meta-Bb: 1\r\n\r\n\
        GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nx-ms-meta-C: 1\r\n\r\nnonsense\r\n\
        GET / HTTP/1.1\r\nx-ms-meta-D: 1\r\n\r\n";
    let (mut stream, header_case) = CaseKeeping::new(requests.as_slice(), HEAD_BYTES_MAX);
    let mut read = Vec::new();
    stream.read_to_end(&mut read).await.expect("read");
    assert_eq!(read, requests);
    for names in [[].as_slice(), &["A", "Bb"], &[], &["C"], &[], &[]] {
        let case = header_case.next_request();
        assert_eq!(case.original_case(), names);
        let originals = names.iter().map(|name| name.to_ascii_lowercase());
        for (lower_case, name) in originals.zip(names) {
            assert_eq!(case.original(&lower_case), *name);
        }
        assert_eq!(case.original("other"), "other");
    }
}

/// Prints what the wrapper costs. Run with `--ignored --nocapture`, best with `--release`.
#[tokio::test]
#[ignore = "a measurement, not a check"]
async fn cost_of_passing_through() {
    let head = b"PUT /devstoreaccount1/container/blob?comp=block&blockid=AAAA HTTP/1.1\r\n\
        host: 127.0.0.1:10000\r\nuser-agent: azsdk-python-storage-blob/12.20.0 Python/3.11.2\r\n\
        x-ms-version: 2024-08-04\r\nx-ms-date: Mon, 01 Jan 2024 00:00:00 GMT\r\n\
        x-ms-client-request-id: 00000000-0000-0000-0000-000000000000\r\naccept: application/xml\r\n\
        content-type: application/octet-stream\r\ncontent-length: 65536\r\n\
        authorization: SharedKey devstoreaccount1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\
        x-ms-blob-type: BlockBlob\r\nx-ms-meta-category: c\r\n\r\n";
    let body = vec![b'\n'; 65536];
    let mut scanner = HeadScanner::new(HEAD_BYTES_MAX);
    let mut best = Duration::MAX;
    for _ in 0..200 {
        let (rounds, mut heads, started) = (1000, 0, Instant::now());
        for _ in 0..rounds {
            scanner.feed(head, |_| heads += 1);
            scanner.feed(&body, |_| heads += 1);
        }
        assert_eq!(heads, rounds);
        best = best.min(started.elapsed() / rounds);
    }
    println!("scanner: {best:?} for a head of {} bytes and its body of 64 KiB", head.len());

    // The best of many short turns, one after the other: what else the machine does falls out.
    let (mut bare, mut wrapped) = (Duration::MAX, Duration::MAX);
    for _ in 0..200 {
        bare = bare.min(time_a_request(false).await);
        wrapped = wrapped.min(time_a_request(true).await);
    }
    println!("a request through hyper: bare {bare:?}, wrapped {wrapped:?}");
}

/// Over a pipe in memory, so that no socket hides the difference.
async fn time_a_request(wrapped: bool) -> Duration {
    let (mut client, server) = tokio::io::duplex(8192);
    let service = service_fn(|_| async {
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"answer"))))
    });
    let server = tokio::spawn(async move {
        let builder = http1::Builder::new();
        if wrapped {
            let (stream, header_case) = CaseKeeping::new(server, HEAD_BYTES_MAX);
            let service = service_fn(|request| {
                header_case.next_request();
                hyper::service::Service::call(&service, request)
            });
            builder.serve_connection(TokioIo::new(stream), service).await.expect("served");
        } else {
            builder.serve_connection(TokioIo::new(server), service).await.expect("served");
        }
    });
    let request = b"GET /devstoreaccount1/container/blob HTTP/1.1\r\nhost: 127.0.0.1\r\n\
        x-ms-version: 2024-08-04\r\nx-ms-date: Mon, 01 Jan 2024 00:00:00 GMT\r\n\
        authorization: SharedKey devstoreaccount1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n";
    let mut buffer = [0; 4096];
    let (rounds, started) = (500, Instant::now());
    for _ in 0..rounds {
        client.write_all(request).await.expect("sent");
        assert!(client.read(&mut buffer).await.expect("received") > 6);
    }
    let elapsed = started.elapsed() / rounds;
    drop(client);
    server.await.expect("server");
    elapsed
}
