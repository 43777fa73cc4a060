//! The record of a request and its answer for log and metrics.

use std::time::{Duration, Instant};

use holdfast_domain::names::AccountName;
use hyper::StatusCode;
use tracing::Level;

use super::exchange::Seen;
use super::{Frontend, Peer};
use crate::access_log::AccessRecord;
use crate::answer::Answer;
use crate::connection::Parts;
use crate::error::Code;
use crate::redact;
use crate::request::RequestId;
use crate::service::Service;

/// One request and its answer, for the log and the metrics.
pub(super) struct ExchangeRecord<'a> {
    pub(super) service: Service,
    pub(super) id: RequestId,
    pub(super) peer: Peer,
    pub(super) parts: &'a Parts,
    pub(super) seen: &'a Seen,
    pub(super) code: Option<Code>,
}

impl ExchangeRecord<'_> {
    pub(super) fn record(
        &self,
        frontend: &Frontend,
        answer: &Answer,
        bytes_in: u64,
        started: Instant,
    ) {
        let operation = match self.seen.operation {
            Some(operation) => operation.as_str(),
            None if self.seen.website => "Get Web Content",
            None => "Unknown",
        };
        let (status, elapsed) = (answer.status.as_u16(), started.elapsed());
        let (bytes_out, code) = (answer.body.length().unwrap_or(0), self.code.map(Code::name));
        let service = self.service;
        frontend.metrics.record(service, operation, status, elapsed, bytes_in, bytes_out, code);
        if let Some(log) = &frontend.settings.access_log {
            log.record(&AccessRecord {
                time: frontend.domain.now().iso8601().to_string(),
                request_id: self.id.to_string(),
                client_request_id: self.header("x-ms-client-request-id"),
                service: service.name(),
                operation,
                account: self.seen.account.as_ref().map(AccountName::as_str),
                caller: self.seen.caller.as_ref(),
                ip: self.peer.ip.to_string(),
                tls: self.peer.tls,
                user_agent: self.header("user-agent"),
                method: self.parts.method.as_str(),
                url: redact::uri(&self.parts.uri),
                version: self.seen.version.map(|version| version.to_string()),
                status,
                code,
                bytes_in,
                bytes_out,
                micros: elapsed.as_micros() as u64,
            });
        }
        macro_rules! log {
            ($level:expr, $($text:literal)?) => {
                tracing::event!(
                    $level,
                    id = %self.id,
                    service = service.name(),
                    operation,
                    method = %self.parts.method,
                    uri = %redact::uri(&self.parts.uri),
                    status,
                    code,
                    micros = elapsed.as_micros() as u64,
                    ip = %self.peer.ip,
                    $($text)?
                )
            };
        }
        let is_fault =
            answer.status.is_server_error() && answer.status != StatusCode::NOT_IMPLEMENTED;
        if is_fault {
            log!(Level::WARN, "a request failed");
        } else if is_slow(elapsed, bytes_in) {
            log!(Level::WARN, "a request was slow");
        } else {
            log!(Level::DEBUG,);
        }
    }
}

impl ExchangeRecord<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name).and_then(|value| std::str::from_utf8(value).ok())
    }
}

/// For what a request brings, the client's connection needs time, too.
fn is_slow(elapsed: Duration, bytes_in: u64) -> bool {
    const SLOW: Duration = Duration::from_secs(5);
    const BYTES_A_SECOND_EXPECTED: u64 = 1024 * 1024;
    elapsed > SLOW + Duration::from_secs(bytes_in / BYTES_A_SECOND_EXPECTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_uploads_may_take_their_time() {
        for (seconds, bytes, slow) in [
            (5, 0, false),
            (6, 0, true),
            (6, 1 << 20, false),
            (100, 95 << 20, false),
            (101, 95 << 20, true),
        ] {
            assert_eq!(is_slow(Duration::from_secs(seconds), bytes), slow, "{seconds} s, {bytes}");
        }
    }
}
