//! The requests of clients and their answers, with the instants of call and return.

use std::fmt;
use std::time::Duration;

/// Nanoseconds since the run began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub i64);

impl Instant {
    /// After everything: an operation without an answer may take effect until then.
    pub const NEVER: Self = Self(i64::MAX);

    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)))
    }

    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NEVER {
            return formatter.write_str("never");
        }
        write!(formatter, "{:.3} ms", self.0 as f64 / 1e6)
    }
}

/// One operation of one client on one object.
#[derive(Clone, Debug)]
pub struct Record<Request, Answer> {
    pub client: u32,
    pub call: Instant,
    /// [`Instant::NEVER`] if the answer never came: then it may have happened, at any time since
    /// the call, or not at all.
    pub end: Instant,
    pub request: Request,
    pub answer: Option<Answer>,
}

impl<Request, Answer> Record<Request, Answer> {
    pub fn is_maybe(&self) -> bool {
        self.answer.is_none()
    }
}

impl<Request: fmt::Debug, Answer: fmt::Debug> fmt::Display for Record<Request, Answer> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, call, end, request, answer } = self;
        write!(formatter, "client {client:<3} {call:>14} to {end:>14}  {request:?}")?;
        match answer {
            Some(answer) => write!(formatter, " => {answer:?}"),
            None => formatter.write_str(" => no answer"),
        }
    }
}
