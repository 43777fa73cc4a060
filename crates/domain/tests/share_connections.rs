//! Clients that are connected to a share when it is deleted: they cannot use another share that gets
//! its name.

#[path = "support/handles.rs"]
mod handles;
mod support;

use std::sync::Arc;

use handles::{Client, refusal};
use holdfast_domain::share::handles::{DurableWanted, HandleRefusal, OpenNode, WatchFor, WriteAt};
use holdfast_domain::share::opens::{ConnectedShare, Durability, OplockLevel, Watched};
use holdfast_domain::share::{Protocol, ShareState};
use support::share::{Files, share};

async fn connected(files: &Files) -> Arc<ConnectedShare> {
    let found = files.store.domain.connect_share(&share()).await.expect("memory reads");
    found.expect("the share").1
}

fn wants(client: &Client, to: &ConnectedShare, name: &str) -> OpenNode {
    OpenNode { share: share(), share_number: Some(to.number), ..client.wants(name) }
}

#[tokio::test]
async fn a_connection_to_a_deleted_share_does_not_lead_to_another_of_its_name() {
    let files = Files::new().await;
    let client = Client::new(1);
    let first = connected(&files).await;
    handles::open(&files.store, &wants(&client, &first, "file")).await;
    files.delete_share().await;
    assert!(first.is_deleted());
    files.create_share(Protocol::Smb).await;
    files.create_file("file", 5).await.expect("created");
    let opened = files.store.domain.open_handle(&wants(&client, &first, "file")).await;
    assert_eq!(refusal(opened), HandleRefusal::ShareNotFound);
    let opened = files.store.domain.open_handle(&wants(&client, &first, "new")).await;
    assert_eq!(refusal(opened), HandleRefusal::ShareNotFound);
    assert_eq!(files.list("", ShareState::Current, 10).await, Ok(vec!["file".to_owned()]));
    let second = connected(&files).await;
    assert!(!second.is_deleted() && second.number != first.number);
    handles::open(&files.store, &wants(&client, &second, "file")).await;
}

#[tokio::test]
async fn what_was_open_in_a_share_is_closed_when_it_is_deleted() {
    let files = Files::new().await;
    let domain = &files.store.domain;
    let client = Client::new(1);
    let share = connected(&files).await;
    let (kind, timeout_milliseconds) = (Durability::First, 60_000);
    let durable = OpenNode {
        durable: Some(DurableWanted { kind, timeout_milliseconds, persistent: false }),
        caching: holdfast_domain::share::handles::CachingWanted::Oplock(OplockLevel::Batch),
        ..wants(&client, &share, "file")
    };
    let file = handles::open(&files.store, &durable).await.handle;
    let root = handles::open(&files.store, &wants(&client, &share, "")).await.handle;
    let watch = WatchFor { filter: 1, recursive: true, capacity: 1000 };
    let (watched, ()) = tokio::join!(domain.watch_handle(&root, &watch), files.delete_share());
    assert_eq!(watched.expect("told"), Watched::Closed);
    files.create_share(Protocol::Smb).await;
    files.create_file("file", 5).await.expect("created");
    assert_eq!(refusal(domain.query_handle(&file).await), HandleRefusal::Closed);
    let written = handles::write(&files.store, &file, WriteAt::Offset(0), b"x").await;
    assert_eq!(refusal(written), HandleRefusal::Closed);
    assert!(domain.opens().handle(file.id).is_none(), "nobody comes back to it");
}
