//! Files and directories through handles, as SMB clients use them, on the memory store.

#[path = "support/handles.rs"]
mod handles;
mod support;

use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use handles::{Client, close, key, open, path, read, refusal, share, with_share, write};
use holdfast_domain::share::handles::{
    Action, BasicChange, Disposition, DurableWanted, HandleRefusal, ListFrom, LockRequest,
    OpenNode, Options, Reconnect, SetTime, WatchFor, WriteAt,
};
use holdfast_domain::share::opens::range_locks::{LockKind, Range};
use holdfast_domain::share::opens::{
    AccessMask, Change, ChangeAction, Durability, EnterRefusal, Handle, HandleScope, OplockLevel,
    RestOperation, ShareMode, Watched,
};
use holdfast_domain::share::{Attributes, FileTimes};
use holdfast_domain::time::Timestamp;
use support::Store;

const FILE: &str = "file.dat";
const SOON: Duration = Duration::from_millis(20);

async fn make_directory(store: &Store, client: &Client, name: &str) {
    let options = Options { directory: true, ..Options::default() };
    close(store, &open(store, &OpenNode { options, ..client.wants(name) }).await.handle).await;
}

fn range(offset: u64, length: u64) -> Range {
    Range::new(offset, length).expect("a range")
}

#[tokio::test]
async fn every_disposition_does_its_own_with_what_is_there_and_what_is_not() {
    use Disposition::{Create, Open, OpenIf, Overwrite, OverwriteIf, Supersede};
    for (disposition, absent, present) in [
        (Supersede, Ok(Action::Created), Ok(Action::Superseded)),
        (Open, Err(HandleRefusal::NotFound), Ok(Action::Opened)),
        (Create, Ok(Action::Created), Err(HandleRefusal::AlreadyExists)),
        (OpenIf, Ok(Action::Created), Ok(Action::Opened)),
        (Overwrite, Err(HandleRefusal::NotFound), Ok(Action::Overwritten)),
        (OverwriteIf, Ok(Action::Created), Ok(Action::Overwritten)),
    ] {
        let store = with_share().await;
        let client = Client::new(1);
        let existing = open(&store, &client.wants("present")).await;
        write(&store, &existing.handle, WriteAt::Offset(0), b"bytes").await.expect("written");
        for (name, expected) in [("absent", absent), ("present", present)] {
            let command = OpenNode { disposition, ..client.wants(name) };
            match (store.domain.open_handle(&command).await, expected) {
                (Ok(opened), Ok(action)) => {
                    assert_eq!(opened.action, action, "{disposition:?} {name}");
                    let kept = action == Action::Opened;
                    assert_eq!(opened.information.length, if kept { 5 } else { 0 });
                }
                (outcome, Err(expected)) => {
                    assert_eq!(refusal(outcome), expected, "{disposition:?} {name}");
                }
                (outcome, expected) => panic!("{outcome:?} {expected:?}"),
            }
        }
    }
}

#[tokio::test]
async fn directories_and_files_are_not_taken_for_each_other() {
    let store = with_share().await;
    let client = Client::new(1);
    make_directory(&store, &client, "directory").await;
    close(&store, &open(&store, &client.wants(FILE)).await.handle).await;
    let options = Options { non_directory: true, ..Options::default() };
    let refused =
        store.domain.open_handle(&OpenNode { options, ..client.wants("directory") }).await;
    assert_eq!(refusal(refused), HandleRefusal::IsDirectory);
    let options = Options { directory: true, ..Options::default() };
    let refused = store.domain.open_handle(&OpenNode { options, ..client.wants(FILE) }).await;
    assert_eq!(refusal(refused), HandleRefusal::NotDirectory);
    let refused = store.domain.open_handle(&client.wants("nowhere/file")).await;
    assert_eq!(refusal(refused), HandleRefusal::PathNotFound);
}

