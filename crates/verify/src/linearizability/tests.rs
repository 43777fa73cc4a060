//! The checker itself: legal histories, and planted illegal ones.

use super::*;

/// A register that counts up to a time limit: reads give the value, `Swap` needs the old one.
#[derive(Clone, Debug)]
struct Register;

#[derive(Clone, Copy, Debug)]
enum Request {
    Read,
    Write(u32),
    Swap(u32, u32),
    /// Zero again after a second.
    Flash(u32),
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Value(u32),
    Done,
    Refused,
}

const REFUSED: (u16, &str) = (412, "AnotherValue");

impl Object for Register {
    /// The value, and the timer that ends it.
    type State = (u32, Option<u32>);
    type Request = Request;
    type Answer = Answer;

    const NAME: &'static str = "register";

    fn decide(
        state: &Self::State,
        number: u32,
        request: &Request,
        _answer: Option<&Answer>,
    ) -> Result<Self::State, Reasons> {
        match *request {
            Request::Read => Ok(*state),
            Request::Write(value) => Ok((value, None)),
            Request::Swap(old, new) if old == state.0 => Ok((new, None)),
            Request::Swap(..) => Err(vec![REFUSED]),
            Request::Flash(value) => Ok((value, Some(number))),
        }
    }

    fn after_success(
        _before: &Self::State,
        after: Self::State,
        request: &Request,
        answer: &Answer,
    ) -> Option<Self::State> {
        let is_right = match (request, answer) {
            (Request::Read, Answer::Value(value)) => *value == after.0,
            (Request::Read, Answer::Done) => false,
            (Request::Write(_) | Request::Swap(..) | Request::Flash(_), Answer::Done) => true,
            (_, Answer::Value(_) | Answer::Refused) => false,
        };
        is_right.then_some(after)
    }

    fn refusal(answer: &Answer) -> Option<(u16, &str)> {
        matches!(answer, Answer::Refused).then_some(REFUSED)
    }

    fn only_reads(request: &Request) -> bool {
        matches!(request, Request::Read)
    }

    fn timer_ends(state: &Self::State, number: u32) -> Self::State {
        if state.1 == Some(number) { (0, None) } else { *state }
    }

    fn timer(request: &Request, _answer: Option<&Answer>) -> Option<Duration> {
        matches!(request, Request::Flash(_)).then_some(Duration::from_secs(1))
    }

    fn written(request: &Request) -> Option<u64> {
        match request {
            Request::Read => None,
            Request::Write(value) | Request::Swap(_, value) | Request::Flash(value) => {
                Some((*value).into())
            }
        }
    }

    fn shows(answer: &Answer, value: u64) -> bool {
        matches!(answer, Answer::Value(read) if u64::from(*read) == value)
    }

    fn proves(request: &Request, answer: &Answer) -> Option<Self::State> {
        match (request, answer) {
            (Request::Read, Answer::Value(value)) => Some((*value, None)),
            (Request::Write(value) | Request::Swap(_, value), Answer::Done) => Some((*value, None)),
            _ => None,
        }
    }
}

const MILLISECOND: i64 = 1_000_000;

/// An operation with its call and return in milliseconds; no answer is no return.
fn at(call: i64, end: i64, request: Request, answer: Option<Answer>) -> Record<Request, Answer> {
    let end = if answer.is_some() { Instant(end * MILLISECOND) } else { Instant::NEVER };
    Record { client: 0, call: Instant(call * MILLISECOND), end, request, answer }
}

fn read(call: i64, end: i64, value: u32) -> Record<Request, Answer> {
    at(call, end, Request::Read, Some(Answer::Value(value)))
}

fn write(call: i64, end: i64, value: u32) -> Record<Request, Answer> {
    at(call, end, Request::Write(value), Some(Answer::Done))
}

fn swap(call: i64, end: i64, old: u32, new: u32) -> Record<Request, Answer> {
    at(call, end, Request::Swap(old, new), Some(Answer::Done))
}

fn is_legal(history: &[Record<Request, Answer>]) -> bool {
    let verdict = check::<Register>(history);
    assert!(!verdict.is_unjudged);
    verdict.violations.is_empty()
}

