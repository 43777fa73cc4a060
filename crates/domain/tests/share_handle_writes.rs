//! Writes through handles: when they are told, on the memory store.

#[path = "support/handles.rs"]
mod handles;
mod support;

use std::time::Duration;

use handles::{Client, close, open, with_share, write};
use holdfast_domain::share::handles::WriteAt;
use holdfast_domain::time::Clock as _;

const FILE: &str = "file.dat";

/// Longer than the first write of a file is kept back.
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
