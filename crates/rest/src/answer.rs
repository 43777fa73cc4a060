//! An answer: status, headers and a body, which is streamed unless it is small.

use std::fmt::Display;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use holdfast_domain::content::ContentReader;
use hyper::StatusCode;

use crate::body::Encoder;
use crate::error::Error;
use crate::headers::AnswerHeaders;

pub struct Answer {
    pub status: StatusCode,
    /// The reason phrase, if it is not that of HTTP. Visible ASCII.
    pub reason: Option<Box<str>>,
    pub headers: AnswerHeaders,
    pub body: AnswerBody,
}

impl Answer {
    pub fn new(status: StatusCode) -> Self {
        Self { status, reason: None, headers: AnswerHeaders::new(), body: AnswerBody::Empty }
    }

    pub fn reason(&self) -> &str {
        match &self.reason {
            Some(reason) => reason,
            None => self.status.canonical_reason().unwrap_or_default(),
        }
    }

    /// Sets a header, whose name is in lower case. A header with an invalid value (such as a stored
    /// value from elsewhere) is left out rather than failing the answer.
    pub fn header(&mut self, name: &'static str, value: impl AsRef<str>) {
        self.headers.set(name, value.as_ref());
    }

    /// The same with a value that is formatted: an ETag, a date, a number.
    pub fn show(&mut self, name: &'static str, value: impl Display) {
        self.headers.show(name, value);
    }

    /// Sets the header of one pair of metadata. A header with an invalid name is left out, too.
    pub fn metadata_header(&mut self, name: &str, value: &str) {
        self.headers.set_named(&["x-ms-meta-", name].concat(), value);
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

/// The future of an answer.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Answer, Error>> + Send + 'a>>;

pub enum AnswerBody {
    Empty,
    Whole(Bytes),
    /// A stream, with its length if that is known.
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

    /// `None` if it is not known before the end.
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
                // The status is sent already: closing the connection is the only way left to tell
                // the client.
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