#[tokio::test]
async fn bytes_are_written_read_appended_and_cut() {
    let store = with_share().await;
    let client = Client::new(1);
    let opened = open(&store, &client.wants(FILE)).await;
    let handle = &*opened.handle;
    assert_eq!(refusal(read(&store, handle, 0, 1).await), HandleRefusal::EndOfFile);
    write(&store, handle, WriteAt::Offset(3), b"def").await.expect("written");
    write(&store, handle, WriteAt::End, b"ghi").await.expect("appended");
    assert_eq!(read(&store, handle, 0, 100).await.expect("read"), b"\0\0\0defghi");
    assert_eq!(read(&store, handle, 8, 100).await.expect("read"), b"i");
    assert_eq!(refusal(read(&store, handle, 9, 1).await), HandleRefusal::EndOfFile);
    store.domain.set_handle_length(handle, 4).await.expect("cut");
    store.domain.set_handle_allocation(handle, 100_000).await.expect("set aside");
    let information = store.domain.query_handle(handle).await.expect("there");
    assert_eq!((information.length, information.allocation), (4, 102_400));
    store.domain.set_handle_allocation(handle, 2).await.expect("cut");
    let information = store.domain.close_handle(handle).await.expect("closed");
    assert_eq!((information.length, information.allocation), (2, 4096));
    assert_eq!(refusal(read(&store, handle, 0, 1).await), HandleRefusal::Closed);
    let twice = store.domain.close_handle(handle).await;
    assert_eq!(refusal(twice), HandleRefusal::Closed);
}

#[tokio::test]
async fn a_handle_does_what_it_was_opened_for_and_nothing_else() {
    let store = with_share().await;
    let client = Client::new(1);
    let access = AccessMask::READ_DATA;
    let reader = open(&store, &OpenNode { access, ..client.wants(FILE) }).await.handle;
    let denied = HandleRefusal::AccessDenied;
    assert_eq!(refusal(write(&store, &reader, WriteAt::Offset(0), b"x").await), denied);
    assert_eq!(refusal(store.domain.set_handle_length(&reader, 1).await), denied);
    assert_eq!(refusal(store.domain.set_handle_disposition(&reader, true).await), denied);
    let basic = BasicChange::default();
    assert_eq!(refusal(store.domain.set_handle_basic(&reader, &basic).await), denied);
    let access = AccessMask::WRITE_DATA;
    let writer = open(&store, &OpenNode { access, ..client.wants(FILE) }).await.handle;
    assert_eq!(refusal(read(&store, &writer, 0, 1).await), denied);
}

#[tokio::test]
async fn rest_and_smb_keep_each_other_out_by_share_mode_and_lease() {
    let store = with_share().await;
    let client = Client::new(1);
    let alone = OpenNode { sharing: ShareMode::NONE, ..client.wants(FILE) };
    let held = open(&store, &alone).await.handle;
    let enter = async |operation| {
        let entered = store.domain.opens().enter(key(&held), operation, SOON).await;
        entered.map(drop)
    };
    let violation = Err(EnterRefusal::SharingViolation);
    assert_eq!(enter(RestOperation::PutRange).await, violation);
    assert_eq!(enter(RestOperation::GetFile).await, violation);
    assert_eq!(enter(RestOperation::GetFileProperties).await, Ok(()));
    let scope = HandleScope { key: key(&held), below: None };
    let closed = store.domain.force_close_handles(&scope, Some(held.id)).await.expect("closed");
    assert_eq!(closed, 1);
    assert_eq!(enter(RestOperation::PutRange).await, Ok(()));
    assert!(held.is_closed());

    let leasing = store.domain.opens().enter(key(&held), RestOperation::LeaseFile, SOON).await;
    let leasing = leasing.expect("nobody else is there");
    let refused = store.domain.open_handle(&client.wants(FILE)).await;
    assert_eq!(refusal(refused), HandleRefusal::SharingViolation);
    drop(leasing);
    open(&store, &client.wants(FILE)).await;
}

#[tokio::test]
async fn a_locked_range_keeps_others_out_of_it_and_rest_out_of_the_file() {
    let store = with_share().await;
    let client = Client::new(1);
    let first = open(&store, &client.wants(FILE)).await.handle;
    let second = open(&store, &client.wants(FILE)).await.handle;
    write(&store, &first, WriteAt::Offset(0), &[7; 100]).await.expect("written");
    let lock = LockRequest { range: range(10, 10), kind: LockKind::Exclusive };
    store.domain.lock_handle(&first, &[lock], false).await.expect("free");
    let conflict = HandleRefusal::LockConflict;
    assert_eq!(refusal(read(&store, &second, 0, 11).await), conflict);
    assert_eq!(refusal(write(&store, &second, WriteAt::Offset(19), b"x").await), conflict);
    read(&store, &first, 0, 100).await.expect("its own");
    read(&store, &second, 20, 10).await.expect("beside it");
    let enter = store.domain.opens().enter(key(&first), RestOperation::PutRange, SOON).await;
    assert_eq!(enter.err(), Some(EnterRefusal::LockConflict));
    close(&store, &first).await;
    write(&store, &second, WriteAt::Offset(19), b"x").await.expect("free again");
}

