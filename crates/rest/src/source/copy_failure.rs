//! Why a copy failed, as stored by the domain and as told to clients.

use std::borrow::Cow;

use holdfast_domain::copy::{self, CopyFailure, SourceReason};
use hyper::StatusCode;

use super::{FailureKind, SourceFailure};
use crate::error::Code;

const INTERRUPTED: &str = "500 OperationCancelled \"The server was restarted.\"";
const TIMED_OUT: &str = "500 OperationCancelled \"The copy did not end in two weeks.\"";
const NOT_STORED: &str = "500 InternalError \"The bytes could not be stored.\"";

/// For `x-ms-copy-status-description`: `<status> <code> "<text>"`.
pub fn copy_status_description(failure: &CopyFailure) -> Cow<'_, str> {
    match failure {
        CopyFailure::Interrupted => Cow::Borrowed(INTERRUPTED),
        CopyFailure::TimedOut => Cow::Borrowed(TIMED_OUT),
        CopyFailure::NotStored => Cow::Borrowed(NOT_STORED),
        CopyFailure::Source(source) => Cow::Owned(SourceFailure::from(source).description()),
        CopyFailure::Described(text) => Cow::Borrowed(text),
    }
}

impl From<SourceFailure> for CopyFailure {
    fn from(failure: SourceFailure) -> Self {
        let SourceFailure { kind, status, code } = failure;
        let (reason, code) = match kind {
            FailureKind::Refused => (SourceReason::Refused, code),
            FailureKind::ConditionNotMet => (SourceReason::ConditionNotMet, code),
            FailureKind::RangeNotSatisfiable => (SourceReason::RangeNotSatisfiable, code),
            FailureKind::HostNotAllowed => (SourceReason::HostNotAllowed, code),
            FailureKind::AddressNotAllowed => (SourceReason::AddressNotAllowed, code),
            FailureKind::InsecureToken => (SourceReason::InsecureToken, code),
            FailureKind::Unreachable => (SourceReason::Unreachable, code),
            FailureKind::TooManyRedirections => (SourceReason::TooManyRedirections, code),
            FailureKind::TimedOut => (SourceReason::TimedOut, code),
            FailureKind::BrokenOff => (SourceReason::BrokenOff, code),
            FailureKind::UnexpectedAnswer => (SourceReason::UnexpectedAnswer, code),
            FailureKind::TooLarge { .. } => (SourceReason::TooLarge, code),
            FailureKind::Unserved => (SourceReason::Unserved, code),
            FailureKind::Own(code) => (SourceReason::Own, Some(code.name().to_owned())),
        };
        let answer = status.map(|status| status.as_u16());
        Self::Source(copy::SourceFailure { reason, answer, code })
    }
}

impl From<&copy::SourceFailure> for SourceFailure {
    fn from(failure: &copy::SourceFailure) -> Self {
        let kind = match failure.reason {
            SourceReason::Refused => FailureKind::Refused,
            SourceReason::ConditionNotMet => FailureKind::ConditionNotMet,
            SourceReason::RangeNotSatisfiable => FailureKind::RangeNotSatisfiable,
            SourceReason::HostNotAllowed => FailureKind::HostNotAllowed,
            SourceReason::AddressNotAllowed => FailureKind::AddressNotAllowed,
            SourceReason::InsecureToken => FailureKind::InsecureToken,
            SourceReason::Unreachable => FailureKind::Unreachable,
            SourceReason::TooManyRedirections => FailureKind::TooManyRedirections,
            SourceReason::TimedOut => FailureKind::TimedOut,
            SourceReason::BrokenOff => FailureKind::BrokenOff,
            SourceReason::UnexpectedAnswer => FailureKind::UnexpectedAnswer,
            // The limit is not stored, and not in the text.
            SourceReason::TooLarge => FailureKind::TooLarge { length_max: 0 },
            SourceReason::Unserved => FailureKind::Unserved,
            SourceReason::Own => {
                let code = failure.code.as_deref().and_then(Code::named);
                return FailureKind::Own(code.unwrap_or(Code::InternalError)).into();
            }
        };
        let status = failure.answer.and_then(|answer| StatusCode::from_u16(answer).ok());
        Self { kind, status, code: failure.code.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_failure_is_told_as_the_failure_itself() {
        let answered = |status, code: Option<&str>| {
            let status = StatusCode::from_u16(status).expect("a status");
            SourceFailure::answered(status, code.map(str::to_owned))
        };
        let failures = [
            answered(404, Some("BlobNotFound")),
            answered(412, Some("ConditionNotMet")),
            answered(416, None),
            answered(500, Some("two words")),
        ];
        let kinds = [
            FailureKind::HostNotAllowed,
            FailureKind::AddressNotAllowed,
            FailureKind::InsecureToken,
            FailureKind::Unreachable,
            FailureKind::TooManyRedirections,
            FailureKind::TimedOut,
            FailureKind::BrokenOff,
            FailureKind::UnexpectedAnswer,
            FailureKind::TooLarge { length_max: 7 },
            FailureKind::Unserved,
            FailureKind::Own(Code::ServerBusy),
        ];
        for failure in failures.into_iter().chain(kinds.map(SourceFailure::from)) {
            let stored = String::from(CopyFailure::from(failure.clone()));
            let kept = CopyFailure::from(stored);
            assert_eq!(copy_status_description(&kept), failure.description());
        }
    }

    #[test]
    fn what_is_no_matter_of_the_source_has_a_description_too() {
        for (failure, expected) in [
            (CopyFailure::Interrupted, "500 OperationCancelled \"The server was restarted.\""),
            (
                CopyFailure::TimedOut,
                "500 OperationCancelled \"The copy did not end in two weeks.\"",
            ),
            (CopyFailure::NotStored, "500 InternalError \"The bytes could not be stored.\""),
            (CopyFailure::Described("404 BlobNotFound \"…\"".to_owned()), "404 BlobNotFound \"…\""),
        ] {
            assert_eq!(copy_status_description(&failure), expected);
        }
    }
}
