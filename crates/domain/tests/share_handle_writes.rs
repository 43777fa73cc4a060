//! Writes through handles: where they go and when their time is shown, on the memory store.

#[path = "support/handles.rs"]
mod handles;
mod support;

use std::sync::Arc;
use std::time::Duration;

use handles::{Client, close, open, path, read, refusal, with_share, write};
use holdfast_domain::share::handles::{HandleRefusal, LockRequest, RenameTo, WriteAt};
use holdfast_domain::share::opens::range_locks::{LockKind, Range};
use holdfast_domain::time::Clock as _;
use tokio::task::JoinSet;

const FILE: &str = "file.dat";

/// Longer than the time of a first write is delayed.
const A_WHILE: Duration = Duration::from_millis(2100);

#[tokio::test]
async fn writes_that_were_kept_back_count_as_done_when_the_file_is_closed() {
    let store = with_share().await;
    let client = Client::new(1);
    let writer = open(&store, &client.wants(FILE)).await.handle;
    let observer = open(&store, &client.wants(FILE)).await.handle;
    let written = async || store.domain.query_handle(&observer).await.expect("there").times.written;
    write(&store, &writer, WriteAt::Offset(0), b"1").await.expect("written");
    tokio::time::sleep(A_WHILE).await;
    let after_first = written().await;
    store.clock.pass(A_WHILE);
    write(&store, &writer, WriteAt::Offset(0), b"2").await.expect("written");
    assert_eq!(written().await, after_first, "the second write is kept back");
    store.clock.pass(A_WHILE);
    let closed_at = store.clock.now();
    close(&store, &writer).await;
    assert!(written().await >= closed_at, "it counts from when the file was closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_appended_at_once_stands_one_after_the_other() {
    const APPENDERS: u64 = 8;
    const EACH: u64 = 20;
    let store = Arc::new(with_share().await);
    let reader = open(&store, &Client::new(0).wants(FILE)).await.handle;
    let mut appenders = JoinSet::new();
    for number in 0..APPENDERS {
        let store = Arc::clone(&store);
        appenders.spawn(async move {
            let handle = open(&store, &Client::new(number).wants(FILE)).await.handle;
            for _ in 0..EACH {
                let piece = [number as u8; 10];
                write(&store, &handle, WriteAt::End, &piece).await.expect("appended");
            }
        });
    }
    appenders.join_all().await;
    let bytes = read(&store, &reader, 0, u64::from(u32::MAX)).await.expect("read");
    assert_eq!(bytes.len() as u64, APPENDERS * EACH * 10, "nothing was written over");
    let (pieces, _) = bytes.as_chunks::<10>();
    assert!(pieces.iter().all(|piece| piece.iter().all(|byte| *byte == piece[0])));
}

#[tokio::test]
async fn appending_is_refused_where_the_end_is_locked() {
    let store = with_share().await;
    let owner = open(&store, &Client::new(1).wants(FILE)).await.handle;
    let other = open(&store, &Client::new(2).wants(FILE)).await.handle;
    write(&store, &owner, WriteAt::Offset(0), &[1; 10]).await.expect("written");
    let range = Range::new(12, 10).expect("a range");
    let lock = LockRequest { range, kind: LockKind::Exclusive };
    store.domain.lock_handle(&owner, &[lock], false).await.expect("locked");
    write(&store, &other, WriteAt::End, &[2; 2]).await.expect("before what is locked");
    let refused = write(&store, &other, WriteAt::End, &[2; 1]).await;
    assert_eq!(refusal(refused), HandleRefusal::LockConflict);
    write(&store, &owner, WriteAt::End, &[3; 1]).await.expect("its own lock");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_renamed_meanwhile_is_written_all_the_same() {
    let store = Arc::new(with_share().await);
    let writer = open(&store, &Client::new(1).wants(FILE)).await.handle;
    let renamer = open(&store, &Client::new(2).wants(FILE)).await.handle;
    let renaming = Arc::clone(&store);
    let renames = tokio::spawn(async move {
        for number in 0..50 {
            let to = RenameTo { path: path(&format!("name{number}")), replace: false };
            renaming.domain.rename_handle(&renamer, &to).await.expect("renamed");
        }
    });
    for _ in 0..50 {
        write(&store, &writer, WriteAt::End, b"x").await.expect("written");
    }
    renames.await.expect("renamed");
    assert_eq!(store.domain.query_handle(&writer).await.expect("there").length, 50);
}
