//! Bugs planted in a queue, each found by name.

mod faulty;

use std::time::Duration;

use faulty::queue::{Bug, FaultyQueue};
use faulty::{assert_clean, verdicts};
use holdfast_verify::queue::QueueWorkload;
use holdfast_verify::record::Extent;
use holdfast_verify::report::Verdict;

const EXTENT: Extent =
    Extent { operations_per_client: 120, duration_max: Duration::from_secs(600) };

fn run(bug: Bug) -> Vec<Verdict> {
    verdicts(&QueueWorkload::Use, 0..4, EXTENT, |seed| FaultyQueue::targets(bug, 6, seed))
}

#[track_caller]
fn assert_found(part: &str, bug: Bug) {
    let verdicts = run(bug);
    let mut violations = verdicts.iter().flat_map(|verdict| &verdict.violations);
    let found = violations.any(|it| it.checker == "queue" && it.what.contains(part));
    assert!(found, "{verdicts:#?}");
}

#[test]
fn a_queue_without_bugs_is_cleared() {
    assert_clean(&run(Bug::None));
}

#[test]
fn a_double_delivery_is_found() {
    assert_found("still hidden", Bug::DoubleDelivery);
}

#[test]
fn a_message_that_is_back_too_early_is_found() {
    assert_found("still hidden", Bug::BackTooEarly);
}

#[test]
fn a_message_lost_with_its_consumer_is_found() {
    assert_found("lost", Bug::LostOnDelivery);
}

#[test]
fn a_message_lost_after_it_was_acknowledged_is_found() {
    assert_found("lost", Bug::LostOnPut);
}

#[test]
fn a_stale_receipt_that_is_accepted_is_found() {
    assert_found("newer one", Bug::StaleReceiptAccepted);
}

#[test]
fn a_deletion_that_is_forgotten_is_found() {
    assert_found("deleted", Bug::DeletionForgotten);
}

#[test]
fn a_current_receipt_that_is_refused_is_found() {
    assert_found("newest", Bug::LateReceiptRefused);
}

#[test]
fn an_update_that_hides_nothing_is_found() {
    assert_found("still hidden", Bug::UpdateIgnored);
}
