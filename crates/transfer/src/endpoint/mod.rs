//! One account on a server: requests to it, with connections that are used again and repetitions
//! where they are harmless.

pub mod blobs;
mod files;
pub mod lists;
mod queues;
mod source;
pub mod tables;
pub mod xml;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use holdfast_verify::account::{Account, Service};
use holdfast_verify::client::{Answer, Call, Client, Failure as CallFailure};
use hyper::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

pub use source::EndpointSource;

/// Every server that is worth moving to knows it.
const VERSION: &str = "2024-11-04";
const TRIES_MAX: u32 = 6;
/// Doubled after each try.
const PAUSE: Duration = Duration::from_millis(250);

/// What is sent in a path as it is.
const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The path of a name in a container, of which only slashes are left.
pub fn path(container: &str, name: &str) -> String {
    let container = utf8_percent_encode(container, PATH);
    if name.is_empty() {
        format!("/{container}")
    } else {
        format!("/{container}/{}", utf8_percent_encode(name, PATH))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("it was answered with {status} {code}")]
    Refused { status: u16, code: String },
    #[error("{0:?} cannot be sent in a header")]
    Header(String),
    #[error("{0}")]
    Broken(String),
}

impl Failure {
    pub fn is(&self, wanted: u16) -> bool {
        matches!(self, Self::Refused { status, .. } if *status == wanted)
    }

    pub fn has_code(&self, wanted: &str) -> bool {
        matches!(self, Self::Refused { code, .. } if code == wanted)
    }

    fn unexpected(what: &str) -> Self {
        Self::Broken(format!("the server's {what} cannot be read"))
    }
}

pub struct Request {
    service: Service,
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    headers: Vec<(String, String)>,
    content_type: String,
    body: Bytes,
    is_repeatable: bool,
}

impl Request {
    /// `path` begins with a slash and is encoded.
    pub fn new(service: Service, method: Method, path: String) -> Self {
        Self {
            service,
            method,
            path,
            query: Vec::new(),
            headers: Vec::new(),
            content_type: String::new(),
            body: Bytes::new(),
            is_repeatable: true,
        }
    }

    pub fn get(service: Service, path: String) -> Self {
        Self::new(service, Method::GET, path)
    }

    pub fn put(service: Service, path: String) -> Self {
        Self::new(service, Method::PUT, path)
    }

    pub fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// One that is empty is left out.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let value = value.into();
        if !value.is_empty() {
            self.headers.push((name.into(), value));
        }
        self
    }

    pub fn headers(mut self, headers: impl IntoIterator<Item = (String, String)>) -> Self {
        for (name, value) in headers {
            self = self.header(name, value);
        }
        self
    }

    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub fn content_type(mut self, content_type: &str) -> Self {
        content_type.clone_into(&mut self.content_type);
        self
    }

    /// Done twice, it would not be the same.
    pub fn once(mut self) -> Self {
        self.is_repeatable = false;
        self
    }
}

/// Bytes from a folder or another server must not end a header early.
pub fn is_header_value(value: &str) -> bool {
    value.bytes().all(|byte| matches!(byte, b' '..=b'~')) && value.trim() == value
}

fn is_header_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !name.is_empty() && name.bytes().all(is_plain)
}

pub struct Endpoint {
    pub account: Arc<Account>,
    idle: [Mutex<Vec<Client>>; 4],
    /// Nobody could be reached for as long as the tries take: then none is waited for again.
    is_gone: AtomicBool,
}

impl Endpoint {
    pub fn new(account: Account) -> Self {
        let (idle, is_gone) = Default::default();
        Self { account: Arc::new(account), idle, is_gone }
    }

    /// Whether the service can be asked at all; what it says does not matter.
    pub async fn probe(&self, service: Service) -> Result<(), Failure> {
        let request = Request::get(service, "/".to_owned()).query("comp", "list");
        match self.try_once(&request).await {
            Ok(_) => Ok(()),
            Err(Unanswered::NotSent(why) | Unanswered::Unknown(why)) => Err(Failure::Broken(why)),
        }
    }

    pub fn has(&self, service: Service) -> bool {
        self.account.endpoint(service).is_some()
    }

    /// The answer, if its status is one of success.
    pub async fn send(&self, request: Request) -> Result<Answer, Failure> {
        let answer = self.ask(request).await?;
        if (200..300).contains(&answer.status) {
            return Ok(answer);
        }
        let code = if answer.code.is_empty() { code_of(&answer.body) } else { answer.code };
        Err(Failure::Refused { status: answer.status, code })
    }

