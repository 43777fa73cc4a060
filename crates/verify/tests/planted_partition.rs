//! Bugs planted in a partition of a table, each found by name.

mod faulty;

use faulty::partition::{Bug, FaultyPartition};
use faulty::{SHORT, assert_clean, assert_found, verdicts};
use holdfast_verify::partition::PartitionWorkload;
use holdfast_verify::report::Verdict;

fn run(bug: Bug) -> Vec<Verdict> {
    verdicts(&PartitionWorkload, 0..5, SHORT, |seed| FaultyPartition::targets(bug, 6, seed))
}

#[test]
fn a_partition_without_bugs_is_cleared() {
    assert_clean(&run(Bug::None));
}

#[test]
fn a_torn_batch_is_found() {
    assert_found("isolation", &run(Bug::TornBatch));
}

#[test]
fn a_torn_query_is_found() {
    assert_found("isolation", &run(Bug::TornQuery));
}

#[test]
fn a_dirty_read_of_a_failed_batch_is_found() {
    let verdicts = run(Bug::DirtyRead);
    assert_found("isolation", &verdicts);
}

#[test]
fn half_of_a_failed_batch_that_is_kept_is_found() {
    let verdicts = run(Bug::HalfBatchKept);
    assert_found("isolation", &verdicts);
    let mut violations = verdicts.iter().flat_map(|verdict| &verdict.violations);
    assert!(violations.all(|it| it.history.len() < 10), "it is told by few operations");
}

#[test]
fn a_lost_update_of_a_batch_is_found() {
    assert_found("isolation", &run(Bug::LostUpdate));
}

#[test]
fn a_phantom_is_found() {
    assert_found("isolation", &run(Bug::Phantom));
}

#[test]
fn a_stale_query_is_found() {
    assert_found("isolation", &run(Bug::StaleQuery));
}

#[test]
fn a_lost_batch_is_found() {
    assert_found("isolation", &run(Bug::LostBatch));
}
