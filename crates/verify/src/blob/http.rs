//! HTTP requests for a blob.

use hyper::Method;

use super::{Answer, BlobWorkload, Request};
use crate::client::{Answer as HttpAnswer, Call};
use crate::connection::Connection;
use crate::content;
use crate::etag::ETag;
use crate::lease::Action;
use crate::record::Target;

/// One client's access to one blob.
pub struct BlobTarget {
    pub connection: Connection,
    /// `/container/blob`
    pub path: String,
}

/// Most contents are small enough for a row; some are not.
fn pieces(value: u64) -> usize {
    if value.is_multiple_of(16) { 6 * 1024 } else { 4 }
}

impl Target<BlobWorkload> for BlobTarget {
    async fn call(&mut self, request: &Request) -> Option<Answer> {
        let answer = match request {
            Request::Put { value, condition, lease } => {
                let lease = lease.map(|id| id.guid());
                let mut headers = vec![("x-ms-blob-type", "BlockBlob")];
                headers.extend(condition.header());
                headers.extend(lease.as_deref().map(|id| ("x-ms-lease-id", id)));
                let body = content::encode(*value, pieces(*value)).into();
                let call = Call { headers: &headers, body, ..Call::new(Method::PUT, &self.path) };
                self.connection.call(call).await?
            }
            Request::Get => self.connection.call(Call::new(Method::GET, &self.path)).await?,
            Request::Delete { condition, lease } => {
                let lease = lease.map(|id| id.guid());
                let mut headers = Vec::new();
                headers.extend(condition.header());
                headers.extend(lease.as_deref().map(|id| ("x-ms-lease-id", id)));
                let call = Call { headers: &headers, ..Call::new(Method::DELETE, &self.path) };
                self.connection.call(call).await?
            }
            Request::Lease(action) => self.lease(*action).await?,
        };
        Some(read(request, &answer))
    }
}

impl BlobTarget {
    async fn lease(&mut self, action: Action) -> Option<HttpAnswer> {
        let seconds = |seconds: Option<u32>| seconds.map(|seconds| seconds.to_string());
        let (word, id, proposed, duration, period) = match action {
            Action::Acquire { id, seconds: duration } => {
                let duration = seconds(duration).unwrap_or_else(|| "-1".to_owned());
                ("acquire", None, Some(id), Some(duration), None)
            }
            Action::Renew { id } => ("renew", Some(id), None, None, None),
            Action::Change { id, to } => ("change", Some(id), Some(to), None, None),
            Action::Release { id } => ("release", Some(id), None, None, None),
            Action::Break { seconds: period } => ("break", None, None, None, seconds(period)),
        };
        let (id, proposed) = (id.map(|id| id.guid()), proposed.map(|id| id.guid()));
        let optional = [
            ("x-ms-lease-id", &id),
            ("x-ms-proposed-lease-id", &proposed),
            ("x-ms-lease-duration", &duration),
            ("x-ms-lease-break-period", &period),
        ];
        let given = optional.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?)));
        let headers: Vec<_> = given.chain([("x-ms-lease-action", word)]).collect();
        let query = &[("comp", "lease")];
        let call = Call { headers: &headers, query, ..Call::new(Method::PUT, &self.path) };
        self.connection.call(call).await
    }
}

fn read(request: &Request, answer: &HttpAnswer) -> Answer {
    let HttpAnswer { status, code, headers, body } = answer;
    let etag = headers.get("etag").map(ETag::new);
    match (request, *status, etag) {
        (_, 400.., _) => Answer::Refused { status: *status, code: code.clone() },
        (Request::Put { .. }, 201, Some(etag)) => Answer::Written { etag },
        (Request::Get, 200, Some(etag)) => match content::decode(body, pieces) {
            Some(value) => {
                let lease = headers.get("x-ms-lease-state").unwrap_or_default().to_owned();
                Answer::Read { value, etag, lease }
            }
            None => Answer::Nonsense(format!("{} bytes that were never written", body.len())),
        },
        (Request::Delete { .. }, 202, _) => Answer::Deleted,
        (Request::Lease(_), 200..=202, _) => Answer::Done,
        (_, status, _) => Answer::Nonsense(format!("status {status}")),
    }
}
