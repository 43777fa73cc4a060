//! The scanner of metadata names against hyper: both must see the same requests.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use holdfast_rest::header_case::{CaseKeeping, RequestCase};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const HEAD_BYTES_MAX: usize = 64 * 1024;
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Pieces of requests, whole and broken. The value of a metadata header is its name, so that hyper
/// itself says what the scanner should have found.
const FRAGMENTS: &[&[u8]] = &[
    b"GET / HTTP/1.1\r\n",
    b"PUT / HTTP/1.1\r\n",
    b"CONNECT a:1 HTTP/1.1\r\n",
    b"POST / HTTP/1.0\nconnection: keep-alive\n",
    b"x-ms-meta-Aa: Aa\r\n",
    b"X-Ms-Meta-bB:bB \r\n",
    b"x-ms-meta-CC: CC\n",
    b"x-ms-meta-dd: dd\r\n",
    b"upgrade: websocket\r\n",
    b"expect: 100-continue\r\n",
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
    b"\r\n",
    b"\r\n",
    b"\n",
    b"\r",
    b"123456789",
    b"9\r\n123456789\r\n",
    b"0a \t;x=y\r\n\r\n\r\n\r\n\r\n\r\n\r\n",
    b"9\n123456789\r\n",
    b"0\r\n\r\n",
    b"0\r\n",
    b"trailer: 1\r\n",
    b"trailer: 1\n",
    b"\0\xff",
];

/// Framing that fits its body.
const BODIES: &[(&[u8], &[u8])] = &[
    (b"", b""),
    (b"content-length: 9\r\n", b"\r\nGET / H\n"),
    (b"transfer-encoding: chunked\r\n", b"9;e\r\n\r\n\r\nGET /\r\n2\r\n\r\n\r\n0\r\na: b\r\n\r\n"),
    (b"content-length: 1\nTransfer-Encoding: CHUNKED\n", b"000\r\n\r\n"),
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
            let kinds = if strays { 15 } else { 6 };
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

/// Feeds the bytes to hyper in pieces of `piece_length`, and returns for each request it handled
/// the metadata it saw and the case that was noted.
async fn handled(bytes: &[u8], piece_length: usize) -> Vec<(HeaderMap, RequestCase)> {
    let (mut client, server) = tokio::io::duplex(piece_length);
    let (stream, header_case) = CaseKeeping::new(server, HEAD_BYTES_MAX);
    let handled = std::sync::Mutex::new(Vec::new());
    let service = service_fn(|request: Request<Incoming>| {
        let case = header_case.next_request();
        handled.lock().expect("lock").push((request.headers().clone(), case));
        async move {
            let read_whole = request.into_body().collect().await.is_ok();
            let status = if read_whole { 404 } else { 400 };
            let response = Response::builder().status(status).body(Full::<Bytes>::default());
            Ok::<_, Infallible>(response.expect("response"))
        }
    });
    let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let talking = async {
        let (mut reader, mut writer) = tokio::io::split(&mut client);
        let writing = async {
            // hyper closes what it cannot understand, and the rest then has no reader.
            let _ = writer.write_all(bytes).await;
            let _ = writer.shutdown().await;
        };
        let mut answers = Vec::new();
        let (_, read) = tokio::join!(writing, reader.read_to_end(&mut answers));
        read.expect("read");
    };
    let both = async { tokio::join!(serving, talking) };
    // Whether hyper was content with the bytes does not matter here.
    let (_served, ()) = tokio::time::timeout(TEST_TIMEOUT, both).await.expect("in time");
    handled.into_inner().expect("lock")
}

#[tokio::test]
async fn the_scanner_and_hyper_agree_on_every_request() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % bound
    };
    let (mut requests, mut later_names) = (0, 0);
    for round in 0..20_000 {
        let bytes = random_requests(&mut random);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let piece_length = 1 + random(200);
        for (index, (headers, case)) in handled(&bytes, piece_length).await.into_iter().enumerate()
        {
            requests += 1;
            let mut expected: Vec<&str> = Vec::new();
            for (name, value) in &headers {
                let value = value.to_str().unwrap_or_default();
                if name.as_str().starts_with("x-ms-meta-") && value != "dd" {
                    expected.push(value);
                }
            }
            let mut noted: Vec<&str> = case.original_case().iter().map(String::as_str).collect();
            expected.sort_unstable();
            noted.sort_unstable();
            assert_eq!(noted, expected, "round {round}, request {index} of {text:?}");
            later_names += if index > 0 { noted.len() } else { 0 };
        }
    }
    assert!(requests > 20_000 && later_names > 5_000, "{requests} requests, {later_names} names");
}
