//! What is sent back: status, headers and a body that is never held whole unless it is small.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use holdfast_domain::content::ContentReader;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};

use crate::body::Encoder;

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The names of metadata headers with the case they were stored in, which a header map cannot
    /// hold.
    pub metadata_names: Vec<String>,
    pub body: AnswerBody,
}

impl Answer {
    pub fn new(status: StatusCode) -> Self {
        let headers = HeaderMap::with_capacity(32);
        Self { status, headers, metadata_names: Vec::new(), body: AnswerBody::Empty }
    }

    /// Sets a header, whose name is in lower case. A value that cannot stand in one (a stored
    /// value from elsewhere, say) is left out rather than failing the answer.
    pub fn header(&mut self, name: &'static str, value: impl AsRef<str>) {
        if let Ok(value) = HeaderValue::from_bytes(value.as_ref().as_bytes()) {
            self.headers.insert(HeaderName::from_static(name), value);
        }
    }

    /// Sets the header of one pair of metadata. A name that cannot stand in one is left out, too.
    pub fn metadata_header(&mut self, name: &str, value: &str) {
        let header = HeaderName::from_bytes(format!("x-ms-meta-{name}").as_bytes());
        if let (Ok(header), Ok(value)) = (header, HeaderValue::from_bytes(value.as_bytes())) {
            self.headers.insert(header, value);
        }
        self.metadata_names.push(name.to_owned());
    }

    pub fn into_response(self) -> Response<AnswerBody> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }

    pub fn optional_header(&mut self, name: &'static str, value: Option<impl AsRef<str>>) {
        if let Some(value) = value {
            self.header(name, value);
        }
    }

    pub fn xml(status: StatusCode, body: String) -> Self {
        let mut answer = Self::new(status);
        answer.header("content-type", "application/xml");
        answer.body = AnswerBody::Whole(Bytes::from(body));
        answer
    }
}

pub enum AnswerBody {
    Empty,
    Whole(Bytes),
    /// So many bytes will come, if their number is known.
    Stream(Option<u64>, Pin<Box<dyn Stream<Item = Piece> + Send>>),
}

impl AnswerBody {
    /// The rest of `reader` after `first`, which has been read from it already.
    pub fn content(first: Option<Bytes>, reader: ContentReader) -> Self {
        let Some(first) = first else { return Self::Empty };
        if reader.remaining() == 0 {
            return Self::Whole(first);
        }
        let length = first.len() as u64 + reader.remaining();
        Self::Stream(Some(length), Box::pin(pieces(Some(first), reader)))
    }

    /// The same in the structured form.
    pub fn structured(first: Option<Bytes>, reader: ContentReader, mut encoder: Encoder) -> Self {
        let length = encoder.message_length();
        let start = encoder.start();
        let content = pieces(first, reader).flat_map(move |piece| {
            let encoded = match piece {
                Ok(bytes) => encode(&mut encoder, bytes),
                Err(error) => vec![Err(error)],
            };
            stream::iter(encoded)
        });
        Self::Stream(Some(length), Box::pin(stream::once(async { Ok(start) }).chain(content)))
    }

    /// `None` if it is known only when it has been sent.
    pub fn length(&self) -> Option<u64> {
        match self {
            Self::Empty => Some(0),
            Self::Whole(bytes) => Some(bytes.len() as u64),
            Self::Stream(length, _) => *length,
        }
    }
}

pub type Piece = std::io::Result<Bytes>;

/// `first` and then the rest of `reader`.
fn pieces(first: Option<Bytes>, reader: ContentReader) -> impl Stream<Item = Piece> + Send {
    stream::unfold((first, reader), async |(first, mut reader)| {
        if let Some(first) = first {
            return Some((Ok(first), (None, reader)));
        }
        match reader.next().await {
            Ok(Some(bytes)) => Some((Ok(bytes), (None, reader))),
            Ok(None) => None,
            Err(fault) => {
                // The status is sent already: breaking the connection off is the only way left to
                // tell the client.
                tracing::error!(?fault, "a download was broken off");
                Some((Err(std::io::Error::other(fault)), (None, reader)))
            }
        }
    })
}

fn encode(encoder: &mut Encoder, mut bytes: Bytes) -> Vec<Piece> {
    let mut encoded = Vec::new();
    while !bytes.is_empty() {
        let (content, behind) = encoder.next(&mut bytes);
        encoded.extend([content, behind].into_iter().filter(|part| !part.is_empty()).map(Ok));
    }
    encoded
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        match &mut *self {
            Self::Empty => Poll::Ready(None),
            Self::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = Self::Empty;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Self::Stream(remaining, stream) => {
                let polled = stream.as_mut().poll_next(context);
                if let (Poll::Ready(Some(Ok(bytes))), Some(remaining)) = (&polled, remaining) {
                    *remaining = remaining.saturating_sub(bytes.len() as u64);
                }
                polled.map(|item| item.map(|bytes| bytes.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.length() == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.length().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
