//! SMB clients that watch directories are notified of changes by REST, as of those by SMB.

#[path = "support/handles.rs"]
mod handles;
mod support;

use std::sync::Arc;
use std::time::Duration;

use handles::Client;
use holdfast_domain::copy::{CopyEnd, SourceElsewhere, SourceKind};
use holdfast_domain::metadata::Metadata;
use holdfast_domain::share::handles::{OpenNode, WatchFor};
use holdfast_domain::share::opens::watch::filter;
use holdfast_domain::share::opens::{Change, ChangeAction, Handle, Watched};
use holdfast_domain::share::{
    AbortFileCopy, Attributes, CopiedProperties, CopyFile, CreateHardLink, CreateSymbolicLink,
    DeleteNode, FileCopySource, FileHeaders, LinkTarget, NodeProperties, Protocol, RangeChange,
    RenameNode, RestCall, SetNodeMetadata, SetNodeProperties, TimeChange, Wanted,
};
use support::share::{
    AtOnce, Files, at, get, new_directory, new_file, put_range, rename, set, share,
};

const PATIENCE: Duration = Duration::from_secs(1);
const ALL: u32 = 0x1FF;

/// A handle of `directory` that has begun to watch.
struct Watcher<'a> {
    files: &'a Files,
    handle: Arc<Handle>,
    watch: WatchFor,
}

impl<'a> Watcher<'a> {
    async fn new(files: &'a Files, filter: u32, recursive: bool) -> Self {
        let wants = OpenNode { share: share(), ..Client::new(1).wants("directory") };
        let handle = handles::open(&files.store, &wants).await.handle;
        let watch = WatchFor { filter, recursive, capacity: 10_000 };
        let watcher = Self { files, handle, watch };
        assert_eq!(watcher.heard().await, "", "nothing happened yet");
        watcher
    }

    /// The notifications since the last call, such as `+new *new`.
    async fn heard(&self) -> String {
        let watching = self.files.store.domain.watch_handle(&self.handle, &self.watch);
        let Ok(watched) = tokio::time::timeout(Duration::ZERO, watching).await else {
            return String::new();
        };
        match watched.expect("it is watched") {
            Watched::Changes(changes) => changes.iter().map(shown).collect::<Vec<_>>().join(" "),
            other @ (Watched::Overflow | Watched::Closed | Watched::DeletePending) => {
                format!("{other:?}")
            }
        }
    }
}

fn shown(change: &Change) -> String {
    let action = match change.action {
        ChangeAction::Added => '+',
        ChangeAction::Removed => '-',
        ChangeAction::Modified => '*',
        ChangeAction::RenamedFrom => '<',
        ChangeAction::RenamedTo => '>',
    };
    format!("{action}{}", change.name)
}

async fn done(files: &Files, command: impl RestCall) {
    assert!(files.store.domain.rest_call(command, PATIENCE).await.is_ok());
}

fn copy(to: &str, source: FileCopySource) -> CopyFile {
    CopyFile {
        address: at(to),
        source,
        source_url: String::new(),
        copy_id: "copy".to_owned(),
        metadata: None,
        properties: CopiedProperties::default(),
        ignore_read_only: false,
        set_archive: false,
        lease_id: None,
    }
}

fn awaited() -> FileCopySource {
    FileCopySource::Awaited(SourceElsewhere {
        kind: SourceKind::Block,
        length: 10,
        headers: FileHeaders::default(),
        metadata: Metadata::default(),
    })
}

fn delete(path: &str, wanted: Wanted) -> DeleteNode {
    DeleteNode { address: at(path), wanted, lease_id: None }
}

fn given(path: &str, properties: NodeProperties) -> SetNodeProperties {
    SetNodeProperties { properties, ..set(path) }
}

async fn with_directory() -> Files {
    let files = Files::new().await;
    files.create_directory("directory").await.expect("created");
    files.create_directory("directory/below").await.expect("created");
    files.create_directory("elsewhere").await.expect("created");
    files
}

