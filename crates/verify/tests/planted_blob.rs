//! Bugs planted in a blob, each found by name.

mod faulty;

use std::time::Duration;

use faulty::blob::{Bug, FaultyBlob};
use faulty::{SHORT, assert_clean, assert_found, unanswered, verdicts};
use holdfast_verify::blob::BlobWorkload;
use holdfast_verify::record::Extent;
use holdfast_verify::report::Verdict;

const CLIENTS: u64 = 6;
const LONG: Extent = Extent { operations_per_client: 250, duration_max: Duration::from_secs(60) };

fn register(bug: Bug) -> Vec<Verdict> {
    verdicts(&BlobWorkload::Register, 0..8, SHORT, |seed| FaultyBlob::targets(bug, CLIENTS, seed))
}

fn leases(workload: BlobWorkload, bug: Bug) -> Vec<Verdict> {
    verdicts(&workload, 0..3, LONG, |seed| FaultyBlob::targets(bug, CLIENTS, seed))
}

#[test]
fn a_blob_without_bugs_is_cleared_in_every_workload() {
    let mut all = register(Bug::None);
    all.extend(leases(BlobWorkload::Leases, Bug::None));
    all.extend(leases(BlobWorkload::Expiry, Bug::None));
    assert_clean(&all);
}

#[test]
fn histories_with_lost_answers_are_judged() {
    for workload in [BlobWorkload::Register, BlobWorkload::Leases] {
        assert_clean(&verdicts(&workload, 0..10, SHORT, |seed| {
            unanswered(FaultyBlob::targets(Bug::None, CLIENTS, seed), seed)
        }));
    }
}

#[test]
fn a_lost_update_is_found() {
    assert_found("linearizability", &register(Bug::LostUpdate));
}

#[test]
fn a_stale_read_is_found() {
    assert_found("linearizability", &register(Bug::StaleRead));
}

#[test]
fn a_blob_created_twice_is_found() {
    assert_found("linearizability", &register(Bug::CreatedTwice));
}

#[test]
fn an_etag_used_again_is_found() {
    assert_found("ETags", &register(Bug::EtagReused));
}

#[test]
fn a_lost_write_is_found() {
    assert_found("linearizability", &register(Bug::LostWrite));
}

#[test]
fn a_refused_write_that_was_made_is_found() {
    assert_found("linearizability", &register(Bug::RefusedWriteApplied));
}

#[test]
fn a_deleted_blob_that_is_read_is_found() {
    assert_found("linearizability", &register(Bug::DeletedBlobRead));
}

#[test]
fn a_lease_checked_outside_the_commit_is_found() {
    let verdicts = leases(BlobWorkload::Leases, Bug::LeaseCheckedOutsideCommit);
    assert_found("linearizability", &verdicts);
}

#[test]
fn a_lease_that_ends_early_is_found() {
    assert_found("linearizability", &leases(BlobWorkload::Expiry, Bug::LeaseEndsEarly));
}

#[test]
fn a_broken_lease_that_still_writes_is_found() {
    assert_found("linearizability", &leases(BlobWorkload::Leases, Bug::BrokenLeaseWrites));
}

#[test]
fn the_shortest_history_of_a_stale_read_fits_on_a_screen() {
    let verdicts = register(Bug::StaleRead);
    let violations = verdicts.iter().flat_map(|verdict| &verdict.violations);
    let shortest = violations.map(|violation| violation.history.len()).min();
    assert!(shortest.is_some_and(|lines| lines <= 20), "{verdicts:#?}");
}
