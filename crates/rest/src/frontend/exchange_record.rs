//! The record of a request and its answer for log and metrics.

use std::time::Instant;

use super::Peer;
use super::exchange::Seen;
use crate::answer::Answer;
use crate::connection::Parts;
use crate::error::Code;
use crate::metrics::Metrics;
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
        metrics: &Metrics,
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
        metrics.record(
            self.service,
            operation,
            status,
            elapsed,
            bytes_in,
            answer.body.length().unwrap_or(0),
            self.code.map(Code::name),
        );
        tracing::info!(
            id = %self.id,
            service = self.service.name(),
            operation,
            method = %self.parts.method,
            uri = %redact::uri(&self.parts.uri),
            status,
            code = self.code.map(Code::name),
            micros = elapsed.as_micros() as u64,
            ip = %self.peer.ip,
        );
    }
}
