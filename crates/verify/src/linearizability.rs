//! Whether a history of one object is linearizable: whether its operations can be ordered, each at some
//! instant between its call and its return. `search` finds an order; this module handles timers,
//! operations with an unknown outcome, and shortening an illegal history.

mod search;

use std::fmt::Debug;
use std::hash::Hash;
use std::time::{Duration, Instant as Clock};

use self::search::{Operation, Outcome, search};
use crate::history::{Instant, Record};
use crate::refusal::Reasons;
use crate::report::{Verdict, Violation};

/// The sequential model of an object. Initially it does not exist.
pub trait Object: Clone + Debug + Send + Sync + 'static {
    type State: Clone + Debug + Default + Eq + Hash + Send + Sync;
    type Request: Clone + Debug + Send + Sync + 'static;
    type Answer: Clone + Debug + Send + Sync + 'static;

    const NAME: &'static str;

    /// The state after the request, or why it must be refused. `number` is unique in the history
    /// and names the timer that the request starts. The answer is for values that only it has.
    fn decide(
        state: &Self::State,
        number: u32,
        request: &Self::Request,
        answer: Option<&Self::Answer>,
    ) -> Result<Self::State, Reasons>;

    /// The state after a success, completed from the answer, if the answer is right.
    fn after_success(
        before: &Self::State,
        after: Self::State,
        request: &Self::Request,
        answer: &Self::Answer,
    ) -> Option<Self::State>;

    /// Status and code of a refusal.
    fn refusal(answer: &Self::Answer) -> Option<(u16, &str)>;

    /// Whether the request changes nothing even if it succeeds.
    fn only_reads(request: &Self::Request) -> bool;

    /// The value that this request alone leaves in the object, if answers can show it.
    fn written(request: &Self::Request) -> Option<u64>;

    /// Whether this answer shows that a request that wrote this value has happened.
    fn shows(answer: &Self::Answer, value: u64) -> bool;

    /// The state after the end of a timer; the same if the timer has been stopped.
    fn timer_ends(state: &Self::State, _number: u32) -> Self::State {
        state.clone()
    }

    /// The duration of the timer that this request starts if it succeeds.
    fn timer(_request: &Self::Request, _answer: Option<&Self::Answer>) -> Option<Duration> {
        None
    }

    /// The state of the object afterwards, if the answer proves all of it.
    fn proves(request: &Self::Request, answer: &Self::Answer) -> Option<Self::State>;
}

/// The state after the request, if the answer is right in this state. A request without an answer is
/// always right and has its effect if possible.
fn after_request<O: Object>(
    state: &O::State,
    number: u32,
    request: &O::Request,
    answer: Option<&O::Answer>,
) -> Option<O::State> {
    let decided = O::decide(state, number, request, answer);
    let Some(answer) = answer else { return Some(decided.unwrap_or_else(|_| state.clone())) };
    match (decided, O::refusal(answer)) {
        (Ok(after), _) => O::after_success(state, after, request, answer),
        (Err(reasons), Some(reason)) => reasons.contains(&reason).then(|| state.clone()),
        (Err(_), None) => None,
    }
}

fn changes_nothing<O: Object>(request: &O::Request, answer: Option<&O::Answer>) -> bool {
    O::only_reads(request) || answer.is_some_and(|answer| O::refusal(answer).is_some())
}

/// The clock of a server may have coarse ticks: a timer may end so much early or late.
const EARLY: Duration = Duration::from_millis(20);
const LATE: Duration = Duration::from_millis(1500);
/// The search for an order is given up after this long.
const SEARCH_TIME_MAX: Duration = Duration::from_secs(30);
/// The time limits for shortening a history, for one try and in all.
const SHORTENING_TRY_MAX: Duration = Duration::from_secs(2);
const SHORTENING_TIME_MAX: Duration = Duration::from_secs(10);

type HistoryOf<O> = [Record<<O as Object>::Request, <O as Object>::Answer>];

