//! One keep-alive connection to one service, and signed calls on it.
//!
//! The generator shares the processors with the server, so its cost of a call slows the server. It
//! therefore implements HTTP/1.1 itself: one write for a small request, one read for a small
//! answer, and reused buffers.

use std::fmt::Write as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use holdfast_domain::time::Timestamp;
use hyper::Method;
use socket2::SockRef;
use tokio::io::AsyncWriteExt as _;
use tokio::time::Sleep;

use crate::account::{Account, Credential, Endpoint, Service};
pub use crate::http_answer::Headers;
use crate::http_answer::{AnswerReader, Body};
use crate::signature::{Signed, Signer};
use crate::stream::Stream;

/// A version that every compared server supports.
const VERSION_DEFAULT: &str = "2024-11-04";
/// The longest wait for an answer.
const CALL_WAIT_MAX: Duration = Duration::from_secs(60);
/// Values from the clock are renewed when they are this old: the date of requests, which may be 15
/// minutes old, and the timer of calls, some of which then time out this much earlier.
const CLOCK_SLACK: Duration = Duration::from_secs(1);
/// A body up to this length is written together with its head.
const JOINED_BODY_BYTES_MAX: usize = 16 * 1024;

/// A request, without the parts that are the same in all.
pub struct Call<'call> {
    pub method: Method,
    /// The path after the account, encoded.
    pub path: &'call str,
    /// Sorted by name; values not yet encoded.
    pub query: &'call [(&'call str, &'call str)],
    /// Names of metadata may have upper case: they are sent as they are, and signed without.
    pub headers: &'call [(&'call str, &'call str)],
    pub content_type: &'call str,
    pub body: Bytes,
}

impl<'call> Call<'call> {
    pub fn new(method: Method, path: &'call str) -> Self {
        Self { method, path, query: &[], headers: &[], content_type: "", body: Bytes::new() }
    }
}

/// A complete answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    /// Empty unless the request has failed.
    pub code: String,
    pub headers: Headers,
    pub body: Bytes,
}

/// Why an operation did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Failure {
    #[error("{status} {code}")]
    Refused { status: u16, code: String },
    #[error("{0}")]
    Wrong(&'static str),
    #[error("connection: {0}")]
    Broken(String),
}

impl Failure {
    /// Whether the connection can carry another request.
    pub fn ends_connection(&self) -> bool {
        match self {
            Self::Refused { .. } | Self::Wrong(_) => false,
            Self::Broken(_) => true,
        }
    }

    pub fn broken(error: impl std::error::Error) -> Self {
        let reason = error.source().map(ToString::to_string);
        Self::Broken(reason.unwrap_or_else(|| error.to_string()))
    }
}

pub struct Client {
    wire: Wire,
    patience: Patience,
    looked_at_clock: Instant,
}

impl Client {
    pub async fn connect(account: Arc<Account>, service: Service) -> Result<Self, Failure> {
        let endpoint = account.endpoint(service).cloned().ok_or_else(|| {
            Failure::Broken(format!("the account has no {} endpoint", service.name()))
        })?;
        let stream = Stream::connect(&endpoint, &account.authorities).await;
        let stream = stream.map_err(Failure::broken)?;
        let wire = Wire {
            request: RequestWriter {
                account,
                service,
                endpoint,
                signer: Signer::default(),
                version: VERSION_DEFAULT,
                date: date_now(),
                address: String::new(),
                head: Vec::new(),
            },
            stream,
            answer: AnswerReader::default(),
        };
        Ok(Self { wire, patience: Patience::new(), looked_at_clock: Instant::now() })
    }

    /// The same with another `x-ms-version` in its requests.
    pub fn with_version(mut self, version: &'static str) -> Self {
        self.wire.request.version = version;
        self
    }

    /// Whether the server has closed the connection since the last answer.
    pub fn is_closed(&self) -> bool {
        let mut next = [std::mem::MaybeUninit::uninit()];
        match SockRef::from(self.wire.stream.socket()).peek(&mut next) {
            Ok(read) => read == 0,
            Err(why) => why.kind() != io::ErrorKind::WouldBlock,
        }
    }

    /// The address of the service, without a slash at its end.
    pub fn url(&self) -> String {
        self.wire.request.endpoint.url()
    }

    /// Makes a call that must be answered with `expected`, and returns the length of the body.
    pub async fn call(&mut self, call: Call<'_>, expected: u16) -> Result<u64, Failure> {
        self.look_at_clock();
        let mut body = Body::Counted(0);
        self.patience.bound(self.wire.exchange(call, expected, &mut body)).await?;
        Ok(body.length())
    }

    /// The same, with the body itself.
    pub async fn call_for_body(&mut self, call: Call<'_>, expected: u16) -> Result<Bytes, Failure> {
        self.look_at_clock();
        let mut body = Body::Kept(Vec::new());
        self.patience.bound(self.wire.exchange(call, expected, &mut body)).await?;
        Ok(body.into_bytes())
    }
}

impl Client {
    /// Makes a call, whatever its answer is.
    pub async fn exchange(&mut self, call: Call<'_>) -> Result<Answer, Failure> {
        self.look_at_clock();
        self.wire.answer.keep_head(true);
        let mut body = Body::Kept(Vec::new());
        let (status, code) = self.patience.bound(self.wire.send(call, &mut body)).await?;
        self.wire.answer.keep_head(false);
        let headers = self.wire.answer.take_headers();
        Ok(Answer { status, code, headers, body: body.into_bytes() })
    }

    /// Before every call.
    fn look_at_clock(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.looked_at_clock) > CLOCK_SLACK {
            self.looked_at_clock = now;
            self.patience.reset(now);
            self.wire.request.date = date_now();
        }
    }
}

