//! The body of a request: taken in as a stream, bounded in length and time, checked on the way.

use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use holdfast_domain::content::ByteSource;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use crate::body::{Decoder, Digests, StructuredBody};
use crate::error::{Code, Error};
use crate::request::Call;

/// The longest document (properties, policies) that is read whole.
const DOCUMENT_BYTES_MAX: u64 = 1024 * 1024;

pub struct RequestBody {
    incoming: Incoming,
    stall_timeout: Duration,
}
