//! Why a source could not be read, and the answer to that (§3.8 of the notes on the protocol).

use hyper::StatusCode;

use crate::error::{Code, Error};
use crate::version::Version;

/// A source that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFailure {
    pub kind: FailureKind,
    /// The status of the source's answer, if there was one.
    pub status: Option<StatusCode>,
    /// The error code of the source, if it is a storage service.
    pub code: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The source answered with an error, or the caller may not read it.
    Refused,
    ConditionNotMet,
    RangeNotSatisfiable,
    /// No setting allows reading from there.
    HostNotAllowed,
    /// The host is allowed, but not the address of its name.
    AddressNotAllowed,
    /// A token would have been sent over an unencrypted connection.
    InsecureToken,
    Unreachable,
    TooManyRedirections,
    TimedOut,
    /// The body ended before its length.
    BrokenOff,
    /// Not what was requested: another range, or an unexpected status.
    UnexpectedAnswer,
    TooLarge {
        length_max: u64,
    },
    /// On this server, but in a service without sources.
    Unserved,
    /// A failure of this server.
    Own(Code),
}

impl From<FailureKind> for SourceFailure {
    fn from(kind: FailureKind) -> Self {
        Self { kind, status: None, code: None }
    }
}

/// The answer that reading a source on this server would have had.
impl From<Error> for SourceFailure {
    fn from(error: Error) -> Self {
        let (status, code) = (error.status(), error.code);
        if status.is_server_error() {
            return FailureKind::Own(code).into();
        }
        Self::answered(status, Some(code.name().to_owned()))
    }
}

impl SourceFailure {
    pub fn unserved() -> Self {
        FailureKind::Unserved.into()
    }

    /// From the answer of a source.
    pub fn answered(status: StatusCode, code: Option<String>) -> Self {
        let kind = match status {
            StatusCode::NOT_MODIFIED | StatusCode::PRECONDITION_FAILED => {
                FailureKind::ConditionNotMet
            }
            StatusCode::RANGE_NOT_SATISFIABLE => FailureKind::RangeNotSatisfiable,
            _ if code.as_deref() == Some(Code::UnsatisfiableCondition.name()) => {
                FailureKind::ConditionNotMet
            }
            _ => FailureKind::Refused,
        };
        Self { kind, status: Some(status), code }
    }

    pub fn into_error(self, version: Version) -> Error {
        let error = self.error();
        if version < Version::V2025_11_05 {
            return error;
        }
        let Some(status) = self.status else { return error };
        let status = status.as_u16().to_string();
        let error = error
            .header("x-ms-copy-source-status-code", status.clone())
            .detail("CopySourceStatusCode", status);
        match self.code {
            Some(code) => error
                .header("x-ms-copy-source-error-code", code.clone())
                .detail("CopySourceErrorMessage", said_with(&code).unwrap_or(self.kind.text()))
                .detail("CopySourceErrorCode", code),
            None => error,
        }
    }

    fn error(&self) -> Error {
        // The service repeats the message of the source.
        let said = self.code.as_deref().and_then(said_with);
        let unverified = Error::from(Code::CannotVerifyCopySource);
        let unverified = match said {
            Some(said) => unverified.with_message(said),
            None => unverified,
        };
        let reason = self.kind.text();
        match &self.kind {
            FailureKind::Refused => {
                // A server error of the source is not an error of the request: only 4xx are passed
                // on.
                let passed_on = self.status.filter(StatusCode::is_client_error);
                match passed_on {
                    Some(status) => unverified.with_status(status),
                    None => unverified,
                }
            }
            FailureKind::ConditionNotMet => Code::SourceConditionNotMet.into(),
            FailureKind::RangeNotSatisfiable => Code::InvalidRange.into(),
            FailureKind::Unserved => {
                unverified.with_status(StatusCode::NOT_FOUND).detail("Reason", reason)
            }
            FailureKind::HostNotAllowed
            | FailureKind::AddressNotAllowed
            | FailureKind::InsecureToken => {
                unverified.with_status(StatusCode::FORBIDDEN).detail("Reason", reason)
            }
            FailureKind::Unreachable
            | FailureKind::TooManyRedirections
            | FailureKind::TimedOut
            | FailureKind::BrokenOff
            | FailureKind::UnexpectedAnswer => unverified.detail("Reason", reason),
            FailureKind::TooLarge { length_max } => {
                Error::from(Code::RequestBodyTooLarge).detail("MaxLimit", length_max.to_string())
            }
            FailureKind::Own(code) => (*code).into(),
        }
    }

    /// `<status> <code> "<text>"`
    pub fn description(&self) -> String {
        let error = self.error();
        let status = self.status.unwrap_or(error.status()).as_u16();
        let code = self.code.as_deref().unwrap_or(error.code.name());
        format!("{status} {code} \"{}\"", self.kind.text())
    }
}

/// The message of a storage service for a code.
fn said_with(code: &str) -> Option<&'static str> {
    Code::named(code).map(Code::message)
}

/// Append Block From URL and Put Blob From URL report an unmet condition on their source as a source
/// that refused to be read: the tests of the Python SDK expect "not found".
pub fn condition_as_refusal(mut error: Error) -> Error {
    if error.code != Code::SourceConditionNotMet {
        return error;
    }
    let status = error.status();
    error.code = Code::CannotVerifyCopySource;
    error.with_status(status).with_message(Code::ConditionNotMet.message())
}

