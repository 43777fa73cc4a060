//! Reading a source on another host: one request over one connection, to an address that was
//! checked.
//!
//! No proxies from the environment, no cookies and no compression: it connects only to what
//! `allowed_hosts` has allowed.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_domain::content::ByteSource;
use holdfast_domain::content::{ContentHeaders, ReadRange};
use holdfast_domain::metadata::Metadata;
use holdfast_domain::time::Timestamp;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use super::allowed_hosts::AllowedHosts;
use super::resolver::{Resolver, SystemResolver};
use super::source_bytes::SourceProperties;
use super::url::{Host, Scheme, SourceUrl};
use super::{FailureKind, SourceFailure, SourceSettings};
use crate::body::decode_md5;
use crate::body::is_too_slow;

/// Enough for redirections from http to https and on to the nearest store.
const REDIRECTIONS_MAX: usize = 3;
/// How many addresses of one name are tried.
const ADDRESSES_MAX: usize = 4;
const HEADER_BYTES_MAX: usize = 64 * 1024;
const HEADERS_MAX: usize = 256;
/// The longest error code of a source that is passed on.
const CODE_BYTES_MAX: usize = 64;
/// Has everything needed for sources: tokens, conditions on tags, all kinds of SAS.
const VERSION: &str = "2021-12-02";

#[derive(Clone, Copy, Debug)]
pub struct FetchLimits {
    /// For resolving, connecting and the handshake of TLS, each.
    pub connect_timeout: Duration,
    /// From the request to the headers of its answer.
    pub answer_timeout: Duration,
    /// How long a body may stall.
    pub stall_timeout: Duration,
}

/// The request for a source.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub range: Option<ReadRange>,
    /// As headers of a read.
    pub conditions: HeaderMap,
    /// Sent to the host of the URL only.
    pub token: Option<String>,
}

pub struct Fetched {
    pub properties: SourceProperties,
    /// The length of the body, if the source tells it.
    pub length: Option<u64>,
    pub bytes: FetchedBytes,
}

pub struct Fetcher {
    hosts: AllowedHosts,
    tls: TlsConnector,
    limits: FetchLimits,
    resolver: Arc<dyn Resolver>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the certificate of an authority: {0}")]
pub struct InvalidRoot(String);

/// The authorities of the public web, and `additional` ones.
pub fn roots(additional: Vec<CertificateDer<'static>>) -> Result<RootCertStore, InvalidRoot> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for certificate in additional {
        roots.add(certificate).map_err(|error| InvalidRoot(error.to_string()))?;
    }
    Ok(roots)
}

impl Fetcher {
    pub fn new(settings: &SourceSettings, stall_timeout: Duration) -> Self {
        let limits = FetchLimits {
            connect_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(30),
            stall_timeout,
        };
        Self::with(settings, limits, Arc::new(SystemResolver))
    }

    /// # Panics
    /// If the cryptography that is compiled in has no version of TLS.
    pub fn with(
        settings: &SourceSettings,
        limits: FetchLimits,
        resolver: Arc<dyn Resolver>,
    ) -> Self {
        let mut config =
            ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .expect("ring has the default versions of TLS")
                .with_root_certificates(settings.roots.clone())
                .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let tls = TlsConnector::from(Arc::new(config));
        Self { hosts: settings.hosts.clone(), tls, limits, resolver }
    }

    /// At most `length_max` bytes of the source; one that is longer is refused.
    pub async fn open(
        &self,
        url: &SourceUrl,
        asked: &Asked,
        length_max: u64,
    ) -> Result<Fetched, SourceFailure> {
        let (response, connection) = self.follow(Method::GET, url, asked).await?;
        let expected = match asked.range {
            Some(range) => {
                check_range(&response, range)?;
                StatusCode::PARTIAL_CONTENT
            }
            None => StatusCode::OK,
        };
        check_status(&response, expected)?;
        let mut properties = properties(response.headers());
        let length = response.body().size_hint().exact();
        properties.length = whole_length(response.headers()).or(length);
        if length.is_some_and(|length| length > length_max) {
            return Err(FailureKind::TooLarge { length_max }.into());
        }
        let bytes = FetchedBytes {
            incoming: response.into_body(),
            _connection: connection,
            length_max,
            received: 0,
            missing: length.unwrap_or(0),
            waited: Duration::ZERO,
            stall_timeout: self.limits.stall_timeout,
        };
        Ok(Fetched { properties, length, bytes })
    }

