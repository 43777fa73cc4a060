//! Directories and files of a share: creating, finding, listing, moving and deleting, and the cost
//! of each.

mod support;

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::lease::{AccessRefusal, LeaseAction, LeaseDuration, LeaseOutcome};
use holdfast_domain::metadata::Metadata;
use holdfast_domain::share::{
    Attributes, CreateFile, DeleteNode, Expected, FileRefusal, GetNode, LeaseFile, ListDirectory,
    NodeAddress, NodeProperties, Protocol, RenameNode, SetNodeMetadata, SetNodeProperties,
    ShareState, TimeChange, Wanted,
};
use holdfast_domain::time::{Clock, Timestamp};
use support::counting::CountingEngine;
use support::share::{
    AtOnce, Files, at, get, lease_id, list, new_file, refusal, rename, set, share,
};

const NOW: ShareState = ShareState::Current;

fn read_only() -> NodeProperties {
    NodeProperties { attributes: Some(Attributes::READ_ONLY), ..NodeProperties::default() }
}

async fn lease(files: &Files, path: &str, number: u8) {
    let action = LeaseAction::Acquire { proposed: None, duration: LeaseDuration::INFINITE };
    let command = LeaseFile { address: at(path), action, fresh_id: lease_id(number) };
    let (_, outcome) = refusal(files.store.domain.at_once(command).await).expect("leased");
    assert_eq!(outcome, LeaseOutcome::Acquired(lease_id(number)));
}

#[tokio::test]
async fn nodes_are_found_by_names_in_any_case_and_told_as_they_were_written() {
    let files = Files::new().await;
    let directory = files.create_directory("Reports").await.expect("created");
    let file = files.create_file("reports/Ärger.txt", 10).await.expect("created");
    let found = files.get("REPORTS/ärger.TXT", NOW).await.expect("found");
    assert_eq!(found.node, file.node);
    assert_eq!(found.node.name.as_ref().map(|name| name.as_str()), Some("Ärger.txt"));
    assert_eq!(found.place.directory(), directory.node.id);
    assert_eq!(files.list("", NOW, 10).await.as_deref(), Ok(&["Reports".to_owned()][..]));
}

#[tokio::test]
async fn what_is_refused_of_nodes() {
    let files = Files::new().await;
    files.create_directory("d").await.expect("created");
    files.create_file("d/f", 10).await.expect("created");
    let created = |answer: Result<_, FileRefusal>| answer.map(drop);
    for (cell, answer, expected) in [
        ("6.3 it exists", created(files.create_directory("D").await), FileRefusal::AlreadyExists),
        ("6.1 a file", created(files.create_directory("d/F").await), FileRefusal::WrongKind),
        ("6.1 a directory", created(files.create_file("d", 1).await), FileRefusal::WrongKind),
        ("6.1 no parent", created(files.create_file("x/f", 1).await), FileRefusal::ParentNotFound),
        (
            "6.1 a parent that is a file",
            created(files.create_directory("d/f/x").await),
            FileRefusal::ParentNotFound,
        ),
        ("6.3 not empty", files.delete("d").await, FileRefusal::DirectoryNotEmpty),
        ("6.3 not there", files.delete("d/x").await, FileRefusal::NotFound),
        ("the root", files.delete("").await, FileRefusal::IsRoot),
        ("the root", created(files.create_directory("").await), FileRefusal::AlreadyExists),
        (
            "12 a file over 4 TiB",
            created(files.create_file("l", (4 << 40) + 1).await),
            FileRefusal::TooLong,
        ),
        (
            "a file as a directory",
            refusal(
                files
                    .store
                    .domain
                    .at_once(GetNode { wanted: Wanted::Directory, ..get("d/f") })
                    .await,
            )
            .map(drop),
            FileRefusal::WrongKind,
        ),
    ] {
        assert_eq!(answer, Err(expected), "{cell}");
    }
    files.create_file("l", 4 << 40).await.expect("12 4 TiB");
    files.delete("d/f").await.expect("deleted");
    files.delete("d").await.expect("empty");
    files.create_file("d", 1).await.expect("6.3 the name is free at once");
}

#[tokio::test]
async fn listings_go_by_folded_names_page_by_page() {
    let files = Files::new().await;
    for name in ["b", "A", "c", "ab", "B1", "Z"] {
        files.create_file(name, 0).await.expect("created");
    }
    for limit in 1..8 {
        let names = files.list("", NOW, limit).await.expect("listed");
        assert_eq!(names, ["A", "ab", "b", "B1", "c", "Z"], "{limit} a page");
    }
    let command = ListDirectory { prefix: "B".to_owned(), ..list("") };
    let page = refusal(files.store.domain.at_once(command).await).expect("listed");
    let names: Vec<_> = page.entries.iter().flat_map(|node| &node.name).collect();
    assert_eq!(names.iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["b", "B1"]);
    assert_eq!(page.next, None);
}