impl FailureKind {
    const fn text(&self) -> &'static str {
        match self {
            Self::Refused => "The source refused to be read.",
            Self::ConditionNotMet => "A condition on the source is not met.",
            Self::RangeNotSatisfiable => "The range lies outside the source.",
            Self::HostNotAllowed => "The server is not set up to read from this host.",
            Self::AddressNotAllowed => "The server is not set up to read from this address.",
            Self::InsecureToken => "A token is sent to a source over https only.",
            Self::Unreachable => "The source could not be reached.",
            Self::TooManyRedirections => "The source redirects too often, or to no place.",
            Self::TimedOut => "The source was too slow.",
            Self::BrokenOff => "The source broke off.",
            Self::UnexpectedAnswer => "The source answered with something else.",
            Self::TooLarge { .. } => "The source is larger than allowed.",
            Self::Unserved => "No source can be read from this service yet.",
            Self::Own(code) => code.message(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, code: &str) -> SourceFailure {
        let status = StatusCode::from_u16(status).expect("a status");
        SourceFailure::answered(status, Some(code.to_owned()))
    }

    #[test]
    fn each_failure_of_a_source_has_its_answer() {
        use FailureKind as Kind;
        for (cell, failure, status, code) in [
            ("3.8 404", answered(404, "BlobNotFound"), 404, Code::CannotVerifyCopySource),
            ("3.8 403", answered(403, "AuthenticationFailed"), 403, Code::CannotVerifyCopySource),
            (
                "3.8 401",
                answered(401, "NoAuthenticationInformation"),
                401,
                Code::CannotVerifyCopySource,
            ),
            ("3.8 409", answered(409, "BlobArchived"), 409, Code::CannotVerifyCopySource),
            ("3.8 500", answered(500, "InternalError"), 500, Code::CannotVerifyCopySource),
            ("3.8 503", answered(503, "ServerBusy"), 500, Code::CannotVerifyCopySource),
            ("1.3 source, 304", answered(304, "ConditionNotMet"), 412, Code::SourceConditionNotMet),
            ("1.3 source, 412", answered(412, "ConditionNotMet"), 412, Code::SourceConditionNotMet),
            (
                "1.4 If-None-Match: *",
                answered(400, "UnsatisfiableCondition"),
                412,
                Code::SourceConditionNotMet,
            ),
            ("range", answered(416, "InvalidRange"), 416, Code::InvalidRange),
            ("host", Kind::HostNotAllowed.into(), 403, Code::CannotVerifyCopySource),
            ("address", Kind::AddressNotAllowed.into(), 403, Code::CannotVerifyCopySource),
            ("unreachable", Kind::Unreachable.into(), 500, Code::CannotVerifyCopySource),
            ("slow", Kind::TimedOut.into(), 500, Code::CannotVerifyCopySource),
            ("large", Kind::TooLarge { length_max: 1 }.into(), 413, Code::RequestBodyTooLarge),
            ("ours", Error::from(Code::ServerBusy).into(), 503, Code::ServerBusy),
        ] {
            let error = failure.into_error(Version::V2025_07_05);
            assert_eq!((error.status().as_u16(), error.code), (status, code), "{cell}");
        }
    }

    #[test]
    fn what_the_source_says_is_repeated() {
        for (code, expected) in [
            ("BlobNotFound", "The specified blob does not exist."),
            ("Unheard", Code::CannotVerifyCopySource.message()),
        ] {
            let error = answered(404, code).into_error(Version::V2025_07_05);
            assert_eq!(error.sentence(), expected);
        }
    }

    #[test]
    fn the_status_and_code_of_the_source_are_told_from_2025_11_05_on() {
        let shown = |version| format!("{:?}", answered(404, "BlobNotFound").into_error(version));
        let parts = ["x-ms-copy-source-status-code", "x-ms-copy-source-error-code", "BlobNotFound"];
        for part in parts.into_iter().chain(["CopySourceStatusCode", "CopySourceErrorCode"]) {
            assert!(shown(Version::V2025_11_05).contains(part), "{part}");
            assert!(!shown(Version::V2025_07_05).contains(part), "{part}");
        }
        let message = r#""CopySourceErrorMessage", "The specified blob does not exist.""#;
        assert!(shown(Version::V2025_11_05).contains(message), "{}", shown(Version::V2025_11_05));
    }

    #[test]
    fn a_condition_can_be_told_as_a_refusal() {
        let told = |failure: SourceFailure| {
            let error = condition_as_refusal(failure.into_error(Version::V2025_11_05));
            (error.status().as_u16(), error.code, error.sentence().to_owned())
        };
        let not_met = Code::ConditionNotMet.message().to_owned();
        let refused = (412, Code::CannotVerifyCopySource, not_met);
        assert_eq!(told(answered(412, "ConditionNotMet")), refused);
        assert_eq!(told(answered(304, "ConditionNotMet")), refused);
        let outside = Code::InvalidRange.message().to_owned();
        assert_eq!(told(answered(416, "InvalidRange")), (416, Code::InvalidRange, outside));
    }

    #[test]
    fn a_description_has_status_code_and_text() {
        let description = answered(404, "BlobNotFound").description();
        assert_eq!(description, "404 BlobNotFound \"The source refused to be read.\"");
        let own = SourceFailure::from(FailureKind::TimedOut).description();
        assert_eq!(own, "500 CannotVerifyCopySource \"The source was too slow.\"");
    }
}