#[tokio::test]
async fn locks_are_waited_for_in_turn_and_the_waiting_can_be_cancelled() {
    let store = with_share().await;
    let client = Client::new(1);
    let holder = open(&store, &client.wants(FILE)).await.handle;
    let waiters = [
        open(&store, &client.wants(FILE)).await.handle,
        open(&store, &client.wants(FILE)).await.handle,
        open(&store, &client.wants(FILE)).await.handle,
    ];
    let lock = [LockRequest { range: range(0, 10), kind: LockKind::Exclusive }];
    let take = |handle| store.domain.lock_handle(handle, &lock, true);
    take(&holder).await.expect("free");
    let refused = store.domain.lock_handle(&waiters[0], &lock, false).await;
    assert_eq!(refusal(refused), HandleRefusal::LockNotGranted);
    assert!(tokio::time::timeout(SOON, take(&waiters[0])).await.is_err(), "cancelled");
    let (second, third, ()) = tokio::join!(take(&waiters[1]), take(&waiters[2]), async {
        tokio::time::sleep(SOON).await;
        store.domain.unlock_handle(&holder, &[range(0, 10)]).await.expect("held");
        tokio::time::sleep(SOON).await;
        let refused = store.domain.unlock_handle(&waiters[0], &[range(0, 10)]).await;
        assert_eq!(refusal(refused), HandleRefusal::RangeNotLocked, "it gave up");
        close(&store, &waiters[2]).await;
    });
    second.expect("its turn came");
    assert_eq!(refusal(third), HandleRefusal::RangeNotLocked, "it was closed while it waited");
}

#[tokio::test]
async fn what_is_deleted_on_close_is_hidden_at_once_and_gone_with_the_last_handle() {
    let store = with_share().await;
    let client = Client::new(1);
    let first = open(&store, &client.wants(FILE)).await.handle;
    let second = open(&store, &client.wants(FILE)).await.handle;
    store.domain.set_handle_disposition(&first, true).await.expect("marked");
    for operation in [
        RestOperation::GetFile,
        RestOperation::GetFileProperties,
        RestOperation::PutRange,
        RestOperation::DeleteFile,
        RestOperation::List,
    ] {
        let entered = store.domain.opens().enter(key(&first), operation, SOON).await;
        assert_eq!(entered.err(), Some(EnterRefusal::DeletePending), "6.5 pending / {operation:?}");
    }
    assert!(!store.domain.opens().is_listed(key(&first)), "6.5 pending / hidden in listings");
    let refused = store.domain.open_handle(&client.wants(FILE)).await;
    assert_eq!(refusal(refused), HandleRefusal::DeletePending);
    let information = store.domain.close_handle(&first).await.expect("closed");
    assert!(information.delete_pending);
    close(&store, &second).await;
    let plain = OpenNode { disposition: Disposition::Open, ..client.wants(FILE) };
    assert_eq!(refusal(store.domain.open_handle(&plain).await), HandleRefusal::NotFound);
    assert!(store.domain.opens().is_listed(key(&first)));

    let options = Options { delete_on_close: true, ..Options::default() };
    let doomed = open(&store, &OpenNode { options, ..client.wants(FILE) }).await.handle;
    let other = open(&store, &client.wants(FILE)).await.handle;
    close(&store, &doomed).await;
    let refused = store.domain.open_handle(&client.wants(FILE)).await;
    assert_eq!(refusal(refused), HandleRefusal::DeletePending);
    store.domain.set_handle_disposition(&other, false).await.expect("spared");
    close(&store, &other).await;
    close(&store, &open(&store, &plain).await.handle).await;
}

