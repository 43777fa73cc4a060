//! One entry point per parser of untrusted HTTP input, for fuzzers. None of them may panic,
//! take long, or take more memory than a small multiple of what it is given. Each returns whether
//! the bytes were valid, so that a run can show that it got past the first check.

use std::net::{IpAddr, Ipv4Addr};

use bytes::{Bytes, BytesMut};
use holdfast_domain::names::TrailingDots;
use holdfast_domain::table::KeyRange;
use holdfast_domain::time::Timestamp;

use crate::address::{Address, HostStyle};
use crate::auth::{AccountKeys, Accounts, BearerSettings, Key, Presented, authenticate, authorize};
use crate::blob;
use crate::body::multipart;
use crate::body::{Decoder, Plain, StructuredBody};
use crate::connection::{decode_chunked, take_head};
use crate::headers::RequestHeaders;
use crate::headers::range;
use crate::operation::{check_since, route};
use crate::queue;
use crate::service::Service;
use crate::service::properties_document;
use crate::service::signed_identifiers;
use crate::source::{SourceUrl, Vicinity, locate};
use crate::table;
use crate::url_query::UrlQuery;
use crate::version::Version;
use crate::version::negotiation::{named, negotiate};
use crate::xml::document;

const ACCOUNT: &str = "devstoreaccount1";
/// The date of the golden requests of the tests.
const NOW: &str = "Sat, 01 Jun 2024 12:00:00 GMT";
const PARTS_MAX: usize = 256;
const HEAD_BYTES_MAX: usize = 64 * 1024;

fn accounts() -> Accounts {
    // A dummy key that protects nothing.
    let primary = Key::from_bytes(b"a key of the fuzzers");
    Accounts::from_iter([(ACCOUNT.to_owned(), AccountKeys { primary, secondary: None })])
}

/// The head of a request: its line and headers, its address for each service, its operation,
/// authentication and authorization.
pub fn request(bytes: &[u8]) -> bool {
    let mut input = BytesMut::from(bytes);
    let Ok(Some(head)) = take_head(&mut input, HEAD_BYTES_MAX) else { return false };
    let parts = &head.parts;
    let _ = range::requested(&parts.headers);
    let Ok(query) = UrlQuery::parse(parts.uri.query().unwrap_or_default()) else { return true };
    for service in Service::ALL {
        addressed(service, &parts.headers, parts.method.as_str(), parts.uri.path(), &query);
    }
    true
}

fn addressed(
    service: Service,
    headers: &RequestHeaders,
    method: &str,
    path: &str,
    query: &UrlQuery<'_>,
) -> Option<()> {
    let host = headers.text("host");
    let address = Address::parse(service, host, HostStyle::Recognized, path, query).ok()?;
    let operation = route(service, method, address.resource.scope(), query, headers).ok()?;
    let version =
        negotiate(service, named(headers), headers, query).ok()?.unwrap_or(Version::V2009_09_19);
    check_since(operation, version, query, headers).ok()?;
    let pairs = query.to_pairs();
    let presented = Presented {
        method,
        path,
        path_style: address.path_style,
        query: &pairs,
        headers,
        version,
        tls: false,
        client_ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        resource: address.named_resource(service),
    };
    let now = Timestamp::parse_rfc1123(NOW)?;
    let bearer = BearerSettings::development();
    let identity = authenticate(&presented, &accounts(), &bearer, now).ok()?;
    authorize(&identity, &operation.need(query), version, &presented.resource).ok().map(drop)
}

/// A path with its query on the first line, the value of Authorization on the second.
pub fn authorization(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let (target, authorization) = text.split_once('\n').unwrap_or((text, ""));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let Ok(query) = UrlQuery::parse(query) else { return false };
    let mut headers = RequestHeaders::from_iter([
        ("x-ms-version", "2026-04-06"),
        ("x-ms-date", NOW),
        ("host", "127.0.0.1:10000"),
    ]);
    if !authorization.is_empty()
        && headers.append("authorization", authorization.as_bytes()).is_none()
    {
        return false;
    }
    let known = |service| addressed(service, &headers, "GET", path, &query).is_some();
    Service::ALL.into_iter().fold(false, |any, service| any | known(service))
}

