//! Bugs planted in an append blob, an entity and a file, each found by name.

mod faulty;

use faulty::{SHORT, append, assert_clean, assert_found, entity, file, unanswered, verdicts};
use holdfast_verify::append::AppendWorkload;
use holdfast_verify::entity::EntityWorkload;
use holdfast_verify::file::FileWorkload;
use holdfast_verify::report::Verdict;

const CLIENTS: u64 = 6;

fn appends(bug: append::Bug) -> Vec<Verdict> {
    verdicts(&AppendWorkload, 0..5, SHORT, |seed| append::FaultyAppend::targets(bug, CLIENTS, seed))
}

fn entities(bug: entity::Bug) -> Vec<Verdict> {
    verdicts(&EntityWorkload, 0..5, SHORT, |seed| entity::FaultyEntity::targets(bug, CLIENTS, seed))
}

fn files(bug: file::Bug) -> Vec<Verdict> {
    verdicts(&FileWorkload::Rest, 0..5, SHORT, |seed| file::FaultyFile::targets(bug, CLIENTS, seed))
}

#[test]
fn objects_without_bugs_are_cleared() {
    assert_clean(&appends(append::Bug::None));
    assert_clean(&entities(entity::Bug::None));
    assert_clean(&files(file::Bug::None));
}

#[test]
fn histories_with_lost_answers_are_judged() {
    assert_clean(&verdicts(&AppendWorkload, 0..20, SHORT, |seed| {
        unanswered(append::FaultyAppend::targets(append::Bug::None, CLIENTS, seed), seed)
    }));
    assert_clean(&verdicts(&EntityWorkload, 0..20, SHORT, |seed| {
        unanswered(entity::FaultyEntity::targets(entity::Bug::None, CLIENTS, seed), seed)
    }));
    assert_clean(&verdicts(&FileWorkload::Rest, 0..20, SHORT, |seed| {
        unanswered(file::FaultyFile::targets(file::Bug::None, CLIENTS, seed), seed)
    }));
}

#[test]
fn a_position_that_is_not_checked_is_found() {
    assert_found("linearizability", &appends(append::Bug::PositionNotChecked));
}

#[test]
fn a_size_that_is_not_checked_is_found() {
    assert_found("linearizability", &appends(append::Bug::SizeNotChecked));
}

#[test]
fn a_lost_append_is_found() {
    assert_found("linearizability", &appends(append::Bug::LostAppend));
}

#[test]
fn a_torn_read_of_an_append_blob_is_found() {
    assert_found("linearizability", &appends(append::Bug::TornRead));
}

#[test]
fn a_merge_that_loses_an_update_is_found() {
    assert_found("linearizability", &entities(entity::Bug::MergeLosesUpdate));
}

#[test]
fn a_merge_that_replaces_is_found() {
    assert_found("linearizability", &entities(entity::Bug::MergeReplaces));
}

#[test]
fn a_deletion_by_a_stale_etag_is_found() {
    assert_found("linearizability", &entities(entity::Bug::DeletedByStaleEtag));
}

#[test]
fn an_etag_kept_across_a_change_is_found() {
    assert_found("ETags", &entities(entity::Bug::EtagKept));
    assert_found("linearizability", &entities(entity::Bug::EtagKept));
}

#[test]
fn an_insert_over_what_is_there_is_found() {
    assert_found("linearizability", &entities(entity::Bug::InsertReplaces));
}

#[test]
fn a_torn_write_of_a_file_is_found() {
    assert_found("linearizability", &files(file::Bug::TornWrite));
}

#[test]
fn a_lost_range_of_a_file_is_found() {
    assert_found("linearizability", &files(file::Bug::LostRange));
}

#[test]
fn a_late_clear_of_a_file_is_found() {
    assert_found("linearizability", &files(file::Bug::LateClear));
}