#[tokio::test]
async fn a_directory_with_something_in_it_and_a_read_only_file_are_not_deleted() {
    let store = with_share().await;
    let client = Client::new(1);
    make_directory(&store, &client, "directory").await;
    let inside = open(&store, &client.wants("directory/file")).await.handle;
    let directory = open(&store, &client.wants("directory")).await.handle;
    let refused = store.domain.set_handle_disposition(&directory, true).await;
    assert_eq!(refusal(refused), HandleRefusal::DirectoryNotEmpty);
    let attributes = Some(Attributes::READ_ONLY);
    let change = BasicChange { attributes, ..BasicChange::default() };
    store.domain.set_handle_basic(&inside, &change).await.expect("set");
    let refused = store.domain.set_handle_disposition(&inside, true).await;
    assert_eq!(refusal(refused), HandleRefusal::CannotDelete);
    let refused = store.domain.open_handle(&client.wants("directory/file")).await;
    assert_eq!(refusal(refused), HandleRefusal::AccessDenied, "for writing");
    let access = AccessMask::MAXIMUM_ALLOWED;
    let opened = open(&store, &OpenNode { access, ..client.wants("directory/file") }).await;
    assert!(!opened.handle.access.writes() && opened.handle.access.reads());
    let options = Options { delete_on_close: true, ..Options::default() };
    let command = OpenNode { options, access, ..client.wants("directory/file") };
    let refused = store.domain.open_handle(&command).await;
    assert_eq!(refusal(refused), HandleRefusal::CannotDelete);
}

#[tokio::test]
async fn times_are_set_frozen_and_thawed() {
    let store = with_share().await;
    let client = Client::new(1);
    let handle = open(&store, &client.wants(FILE)).await.handle;
    let times =
        async || -> FileTimes { store.domain.query_handle(&handle).await.expect("there").times };
    let long_ago = Timestamp::from_ticks(600_000_000_000_000_000);
    let change = BasicChange { written: SetTime::At(long_ago), ..BasicChange::default() };
    store.domain.set_handle_basic(&handle, &change).await.expect("set");
    assert_eq!(times().await.written, long_ago);
    store.clock.pass(Duration::from_secs(1));
    write(&store, &handle, WriteAt::Offset(0), b"x").await.expect("written");
    assert_eq!(times().await.written, long_ago, "it stays as it was set");
    let change = BasicChange { written: SetTime::Thaw, ..BasicChange::default() };
    store.domain.set_handle_basic(&handle, &change).await.expect("set");
    write(&store, &handle, WriteAt::Offset(0), b"x").await.expect("written");
    let written = times().await.written;
    assert_eq!(written, store.domain.now());
    let change = BasicChange { written: SetTime::Freeze, ..BasicChange::default() };
    store.domain.set_handle_basic(&handle, &change).await.expect("set");
    store.clock.pass(Duration::from_secs(1));
    write(&store, &handle, WriteAt::Offset(0), b"x").await.expect("written");
    assert_eq!(times().await.written, written);
}

async fn names(
    store: &Store,
    handle: &Handle,
    pattern: &str,
    restart: bool,
    limit: usize,
) -> String {
    let from = ListFrom { pattern: pattern.to_owned(), restart, limit };
    let listing = match store.domain.list_handle(handle, &from).await {
        Ok(listing) => listing,
        refused => return format!("{:?}", refusal(refused)),
    };
    let names: Vec<String> = listing.entries.into_iter().map(|entry| entry.name).collect();
    names.join(" ")
}

#[tokio::test]
async fn a_directory_is_listed_by_pattern_and_in_steps() {
    let store = with_share().await;
    let client = Client::new(1);
    make_directory(&store, &client, "directory").await;
    for name in ["b.txt", "A.txt", "c.bin"] {
        let file = open(&store, &client.wants(&format!("directory/{name}"))).await;
        close(&store, &file.handle).await;
    }
    let handle = open(&store, &client.wants("directory")).await.handle;
    assert_eq!(names(&store, &handle, "*", false, 3).await, ". .. A.txt");
    assert_eq!(names(&store, &handle, "", false, 10).await, "b.txt c.bin");
    assert_eq!(names(&store, &handle, "", false, 10).await, "NoMoreFiles");
    assert_eq!(names(&store, &handle, "*.txt", true, 1).await, "A.txt");
    assert_eq!(names(&store, &handle, "", false, 9).await, "b.txt");
    assert_eq!(names(&store, &handle, "B.TXT", true, 9).await, "b.txt");
    assert_eq!(names(&store, &handle, "nothing*", true, 9).await, "NoSuchFile");
    assert_eq!(names(&store, &handle, "*", true, 9).await, ". .. A.txt b.txt c.bin");
    handle.unlist("A.txt");
    assert_eq!(names(&store, &handle, "", false, 1).await, "b.txt");
    let from = ListFrom { pattern: String::new(), restart: false, limit: 9 };
    let no_room = store.domain.list_handle(&handle, &from).await.expect("the rest");
    handle.list_again(no_room.from);
    assert_eq!(names(&store, &handle, "", false, 9).await, "c.bin");
}

