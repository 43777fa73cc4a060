//! One keep-alive connection to one service, and signed calls on it.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use holdfast_domain::time::Timestamp;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::account::{Account, Endpoint, Service};
use crate::signature::{Signed, Signer};

/// A version that every server worth comparing knows.
const VERSION: &str = "2024-11-04";
/// Nothing waits longer than this for an answer.
const CALL_WAIT_MAX: Duration = Duration::from_secs(60);
/// A date may be 15 minutes old; it is formatted again long before.
const DATE_AGE_MAX: Duration = Duration::from_secs(10);

/// A request, without what is the same in all of them.
pub struct Call<'call> {
    pub method: Method,
    /// What follows the account, encoded.
    pub path: &'call str,
    /// Sorted by name; values not yet encoded.
    pub query: &'call [(&'static str, &'call str)],
    /// Lower-case names.
    pub headers: &'call [(&'static str, &'static str)],
    pub content_type: &'static str,
    pub body: Bytes,
}

impl<'call> Call<'call> {
    pub fn new(method: Method, path: &'call str) -> Self {
        Self { method, path, query: &[], headers: &[], content_type: "", body: Bytes::new() }
    }
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

    fn broken(error: impl std::error::Error) -> Self {
        let reason = error.source().map(ToString::to_string);
        Self::Broken(reason.unwrap_or_else(|| error.to_string()))
    }
}

pub struct Client {
    account: Arc<Account>,
    service: Service,
    endpoint: Endpoint,
    host: HeaderValue,
    sender: SendRequest<Full<Bytes>>,
    signer: Signer,
    date: String,
    date_taken: Instant,
    address: String,
}

impl Client {
    pub async fn connect(account: Arc<Account>, service: Service) -> Result<Self, Failure> {
        let endpoint = account.endpoint(service).cloned().ok_or_else(|| {
            Failure::Broken(format!("the account has no {} endpoint", service.name()))
        })?;
        let stream = TcpStream::connect(&endpoint.authority).await.map_err(Failure::broken)?;
        stream.set_nodelay(true).map_err(Failure::broken)?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(Failure::broken)?;
        // Its error reaches the call that it ends.
        tokio::spawn(async move { drop(connection.await) });
        let host = HeaderValue::from_str(&endpoint.authority).map_err(Failure::broken)?;
        Ok(Self {
            account,
            service,
            endpoint,
            host,
            sender,
            signer: Signer::default(),
            date: date_now(),
            date_taken: Instant::now(),
            address: String::new(),
        })
    }

    /// Makes a call that must be answered with `expected`, and returns the length of the body.
    pub async fn call(&mut self, call: Call<'_>, expected: u16) -> Result<u64, Failure> {
        let exchange = async {
            let mut body = self.send(call, expected).await?.into_body();
            let mut length = 0;
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(Failure::broken)?;
                length += frame.data_ref().map_or(0, |data| data.len() as u64);
            }
            Ok(length)
        };
        in_time(exchange).await
    }

    /// The same, with the body itself.
    pub async fn call_for_body(&mut self, call: Call<'_>, expected: u16) -> Result<Bytes, Failure> {
        let exchange = async {
            let body = self.send(call, expected).await?.into_body();
            Ok(body.collect().await.map_err(Failure::broken)?.to_bytes())
        };
        in_time(exchange).await
    }

    async fn send(&mut self, call: Call<'_>, expected: u16) -> Result<Response<Incoming>, Failure> {
        let request = self.request(call)?;
        self.sender.ready().await.map_err(Failure::broken)?;
        let response = self.sender.send_request(request).await.map_err(Failure::broken)?;
        let status = response.status().as_u16();
        if status == expected {
            return Ok(response);
        }
        let code = response.headers().get("x-ms-error-code");
        let code = code.and_then(|code| code.to_str().ok()).unwrap_or("").to_owned();
        response.into_body().collect().await.map_err(Failure::broken)?;
        Err(Failure::Refused { status, code })
    }

    fn request(&mut self, call: Call<'_>) -> Result<Request<Full<Bytes>>, Failure> {
        if self.date_taken.elapsed() > DATE_AGE_MAX {
            self.date = date_now();
            self.date_taken = Instant::now();
        }
        self.address.clear();
        self.address.extend([&self.endpoint.path, call.path]);
        let path_length = self.address.len();
        for (index, (name, value)) in call.query.iter().enumerate() {
            self.address.extend([if index == 0 { "?" } else { "&" }, *name, "="]);
            push_encoded(&mut self.address, value);
        }

        let mut headers = Vec::with_capacity(call.headers.len() + 2);
        headers.extend_from_slice(call.headers);
        headers.extend([("x-ms-date", self.date.as_str()), ("x-ms-version", VERSION)]);
        headers.retain(|(name, _)| name.starts_with("x-ms-"));
        headers.sort_unstable_by_key(|(name, _)| *name);
        let authorization = self.signer.sign(
            &self.account,
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
        );

        let mut request = Request::builder()
            .method(call.method)
            .uri(self.address.as_str())
            .header(HOST, self.host.clone())
            .header("x-ms-date", self.date.as_str())
            .header("x-ms-version", HeaderValue::from_static(VERSION))
            .header(AUTHORIZATION, authorization);
        for (name, value) in call.headers {
            let name = HeaderName::from_static(name);
            request = request.header(name, HeaderValue::from_static(value));
        }
        if !call.content_type.is_empty() {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static(call.content_type));
        }
        request.body(Full::new(call.body)).map_err(Failure::broken)
    }
}

async fn in_time<T>(exchange: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    match tokio::time::timeout(CALL_WAIT_MAX, exchange).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Failure::Broken("no answer in time".to_owned())),
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

fn date_now() -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix(since_epoch).rfc1123().to_string()
}

#[cfg(test)]
mod tests {
    use super::push_encoded;

    #[test]
    fn everything_but_unreserved_characters_is_encoded() {
        let mut address = String::new();
        push_encoded(&mut address, "aZ0-._~+/= ü");
        assert_eq!(address, "aZ0-._~%2B%2F%3D%20%C3%BC");
    }
}