#[tokio::test]
async fn a_renamed_directory_takes_everything_below_with_it() {
    let files = Files::new().await;
    for directory in ["a", "a/b", "c"] {
        files.create_directory(directory).await.expect("created");
    }
    files.create_file("a/b/f", 600).await.expect("created");
    files.write("a/b/f", 0, &[7; 600]).await.expect("written");
    let before = files.get("a/b/f", NOW).await.expect("found");
    files.rename("a/b", "c/New", false).await.expect("renamed");
    assert_eq!(files.get("a/b/f", NOW).await.err(), Some(FileRefusal::ParentNotFound));
    assert_eq!(files.get("c/new/f", NOW).await.expect("found").place, before.place);
    assert_eq!(files.read("c/new/f", NOW).await, Ok(vec![7; 600]));
    files.delete("a").await.expect("6.3 nothing is in it");
}

#[tokio::test]
async fn what_is_refused_of_renames() {
    let files = Files::new().await;
    for directory in ["d", "d/e", "x"] {
        files.create_directory(directory).await.expect("created");
    }
    for file in ["f", "g", "d/f"] {
        files.create_file(file, 10).await.expect("created");
    }
    let command = CreateFile { properties: read_only(), ..new_file("r", 1) };
    refusal(files.store.domain.at_once(command).await).expect("created");
    for (cell, from, to, replace, expected) in [
        ("6.3 into itself", "d", "d/e/d", false, FileRefusal::IntoItself),
        ("6.3 onto itself and below", "d", "D/x", true, FileRefusal::IntoItself),
        ("6.3 a file is there", "f", "g", false, FileRefusal::AlreadyExists),
        ("6.3 a directory is there", "d", "x", true, FileRefusal::AlreadyExists),
        ("6.3 a directory onto a file", "d", "f", false, FileRefusal::AlreadyExists),
        ("6.3 a file onto a directory", "f", "x", true, FileRefusal::WrongKind),
        ("6.3 onto a read-only file", "f", "r", true, FileRefusal::ReadOnly),
        ("6.3 no such file", "n", "m", false, FileRefusal::NotFound),
        ("6.1 no parent", "f", "n/f", false, FileRefusal::ParentNotFound),
        ("the root", "", "n", false, FileRefusal::IsRoot),
        ("onto the root", "f", "", true, FileRefusal::IsRoot),
    ] {
        assert_eq!(files.rename(from, to, replace).await.err(), Some(expected), "{cell}");
    }
    let command = RenameNode { replace: true, ignore_read_only: true, ..rename("f", "r") };
    let renamed = refusal(files.store.domain.rename_at_once(command).await).expect("6.3 ignored");
    assert!(renamed.replaced.is_some());
    let command = RenameNode { replace: true, by_handle: true, ..rename("d", "g") };
    let by_handle = refusal(files.store.domain.rename_at_once(command).await).map(drop);
    assert_eq!(by_handle, Err(FileRefusal::AlreadyExists), "a directory onto a file, over SMB");
    files.create_directory("new").await.expect("created");
    files.create_file("old", 10).await.expect("created");
    let renamed = files.rename("new", "old", true).await.expect("a directory onto a file");
    assert!(renamed.located.node.is_directory() && renamed.replaced.is_some());
    files.rename("old", "x/old", false).await.expect("renamed");
    files.rename("g", "G", false).await.expect("another spelling of its own name");
    assert_eq!(files.list("", NOW, 9).await.expect("listed"), ["d", "G", "r", "x"]);
}

#[tokio::test]
async fn a_rename_asks_both_leases_and_keeps_that_of_the_source() {
    let files = Files::new().await;
    files.create_file("f", 1).await.expect("created");
    files.create_file("g", 1).await.expect("created");
    lease(&files, "f", 1).await;
    lease(&files, "g", 2).await;
    let command = |source: Option<u8>, destination: Option<u8>| RenameNode {
        replace: true,
        source_lease_id: source.map(lease_id),
        destination_lease_id: destination.map(lease_id),
        ..rename("f", "g")
    };
    let missing = FileRefusal::LeaseAccess(AccessRefusal::IdMissing);
    for (cell, source, destination, expected) in [
        ("2.6 no ids", None, None, missing.clone()),
        ("2.6 none for the source", None, Some(2), missing.clone()),
        ("2.6 none for the destination", Some(1), None, missing),
        (
            "2.6 another for the destination",
            Some(1),
            Some(3),
            FileRefusal::LeaseAccess(AccessRefusal::IdMismatch),
        ),
    ] {
        let answer = files.store.domain.rename_at_once(command(source, destination)).await;
        assert_eq!(refusal(answer).err(), Some(expected), "{cell}");
    }
    let renamed = files.store.domain.rename_at_once(command(Some(1), Some(2))).await;
    let node = refusal(renamed).expect("2.6 both ids").located.node;
    assert_eq!(node.file().and_then(|file| file.lease.id()), Some(lease_id(1)));
    assert_eq!(files.store.domain.live_leases(), 1);
}

