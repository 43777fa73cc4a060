//! Directories that SMB clients have marked for deletion: neither protocol can add to them, and
//! they are deleted with their last handle.

#[path = "support/handles.rs"]
mod handles;
mod support;

use std::sync::Arc;
use std::time::Duration;

use handles::{Client, close};
use holdfast_domain::Failure;
use holdfast_domain::metadata::Metadata;
use holdfast_domain::share::handles::{HandleRefusal, OpenNode, Options, RenameTo};
use holdfast_domain::share::opens::{EnterRefusal, Handle};
use holdfast_domain::share::{
    CopiedProperties, CopyFile, CreateHardLink, CreateSymbolicLink, FileCopyRefusal,
    FileCopySource, FileRefusal, LinkTarget, NodeProperties, Protocol, ShareState,
};
use support::share::{AtOnce, Files, at, get, new_directory, new_file, path, rename, share};

const PATIENCE: Duration = Duration::from_secs(1);
const PENDING: FileRefusal = FileRefusal::Opens(EnterRefusal::DeletePending);
const NOW: ShareState = ShareState::Current;

fn wants(client: &Client, name: &str, options: Options) -> OpenNode {
    OpenNode { share: share(), options, ..client.wants(name) }
}

async fn open(files: &Files, client: &Client, name: &str) -> Arc<Handle> {
    handles::open(&files.store, &wants(client, name, Options::default())).await.handle
}

fn refused<T, R: std::fmt::Debug>(outcome: Result<T, Failure<R>>) -> R {
    match outcome {
        Err(Failure::Refused(refusal)) => refusal,
        Err(failure) => panic!("{failure:?}"),
        Ok(_) => panic!("not refused"),
    }
}

fn copy(to: &str, from: &str) -> CopyFile {
    CopyFile {
        address: at(to),
        source: FileCopySource::File(get(from)),
        source_url: String::new(),
        copy_id: "copy".to_owned(),
        metadata: None,
        properties: CopiedProperties::default(),
        ignore_read_only: false,
        set_archive: false,
        lease_id: None,
    }
}

/// All operations that would add something to `doomed`.
async fn nothing_comes_in(files: &Files, client: &Client) {
    let domain = &files.store.domain;
    let created = domain.rest_call(new_file("doomed/new", 1), PATIENCE).await;
    assert_eq!(refused(created), PENDING, "Create File");
    let created = domain.rest_call(new_directory("doomed/new"), PATIENCE).await;
    assert_eq!(refused(created), PENDING, "Create Directory");
    let renamed = domain.rest_rename(rename("file", "doomed/new"), PATIENCE).await;
    assert_eq!(refused(renamed), PENDING, "Rename File");
    let renamed = domain.rest_rename(rename("directory", "doomed/new"), PATIENCE).await;
    assert_eq!(refused(renamed), PENDING, "Rename Directory");
    let copied = domain.rest_call(copy("doomed/new", "file"), PATIENCE).await;
    assert_eq!(refused(copied), FileCopyRefusal::Destination(PENDING), "Copy File");
    for options in [Options::default(), Options { directory: true, ..Options::default() }] {
        let opened = domain.open_handle(&wants(client, "doomed/new", options)).await;
        assert_eq!(refused(opened), HandleRefusal::DeletePending, "CREATE");
    }
    let file = open(files, client, "file").await;
    let to = RenameTo { path: path("doomed/new"), replace: false };
    let renamed = domain.rename_handle(&file, &to).await;
    assert_eq!(refused(renamed), HandleRefusal::DeletePending, "SET_INFO rename");
    close(&files.store, &file).await;
}

async fn with_nodes() -> Files {
    let files = Files::new().await;
    files.create_directory("doomed").await.expect("created");
    files.create_directory("directory").await.expect("created");
    files.create_file("file", 1).await.expect("created");
    files
}

#[tokio::test]
async fn nothing_comes_into_a_directory_whose_delete_is_pending() {
    let files = with_nodes().await;
    let client = Client::new(1);
    let (first, second) =
        (open(&files, &client, "doomed").await, open(&files, &client, "doomed").await);
    files.store.domain.set_handle_disposition(&first, true).await.expect("it is empty");
    nothing_comes_in(&files, &client).await;
    close(&files.store, &first).await;
    nothing_comes_in(&files, &client).await;
    close(&files.store, &second).await;
    assert_eq!(files.get("doomed", NOW).await.err(), Some(FileRefusal::NotFound));
    files.create_directory("doomed").await.expect("another one");
    files.create_file("doomed/new", 1).await.expect("into the other one");
}