    /// Everything about the source except its bytes.
    pub async fn head(
        &self,
        url: &SourceUrl,
        asked: &Asked,
    ) -> Result<SourceProperties, SourceFailure> {
        let asked = Asked { range: None, ..asked.clone() };
        let (response, _connection) = self.follow(Method::HEAD, url, &asked).await?;
        check_status(&response, StatusCode::OK)?;
        let length = text(response.headers(), header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.parse().ok());
        Ok(SourceProperties { length, ..properties(response.headers()) })
    }

    async fn follow(
        &self,
        method: Method,
        url: &SourceUrl,
        asked: &Asked,
    ) -> Result<(Response<Incoming>, Connection), SourceFailure> {
        let mut at = url.clone();
        for _ in 0..=REDIRECTIONS_MAX {
            let token = asked.token.as_deref().filter(|_| at.same_origin(url));
            let request = request(&method, &at, asked, token)?;
            let (response, connection) = self.exchange(&at, request).await?;
            if !is_redirection(response.status()) {
                return Ok((response, connection));
            }
            let next = text(response.headers(), header::LOCATION)
                .and_then(|location| at.join(&location).ok())
                // No redirection from https to http.
                .filter(|next| next.scheme == Scheme::Https || at.scheme == Scheme::Http);
            at = next.ok_or(FailureKind::TooManyRedirections)?;
        }
        Err(FailureKind::TooManyRedirections.into())
    }

    async fn exchange(
        &self,
        url: &SourceUrl,
        request: Request<Empty<Bytes>>,
    ) -> Result<(Response<Incoming>, Connection), SourceFailure> {
        let addresses = self.addresses(url).await?;
        let stream = self.connect(&addresses, url.port).await?;
        match url.scheme {
            Scheme::Http => self.send(stream, request).await,
            Scheme::Https => {
                let name = server_name(&url.host).ok_or(FailureKind::Unreachable)?;
                let handshake = self.tls.connect(name, stream);
                let stream = timeout(self.limits.connect_timeout, handshake)
                    .await
                    .map_err(|_| FailureKind::TimedOut)?
                    .map_err(|error| unreachable(url, &error))?;
                self.send(stream, request).await
            }
        }
    }

    /// The addresses that may be connected to. The name is not resolved again after this: a second
    /// answer could be different.
    async fn addresses(&self, url: &SourceUrl) -> Result<Vec<IpAddr>, SourceFailure> {
        let SourceUrl { scheme, host, port, .. } = url;
        if !self.hosts.allows_host(*scheme, host, *port) {
            tracing::warn!(%host, port, "a source is not read: --copy-source-host does not name it");
            return Err(FailureKind::HostNotAllowed.into());
        }
        let found = match host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => timeout(self.limits.connect_timeout, self.resolver.resolve(name))
                .await
                .map_err(|_| FailureKind::TimedOut)?
                .map_err(|error| unreachable(url, &error))?,
        };
        let mut allowed: Vec<IpAddr> = found
            .iter()
            .copied()
            .filter(|address| self.hosts.allows_address(*scheme, host, *port, *address))
            .collect();
        allowed.truncate(ADDRESSES_MAX);
        if allowed.is_empty() && !found.is_empty() {
            tracing::warn!(
                %host, ?found,
                "a source is not read: its address must be named by --copy-source-host too"
            );
            return Err(FailureKind::AddressNotAllowed.into());
        }
        Ok(allowed)
    }

    async fn connect(&self, addresses: &[IpAddr], port: u16) -> Result<TcpStream, SourceFailure> {
        let mut failure = FailureKind::Unreachable;
        for address in addresses {
            let connecting = TcpStream::connect(SocketAddr::new(*address, port));
            match timeout(self.limits.connect_timeout, connecting).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => {
                    tracing::debug!(%address, %error, "an address of a source does not answer");
                    failure = FailureKind::Unreachable;
                }
                Err(_) => failure = FailureKind::TimedOut,
            }
        }
        Err(failure.into())
    }

    async fn send<S>(
        &self,
        stream: S,
        request: Request<Empty<Bytes>>,
    ) -> Result<(Response<Incoming>, Connection), SourceFailure>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let exchange = async {
            let (mut sender, connection) = http1::Builder::new()
                .max_buf_size(HEADER_BYTES_MAX)
                .max_headers(HEADERS_MAX)
                .handshake(TokioIo::new(stream))
                .await?;
            let connection = Connection(tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection to a source was broken off");
                }
            }));
            let response = sender.send_request(request).await?;
            Ok::<_, hyper::Error>((response, connection))
        };
        match timeout(self.limits.answer_timeout, exchange).await {
            Ok(Ok(answered)) => Ok(answered),
            Ok(Err(error)) => {
                tracing::debug!(%error, "a source gave no answer that can be read");
                Err(FailureKind::UnexpectedAnswer.into())
            }
            Err(_) => Err(FailureKind::TimedOut.into()),
        }
    }
}