#[tokio::test]
async fn a_lease_guards_writes_and_stays_when_the_file_is_created_again() {
    let files = Files::new().await;
    files.create_file("f", 10).await.expect("created");
    let id = files.get("f", NOW).await.expect("found").node.id;
    lease(&files, "f", 1).await;
    let missing = Some(FileRefusal::LeaseAccess(AccessRefusal::IdMissing));
    assert_eq!(files.create_file("f", 1).await.err(), missing, "2.6 Create File");
    assert_eq!(files.write("f", 0, &[1]).await.err(), missing, "2.6 Put Range");
    assert_eq!(files.resize("f", 1).await.err(), missing, "2.6 Set File Properties");
    assert_eq!(files.delete("f").await.err(), missing, "2.6 Delete File");
    let command = CreateFile { lease_id: Some(lease_id(1)), ..new_file("f", 20) };
    let created = refusal(files.store.domain.at_once(command).await).expect("with its id");
    assert_eq!(created.node.id, id, "6.5 whoever has it open has it open still");
    assert_eq!(created.node.file().and_then(|file| file.lease.id()), Some(lease_id(1)));
    let absent = CreateFile { lease_id: Some(lease_id(1)), ..new_file("n", 1) };
    let refused = refusal(files.store.domain.at_once(absent).await).err();
    let not_present = FileRefusal::LeaseAccess(AccessRefusal::NotPresent);
    assert_eq!(refused, Some(not_present), "2.6 on a file that does not exist");
}

#[tokio::test]
async fn read_only_files_are_not_written() {
    let files = Files::new().await;
    let command = CreateFile { properties: read_only(), ..new_file("f", 10) };
    refusal(files.store.domain.at_once(command).await).expect("created");
    let metadata = SetNodeMetadata {
        address: at("f"),
        wanted: Wanted::File,
        metadata: Metadata::default(),
        lease_id: None,
    };
    let read_only = Some(FileRefusal::ReadOnly);
    assert_eq!(files.create_file("f", 1).await.err(), read_only, "6.5 Create File");
    assert_eq!(files.write("f", 0, &[1]).await.err(), read_only, "6.5 Put Range");
    assert_eq!(files.resize("f", 1).await.err(), read_only, "6.5 Set File Properties");
    let set_metadata = files.store.domain.at_once(metadata).await;
    assert_eq!(refusal(set_metadata).err(), read_only, "6.5 Set File Metadata");
    let archive =
        NodeProperties { attributes: Some(Attributes::ARCHIVE), ..NodeProperties::default() };
    let command = SetNodeProperties { properties: archive, ..set("f") };
    refusal(files.store.domain.at_once(command).await).expect("it is taken away");
    files.write("f", 0, &[1]).await.expect("written");
}

#[tokio::test]
async fn changes_leave_their_times() {
    let files = Files::new().await;
    let step = Duration::from_secs(10);
    let created = files.create_file("f", 10).await.expect("created").node;
    let times = created.times;
    assert_eq!(
        (times.created, times.written, times.changed),
        (times.created, times.created, times.created)
    );
    files.store.clock.pass(step);
    let written = files.write("f", 0, &[1]).await.expect("written").node;
    let now = files.store.clock.now();
    assert_eq!((written.times.written, written.times.changed), (now, now), "data");
    assert_eq!((written.times.created, written.last_modified), (times.created, now));
    assert_ne!(written.etag, created.etag);
    files.store.clock.pass(step);
    let set_one = set("f");
    let changed = refusal(files.store.domain.at_once(set_one).await).expect("set").node;
    assert_eq!(changed.times.written, written.times.written, "properties are no data");
    assert_eq!(changed.times.changed, files.store.clock.now());
    assert_ne!(changed.etag, written.etag);
    let given = Timestamp::from_ticks(630_000_000_000_000_000);
    let properties = NodeProperties {
        created: Some(TimeChange::At(given)),
        written: Some(TimeChange::Preserve),
        changed: Some(TimeChange::At(given)),
        ..NodeProperties::default()
    };
    files.store.clock.pass(step);
    let command = SetNodeProperties { properties, length: Some(5), ..set("f") };
    let resized = refusal(files.store.domain.at_once(command).await).expect("set").node;
    assert_eq!((resized.times.created, resized.times.changed), (given, given));
    assert_eq!(resized.times.written, written.times.written, "preserved, though it is resized");
    files.store.clock.pass(step);
    let leased_before = files.get("f", NOW).await.expect("found").node;
    lease(&files, "f", 1).await;
    let leased = files.get("f", NOW).await.expect("found").node;
    assert_eq!((leased.etag, leased.times), (leased_before.etag, leased_before.times), "2.1");
}

