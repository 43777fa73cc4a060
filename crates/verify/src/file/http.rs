//! HTTP requests for a file.

use hyper::Method;

use super::{Answer, FileWorkload, Request, SLOT_BYTES, SLOTS, Slots};
use crate::client::{Answer as HttpAnswer, Call};
use crate::connection::Connection;
use crate::content::{self, PIECE_BYTES};
use crate::etag::ETag;
use crate::record::Target;

/// One client's access to one file.
pub struct FileTarget {
    pub connection: Connection,
    /// `/share/file`
    pub path: String,
}

impl Target<FileWorkload> for FileTarget {
    async fn call(&mut self, request: &Request) -> Option<Answer> {
        let path = &self.path;
        let answer = match request {
            Request::Create => {
                let length = (SLOTS * SLOT_BYTES).to_string();
                let headers = &[
                    ("x-ms-content-length", length.as_str()),
                    ("x-ms-file-attributes", "None"),
                    ("x-ms-file-creation-time", "Now"),
                    ("x-ms-file-last-write-time", "Now"),
                    ("x-ms-file-permission", "Inherit"),
                    ("x-ms-type", "file"),
                ];
                self.connection.call(Call { headers, ..Call::new(Method::PUT, path) }).await?
            }
            Request::Write { slots, value } => {
                let body = content::encode(*value, slots.len() * SLOT_BYTES / PIECE_BYTES);
                self.put_range(slots.start, slots.len(), "update", body).await?
            }
            Request::Clear { slots } => {
                self.put_range(slots.start, slots.len(), "clear", Vec::new()).await?
            }
            Request::Get => self.connection.call(Call::new(Method::GET, path)).await?,
            Request::Delete => self.connection.call(Call::new(Method::DELETE, path)).await?,
        };
        Some(read(request, &answer))
    }
}

impl FileTarget {
    async fn put_range(
        &mut self,
        first: usize,
        count: usize,
        write: &str,
        body: Vec<u8>,
    ) -> Option<HttpAnswer> {
        let range = format!("bytes={}-{}", first * SLOT_BYTES, (first + count) * SLOT_BYTES - 1);
        let call = Call {
            headers: &[("x-ms-range", &range), ("x-ms-write", write)],
            query: &[("comp", "range")],
            body: body.into(),
            ..Call::new(Method::PUT, &self.path)
        };
        self.connection.call(call).await
    }
}

fn read(request: &Request, answer: &HttpAnswer) -> Answer {
    let HttpAnswer { status, code, headers, body } = answer;
    if *status >= 400 {
        return Answer::Refused { status: *status, code: code.clone() };
    }
    let etag = headers.get("etag").map(ETag::new);
    let read = match (request, *status, etag) {
        (Request::Delete, 202, _) => Some(Answer::Deleted),
        (Request::Get, 200, etag @ Some(_)) => {
            slots(body).map(|slots| Answer::Read { slots, etag })
        }
        (Request::Create | Request::Write { .. } | Request::Clear { .. }, 201, etag @ Some(_)) => {
            Some(Answer::Written { etag })
        }
        _ => None,
    };
    read.unwrap_or_else(|| Answer::Nonsense(format!("status {status}, {} bytes", body.len())))
}

/// `None` if the bytes of a slot are not all of one write.
pub fn slots(body: &[u8]) -> Option<Slots> {
    let slots = body.chunks(SLOT_BYTES).map(|slot| {
        if slot.iter().all(|byte| *byte == 0) {
            return Some(0);
        }
        content::decode(slot, |_| SLOT_BYTES / PIECE_BYTES)
    });
    slots.collect::<Option<Vec<_>>>()?.try_into().ok()
}