/// Every document that an operation reads.
pub fn xml(bytes: &[u8]) -> bool {
    let mut read = document::parse(bytes, "KeyInfo").is_ok();
    for service in Service::ALL {
        read |= signed_identifiers::parse(service, bytes).is_ok();
        read |= properties_document::parse(service, bytes).is_ok();
    }
    let message = queue::can_be_message(&Bytes::copy_from_slice(bytes));
    read | blob::can_be_document(bytes) | message
}

/// The value of Content-Type on the first line, then the body of a batch.
pub fn batch(bytes: &[u8]) -> bool {
    let line = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (line, body) = bytes.split_at(line);
    let Some(boundary) = std::str::from_utf8(line).ok().and_then(multipart::boundary) else {
        return false;
    };
    multipart::parse(body, boundary, PARTS_MAX).is_ok() | table::can_be_batch(body, boundary)
}

/// The value of Range or x-ms-range.
pub fn ranges(bytes: &[u8]) -> bool {
    match range::parse(bytes) {
        Some(range) => {
            assert!(range.last.is_none_or(|last| last >= range.first), "{range:?}");
            true
        }
        None => false,
    }
}

/// An entity of a table.
pub fn entity(bytes: &[u8]) -> bool {
    let Ok(mut entity) = table::read_entity(bytes) else { return false };
    if let Ok(key) = entity.key() {
        KeyRange::default().contains(key.partition_key(), key.row_key());
    }
    true
}

/// A structured body, whole and byte by byte: the boundaries of reads must not matter.
pub fn structured_body(bytes: &[u8]) -> bool {
    let mut length = [0; 8];
    let mut segments = [0; 2];
    if let Some(header) = bytes.first_chunk::<13>() {
        length.copy_from_slice(&header[1..9]);
        segments.copy_from_slice(&header[11..13]);
    }
    // The length that the header of the request must have for the body to be read at all.
    let around = 21 + 18 * u64::from(u16::from_le_bytes(segments));
    let content_length = u64::from_le_bytes(length).wrapping_sub(around);
    let whole = decode_structured(bytes, content_length, bytes.len().max(1));
    assert_eq!(whole, decode_structured(bytes, content_length, 1));
    whole.is_some()
}

fn decode_structured(bytes: &[u8], content_length: u64, step: usize) -> Option<(Vec<u8>, Plain)> {
    let mut decoder = Decoder::new(StructuredBody { content_length }, None);
    let mut content = Vec::new();
    for chunk in bytes.chunks(step) {
        let mut input = Bytes::copy_from_slice(chunk);
        while let Some(piece) = decoder.next(&mut input).ok()? {
            content.extend_from_slice(&piece);
        }
    }
    Some((content, decoder.finish().ok()?))
}

/// A body in chunks, whole and byte by byte.
pub fn chunked_body(bytes: &[u8]) -> bool {
    let whole = decode_chunked(bytes, bytes.len().max(1));
    assert_eq!(whole, decode_chunked(bytes, 1));
    whole.is_some()
}

/// The URL of a copy source, and the target of a redirect to it.
pub fn source_url(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let base = SourceUrl::parse("http://127.0.0.1:10000/devstoreaccount1/a/b?sig=c");
    let redirected = base.and_then(|base| base.join(text));
    let asked = SourceUrl::parse(text);
    for url in [&redirected, &asked].into_iter().flatten() {
        for service in [Service::Blob, Service::File] {
            let vicinity = Vicinity {
                own_addresses: &[],
                host_style: HostStyle::Recognized,
                service,
                request_host: Some("127.0.0.1:10000"),
                dots: TrailingDots::Kept,
            };
            let _ = locate(url, vicinity);
        }
        let shown = url.without_signature();
        let (_, query) = shown.split_once('?').unwrap_or_default();
        let query = UrlQuery::parse(query).unwrap_or_default();
        assert!(query.get("sig").is_none(), "{text:?} is shown as {shown:?}");
    }
    asked.is_ok()
}
