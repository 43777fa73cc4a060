//! HTTP requests for an append blob.

use hyper::Method;

use super::{Answer, AppendWorkload, Request, pieces};
use crate::client::{Answer as HttpAnswer, Call};
use crate::connection::Connection;
use crate::content;
use crate::etag::ETag;
use crate::record::Target;

/// One client's access to one append blob.
pub struct AppendTarget {
    pub connection: Connection,
    /// `/container/blob`
    pub path: String,
}

impl Target<AppendWorkload> for AppendTarget {
    async fn call(&mut self, request: &Request) -> Option<Answer> {
        let path = &self.path;
        let answer = match request {
            Request::Create { condition } => {
                let mut headers = vec![("x-ms-blob-type", "AppendBlob")];
                headers.extend(condition.header());
                let call = Call { headers: &headers, ..Call::new(Method::PUT, path) };
                self.connection.call(call).await?
            }
            Request::Append { value, position, size_max } => {
                let position = position.map(|position| position.to_string());
                let size_max = size_max.map(|size_max| size_max.to_string());
                let conditions = [
                    ("x-ms-blob-condition-appendpos", position.as_deref()),
                    ("x-ms-blob-condition-maxsize", size_max.as_deref()),
                ];
                let headers: Vec<_> = conditions
                    .iter()
                    .filter_map(|(name, value)| Some((*name, (*value)?)))
                    .collect();
                let pieces = usize::try_from(pieces(*value)).unwrap_or(usize::MAX);
                let call = Call {
                    headers: &headers,
                    query: &[("comp", "appendblock")],
                    body: content::encode(*value, pieces).into(),
                    ..Call::new(Method::PUT, path)
                };
                self.connection.call(call).await?
            }
            Request::Get => self.connection.call(Call::new(Method::GET, path)).await?,
        };
        Some(read(request, &answer))
    }
}

fn read(request: &Request, answer: &HttpAnswer) -> Answer {
    let HttpAnswer { status, code, headers, body } = answer;
    if *status >= 400 {
        return Answer::Refused { status: *status, code: code.clone() };
    }
    let number = |name| headers.get(name).and_then(|value| value.parse::<u64>().ok());
    let read = headers.get("etag").map(ETag::new).and_then(|etag| match (request, *status) {
        (Request::Create { .. }, 201) => Some(Answer::Created { etag }),
        (Request::Append { .. }, 201) => Some(Answer::Appended {
            offset: number("x-ms-blob-append-offset")?,
            blocks: number("x-ms-blob-committed-block-count")?,
            etag,
        }),
        (Request::Get, 200) => Some(Answer::Read { pieces: content::decode_pieces(body)?, etag }),
        _ => None,
    });
    read.unwrap_or_else(|| Answer::Nonsense(format!("status {status}, {} bytes", body.len())))
}