#[test]
fn operations_at_once_may_have_happened_in_either_order() {
    assert!(is_legal(&[write(0, 10, 1), write(0, 10, 2), read(11, 12, 1)]));
    assert!(is_legal(&[write(0, 10, 1), read(1, 9, 0), read(2, 8, 1)]));
}

#[test]
fn stale_read_is_found() {
    assert!(!is_legal(&[write(0, 1, 1), write(2, 3, 2), read(4, 5, 1)]));
}

#[test]
fn a_value_that_goes_back_is_found() {
    assert!(!is_legal(&[write(0, 20, 1), read(1, 2, 1), read(3, 4, 0)]));
}

#[test]
fn a_refusal_needs_a_reason() {
    let refused = |old| at(2, 3, Request::Swap(old, 2), Some(Answer::Refused));
    assert!(is_legal(&[write(0, 1, 1), refused(0), read(4, 5, 1)]));
    assert!(!is_legal(&[write(0, 1, 1), refused(1), read(4, 5, 1)]));
}

#[test]
fn two_updates_of_one_value_are_found() {
    assert!(!is_legal(&[write(0, 1, 1), swap(2, 9, 1, 2), swap(3, 8, 1, 3)]));
}

#[test]
fn what_may_have_happened_happens_late_or_never() {
    let maybe = at(0, 0, Request::Write(1), None);
    assert!(is_legal(&[maybe.clone(), read(5, 6, 0), read(7, 8, 0)]));
    assert!(is_legal(&[maybe.clone(), read(5, 6, 0), read(7, 8, 1)]));
    assert!(!is_legal(&[maybe, read(5, 6, 1), read(7, 8, 0)]));
}

#[test]
fn timers_end_in_their_time_and_not_before() {
    let flash = at(0, 10, Request::Flash(1), Some(Answer::Done));
    assert!(is_legal(&[flash.clone(), read(990, 995, 1), read(1015, 1016, 0)]));
    assert!(!is_legal(&[flash.clone(), read(900, 901, 0)]), "too early");
    assert!(!is_legal(&[flash.clone(), read(3000, 3001, 1)]), "too late");
    let again = at(500, 510, Request::Flash(2), Some(Answer::Done));
    assert!(!is_legal(&[flash, again, read(1200, 1201, 0)]), "the first timer was stopped");
}

#[test]
fn shortest_history_leaves_out_what_came_before_what_is_needless_and_what_came_after() {
    let mut history = Vec::new();
    for step in 0..50 {
        history.push(write(step * 10, step * 10 + 1, step as u32 + 10));
        history.push(read(step * 10 + 2, step * 10 + 3, step as u32 + 10));
    }
    history.extend([write(1000, 1001, 1), write(1002, 1003, 2), read(1004, 1005, 2)]);
    history.extend([read(1006, 1007, 1), write(1008, 1009, 3), read(1010, 1011, 3)]);
    let verdict = check::<Register>(&history);
    let lines = &verdict.violations[0].history;
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert!(lines[2].contains("Read => Value(1)"), "{lines:#?}");
}

#[test]
fn history_with_operations_that_straddle_the_cut_is_shortened_to_one_that_cannot_be_told() {
    // The write of 1 is under way while others end; what is left must still be impossible.
    let history = [
        write(0, 100, 1),
        write(1, 2, 2),
        write(3, 4, 3),
        read(5, 6, 3),
        read(101, 102, 3),
        read(103, 104, 1),
    ];
    let verdict = check::<Register>(&history);
    assert_eq!(verdict.violations.len(), 1);
    assert!(verdict.violations[0].history.len() >= 3, "{:?}", verdict.violations[0].history);
}

#[test]
fn a_search_that_takes_too_long_is_no_violation() {
    // Every order of the writes must be tried before the read is known to be impossible.
    let mut history: Vec<_> = (0..24).map(|value| write(0, 1000, value + 1)).collect();
    history.push(read(1001, 1002, 999));
    let part = Part::<Register>::whole(&history);
    assert_eq!(part.judge(Duration::from_millis(1)), Outcome::TimedOut);
}
