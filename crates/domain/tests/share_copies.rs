//! Copies onto files, from files, blobs and elsewhere; and links in NFS shares.

#[path = "support/handles.rs"]
mod handles;
mod support;

use handles::Client;
use holdfast_domain::Failure;
use holdfast_domain::blob::{BlobPath, BlobRefusal, SourceHere, Which};
use holdfast_domain::condition::Conditions;
use holdfast_domain::content::ContentHeaders;
use holdfast_domain::copy::{CopyEnd, CopyStatus, SourceElsewhere, SourceKind};
use holdfast_domain::metadata::Metadata;
use holdfast_domain::share::handles::OpenNode;
use holdfast_domain::share::{
    AbortFileCopy, Attributes, CopiedProperties, CopyFile, CreateFile, CreateHardLink,
    CreateSymbolicLink, FileCopyRefusal, FileCopySource, FileRefusal, FromSource, GetNode,
    LinkTarget, Located, NodeProperties, Protocol, ShareState, TimeChange, Wanted,
};
use support::share::{Answer, AtOnce, Files, at, get, new_file, refusal, share};
use support::{Body, content};

const NOW: ShareState = ShareState::Current;

fn copy(to: &str, source: FileCopySource) -> CopyFile {
    CopyFile {
        address: at(to),
        source,
        source_url: "https://elsewhere/f".to_owned(),
        copy_id: "copy".to_owned(),
        metadata: None,
        properties: CopiedProperties::default(),
        ignore_read_only: false,
        set_archive: false,
        lease_id: None,
    }
}

fn of_file(from: &str, state: ShareState) -> FileCopySource {
    FileCopySource::File(GetNode { state, wanted: Wanted::File, ..get(from) })
}

fn of_blob(path: BlobPath) -> FileCopySource {
    let conditions = Conditions::default();
    FileCopySource::Blob(SourceHere { path, which: Which::Current, conditions, etag: None })
}

fn elsewhere(length: u64) -> SourceElsewhere {
    SourceElsewhere {
        kind: SourceKind::Block,
        length,
        headers: ContentHeaders::default(),
        metadata: Metadata::default(),
    }
}

async fn run(files: &Files, command: CopyFile) -> Result<Located, FileCopyRefusal> {
    match files.store.domain.at_once(command).await {
        Ok(located) => Ok(located),
        Err(Failure::Refused(refusal)) => Err(refusal),
        Err(failure) => panic!("{failure:?}"),
    }
}

#[tokio::test]
async fn a_copy_moves_no_bytes_and_goes_its_own_way() {
    let files = Files::new().await;
    files.create_file("f", 100_000).await.expect("created");
    files.write("f", 0, &content(100_000)).await.expect("written");
    let state = files.snapshot().await;
    let bytes = files.store.bytes_in_extents();
    run(&files, copy("g", of_file("f", NOW))).await.expect("copied");
    run(&files, copy("h", of_file("f", state))).await.expect("copied");
    run(&files, copy("f", of_file("f", NOW))).await.expect("onto itself");
    assert_eq!(files.store.bytes_in_extents(), bytes);
    files.write("g", 0, &[0; 10]).await.expect("written");
    let mut expected = content(100_000);
    assert_eq!(files.read("f", NOW).await.as_ref(), Ok(&expected));
    assert_eq!(files.read("h", NOW).await.as_ref(), Ok(&expected));
    expected[..10].fill(0);
    assert_eq!(files.read("g", NOW).await.as_ref(), Ok(&expected));
    let copied = files.get("g", NOW).await.expect("found").node;
    let state = copied.file().and_then(|file| file.copy.clone()).expect("it was copied");
    assert_eq!((state.status, state.bytes_copied), (CopyStatus::Success, 100_000));
}

#[tokio::test]
async fn blobs_of_any_size_become_files_that_can_be_written() {
    let files = Files::new().await;
    files.store.create("photos").await.expect("a container");
    for length in [0, 100, 5000, 200_000] {
        let expected = content(length);
        files.store.put("b", &expected).await.expect("a blob");
        run(&files, copy("f", of_blob(support::blob("b")))).await.expect("copied");
        assert_eq!(files.read("f", NOW).await.as_ref(), Ok(&expected), "{length}");
        files.resize("f", length as u64 + 10).await.expect("longer");
        files.write("f", length as u64 / 2, &[7; 10]).await.expect("written");
        let mut changed = expected.clone();
        changed.resize(length + 10, 0);
        changed[length / 2..length / 2 + 10].fill(7);
        assert_eq!(files.read("f", NOW).await, Ok(changed), "{length}");
        assert_eq!(files.store.get("b", None).await, Ok(expected), "{length}");
    }
    let refused = run(&files, copy("f", of_blob(support::blob("none")))).await.err();
    assert_eq!(refused, Some(FileCopyRefusal::SourceBlob(BlobRefusal::NotFound)));
}