#[tokio::test]
async fn whoever_looked_before_is_told_when_something_else_is_there() {
    let files = Files::new().await;
    let file = files.create_file("f", 10).await.expect("created");
    let by_place = NodeAddress::place(share(), file.place.clone(), file.node.id);
    let by_path = at("f").expecting(Expected::Node(file.node.id));
    let write = async |address: &NodeAddress| {
        let command = SetNodeProperties { address: address.clone(), length: Some(7), ..set("f") };
        refusal(files.store.domain.at_once(command).await).map(drop)
    };
    assert_eq!(write(&by_place).await, Ok(()));
    assert_eq!(write(&by_path).await, Ok(()));
    let nothing = at("f").expecting(Expected::Nothing);
    let command = CreateFile { address: nothing, ..new_file("f", 1) };
    let created = refusal(files.store.domain.at_once(command).await);
    assert_eq!(created.err(), Some(FileRefusal::Moved));
    files.rename("f", "g", false).await.expect("renamed");
    files.create_file("f", 10).await.expect("another");
    assert_eq!(write(&by_place).await, Err(FileRefusal::Moved));
    assert_eq!(write(&by_path).await, Err(FileRefusal::Moved));
    files.delete("f").await.expect("deleted");
    assert_eq!(write(&by_place).await, Err(FileRefusal::Moved));
    files.delete_share().await;
    assert_eq!(write(&by_place).await, Err(FileRefusal::ShareNotFound));
    files.create_share(Protocol::Smb).await;
    assert_eq!(write(&by_place).await, Err(FileRefusal::ShareNotFound), "another share");
}

#[tokio::test]
async fn a_path_costs_a_row_for_each_name_and_a_rename_a_few_whatever_is_below() {
    let engine = Arc::new(CountingEngine::default());
    let files = Files::on(engine.clone()).await;
    files.create_share(Protocol::Smb).await;
    let mut directory = String::from("d");
    files.create_directory(&directory).await.expect("created");
    for _ in 1..9 {
        directory.push_str("/d");
        files.create_directory(&directory).await.expect("created");
    }
    for number in 0..2000 {
        files.create_file(&format!("d/{number}"), 0).await.expect("created");
    }
    files.snapshot().await;
    engine.take();
    files.get(&directory, NOW).await.expect("found");
    let (read, _) = engine.take();
    assert_eq!(read, 2 * (1 + 9), "the share and each name, to enter it and to read it");
    let command = ListDirectory { limit: 100, ..list("d") };
    refusal(files.store.domain.at_once(command).await).expect("listed");
    let (read, _) = engine.take();
    assert!(read <= 300, "{read} rows for a page of 100");
    files.rename("d", "e", false).await.expect("renamed");
    let (read, written) = engine.take();
    assert_eq!(written, 3, "the old row, the new one and the past one");
    assert!(read <= 5 + 4, "{read} rows read, to enter both paths and to rename");
}

#[tokio::test]
async fn a_deleted_directory_and_a_new_child_do_not_miss_each_other() {
    let files = Arc::new(Files::new().await);
    for _ in 0..50 {
        files.create_directory("d").await.expect("created");
        let (deleted, created) = tokio::join!(files.delete("d"), files.create_file("d/f", 1));
        match (deleted, created) {
            (Ok(()), Err(FileRefusal::ParentNotFound)) => {}
            (Err(FileRefusal::DirectoryNotEmpty), Ok(_)) => {
                files.delete("d/f").await.expect("deleted");
                let command =
                    DeleteNode { address: at("d"), wanted: Wanted::Directory, lease_id: None };
                refusal(files.store.domain.at_once(command).await).expect("deleted");
            }
            (deleted, created) => panic!("{deleted:?} and {:?}", created.map(|found| found.node)),
        }
    }
}
