//! One keep-alive connection that signs its requests with Shared Key and reconnects when it breaks; and a
//! GET without credentials.
//!
//! The signature is that of `holdfast_verify`, computed from the documented rules and not by the code under
//! test, so that a mistake cannot cancel itself out.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use holdfast_verify::account::{Account, DEVELOPMENT_NAME, Service};
use holdfast_verify::client::{Call, Client as Connection, Headers};
use hyper::{Method, StatusCode};

use crate::process::PATIENCE;

pub const ACCOUNT: &str = DEVELOPMENT_NAME;
const VERSION: &str = "2026-10-06";

/// The connection broke before the answer: the operation may have happened.
#[derive(Debug)]
pub struct NoAnswer;

#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub body: Bytes,
    headers: Headers,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }
}

pub struct Client {
    account: Arc<Account>,
    service: Service,
    connection: Option<Connection>,
    cut: Option<Arc<AtomicBool>>,
}

impl Client {
    /// For the Blob, Queue or File service.
    pub fn new(address: SocketAddr) -> Self {
        let url = |_| Some(format!("http://{address}/{ACCOUNT}"));
        let account = Arc::new(Account::development(url).expect("the address is valid"));
        Self { account, service: Service::Blob, connection: None, cut: None }
    }

    /// For the Table service, which signs less of a request.
    pub fn of_tables(address: SocketAddr) -> Self {
        Self { service: Service::Table, ..Self::new(address) }
    }

    /// Answers after `cut` was set count as missing.
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
        let mut connection = match self.connection.take() {
            Some(connection) if !connection.is_closed() => connection,
            Some(_) | None => self.connect().await?,
        };
        let (types, headers): (Vec<_>, Vec<_>) =
            headers.iter().partition(|(name, _)| *name == "content-type");
        let content_type = types.first().map_or("", |(_, value)| *value);
        let call = Call {
            query,
            headers: &headers,
            content_type,
            body: body.into(),
            ..Call::new(Method::from_bytes(method.as_bytes()).expect("a method"), path)
        };
        let exchanged = connection.exchange(call).await;
        let is_cut = self.cut.as_ref().is_some_and(|cut| cut.load(Ordering::SeqCst));
        match exchanged {
            Ok(answer) if !is_cut => {
                self.connection = Some(connection);
                let status = StatusCode::from_u16(answer.status).expect("a status");
                Ok(Answer { status, body: answer.body, headers: answer.headers })
            }
            Ok(_) | Err(_) => Err(NoAnswer),
        }
    }

    async fn connect(&self) -> Result<Connection, NoAnswer> {
        let connected = Connection::connect(Arc::clone(&self.account), self.service).await;
        Ok(connected.map_err(|_| NoAnswer)?.with_version(VERSION))
    }
}

/// Status and body of a GET without credentials. [`Client`] cannot send it: that signs every request, and its
/// paths are below an account, where the admin port has none. Tests without a runtime call this, too.
pub fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    (status.expect("a status"), body.expect("a body"))
}
