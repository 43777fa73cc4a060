//! Access lists of files, where they are enforced, on the memory store.

#[path = "support/handles.rs"]
mod handles;
mod support;

use std::sync::Arc;

use handles::{Client, close, open, path, refusal, with_share_of};
use holdfast_domain::Domain;
use holdfast_domain::features::{AccessLists, Features};
use holdfast_domain::share::handles::{Disposition, HandleRefusal, OpenNode, Options, RenameTo};
use holdfast_domain::share::opens::{AccessMask, Handle};
use holdfast_domain::share::security::Descriptor;
use holdfast_store::memory::MemoryEngine;
use support::Store;

async fn store(access_lists: AccessLists) -> Store {
    let features = Features { access_lists, ..Features::default() };
    with_share_of(Store::on(Arc::new(MemoryEngine::default()), features).await).await
}

async fn set(domain: &Domain, handle: &Handle, sddl: &str) {
    let descriptor = Descriptor::parse_sddl(sddl).expect(sddl);
    domain.set_handle_descriptor(handle, &descriptor).await.expect("set");
}

/// A file or directory whose list is this.
async fn make(store: &Store, name: &str, directory: bool, sddl: &str) {
    let options = Options { directory, ..Options::default() };
    let command = OpenNode { options, ..Client::new(1).wants(name) };
    let handle = open(store, &command).await.handle;
    set(&store.domain, &handle, sddl).await;
    close(store, &handle).await;
}

fn existing(name: &str, access: AccessMask) -> OpenNode {
    OpenNode { access, disposition: Disposition::Open, ..Client::new(1).wants(name) }
}

const READ: AccessMask = AccessMask::READ_DATA;
const WRITE: AccessMask = AccessMask::WRITE_DATA;

#[tokio::test]
async fn a_list_keeps_whoever_it_does_not_name_out_only_if_it_is_enforced() {
    for (lists, outcome) in [
        (AccessLists::Ignored, Ok(AccessMask::ALL)),
        (AccessLists::Enforced, Err(HandleRefusal::AccessDenied)),
    ] {
        let store = store(lists).await;
        make(&store, "file", false, "O:SYG:SYD:(A;;FR;;;WD)").await;
        let opened = store.domain.open_handle(&existing("file", WRITE)).await;
        match outcome {
            Ok(maximal_access) => {
                assert_eq!(opened.expect("it opens").maximal_access, maximal_access);
            }
            Err(expected) => assert_eq!(refusal(opened), expected),
        }
    }
}

#[tokio::test]
async fn the_most_that_can_be_had_is_what_the_list_gives() {
    let store = store(AccessLists::Enforced).await;
    make(&store, "directory", true, "O:SYG:SYD:(A;;0x2;;;WD)").await;
    make(&store, "directory/file", false, "O:SYG:SYD:(A;;FR;;;WD)").await;
    let command = existing("directory/file", AccessMask::MAXIMUM_ALLOWED);
    let opened = open(&store, &command).await;
    let expected = AccessMask::from_bits_retain(0x12_0089).union(AccessMask::WRITE_DAC);
    assert_eq!((opened.handle.access, opened.maximal_access), (expected, expected));
}

#[tokio::test]
async fn what_is_new_needs_the_right_to_add_it_to_its_directory() {
    let store = store(AccessLists::Enforced).await;
    make(&store, "files", true, "O:SYG:SYD:(A;;0x2;;;WD)").await;
    make(&store, "directories", true, "O:SYG:SYD:(A;;0x4;;;WD)").await;
    for (name, directory, expected) in [
        ("files/new", false, Ok(())),
        ("files/other", true, Err(HandleRefusal::AccessDenied)),
        ("directories/new", true, Ok(())),
        ("directories/other", false, Err(HandleRefusal::AccessDenied)),
    ] {
        let options = Options { directory, ..Options::default() };
        let command = OpenNode { options, ..Client::new(1).wants(name) };
        let opened = store.domain.open_handle(&command).await;
        match expected {
            Ok(()) => assert_eq!(opened.expect(name).handle.access, AccessMask::ALL),
            Err(expected) => {
                assert_eq!(refusal(opened), expected, "{name}");
                let absent = OpenNode { disposition: Disposition::Open, ..command };
                let looked = store.domain.open_handle(&absent).await;
                assert_eq!(refusal(looked), HandleRefusal::NotFound, "{name}");
            }
        }
    }
}

#[tokio::test]
async fn the_directory_can_let_what_is_in_it_be_deleted() {
    let store = store(AccessLists::Enforced).await;
    for (directory, list, may_delete) in
        [("keeps", "(A;;0x3;;;WD)", false), ("deletes", "(A;;0x43;;;WD)", true)]
    {
        make(&store, directory, true, &format!("O:SYG:SYD:{list}")).await;
        let file = format!("{directory}/file");
        make(&store, &file, false, "O:SYG:SYD:(A;;FR;;;WD)").await;
        let opened = store.domain.open_handle(&existing(&file, AccessMask::DELETE)).await;
        assert_eq!(opened.is_ok(), may_delete, "{directory}");
    }
}

#[tokio::test]
async fn overwriting_needs_the_right_to_write_whatever_is_asked_for() {
    let store = store(AccessLists::Enforced).await;
    make(&store, "file", false, "O:SYG:SYD:(A;;FR;;;WD)").await;
    let disposition = Disposition::OverwriteIf;
    let overwritten =
        store.domain.open_handle(&OpenNode { disposition, ..existing("file", READ) }).await;
    assert_eq!(refusal(overwritten), HandleRefusal::AccessDenied);
    open(&store, &existing("file", READ)).await;
}

#[tokio::test]
async fn a_rename_needs_the_right_to_add_where_it_goes_and_to_delete_what_is_there() {
    let store = store(AccessLists::Enforced).await;
    make(&store, "closed", true, "O:SYG:SYD:(A;;0x1;;;WD)").await;
    make(&store, "open", true, "O:SYG:SYD:(A;;0x2;;;WD)").await;
    make(&store, "open/kept", false, "O:SYG:SYD:(A;;FR;;;WD)").await;
    let handle = open(&store, &Client::new(1).wants("file")).await.handle;
    for (to, expected) in [
        ("closed/file", Err(HandleRefusal::AccessDenied)),
        ("open/kept", Err(HandleRefusal::AccessDenied)),
        ("open/file", Ok(())),
    ] {
        let to = RenameTo { path: path(to), replace: true };
        let renamed = store.domain.rename_handle(&handle, &to).await;
        match expected {
            Ok(()) => renamed.expect("renamed"),
            Err(expected) => assert_eq!(refusal(renamed), expected, "{:?}", to.path),
        }
    }
}
