//! The smallest histories that keep and break each promise.

use super::*;

const SECOND: i64 = 1_000_000_000;

fn held(receipt: &str) -> Held {
    Held { message: Word::new("m"), receipt: Word::new(receipt) }
}

fn at(second: i64, request: Request, answer: Option<Answer>) -> Recorded {
    let call = Instant(second * SECOND);
    let end = if answer.is_some() { Instant(second * SECOND + 1000) } else { Instant::NEVER };
    Record { client: 0, call, end, request, answer }
}

fn put(second: i64) -> Recorded {
    let request = Request::Put { value: 7, delay_seconds: 0 };
    at(second, request, Some(Answer::Put(held("r0"))))
}

fn got(second: i64, visibility_seconds: u32, count: u32) -> Recorded {
    let delivery = Delivery { held: held(&format!("r{count}")), value: 7, count };
    let request = Request::Get { count: 1, visibility_seconds };
    at(second, request, Some(Answer::Got(vec![delivery])))
}

fn delete(second: i64, receipt: &str, succeeds: bool) -> Recorded {
    let refused = Answer::Refused { status: 404, code: "MessageNotFound".to_owned() };
    let answer = if succeeds { Answer::Deleted } else { refused };
    at(second, Request::Delete(held(receipt)), Some(answer))
}

fn update(second: i64, receipt: &str, visibility_seconds: u32, newer: &str) -> Recorded {
    let answer = Answer::Updated { receipt: Word::new(newer) };
    at(second, Request::Update { held: held(receipt), visibility_seconds }, Some(answer))
}

fn drained(second: i64, delivered: Option<u32>) -> Recorded {
    match delivered {
        Some(count) => got(second, DRAIN_VISIBILITY_SECONDS, count),
        None => {
            let visibility_seconds = DRAIN_VISIBILITY_SECONDS;
            at(second, Request::Get { count: 32, visibility_seconds }, Some(Answer::Got(vec![])))
        }
    }
}

fn found(history: &[Recorded]) -> Option<String> {
    check(history).first().map(|violation| violation.what.clone())
}

#[track_caller]
fn assert_found(part: &str, history: &[Recorded]) {
    let found = found(history);
    assert!(found.as_ref().is_some_and(|what| what.contains(part)), "{found:?}");
}

#[test]
fn a_message_that_comes_back_after_its_time_and_is_deleted_is_as_it_should_be() {
    let history = [put(0), got(1, 2, 1), got(3, 2, 2), delete(4, "r2", true), drained(9, None)];
    assert_eq!(found(&history), None);
}

#[test]
fn a_second_delivery_within_the_visibility_is_found() {
    assert_found("still hidden", &[put(0), got(1, 5, 1), got(3, 2, 2)]);
    assert_found("twice at once", &[put(0), got(1, 5, 1), got(1, 5, 1)]);
}

#[test]
fn an_update_moves_the_time_to_come_back() {
    let base = [put(0), got(1, 5, 1)];
    let with = |more: &[Recorded]| [&base[..], more].concat();
    assert_eq!(found(&with(&[update(2, "r1", 0, "u1"), got(3, 2, 2)])), None);
    assert_found("still hidden", &with(&[update(2, "r1", 9, "u1"), got(7, 2, 2)]));
    let unknown = at(2, Request::Update { held: held("r1"), visibility_seconds: 0 }, None);
    assert_eq!(found(&with(&[unknown, got(3, 2, 2)])), None);
}

#[test]
fn an_update_that_did_not_happen_leaves_its_receipt_good_for_another() {
    let unknown = at(2, Request::Update { held: held("r1"), visibility_seconds: 9 }, None);
    let base = [put(0), got(1, 5, 1), unknown];
    let with = |more: &[Recorded]| [&base[..], more].concat();
    assert_eq!(found(&with(&[update(3, "r1", 0, "u1"), got(4, 2, 2)])), None);
    let again = at(3, Request::Update { held: held("r1"), visibility_seconds: 0 }, None);
    assert_eq!(found(&with(&[again, got(4, 2, 2)])), None);
    assert_found("still hidden", &with(&[got(4, 2, 2)]));
    assert_found("still hidden", &with(&[update(3, "r1", 9, "u1"), got(7, 2, 2)]));
}

#[test]
fn a_delay_is_kept() {
    let mut put = put(0);
    put.request = Request::Put { value: 7, delay_seconds: 3 };
    assert_found("delay", &[put.clone(), got(1, 1, 1)]);
    assert_eq!(found(&[put.clone(), got(3, 1, 1)]), None);
    // The producer may change the time with the receipt of Put Message.
    assert_eq!(found(&[put, update(1, "r0", 0, "u0"), got(2, 1, 1)]), None);
}

#[test]
fn a_lost_message_is_found_unless_a_deletion_may_explain_it() {
    assert_found("lost", &[put(0), drained(9, None)]);
    assert_eq!(found(&[put(0), drained(9, Some(1))]), None);
    let unknown = at(2, Request::Delete(held("r1")), None);
    assert_eq!(found(&[put(0), got(1, 1, 1), unknown, drained(9, None)]), None);
    assert_found("lost", &[put(0), got(1, 1, 1), drained(9, None)]);
}

#[test]
fn a_stale_receipt_that_is_accepted_is_found() {
    assert_found("newer one", &[put(0), got(1, 1, 1), got(3, 9, 2), delete(4, "r1", true)]);
    let history = [put(0), got(1, 9, 1), update(2, "r1", 9, "u1"), delete(3, "r1", true)];
    assert_found("newer one", &history);
    assert_found("newer one", &[put(0), got(1, 9, 1), delete(2, "r0", true)]);
}

#[test]
fn a_current_receipt_that_is_refused_is_found() {
    assert_found("newest", &[put(0), got(1, 1, 1), delete(5, "r1", false)]);
    assert_eq!(found(&[put(0), got(1, 1, 1), got(3, 9, 2), delete(5, "r1", false)]), None);
    let unknown = at(2, Request::Get { count: 1, visibility_seconds: 1 }, None);
    assert_eq!(found(&[put(0), got(1, 1, 1), unknown, delete(5, "r1", false)]), None);
}

#[test]
fn a_message_that_comes_back_after_its_deletion_is_found() {
    assert_found(
        "after it was deleted",
        &[put(0), got(1, 1, 1), delete(2, "r1", true), got(3, 1, 2)],
    );
}

#[test]
fn a_message_that_nobody_put_is_found() {
    assert_found("nobody put", &[got(1, 1, 1)]);
}
