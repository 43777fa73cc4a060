//! The body of a request: read as a stream, bounded in length and time, and verified while it is
//! read.

use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use holdfast_domain::content::ByteSource;

use crate::body::concurrent_digests::ConcurrentDigests;
use crate::body::{Decoder, Digests, ExpectedDigests, FinishedDigests, StructuredBody};
use crate::connection::Incoming;
use crate::connection::timeout::at_once;
use crate::error::{Code, Error};
use crate::lanes::lane_share::{leave_lane, turn_bytes};
use crate::request::Call;
use crate::version::Version;

/// The maximum length of a document (properties, policies), which is read whole.
const DOCUMENT_BYTES_MAX: u64 = 1024 * 1024;

/// The most memory that is reserved for a document before it has arrived.
const RESERVED_BYTES_MAX: usize = 1024 * 1024;

/// A longer document goes to the heavy pool before it is parsed: parsing takes a millisecond or
/// more, and usually so does the operation.
const LIGHT_DOCUMENT_BYTES_MAX: usize = 32 * 1024;

/// The time that a client may take per MiB, as in the service; slower counts as a stall.
const TIME_PER_MIB: Duration = Duration::from_secs(10 * 60);

pub struct RequestBody {
    incoming: Incoming,
    stall_timeout: Duration,
    /// How much of the declared length has not arrived yet.
    missing: u64,
    received: u64,
    /// How long we have waited for the client, not the store.
    waited: Duration,
    /// Bytes received since the last yield.
    in_turn: usize,
}

impl RequestBody {
    pub fn new(incoming: Incoming, stall_timeout: Duration) -> Self {
        let missing = incoming.length_left().unwrap_or(0);
        Self { incoming, stall_timeout, missing, received: 0, waited: Duration::ZERO, in_turn: 0 }
    }

    /// The unread part of the declared length; 0 if none was declared.
    pub fn declared_length(&self) -> u64 {
        self.missing
    }

    /// Begins to read a body of content, whose length must be declared and allowed. The digests in
    /// the headers are verified; an MD5 to be stored is used instead of `Content-MD5`.
    pub fn open(
        self,
        call: &Call<'_>,
        length_max: u64,
        stored_md5: Option<[u8; 16]>,
    ) -> Result<ContentBody, Error> {
        self.begin(call, length_max, stored_md5, Digests::both())
    }

    /// As [`RequestBody::open`], for a part of a blob: since 2019-02-02 its MD5, which is costly,
    /// is returned only to clients that send it.
    pub fn open_part(self, call: &Call<'_>, length_max: u64) -> Result<ContentBody, Error> {
        let wants_md5 =
            call.version < Version::V2019_02_02 || call.header("content-md5")?.is_some();
        let digests = if wants_md5 { Digests::both() } else { Digests::crc64() };
        self.begin(call, length_max, None, digests)
    }

    fn begin(
        self,
        call: &Call<'_>,
        length_max: u64,
        stored_md5: Option<[u8; 16]>,
        digests: Digests,
    ) -> Result<ContentBody, Error> {
        if !call.headers.contains("content-length") {
            return Err(Code::MissingContentLengthHeader.into());
        }
        let structured = StructuredBody::parse(
            call.header("x-ms-structured-body")?,
            call.header("x-ms-structured-content-length")?,
        )?;
        let message_length = self.declared_length();
        let length = structured.map_or(message_length, |structured| structured.content_length);
        if length > length_max {
            return Err(
                Error::from(Code::RequestBodyTooLarge).detail("MaxLimit", length_max.to_string())
            );
        }
        let expected = ExpectedDigests::parse(
            call.header("content-md5")?,
            call.header("x-ms-content-crc64")?,
        )?;
        Ok(ContentBody {
            body: self,
            decoder: structured.map(|body| Decoder::new(body, Some(message_length))),
            undecoded: Bytes::new(),
            expected: ExpectedDigests { md5: stored_md5.or(expected.md5), ..expected },
            digests: Some(ConcurrentDigests::new(digests, length)),
            finished: None,
        })
    }

    /// For parts of a batch, which have no body.
    pub fn none() -> Self {
        Self::new(Incoming::none(), Duration::ZERO)
    }

    /// The whole body of an operation that takes a document.
    pub async fn document(self, call: &Call<'_>) -> Result<Bytes, Error> {
        self.whole(call, DOCUMENT_BYTES_MAX).await
    }