    async fn ask(&self, mut request: Request) -> Result<Answer, Failure> {
        for (name, value) in &request.headers {
            if !is_header_name(name) || !is_header_value(value) {
                return Err(Failure::Header(format!("{name}: {value}")));
            }
        }
        if !is_header_value(&request.content_type) {
            return Err(Failure::Header(request.content_type));
        }
        request.query.sort_by_key(|(name, _)| *name);
        let mut tries = 0;
        loop {
            tries += 1;
            let outcome = self.try_once(&request).await;
            let is_reached = !matches!(outcome, Err(Unanswered::NotSent(_)));
            if is_reached || tries == TRIES_MAX {
                self.is_gone.store(!is_reached, Ordering::Relaxed);
            }
            let may_repeat = match &outcome {
                Ok(answer) if answer.status == 503 => true,
                Ok(answer) if matches!(answer.status, 408 | 500) => request.is_repeatable,
                Ok(_) => false,
                Err(Unanswered::NotSent(_)) => true,
                Err(Unanswered::Unknown(_)) => request.is_repeatable,
            };
            if !may_repeat || tries == TRIES_MAX || self.is_gone.load(Ordering::Relaxed) {
                return outcome.map_err(|failure| match failure {
                    Unanswered::NotSent(why) | Unanswered::Unknown(why) => Failure::Broken(why),
                });
            }
            tokio::time::sleep(PAUSE * 2_u32.pow(tries - 1)).await;
        }
    }

    async fn try_once(&self, request: &Request) -> Result<Answer, Unanswered> {
        let mut client = match self.idle_client(request.service) {
            Some(client) => client,
            None => Client::connect(Arc::clone(&self.account), request.service)
                .await
                .map_err(|failure| Unanswered::NotSent(failure.to_string()))?
                .with_version(VERSION),
        };
        let query: Vec<_> =
            request.query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let headers: Vec<_> =
            request.headers.iter().map(|(name, value)| (&**name, value.as_str())).collect();
        let call = Call {
            query: &query,
            headers: &headers,
            content_type: &request.content_type,
            body: request.body.clone(),
            ..Call::new(request.method.clone(), &request.path)
        };
        let exchanged = client.exchange(call).await;
        let answer =
            exchanged.map_err(|failure: CallFailure| Unanswered::Unknown(failure.to_string()))?;
        let ends =
            answer.headers.get("connection").is_some_and(|it| it.eq_ignore_ascii_case("close"));
        if !ends {
            self.pool(request.service).push(client);
        }
        Ok(answer)
    }

    fn idle_client(&self, service: Service) -> Option<Client> {
        let mut pool = self.pool(service);
        loop {
            let client = pool.pop()?;
            if !client.is_closed() {
                return Some(client);
            }
        }
    }

    fn pool(&self, service: Service) -> std::sync::MutexGuard<'_, Vec<Client>> {
        self.idle[service as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn xml(&self, request: Request) -> Result<xml::Element, Failure> {
        let answer = self.send(request).await?;
        if answer.body.is_empty() {
            return Ok(xml::Element::default());
        }
        xml::parse(&answer.body).ok_or_else(|| Failure::unexpected("answer"))
    }
}

enum Unanswered {
    NotSent(String),
    /// It may have happened.
    Unknown(String),
}

/// The Table service does not say it in a header everywhere.
fn code_of(body: &[u8]) -> String {
    if let Ok(json) = serde_json::from_slice::<serde_json::Value>(body) {
        let code = json.pointer("/odata.error/code").and_then(serde_json::Value::as_str);
        return code.unwrap_or_default().to_owned();
    }
    xml::parse(body).map(|error| error.text_of("Code").to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_of_a_name_but_the_slash_is_encoded() {
        assert_eq!(path("$root", ""), "/%24root");
        assert_eq!(path("c", "a b/ü%20?#'.txt"), "/c/a%20b/%C3%BC%2520%3F%23%27.txt");
    }

    #[test]
    fn header_that_would_end_early_is_not_sent() {
        for value in ["a\r\nx-ms-other: b", "a\nb", "\u{0}", "ü", " a", "a\t"] {
            assert!(!is_header_value(value), "{value:?}");
        }
        assert!(is_header_value("a b;c=\"d\""));
        for name in ["", "a b", "a:", "a\r\n", "ü"] {
            assert!(!is_header_name(name), "{name:?}");
        }
    }

    #[test]
    fn code_of_a_refusal_is_found_in_each_form_of_body() {
        let json = br#"{"odata.error":{"code":"EntityAlreadyExists","message":{}}}"#;
        assert_eq!(code_of(json), "EntityAlreadyExists");
        assert_eq!(code_of(b"<Error><Code>QueueNotFound</Code></Error>"), "QueueNotFound");
        assert_eq!(code_of(b"?"), "");
    }
}