#[tokio::test]
async fn a_listing_that_finds_little_gives_way_to_others() {
    let store = with_share().await;
    let client = Client::new(1);
    make_directory(&store, &client, "directory").await;
    for number in 0..6 {
        let file = open(&store, &client.wants(&format!("directory/{number}"))).await;
        close(&store, &file.handle).await;
    }
    let handle = open(&store, &client.wants("directory")).await.handle;
    let mut turns = 0;
    let from = ListFrom { pattern: "*x".to_owned(), restart: true, limit: 2 };
    let mut listing = pin!(store.domain.list_handle(&handle, &from));
    let listed = poll_fn(|context| {
        turns += 1;
        listing.as_mut().poll(context)
    })
    .await;
    assert_eq!(refusal(listed), HandleRefusal::NoSuchFile);
    assert!(turns > 2, "it was all done in {turns}");
}

#[tokio::test]
async fn a_pattern_that_is_longer_than_any_name_is_refused() {
    let store = with_share().await;
    let client = Client::new(1);
    make_directory(&store, &client, "directory").await;
    let handle = open(&store, &client.wants("directory")).await.handle;
    let long = "*a".repeat(10_000);
    assert_eq!(names(&store, &handle, &long, true, 9).await, "InvalidPattern");
    assert_eq!(names(&store, &handle, "*", false, 9).await, ". ..");
    assert_eq!(names(&store, &handle, &long, true, 9).await, "InvalidPattern");
}

#[tokio::test]
async fn those_who_watch_a_directory_hear_what_smb_does_in_it() {
    let store = with_share().await;
    let client = Client::new(1);
    make_directory(&store, &client, "directory").await;
    let watching = open(&store, &client.wants("directory")).await.handle;
    let watch = WatchFor { filter: 0x1f, recursive: false, capacity: 1000 };
    let (watched, file) = tokio::join!(store.domain.watch_handle(&watching, &watch), async {
        open(&store, &client.wants("directory/new")).await.handle
    });
    let change = |action| Change { action, name: "new".to_owned() };
    let changes = |changes| Watched::Changes(changes);
    assert_eq!(watched.expect("told"), changes(vec![change(ChangeAction::Added)]));
    write(&store, &file, WriteAt::Offset(0), b"x").await.expect("written");
    let watched = store.domain.watch_handle(&watching, &watch).await.expect("told");
    assert_eq!(watched, changes(vec![change(ChangeAction::Modified)]));
    let (watched, ()) = tokio::join!(store.domain.watch_handle(&watching, &watch), async {
        store.domain.set_handle_disposition(&file, true).await.expect("marked");
        close(&store, &file).await;
    });
    assert_eq!(watched.expect("told"), changes(vec![change(ChangeAction::Removed)]));
    let (watched, ()) = tokio::join!(store.domain.watch_handle(&watching, &watch), async {
        close(&store, &watching).await;
    });
    assert_eq!(watched.expect("told"), Watched::Closed);
    let watching = open(&store, &client.wants("directory")).await.handle;
    let (watched, ()) = tokio::join!(store.domain.watch_handle(&watching, &watch), async {
        let other = open(&store, &client.wants("directory")).await.handle;
        store.domain.set_handle_disposition(&other, true).await.expect("it is empty");
        close(&store, &other).await;
    });
    assert_eq!(watched.expect("told"), Watched::DeletePending);
}