    /// The whole body, if it is not longer than this.
    pub async fn whole(mut self, call: &Call<'_>, length_max: u64) -> Result<Bytes, Error> {
        let expected = ExpectedDigests::parse(
            call.header("content-md5")?,
            call.header("x-ms-content-crc64")?,
        )?;
        let mut digests = expected.digests();
        let too_large =
            || Error::from(Code::RequestBodyTooLarge).detail("MaxLimit", length_max.to_string());
        if self.declared_length() > length_max {
            return Err(too_large());
        }
        let declared = usize::try_from(self.declared_length()).unwrap_or(usize::MAX);
        let first = self.next().await?.unwrap_or_default();
        if first.len() as u64 > length_max {
            return Err(too_large());
        }
        digests.update(&first);
        // Most documents arrive in one piece, which need not be copied.
        if first.len() == declared {
            if first.len() > LIGHT_DOCUMENT_BYTES_MAX {
                leave_lane().await;
            }
            expected.verify(&digests.finish())?;
            return Ok(first);
        }
        let mut document = BytesMut::with_capacity(declared.min(RESERVED_BYTES_MAX));
        document.extend_from_slice(&first);
        while let Some(bytes) = self.next().await? {
            if (document.len() + bytes.len()) as u64 > length_max {
                return Err(too_large());
            }
            digests.update(&bytes);
            document.extend_from_slice(&bytes);
        }
        expected.verify(&digests.finish())?;
        if document.len() > LIGHT_DOCUMENT_BYTES_MAX {
            leave_lane().await;
        }
        Ok(document.freeze())
    }

    /// The next bytes, never empty.
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        if self.in_turn >= turn_bytes() {
            tokio::task::yield_now().await;
            self.in_turn = 0;
        }
        let mut next = pin!(self.incoming.next());
        let next = match at_once(next.as_mut()).await {
            Poll::Ready(next) => Ok(next),
            Poll::Pending => {
                let begun = Instant::now();
                let next = tokio::time::timeout(self.stall_timeout, next).await;
                self.waited += begun.elapsed();
                if is_too_slow(self.waited, self.received, self.stall_timeout) {
                    return Err(Code::OperationTimedOut.into());
                }
                next
            }
        };
        match next {
            Err(_) => Err(Code::OperationTimedOut.into()),
            // A truncated body must not pass as complete.
            Ok(None) if self.missing > 0 => Err(Code::InvalidInput.into()),
            Ok(None) => Ok(None),
            Ok(Some(Err(error))) => {
                tracing::debug!(%error, "a body was broken off");
                Err(Code::InvalidInput.into())
            }
            Ok(Some(Ok(bytes))) => {
                self.missing = self.missing.saturating_sub(bytes.len() as u64);
                self.received += bytes.len() as u64;
                self.in_turn += bytes.len();
                Ok(Some(bytes))
            }
        }
    }
}

/// Whether a sender was too slow for the number of bytes it has sent.
pub(crate) fn is_too_slow(waited: Duration, received: u64, stall_timeout: Duration) -> bool {
    let mib = received as f64 / (1024.0 * 1024.0);
    waited > stall_timeout + TIME_PER_MIB.mul_f64(mib)
}

/// A body of content. Its end is reached only if length and digests match.
pub struct ContentBody {
    body: RequestBody,
    decoder: Option<Decoder>,
    /// Bytes of a structured body that have arrived but are not decoded.
    undecoded: Bytes,
    expected: ExpectedDigests,
    /// Until the end.
    digests: Option<ConcurrentDigests>,
    finished: Option<FinishedDigests>,
}

impl ContentBody {
    pub fn is_structured(&self) -> bool {
        self.decoder.is_some()
    }

    /// The digests of the content, once it has been read to its end.
    pub fn finished(&self) -> FinishedDigests {
        self.finished.unwrap_or_default()
    }

    /// The whole body, which [`RequestBody::open`] has bounded.
    pub async fn whole(&mut self) -> Result<Bytes, Error> {
        let mut whole = BytesMut::new();
        while let Some(bytes) = ByteSource::next(self).await? {
            whole.extend_from_slice(&bytes);
        }
        Ok(whole.freeze())
    }

    async fn next_content(&mut self) -> Result<Option<Bytes>, Error> {
        let Some(decoder) = &mut self.decoder else { return self.body.next().await };
        loop {
            if let Some(content) = decoder.next(&mut self.undecoded)? {
                return Ok(Some(content));
            }
            match self.body.next().await? {
                Some(bytes) => self.undecoded = bytes,
                None => {
                    decoder.finish()?;
                    return Ok(None);
                }
            }
        }
    }
}

#[async_trait]
impl ByteSource for ContentBody {
    type Refusal = Error;

    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let next = self.next_content().await?;
        match (&next, self.digests.take()) {
            (Some(bytes), Some(mut digests)) => {
                digests.update(bytes).await?;
                self.digests = Some(digests);
            }
            (None, Some(digests)) => {
                let finished = digests.finish().await?;
                self.expected.verify(&finished)?;
                self.finished = Some(finished);
            }
            (_, None) => {}
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_trickles_is_too_slow_and_one_that_flows_is_not() {
        let stall = Duration::from_secs(60);
        let cases = [
            ("a byte a minute", 600, 10, true),
            ("nothing yet, within the limit", 60, 0, false),
            ("nothing, past the limit", 61, 0, true),
            ("a MiB in ten minutes", 600, 1024 * 1024, false),
            ("a MiB in a quarter of an hour", 900, 1024 * 1024, true),
            ("5000 MiB in a day", 86_400, 5000 * 1024 * 1024, false),
        ];
        for (case, seconds, received, expected) in cases {
            let waited = Duration::from_secs(seconds);
            assert_eq!(is_too_slow(waited, received, stall), expected, "{case}");
        }
    }
}