#[tokio::test]
async fn nothing_comes_into_a_directory_that_is_open_to_be_deleted() {
    let files = with_nodes().await;
    let client = Client::new(1);
    let options = Options { delete_on_close: true, ..Options::default() };
    let doomed = handles::open(&files.store, &wants(&client, "doomed", options)).await.handle;
    nothing_comes_in(&files, &client).await;
    let domain = &files.store.domain;
    assert_eq!(refused(domain.rest_call(get("doomed"), PATIENCE).await), PENDING);
    let listed = domain.rest_call(support::share::list(""), PATIENCE).await.expect("listed");
    let names: Vec<_> = listed.entries.iter().filter_map(|node| node.name.clone()).collect();
    assert!(!names.iter().any(|name| name.as_str() == "doomed"), "6.5 hidden in listings");
    close(&files.store, &doomed).await;
    assert_eq!(files.get("doomed", NOW).await.err(), Some(FileRefusal::NotFound));
}

#[tokio::test]
async fn a_directory_that_is_spared_takes_something_again() {
    let files = with_nodes().await;
    let client = Client::new(1);
    let handle = open(&files, &client, "doomed").await;
    let domain = &files.store.domain;
    domain.set_handle_disposition(&handle, true).await.expect("it is empty");
    domain.set_handle_disposition(&handle, false).await.expect("spared");
    domain.rest_call(new_file("doomed/new", 1), PATIENCE).await.expect("created");
    let marked = domain.set_handle_disposition(&handle, true).await;
    assert_eq!(refused(marked), HandleRefusal::DirectoryNotEmpty);
    let options = Options { delete_on_close: true, ..Options::default() };
    let opened = domain.open_handle(&wants(&client, "doomed", options)).await;
    assert_eq!(refused(opened), HandleRefusal::DirectoryNotEmpty);
    close(&files.store, &handle).await;
    files.get("doomed/new", NOW).await.expect("still there");
}

#[tokio::test]
async fn links_do_not_come_into_a_directory_that_goes() {
    let files = Files::of(Protocol::Nfs).await;
    files.create_directory("doomed").await.expect("created");
    files.create_file("file", 1).await.expect("created");
    let client = Client::new(1);
    let handle = open(&files, &client, "doomed").await;
    let domain = &files.store.domain;
    domain.set_handle_disposition(&handle, true).await.expect("it is empty");
    let symbolic = CreateSymbolicLink {
        address: at("doomed/new"),
        target: LinkTarget("file".to_owned()),
        metadata: Metadata::default(),
        properties: NodeProperties::default(),
        lease_id: None,
    };
    assert_eq!(refused(domain.at_once(symbolic).await), PENDING);
    let hard = CreateHardLink { address: at("doomed/new"), target: at("file"), lease_id: None };
    assert_eq!(refused(domain.at_once(hard).await), PENDING);
}

/// Both answers are true in the end, whichever came first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_and_an_addition_are_never_both_acknowledged() {
    let files = Arc::new(Files::new().await);
    let (mut deleted, mut added) = (0, 0);
    for round in 0..300 {
        let name = format!("directory{round}");
        files.create_directory(&name).await.expect("created");
        let handle = open(&files, &Client::new(1), &name).await;
        let adding = (0..2).map(|child| {
            let (files, name) = (Arc::clone(&files), format!("{name}/{child}"));
            tokio::spawn(async move {
                let command = new_file(&name, 1);
                files.store.domain.rest_call(command, PATIENCE).await.is_ok()
            })
        });
        let adding: Vec<_> = adding.collect();
        if round % 2 == 0 {
            tokio::task::yield_now().await;
        }
        let domain = &files.store.domain;
        let is_marked = domain.set_handle_disposition(&handle, true).await.is_ok();
        close(&files.store, &handle).await;
        let mut is_added = false;
        for task in adding {
            is_added |= task.await.expect("no panic");
        }
        let is_there = files.get(&name, NOW).await.is_ok();
        assert_eq!((is_there, is_added), (!is_marked, !is_marked), "round {round}");
        deleted += usize::from(is_marked);
        added += usize::from(is_added);
    }
    assert!(deleted + added == 300, "{deleted} deleted, {added} kept");
}