fn durable(client: &Client, kind: Durability) -> OpenNode {
    let durable = Some(DurableWanted { kind, timeout_milliseconds: 0, persistent: false });
    OpenNode { durable, ..client.wants_oplock(FILE, OplockLevel::Batch) }
}

fn back(client: &Client, handle: u64, durability: Durability) -> Reconnect {
    let opener = client.opener.clone();
    Reconnect {
        share: share(),
        opener,
        handle,
        durability,
        persistent: false,
        lease: None,
        path: path(FILE),
    }
}

#[tokio::test]
async fn a_durable_handle_waits_for_its_client_with_its_locks() {
    for kind in [Durability::First, Durability::Second(42)] {
        let store = with_share().await;
        let (client, again) = (Client::new(1), Client::new(1));
        let opened = open(&store, &durable(&client, kind)).await;
        assert_eq!(opened.durable, Some(60_000));
        let lock = [LockRequest { range: range(0, 1), kind: LockKind::Exclusive }];
        store.domain.lock_handle(&opened.handle, &lock, false).await.expect("free");
        let command = back(&again, opened.handle.id, kind);
        let early = store.domain.reconnect_handle(&command).await;
        assert_eq!(refusal(early), HandleRefusal::NotFound, "it is not lost");
        store.domain.disconnect(1).await;
        let wrong = back(&again, opened.handle.id, Durability::Second(43));
        let wrong = store.domain.reconnect_handle(&wrong).await;
        assert_eq!(refusal(wrong), HandleRefusal::NotFound);
        let reopened = store.domain.reconnect_handle(&command).await.expect("back");
        assert_eq!(reopened.handle.id, opened.handle.id);
        store.domain.unlock_handle(&reopened.handle, &[range(0, 1)]).await.expect("still locked");
        store.domain.close_session(1).await;
        assert!(reopened.handle.is_closed(), "a logoff is no loss of connection");
    }
}

#[tokio::test]
async fn a_lost_handle_gives_way_to_whoever_needs_the_file() {
    let store = with_share().await;
    let (client, other) = (Client::new(1), Client::new(2));
    let command = OpenNode { sharing: ShareMode::NONE, ..durable(&client, Durability::First) };
    let opened = open(&store, &command).await;
    store.domain.disconnect(1).await;
    open(&store, &OpenNode { sharing: ShareMode::NONE, ..other.wants(FILE) }).await;
    assert!(opened.handle.is_closed());
    let late = back(&client, opened.handle.id, Durability::First);
    let late = store.domain.reconnect_handle(&late).await;
    assert_eq!(refusal(late), HandleRefusal::NotFound);
}

#[tokio::test]
async fn a_handle_without_a_batch_oplock_is_not_durable_and_goes_with_its_connection() {
    let store = with_share().await;
    let client = Client::new(1);
    let caching = handles::lease_wanted(1, "R", 0);
    let opened = open(&store, &OpenNode { caching, ..durable(&client, Durability::First) }).await;
    assert_eq!(opened.durable, None);
    store.domain.disconnect(1).await;
    assert!(opened.handle.is_closed());
}

#[tokio::test]
async fn handles_are_listed_with_what_they_may_do() {
    let store = with_share().await;
    let client = Client::new(1);
    make_directory(&store, &client, "directory").await;
    let directory = open(&store, &client.wants("directory")).await.handle;
    let access = AccessMask::READ_DATA;
    let command = OpenNode { access, ..client.wants("directory/File") };
    let file = open(&store, &command).await.handle;
    open(&store, &client.wants("elsewhere")).await;
    let list = |below| {
        let scope = HandleScope { key: key(&directory), below };
        store.domain.opens().list_handles(&scope, 0, 10)
    };
    assert_eq!(list(None).len(), 1);
    let all = list(Some(path("directory")));
    assert_eq!(all.len(), 2);
    let entry = &all[1];
    assert_eq!(
        (entry.id, entry.node, entry.directory),
        (file.id, file.key.node, directory.key.node)
    );
    assert_eq!((entry.reads, entry.writes, entry.deletes), (true, false, false));
    assert_eq!(entry.path.to_string(), "directory/File");
    let scope = HandleScope { key: key(&directory), below: Some(path("directory")) };
    assert_eq!(store.domain.force_close_handles(&scope, None).await.expect("closed"), 2);
}