struct Wire {
    request: RequestWriter,
    stream: Stream,
    answer: AnswerReader,
}

impl Wire {
    async fn exchange(
        &mut self,
        call: Call<'_>,
        expected: u16,
        body: &mut Body,
    ) -> Result<(), Failure> {
        let (status, code) = self.send(call, body).await?;
        if status == expected { Ok(()) } else { Err(Failure::Refused { status, code }) }
    }

    async fn send(&mut self, call: Call<'_>, body: &mut Body) -> Result<(u16, String), Failure> {
        let has_body = call.method != Method::HEAD;
        let content = call.body.clone();
        self.request.write_head(call);
        let joined = content.len() <= JOINED_BODY_BYTES_MAX;
        if joined {
            self.request.head.extend_from_slice(&content);
        }
        let mut written = self.stream.write_all(&self.request.head).await;
        if !joined && written.is_ok() {
            written = self.stream.write_all(&content).await;
        }
        if written.is_ok() {
            written = self.stream.flush().await;
        }
        // A server may have refused the request before reading all of it.
        let answered = self.answer.read(&mut self.stream, has_body, body).await;
        answered.map_err(|why| written.err().map_or(why, Failure::broken))
    }
}

/// Writes the heads of requests, with reused buffers.
struct RequestWriter {
    account: Arc<Account>,
    service: Service,
    endpoint: Endpoint,
    signer: Signer,
    version: &'static str,
    date: String,
    address: String,
    head: Vec<u8>,
}

impl RequestWriter {
    fn write_head(&mut self, call: Call<'_>) {
        self.address.clear();
        self.address.extend([&self.endpoint.path, call.path]);
        let path_length = self.address.len();
        for (index, (name, value)) in call.query.iter().enumerate() {
            self.address.extend([if index == 0 { "?" } else { "&" }, *name, "="]);
            push_encoded(&mut self.address, value);
        }
        if let Credential::Signature(signature) = &self.account.credential {
            self.address.extend([if call.query.is_empty() { "?" } else { "&" }, signature]);
        }

        let mut headers = Vec::with_capacity(call.headers.len() + 2);
        headers.extend_from_slice(call.headers);
        headers.extend([("x-ms-date", self.date.as_str()), ("x-ms-version", self.version)]);
        headers.sort_unstable_by(|(one, _), (two, _)| lower_case(one).cmp(lower_case(two)));
        let authorization = match &self.account.credential {
            Credential::Signature(_) => None,
            Credential::Key(key) => Some(self.signer.sign(
                &self.account,
                key,
                &Signed {
                    service: self.service,
                    method: call.method.as_str(),
                    content_length: call.body.len(),
                    content_type: call.content_type,
                    date: &self.date,
                    headers: &headers,
                    path: &self.address[..path_length],
                    query: call.query,
                },
            )),
        };

        let head = &mut self.head;
        head.clear();
        let mut push = |texts: &[&str]| {
            for text in texts {
                head.extend_from_slice(text.as_bytes());
            }
        };
        push(&[call.method.as_str(), " ", &self.address, " HTTP/1.1\r\nhost: "]);
        push(&[&self.endpoint.authority, "\r\n"]);
        if let Some(authorization) = authorization {
            push(&["authorization: ", authorization, "\r\n"]);
        }
        for (name, value) in &headers {
            push(&[name, ": ", value, "\r\n"]);
        }
        if !call.content_type.is_empty() {
            push(&["content-type: ", call.content_type, "\r\n"]);
        }
        if !call.body.is_empty() || matches!(call.method, Method::PUT | Method::POST) {
            push(&["content-length: ", &call.body.len().to_string(), "\r\n"]);
        }
        push(&["\r\n"]);
    }
}

/// Bounds how long a call takes. A timer for every call would be a large part of its cost, so one
/// timer is extended from time to time and serves the calls in between.
struct Patience(Pin<Box<Sleep>>);

impl Patience {
    fn new() -> Self {
        Self(Box::pin(tokio::time::sleep(CALL_WAIT_MAX)))
    }

    fn reset(&mut self, now: Instant) {
        self.0.as_mut().reset((now + CALL_WAIT_MAX).into());
    }

    async fn bound<T>(
        &mut self,
        call: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let mut call = std::pin::pin!(call);
        std::future::poll_fn(|context| {
            if let Poll::Ready(outcome) = call.as_mut().poll(context) {
                return Poll::Ready(outcome);
            }
            let late = || Err(Failure::Broken("no answer in time".to_owned()));
            self.0.as_mut().poll(context).map(|()| late())
        })
        .await
    }
}

fn push_encoded(address: &mut String, value: &str) {
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                address.push(byte.into());
            }
            _ => write!(address, "%{byte:02X}").expect("a string takes all"),
        }
    }
}

fn lower_case(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().map(|byte| byte.to_ascii_lowercase())
}

fn date_now() -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix(since_epoch).rfc1123().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_unreserved_characters_is_encoded() {
        let mut address = String::new();
        push_encoded(&mut address, "aZ0-._~+/= ü");
        assert_eq!(address, "aZ0-._~%2B%2F%3D%20%C3%BC");
    }

    #[test]
    fn a_call_that_is_never_answered_is_broken_off() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let outcome = runtime.expect("a runtime can be made").block_on(async {
            let mut patience = Patience::new();
            patience.0.as_mut().reset(Instant::now().into());
            patience.bound(std::future::pending::<Result<(), Failure>>()).await
        });
        assert_eq!(outcome, Err(Failure::Broken("no answer in time".to_owned())));
    }
}
