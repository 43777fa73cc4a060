//! The checker of isolation on the smallest histories of each anomaly.

use std::collections::BTreeMap;

use super::super::{Change, ROWS, Row};
use super::*;
use crate::etag::ETag;
use crate::history::Instant;

fn record(call: i64, end: i64, request: Request, answer: Option<Answer>) -> Recorded {
    let end = if answer.is_some() { Instant(end) } else { Instant::NEVER };
    Record { client: 0, call: Instant(call), end, request, answer }
}

fn query(call: i64, end: i64, read: &[(Row, &[u64])]) -> Recorded {
    let rows: BTreeMap<_, _> =
        read.iter().map(|(row, list)| (*row, (list.to_vec(), ETag::new("e")))).collect();
    record(call, end, Request::Query { rows: 0..ROWS }, Some(Answer::Rows(rows)))
}

/// A transaction that appends the element to each of the lists it read.
fn batch(call: i64, end: i64, element: u64, read: &[(Row, &[u64])]) -> Recorded {
    let change = |(row, before): &(Row, &[u64])| Change {
        row: *row,
        before: before.to_vec(),
        etag: None,
        element,
    };
    let changes = read.iter().map(change).collect();
    let request = Request::Batch { changes, has_stale_etag: false };
    record(call, end, request, Some(Answer::Committed))
}

fn refused(mut record: Recorded) -> Recorded {
    let code = "UpdateConditionNotSatisfied".to_owned();
    record.answer = Some(Answer::Refused { status: 412, code });
    record
}

fn unanswered(mut record: Recorded) -> Recorded {
    (record.answer, record.end) = (None, Instant::NEVER);
    record
}

fn found(history: &[Recorded]) -> Vec<String> {
    let verdict = check(history);
    assert!(!verdict.is_unjudged);
    verdict.violations.into_iter().map(|violation| violation.what).collect()
}

#[test]
fn transactions_and_queries_in_some_order_are_cleared() {
    let history = [
        batch(0, 1, 10, &[(0, &[]), (1, &[])]),
        query(2, 3, &[(0, &[10]), (1, &[10])]),
        batch(4, 9, 11, &[(0, &[10])]),
        query(5, 8, &[(0, &[10]), (1, &[10])]),
        query(10, 11, &[(0, &[10, 11]), (1, &[10])]),
    ];
    assert_eq!(found(&history), Vec::<String>::new());
}

#[test]
fn half_of_a_transaction_is_found() {
    let history = [
        batch(0, 9, 10, &[(0, &[]), (1, &[])]),
        query(1, 2, &[(0, &[10])]),
        query(10, 11, &[(0, &[10]), (1, &[10])]),
    ];
    assert!(!found(&history).is_empty());
}

#[test]
fn a_refused_transaction_that_is_seen_is_found() {
    let history = [refused(batch(0, 1, 10, &[(0, &[]), (1, &[])])), query(2, 3, &[(0, &[10])])];
    assert!(found(&history)[0].contains("G1a"), "{:?}", found(&history));
}

#[test]
fn a_query_that_misses_what_was_there_is_found() {
    let history = [batch(0, 1, 10, &[(0, &[])]), query(2, 3, &[]), query(4, 5, &[(0, &[10])])];
    assert!(!found(&history).is_empty());
}

#[test]
fn two_transactions_on_one_reading_are_found() {
    let history = [
        batch(0, 1, 10, &[(0, &[])]),
        batch(2, 8, 11, &[(0, &[10])]),
        batch(3, 9, 12, &[(0, &[10])]),
        query(10, 11, &[(0, &[10, 12])]),
    ];
    assert!(!found(&history).is_empty());
}

#[test]
fn a_transaction_without_an_answer_may_be_seen_or_not() {
    let first = batch(0, 1, 10, &[(0, &[])]);
    let maybe = || unanswered(batch(2, 3, 11, &[(0, &[10])]));
    assert_eq!(found(&[first.clone(), maybe(), query(4, 5, &[(0, &[10])])]), Vec::<String>::new());
    let seen = [first.clone(), maybe(), query(4, 5, &[(0, &[10, 11])])];
    assert_eq!(found(&seen), Vec::<String>::new());
    let gone = [first, maybe(), query(4, 5, &[(0, &[10, 11])]), query(6, 7, &[(0, &[10])])];
    assert!(!found(&gone).is_empty());
}