/// The task that moves the bytes of a connection; the connection closes with it.
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The bytes of a source on another host. Its end is reached only if all bytes have arrived.
pub struct FetchedBytes {
    incoming: Incoming,
    _connection: Connection,
    length_max: u64,
    received: u64,
    /// How much of the declared length has not arrived yet.
    missing: u64,
    /// How long we have waited for the source.
    waited: Duration,
    stall_timeout: Duration,
}

#[async_trait]
impl ByteSource for FetchedBytes {
    type Refusal = SourceFailure;

    async fn next(&mut self) -> Result<Option<Bytes>, SourceFailure> {
        loop {
            let begun = Instant::now();
            let frame = timeout(self.stall_timeout, self.incoming.frame()).await;
            self.waited += begun.elapsed();
            if is_too_slow(self.waited, self.received, self.stall_timeout) {
                return Err(FailureKind::TimedOut.into());
            }
            let bytes = match frame {
                Err(_) => return Err(FailureKind::TimedOut.into()),
                Ok(None) if self.missing > 0 => return Err(FailureKind::BrokenOff.into()),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => {
                    tracing::debug!(%error, "a source broke off");
                    return Err(FailureKind::BrokenOff.into());
                }
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            };
            self.received += bytes.len() as u64;
            self.missing = self.missing.saturating_sub(bytes.len() as u64);
            if self.received > self.length_max {
                return Err(FailureKind::TooLarge { length_max: self.length_max }.into());
            }
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
        }
    }
}

fn request(
    method: &Method,
    url: &SourceUrl,
    asked: &Asked,
    token: Option<&str>,
) -> Result<Request<Empty<Bytes>>, SourceFailure> {
    let mut request = Request::new(Empty::new());
    *request.method_mut() = method.clone();
    *request.uri_mut() = url.target.clone().into();
    let headers = request.headers_mut();
    *headers = asked.conditions.clone();
    let mut set = |name: HeaderName, value: &str| -> Result<(), SourceFailure> {
        let value = HeaderValue::from_str(value).map_err(|_| FailureKind::UnexpectedAnswer)?;
        headers.insert(name, value);
        Ok(())
    };
    set(header::HOST, &url.authority())?;
    set(header::USER_AGENT, concat!("holdfast/", env!("CARGO_PKG_VERSION")))?;
    set(header::CONNECTION, "close")?;
    set(HeaderName::from_static("x-ms-version"), VERSION)?;
    if let Some(ReadRange { first, last }) = asked.range {
        let last = last.map(|last| last.to_string()).unwrap_or_default();
        set(header::RANGE, &format!("bytes={first}-{last}"))?;
    }
    match (token, url.scheme) {
        (None, _) => {}
        (Some(token), Scheme::Https) => set(header::AUTHORIZATION, &format!("Bearer {token}"))?,
        (Some(_), Scheme::Http) => return Err(FailureKind::InsecureToken.into()),
    }
    Ok(request)
}

