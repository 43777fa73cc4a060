//! Why a copy failed. What a client is told of it is for the front ends.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Stored as a text, which is what [`fmt::Display`] makes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum CopyFailure {
    /// The server was stopped while the bytes were being fetched.
    Interrupted,
    /// It took longer than a copy may take.
    TimedOut,
    /// The bytes were fetched, but could not be stored.
    NotStored,
    Source(SourceFailure),
    /// From an earlier format without a reason: the text that clients were told.
    Described(String),
}

/// Why the source of a copy could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFailure {
    pub reason: SourceReason,
    /// The status and the code of its answer, if there are any.
    pub answer: Option<u16>,
    pub code: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceReason {
    Refused,
    ConditionNotMet,
    RangeNotSatisfiable,
    HostNotAllowed,
    AddressNotAllowed,
    InsecureToken,
    Unreachable,
    TooManyRedirections,
    TimedOut,
    BrokenOff,
    UnexpectedAnswer,
    TooLarge,
    Unserved,
    /// Not the fault of the source: this server could not read it, for the reason with this code.
    Own,
}

const REASONS: &[(SourceReason, &str)] = &[
    (SourceReason::Refused, "refused"),
    (SourceReason::ConditionNotMet, "condition-not-met"),
    (SourceReason::RangeNotSatisfiable, "range-not-satisfiable"),
    (SourceReason::HostNotAllowed, "host-not-allowed"),
    (SourceReason::AddressNotAllowed, "address-not-allowed"),
    (SourceReason::InsecureToken, "insecure-token"),
    (SourceReason::Unreachable, "unreachable"),
    (SourceReason::TooManyRedirections, "too-many-redirections"),
    (SourceReason::TimedOut, "timed-out"),
    (SourceReason::BrokenOff, "broken-off"),
    (SourceReason::UnexpectedAnswer, "unexpected-answer"),
    (SourceReason::TooLarge, "too-large"),
    (SourceReason::Unserved, "unserved"),
    (SourceReason::Own, "own"),
];

const INTERRUPTED: &str = "interrupted";
const TIMED_OUT: &str = "timed-out";
const NOT_STORED: &str = "not-stored";
/// Written before the reason, the status (0 for none) and the code (empty for none).
const SOURCE: &str = "source";

impl fmt::Display for CopyFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => formatter.write_str(INTERRUPTED),
            Self::TimedOut => formatter.write_str(TIMED_OUT),
            Self::NotStored => formatter.write_str(NOT_STORED),
            Self::Source(SourceFailure { reason, answer, code }) => {
                let reason = REASONS.iter().find(|(it, _)| it == reason).map_or("", |(_, it)| it);
                let code = code.as_deref().unwrap_or_default();
                write!(formatter, "{SOURCE} {reason} {} {code}", answer.unwrap_or_default())
            }
            Self::Described(text) => formatter.write_str(text),
        }
    }
}

impl From<CopyFailure> for String {
    fn from(failure: CopyFailure) -> Self {
        failure.to_string()
    }
}

impl From<String> for CopyFailure {
    fn from(text: String) -> Self {
        match text.as_str() {
            INTERRUPTED => Self::Interrupted,
            TIMED_OUT => Self::TimedOut,
            NOT_STORED => Self::NotStored,
            other => SourceFailure::parse(other).map(Self::Source).unwrap_or(Self::Described(text)),
        }
    }
}

impl SourceFailure {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.strip_prefix(SOURCE)?.strip_prefix(' ')?.splitn(3, ' ');
        let word = words.next()?;
        let reason = REASONS.iter().find(|(_, it)| *it == word)?.0;
        let answer = words.next()?.parse().ok()?;
        let code = words.next()?.to_owned();
        Some(Self {
            reason,
            answer: Some(answer).filter(|answer| *answer != 0),
            code: Some(code).filter(|code| !code.is_empty()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_is_stored_as_a_text_and_read_again() {
        let source = |reason, answer, code: Option<&str>| {
            CopyFailure::Source(SourceFailure { reason, answer, code: code.map(str::to_owned) })
        };
        let stored = [
            (CopyFailure::Interrupted, "interrupted"),
            (CopyFailure::TimedOut, "timed-out"),
            (CopyFailure::NotStored, "not-stored"),
            (
                source(SourceReason::Refused, Some(404), Some("BlobNotFound")),
                "source refused 404 BlobNotFound",
            ),
            (source(SourceReason::Own, None, Some("ServerBusy")), "source own 0 ServerBusy"),
            (source(SourceReason::Unreachable, None, None), "source unreachable 0 "),
            (
                source(SourceReason::Refused, Some(500), Some("two words")),
                "source refused 500 two words",
            ),
        ];
        let all = REASONS.iter().map(|(reason, _)| source(*reason, Some(418), None));
        let all = all.map(|failure| (failure.clone(), failure.to_string()));
        for (failure, text) in stored.map(|(it, text)| (it, text.to_owned())).into_iter().chain(all)
        {
            let row = postcard::to_allocvec(&failure).expect("encoded");
            assert_eq!(row, postcard::to_allocvec(&text).expect("encoded"), "{text}");
            let read: CopyFailure = postcard::from_bytes(&row).expect("decoded");
            assert_eq!(read, failure, "{text}");
        }
    }

    #[test]
    fn what_an_earlier_build_told_stays_as_it_was() {
        for text in [
            "500 OperationCancelled \"The server was restarted.\"",
            "404 BlobNotFound \"The source refused to be read.\"",
            "source of another kind",
            "",
        ] {
            let row = postcard::to_allocvec(text).expect("encoded");
            let read: CopyFailure = postcard::from_bytes(&row).expect("decoded");
            assert_eq!(read, CopyFailure::Described(text.to_owned()));
            assert_eq!(postcard::to_allocvec(&read).expect("encoded"), row);
        }
    }
}