pub fn check<O: Object>(history: &HistoryOf<O>) -> Verdict {
    let whole = Part::<O>::whole(history);
    if whole.without_unseen().judge(SEARCH_TIME_MAX) == Outcome::Ordered {
        return Verdict::default();
    }
    match whole.judge(SEARCH_TIME_MAX) {
        Outcome::Ordered => Verdict::default(),
        Outcome::TimedOut => Verdict { violations: Vec::new(), is_unjudged: true },
        Outcome::NoOrder => {
            let shortest = whole.shortest();
            let what =
                format!("no order of these operations on one {} explains their answers", O::NAME);
            vec![Violation { checker: "linearizability", what, history: shortest.lines() }].into()
        }
    }
}

/// A part of a history, which is legal whenever the whole is.
struct Part<O: Object> {
    records: Vec<Numbered<O>>,
    /// Whether operations at the beginning were left out, so that the initial state is unknown.
    begins_unknown: bool,
}

struct Numbered<O: Object> {
    number: u32,
    record: Record<O::Request, O::Answer>,
    /// Began before left-out operations had ended: it may have happened among them.
    straddles: bool,
}

impl<O: Object> Clone for Numbered<O> {
    fn clone(&self) -> Self {
        Self { number: self.number, record: self.record.clone(), straddles: self.straddles }
    }
}

impl<O: Object> Part<O> {
    fn whole(history: &HistoryOf<O>) -> Self {
        let records = history.iter().zip(0..).map(|(record, number)| Numbered {
            number,
            record: record.clone(),
            straddles: false,
        });
        Self { records: records.collect(), begins_unknown: false }
    }

    /// Without the operations that have no answer and whose effect was not seen. If the history is
    /// legal without them it is legal, since they need not have happened; and each of them makes the
    /// search many times longer.
    fn without_unseen(&self) -> Self {
        let is_seen = |value| {
            let mut answers = self.records.iter().filter_map(|it| it.record.answer.as_ref());
            answers.any(|answer| O::shows(answer, value))
        };
        let may_matter = |record: &Record<O::Request, O::Answer>| {
            !record.is_maybe() || O::written(&record.request).is_none_or(is_seen)
        };
        let records = self.records.iter().filter(|it| may_matter(&it.record)).cloned().collect();
        Self { records, begins_unknown: self.begins_unknown }
    }

