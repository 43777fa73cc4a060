//! One keep-alive connection that signs its requests with Shared Key.
//!
//! The signature is computed here from the documented rules and not by the code under test, so that a
//! mistake cannot cancel itself out.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, Mac};
use holdfast_domain::time::Timestamp;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{HeaderMap, Request, StatusCode};
use hyper_util::rt::TokioIo;
use sha2::Sha256;
use tokio::net::TcpStream;

pub const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const VERSION: &str = "2026-10-06";

/// The connection broke before the answer was there: the operation may have happened.
#[derive(Debug)]
pub struct NoAnswer;

#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

pub struct Client {
    address: SocketAddr,
    signing: Signing,
    connection: Option<SendRequest<Full<Bytes>>>,
    cut: Option<Arc<AtomicBool>>,
}

/// Which rules the signature follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signing {
    Common,
    Tables,
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        Self { address, signing: Signing::Common, connection: None, cut: None }
    }

    /// Of the Table service, which signs less of a request.
    pub fn of_tables(address: SocketAddr) -> Self {
        Self { signing: Signing::Tables, ..Self::new(address) }
    }

    /// What is answered when `cut` is set already counts as not answered.
    pub fn until(self, cut: Arc<AtomicBool>) -> Self {
        Self { cut: Some(cut), ..self }
    }

    /// `path` starts below the account; names need no escaping. `query` is in the order of its names.
    pub async fn send(
        &mut self,
        method: &str,
        path: &str,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<Answer, NoAnswer> {
        let request = self.signed(method, path, query, headers, body);
        if self.connection.as_ref().is_none_or(SendRequest::is_closed) {
            self.connection = Some(self.connect().await?);
        }
        let connection = self.connection.as_mut().expect("it was just made");
        let exchange = async {
            connection.ready().await?;
            let (head, body) = connection.send_request(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok::<_, hyper::Error>(Answer { status: head.status, headers: head.headers, body })
        };
        let exchanged = exchange.await;
        let is_cut = self.cut.as_ref().is_some_and(|cut| cut.load(Ordering::SeqCst));
        match exchanged {
            Ok(answer) if !is_cut => Ok(answer),
            Ok(_) | Err(_) => {
                self.connection = None;
                Err(NoAnswer)
            }
        }
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, NoAnswer> {
        let stream = TcpStream::connect(self.address).await.map_err(|_| NoAnswer)?;
        stream.set_nodelay(true).map_err(|_| NoAnswer)?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|_| NoAnswer)?;
        tokio::spawn(async move {
            // How it ends is seen by the request that was on it.
            let _ = connection.await;
        });
        Ok(sender)
    }

    fn signed(
        &self,
        method: &str,
        path: &str,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Request<Full<Bytes>> {
        let since_epoch =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is after 1970");
        let date = Timestamp::from_unix(since_epoch).rfc1123().to_string();
        let mut service = vec![("x-ms-date", date.as_str()), ("x-ms-version", VERSION)];
        service.extend_from_slice(headers);
        service.sort_unstable();

        let text = match self.signing {
            Signing::Common => {
                let length = if body.is_empty() { String::new() } else { body.len().to_string() };
                let mut text = format!("{method}\n\n\n{length}\n\n\n\n\n\n\n\n\n");
                for (name, value) in &service {
                    text += &format!("{name}:{value}\n");
                }
                text += &format!("/{ACCOUNT}/{ACCOUNT}{path}");
                for (name, value) in query {
                    text += &format!("\n{name}:{value}");
                }
                text
            }
            Signing::Tables => {
                let mut types = headers.iter().filter(|(name, _)| *name == "content-type");
                let content_type = types.next().map_or("", |(_, value)| value);
                format!("{method}\n\n{content_type}\n{date}\n/{ACCOUNT}/{ACCOUNT}{path}")
            }
        };
        let key = STANDARD.decode(KEY).expect("the well-known key is Base64");
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key of any length will do");
        mac.update(text.as_bytes());
        let signature = STANDARD.encode(mac.finalize().into_bytes());

        let query: Vec<String> =
            query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/{ACCOUNT}{path}{mark}{}", query.join("&")))
            .header("host", self.address.to_string())
            .header("content-length", body.len())
            .header("authorization", format!("SharedKey {ACCOUNT}:{signature}"));
        for (name, value) in service {
            request = request.header(name, value);
        }
        request.body(Full::new(Bytes::from(body))).expect("every part is well formed")
    }
}