fn is_redirection(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn check_status(response: &Response<Incoming>, expected: StatusCode) -> Result<(), SourceFailure> {
    let status = response.status();
    if status == expected {
        return Ok(());
    }
    if status.is_client_error() || status.is_server_error() || status == StatusCode::NOT_MODIFIED {
        let plain = |code: &String| {
            code.len() <= CODE_BYTES_MAX && code.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        let code = text(response.headers(), HeaderName::from_static("x-ms-error-code"));
        return Err(SourceFailure::answered(status, code.filter(plain)));
    }
    Err(SourceFailure { status: Some(status), ..FailureKind::UnexpectedAnswer.into() })
}

/// Refuses an answer with another range than the requested one.
fn check_range(response: &Response<Incoming>, range: ReadRange) -> Result<(), SourceFailure> {
    if response.status() != StatusCode::PARTIAL_CONTENT {
        return Ok(());
    }
    let sent = content_range(response.headers());
    let fits = sent.is_some_and(|(first, last, whole)| {
        let end = whole.map_or(range.last, |whole| {
            Some(range.last.unwrap_or(u64::MAX).min(whole.saturating_sub(1)))
        });
        first == range.first && end.is_none_or(|end| end == last)
    });
    if fits { Ok(()) } else { Err(FailureKind::UnexpectedAnswer.into()) }
}

/// `bytes first-last/whole`, where the whole may be `*`.
fn content_range(headers: &HeaderMap) -> Option<(u64, u64, Option<u64>)> {
    let sent = text(headers, header::CONTENT_RANGE)?;
    let (range, whole) = sent.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let whole = if whole == "*" { None } else { Some(whole.parse().ok()?) };
    Some((first.parse().ok()?, last.parse().ok()?, whole))
}

fn whole_length(headers: &HeaderMap) -> Option<u64> {
    content_range(headers)?.2
}

fn properties(headers: &HeaderMap) -> SourceProperties {
    let own = |name| text(headers, HeaderName::from_static(name));
    let md5 = own("x-ms-blob-content-md5").or_else(|| match headers.get(header::CONTENT_RANGE) {
        // The digest of a range is not that of the source.
        Some(_) => None,
        None => own("content-md5"),
    });
    SourceProperties {
        etag: text(headers, header::ETAG),
        last_modified: text(headers, header::LAST_MODIFIED)
            .and_then(|date| Timestamp::parse_rfc1123(&date)),
        length: None,
        blob_type: own("x-ms-blob-type"),
        headers: ContentHeaders {
            content_type: text(headers, header::CONTENT_TYPE),
            content_encoding: text(headers, header::CONTENT_ENCODING),
            content_language: text(headers, header::CONTENT_LANGUAGE),
            content_disposition: text(headers, header::CONTENT_DISPOSITION),
            cache_control: text(headers, header::CACHE_CONTROL),
            content_md5: md5.as_deref().and_then(decode_md5),
        },
        metadata: metadata(headers),
        tags: None,
    }
}

/// Leaves out what is not valid as metadata here: the source may have other rules.
fn metadata(headers: &HeaderMap) -> Metadata {
    let pairs: Vec<(String, String)> = headers
        .iter()
        .filter_map(|(name, value)| {
            let name = name.as_str().strip_prefix("x-ms-meta-")?;
            Some((name.to_owned(), value.to_str().ok()?.to_owned()))
        })
        .collect();
    Metadata::new(pairs).unwrap_or_default()
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?.trim();
    Some(value.to_owned()).filter(|value| !value.is_empty())
}

fn server_name(host: &Host) -> Option<ServerName<'static>> {
    match host {
        Host::Address(address) => Some(ServerName::IpAddress((*address).into())),
        Host::Name(name) => ServerName::try_from(name.clone()).ok(),
    }
}

fn unreachable(url: &SourceUrl, error: &std::io::Error) -> FailureKind {
    tracing::debug!(host = %url.host, %error, "a source cannot be reached");
    FailureKind::Unreachable
}

#[cfg(test)]
mod tests;