#[tokio::test]
async fn properties_of_a_copy_are_given_or_those_of_the_source() {
    let files = Files::new().await;
    let attributes = Attributes::HIDDEN.union(Attributes::SYSTEM);
    let properties = NodeProperties { attributes: Some(attributes), ..NodeProperties::default() };
    let command = CreateFile { properties, ..new_file("f", 10) };
    let source = refusal(files.store.domain.at_once(command).await).expect("created").node;
    files.store.clock.pass(std::time::Duration::from_secs(10));
    let plain = run(&files, copy("p", of_file("f", NOW))).await.expect("copied").node;
    assert_eq!(plain.attributes, Attributes::ARCHIVE);
    assert!(plain.times.created > source.times.created);
    let properties = CopiedProperties {
        attributes: FromSource::Source,
        created: FromSource::Source,
        written: FromSource::Given(TimeChange::At(source.times.written)),
        permission: FromSource::Source,
        ..CopiedProperties::default()
    };
    let command = CopyFile { properties, set_archive: true, ..copy("s", of_file("f", NOW)) };
    let copied = run(&files, command).await.expect("copied").node;
    assert_eq!(copied.attributes, attributes.union(Attributes::ARCHIVE));
    assert_eq!(copied.times.created, source.times.created);
    assert_eq!(copied.times.written, source.times.written);
    assert_eq!(copied.permission, source.permission);
}

#[tokio::test]
async fn a_pending_copy_keeps_others_away_until_it_ends() {
    let files = Files::new().await;
    let awaited = || copy("f", FileCopySource::Awaited(elsewhere(5000)));
    run(&files, awaited()).await.expect("begun");
    let pending = Some(FileRefusal::CopyPending);
    assert_eq!(files.write("f", 0, &[1]).await.err(), pending);
    assert_eq!(files.create_file("f", 1).await.err(), pending);
    assert_eq!(files.rename("f", "g", false).await.err(), pending);
    let twice = run(&files, awaited()).await.err();
    assert_eq!(twice, Some(FileCopyRefusal::Destination(FileRefusal::CopyPending)));
    let domain = &files.store.domain;
    assert!(matches!(domain.note_file_copy_progress(&at("f"), "copy", 10).await, Ok(true)));
    assert!(matches!(domain.note_file_copy_progress(&at("f"), "other", 10).await, Ok(false)));
    let Ok(received) = domain.receive(&mut Body::of(&content(5000))).await else { panic!() };
    let ended = domain.end_file_copy(&at("f"), "copy", CopyEnd::Fetched(received)).await;
    refusal(ended).expect("ended");
    assert_eq!(files.read("f", NOW).await, Ok(content(5000)));
    files.write("f", 100, &[1]).await.expect("written");
    let abort = |copy_id: &str| AbortFileCopy {
        address: at("f"),
        copy_id: copy_id.to_owned(),
        lease_id: None,
    };
    let aborted = refusal(domain.at_once(abort("copy")).await).err();
    assert_eq!(aborted, Some(FileRefusal::NoCopyPending));
    run(&files, awaited()).await.expect("again");
    let aborted = refusal(domain.at_once(abort("other")).await).err();
    assert_eq!(aborted, Some(FileRefusal::CopyIdMismatch));
    refusal(domain.at_once(abort("copy")).await).expect("aborted");
    assert_eq!(files.read("f", NOW).await, Ok(Vec::new()));
}

#[tokio::test]
async fn who_caches_a_file_that_a_copy_ends_in_is_told() {
    let files = Files::new().await;
    run(&files, copy("f", FileCopySource::Awaited(elsewhere(10)))).await.expect("begun");
    let mut client = Client::new(1);
    let wants = OpenNode { share: share(), ..client.wants_lease("f", 1, "RH") };
    let held = handles::open(&files.store, &wants).await;
    assert_eq!(handles::granted(&held), handles::caching("RH"));
    let domain = &files.store.domain;
    let Ok(received) = domain.receive(&mut Body::of(&content(10))).await else { panic!() };
    let (at_f, end) = (at("f"), CopyEnd::Fetched(received));
    let ending = domain.end_file_copy(&at_f, "copy", end);
    let (ended, told) = tokio::join!(ending, client.answer(&files.store, &held.handle));
    ended.expect("ended");
    assert!(told.starts_with("RH->") && !told.contains("->R"), "{told}");
    assert_eq!(handles::read(&files.store, &held.handle, 0, 10).await.ok(), Some(content(10)));
}