    fn judge(&self, time_max: Duration) -> Outcome {
        let state = if self.begins_unknown { None } else { Some(O::State::default()) };
        let mut operations = Vec::new();
        for Numbered { number, record, straddles } in &self.records {
            let Record { call, end, request, answer, .. } = record;
            if record.is_maybe() && O::only_reads(request) {
                continue;
            }
            let step: Step<'_, O> = Step::Operation {
                number: *number,
                request,
                answer: answer.as_ref(),
                straddles: *straddles,
            };
            operations.push(Operation { call: call.0, end: end.0, step });
            if let Some(timer) = O::timer(request, answer.as_ref()) {
                let (from, to) = (call.plus(timer).minus(EARLY), end.plus(timer).plus(LATE));
                let (call, step) = (from.0.max(call.0), Step::TimerEnds(*number));
                operations.push(Operation { call, end: to.0, step });
            }
        }
        search(&operations, state, Step::apply, time_max)
    }

    fn is_illegal(&self, deadline: Clock) -> bool {
        Clock::now() < deadline && self.judge(SHORTENING_TRY_MAX) == Outcome::NoOrder
    }

    /// Removes what is not needed to show the error: the end, the beginning, and reads.
    fn shortest(self) -> Self {
        let deadline = Clock::now() + SHORTENING_TIME_MAX;
        let ended =
            self.smallest(self.instants(|record| record.end), deadline, |at| self.until(at));
        let ended = ended.unwrap_or(self);
        let mut calls = ended.instants(|record| record.call);
        calls.reverse();
        let begun = ended.smallest(calls, deadline, |at| ended.from(at)).unwrap_or(ended);
        begun.without_needless(deadline)
    }

    fn instants(&self, of: impl Fn(&Record<O::Request, O::Answer>) -> Instant) -> Vec<Instant> {
        let mut instants: Vec<_> = self.records.iter().map(|it| of(&it.record)).collect();
        instants.retain(|instant| *instant != Instant::NEVER);
        instants.sort_unstable();
        instants
    }

    /// The illegal part for the first of these instants; in their order all after an illegal one
    /// are illegal, too.
    fn smallest(
        &self,
        instants: Vec<Instant>,
        deadline: Clock,
        part: impl Fn(Instant) -> Self,
    ) -> Option<Self> {
        let index = instants.partition_point(|instant| !part(*instant).is_illegal(deadline));
        instants.get(index).map(|instant| part(*instant))
    }

    /// The operations called by then; those that had not returned have no answer.
    fn until(&self, instant: Instant) -> Self {
        let called = self.records.iter().filter(|it| it.record.call <= instant);
        let records = called.map(|it| {
            let mut it = it.clone();
            if it.record.end > instant {
                (it.record.end, it.record.answer) = (Instant::NEVER, None);
            }
            it
        });
        Self { records: records.collect(), begins_unknown: self.begins_unknown }
    }

    /// The operations that had not returned by then.
    fn from(&self, instant: Instant) -> Self {
        let left = self.records.iter().filter(|it| it.record.end >= instant);
        let records: Vec<_> =
            left.map(|it| Numbered { straddles: it.record.call < instant, ..it.clone() }).collect();
        let begins_unknown = self.begins_unknown || records.len() < self.records.len();
        Self { records, begins_unknown }
    }

    fn without_needless(mut self, deadline: Clock) -> Self {
        let mut size = self.records.len().div_ceil(2).max(1);
        loop {
            let mut from = 0;
            while from < self.records.len() {
                let to = (from + size).min(self.records.len());
                let kept = self.records.iter().enumerate().filter(|(index, it)| {
                    let Record { request, answer, .. } = &it.record;
                    !(from..to).contains(index) || !changes_nothing::<O>(request, answer.as_ref())
                });
                let records: Vec<_> = kept.map(|(_, it)| it.clone()).collect();
                let part = Self { records, begins_unknown: self.begins_unknown };
                if part.records.len() < self.records.len() && part.is_illegal(deadline) {
                    self = part;
                    continue;
                }
                from = to;
            }
            if size == 1 {
                return self;
            }
            size = size.div_ceil(2);
        }
    }

    fn lines(&self) -> Vec<String> {
        let start = self.begins_unknown.then(|| "(in whichever state it was before)".to_owned());
        start.into_iter().chain(self.records.iter().map(|it| it.record.to_string())).collect()
    }
}

enum Step<'a, O: Object> {
    Operation {
        number: u32,
        request: &'a O::Request,
        answer: Option<&'a O::Answer>,
        straddles: bool,
    },
    TimerEnds(u32),
}

impl<O: Object> Step<'_, O> {
    /// The state afterwards, if the answer is right. An unknown state is `None`: then every answer
    /// is right.
    fn apply(state: &Option<O::State>, step: &Self) -> Option<Option<O::State>> {
        match (step, state) {
            (Step::TimerEnds(number), state) => {
                Some(state.as_ref().map(|state| O::timer_ends(state, *number)))
            }
            (Step::Operation { number, request, answer, .. }, Some(state)) => {
                after_request::<O>(state, *number, request, *answer).map(Some)
            }
            (Step::Operation { straddles: true, .. }, None) => Some(None),
            (Step::Operation { request, answer, .. }, None) => {
                Some(answer.and_then(|answer| O::proves(request, answer)))
            }
        }
    }
}

#[cfg(test)]
mod tests;