#[tokio::test]
async fn everything_that_rest_does_to_nodes_is_heard() {
    let files = with_directory().await;
    let domain = &files.store.domain;
    let watcher = Watcher::new(&files, ALL, false).await;
    done(&files, new_directory("directory/new")).await;
    assert_eq!(watcher.heard().await, "+new");
    done(&files, delete("directory/new", Wanted::Directory)).await;
    assert_eq!(watcher.heard().await, "-new");
    done(&files, new_file("directory/file", 0)).await;
    assert_eq!(watcher.heard().await, "+file");
    done(&files, new_file("directory/file", 100)).await;
    assert_eq!(watcher.heard().await, "*file");
    let bytes = files.receive(&[7; 10]).await;
    done(&files, put_range("directory/file", 0, RangeChange::Write(bytes))).await;
    assert_eq!(watcher.heard().await, "*file");
    done(&files, put_range("directory/file", 0, RangeChange::Clear(10))).await;
    assert_eq!(watcher.heard().await, "*file");
    done(&files, SetNodeProperties { length: Some(5), ..set("directory/FILE") }).await;
    assert_eq!(watcher.heard().await, "*file", "by the name that it has");
    let metadata = Metadata::default();
    let (address, lease_id) = (at("directory/file"), None);
    done(&files, SetNodeMetadata { address, wanted: Wanted::File, metadata, lease_id }).await;
    assert_eq!(watcher.heard().await, "*file");
    done(&files, copy("directory/copy", FileCopySource::File(get("directory/file")))).await;
    assert_eq!(watcher.heard().await, "+copy *copy");
    let renamed = domain.rest_rename(rename("directory/copy", "directory/n"), PATIENCE);
    renamed.await.expect("renamed");
    assert_eq!(watcher.heard().await, "<copy >n");
    let command = RenameNode { replace: true, ..rename("directory/n", "directory/file") };
    domain.rest_rename(command, PATIENCE).await.expect("renamed");
    assert_eq!(watcher.heard().await, "-file <n >file");
    let renamed = domain.rest_rename(rename("directory/file", "elsewhere/f"), PATIENCE);
    renamed.await.expect("renamed");
    assert_eq!(watcher.heard().await, "-file");
    let renamed = domain.rest_rename(rename("elsewhere/f", "directory/f"), PATIENCE);
    renamed.await.expect("renamed");
    assert_eq!(watcher.heard().await, "+f");
    done(&files, delete("directory/f", Wanted::File)).await;
    assert_eq!(watcher.heard().await, "-f");
}

#[tokio::test]
async fn the_end_of_a_copy_from_elsewhere_is_heard() {
    let files = with_directory().await;
    let watcher = Watcher::new(&files, ALL, false).await;
    done(&files, copy("directory/a", awaited())).await;
    assert_eq!(watcher.heard().await, "+a *a");
    let end = CopyEnd::Fetched(files.receive(&[1; 10]).await);
    files.store.domain.end_file_copy(&at("directory/a"), "copy", end).await.expect("ended");
    assert_eq!(watcher.heard().await, "*a");
    done(&files, copy("directory/b", awaited())).await;
    assert_eq!(watcher.heard().await, "+b *b");
    let (address, copy_id) = (at("directory/b"), "copy".to_owned());
    done(&files, AbortFileCopy { address, copy_id, lease_id: None }).await;
    assert_eq!(watcher.heard().await, "*b");
}

#[tokio::test]
async fn links_are_heard() {
    let files = Files::of(Protocol::Nfs).await;
    files.create_directory("directory").await.expect("created");
    files.create_file("directory/file", 1).await.expect("created");
    let watcher = Watcher::new(&files, ALL, false).await;
    let symbolic = CreateSymbolicLink {
        address: at("directory/symbolic"),
        target: LinkTarget("file".to_owned()),
        metadata: Metadata::default(),
        properties: NodeProperties::default(),
        lease_id: None,
    };
    files.store.domain.at_once(symbolic).await.expect("created");
    assert_eq!(watcher.heard().await, "+symbolic");
    let (address, target) = (at("directory/hard"), at("directory/file"));
    let hard = CreateHardLink { address, target, lease_id: None };
    files.store.domain.at_once(hard).await.expect("created");
    assert_eq!(watcher.heard().await, "+hard");
}

#[tokio::test]
async fn only_those_hear_who_asked_for_such_a_change_in_such_a_place() {
    let files = with_directory().await;
    files.create_file("directory/file", 1).await.expect("created");
    files.create_file("directory/below/file", 1).await.expect("created");
    let properties = NodeProperties::default();
    let attributes = Some(Attributes::HIDDEN);
    let created = Some(TimeChange::Now);
    let with_attributes = NodeProperties { attributes, ..properties.clone() };
    let with_time = NodeProperties { created, ..properties.clone() };
    let root = files.get("directory", holdfast_domain::share::ShareState::Current).await;
    let permission = Some(root.expect("there").node.permission);
    let with_permission = NodeProperties { permission, ..properties };
    for (bit, heard, unheard) in [
        (filter::ATTRIBUTES, with_attributes.clone(), with_time.clone()),
        (filter::CREATION, with_time, with_permission.clone()),
        (filter::SECURITY, with_permission, with_attributes.clone()),
    ] {
        for (path, recursive, name) in [
            ("directory/file", false, "*file"),
            ("directory/file", true, "*file"),
            ("directory/below/file", true, "*below/file"),
            ("directory/below/file", false, ""),
        ] {
            let watcher = Watcher::new(&files, bit, recursive).await;
            done(&files, given(path, unheard.clone())).await;
            assert_eq!(watcher.heard().await, "", "{bit:x} {path}");
            done(&files, given(path, heard.clone())).await;
            assert_eq!(watcher.heard().await, name, "{bit:x} {path} {recursive}");
            handles::close(&files.store, &watcher.handle).await;
        }
    }
    let watcher = Watcher::new(&files, filter::DIRECTORY_NAME, true).await;
    done(&files, new_file("directory/below/other", 5)).await;
    done(&files, new_directory("directory/below/deep")).await;
    assert_eq!(watcher.heard().await, "+below/deep");
}