#[tokio::test]
async fn a_copy_that_nobody_goes_on_with_fails_at_the_next_start() {
    let files = Files::new().await;
    run(&files, copy("f", FileCopySource::Awaited(elsewhere(10)))).await.expect("begun");
    let again = Files::on(files.engine).await;
    again.store.domain.fail_interrupted_copies().await.expect("failed");
    let node = again.get("f", NOW).await.expect("found").node;
    let status = node.file().and_then(|file| file.copy.as_ref()).map(|copy| copy.status);
    assert_eq!((status, node.length()), (Some(CopyStatus::Failed), 0));
}

async fn hard_link(files: &Files, from: &str, to: &str) -> Answer<Located> {
    let command = CreateHardLink { address: at(to), target: at(from), lease_id: None };
    refusal(files.store.domain.at_once(command).await)
}

fn links(located: &Located) -> Option<u32> {
    located.node.posix.as_ref().map(|posix| posix.links)
}

#[tokio::test]
async fn a_file_has_as_many_names_as_it_is_given() {
    let files = Files::of(Protocol::Nfs).await;
    files.create_directory("d").await.expect("created");
    let file = files.create_file("f", 1000).await.expect("created");
    files.write("f", 0, &[1; 1000]).await.expect("written");
    let before = files.snapshot().await;
    let linked = hard_link(&files, "f", "d/g").await.expect("linked");
    assert_eq!((linked.node.id, links(&linked)), (file.node.id, Some(2)));
    hard_link(&files, "D/G", "h").await.expect("linked");
    files.write("d/g", 0, &[2; 500]).await.expect("written");
    let mut expected = vec![1; 1000];
    expected[..500].fill(2);
    for name in ["f", "d/g", "h"] {
        assert_eq!(files.read(name, NOW).await.as_ref(), Ok(&expected), "{name}");
    }
    assert_eq!(files.list("", NOW, 9).await.expect("listed"), ["d", "f", "h"]);
    let after = files.snapshot().await;
    files.rename("h", "d/i", false).await.expect("renamed");
    files.delete("f").await.expect("deleted");
    files.write("d/i", 500, &[3; 500]).await.expect("written");
    assert_eq!(links(&files.get("d/g", NOW).await.expect("found")), Some(2));
    assert_eq!(files.list("d", NOW, 9).await.expect("listed"), ["g", "i"]);
    for (name, state, content) in
        [("f", before, vec![1; 1000]), ("f", after, expected.clone()), ("h", after, expected)]
    {
        assert_eq!(files.read(name, state).await, Ok(content), "{name}");
    }
    assert_eq!(files.read("d/g", before).await.err(), Some(FileRefusal::NotFound));
    files.delete("d/g").await.expect("deleted");
    files.delete("d/i").await.expect("deleted");
    for state in [before, after] {
        files.delete_snapshot(state).await;
    }
    files.store.collect_garbage().await;
    assert_eq!(files.store.bytes_in_extents(), 0);
}

#[tokio::test]
async fn links_are_for_shares_of_nfs() {
    let link = |path: &str| CreateSymbolicLink {
        address: at(path),
        target: LinkTarget("../elsewhere".to_owned()),
        metadata: Metadata::default(),
        properties: NodeProperties::default(),
        lease_id: None,
    };
    let files = Files::of(Protocol::Nfs).await;
    let made = refusal(files.store.domain.at_once(link("l")).await).expect("made");
    assert!(!made.node.is_directory() && made.node.file().is_none());
    let command = GetNode { wanted: Wanted::SymbolicLink, ..get("L") };
    let found = refusal(files.store.domain.at_once(command).await).expect("found");
    assert_eq!(found.node, made.node);
    let again = refusal(files.store.domain.at_once(link("l")).await).err();
    assert_eq!(again, Some(FileRefusal::AlreadyExists));
    files.delete("l").await.expect("deleted");
    let files = Files::new().await;
    let refused = refusal(files.store.domain.at_once(link("l")).await).err();
    assert_eq!(refused, Some(FileRefusal::OtherProtocol));
    files.create_file("f", 1).await.expect("created");
    let refused = hard_link(&files, "f", "g").await.err();
    assert_eq!(refused, Some(FileRefusal::OtherProtocol));
}
