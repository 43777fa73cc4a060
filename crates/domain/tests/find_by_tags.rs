//! Find Blobs by Tags on the memory store: pages, changes between them, and expiry.

mod support;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::Failure;
use holdfast_domain::blob::{
    DeleteContainer, Expiry, FindBlobs, FindRefusal, NewBlob, PutBlob, SetBlobTags, Which,
};
use holdfast_domain::condition::{Conditions, DateConditions};
use holdfast_domain::features::Features;
use holdfast_domain::names::{AccountName, ContainerName};
use holdfast_domain::tags::{QueryScope, TagQuery, TagSet};
use holdfast_store::memory::MemoryEngine;
use support::{Store, blob, container, put};

const HOUR: Duration = Duration::from_secs(60 * 60);

fn tags(text: &str) -> TagSet {
    TagSet::parse_header(text).expect(text)
}

async fn put_tagged(store: &Store, container_name: &str, name: &str, text: &str) {
    let mut command = PutBlob { tags: tags(text), ..put(name, NewBlob::Append) };
    command.path.container = container(container_name);
    store.domain.put_blob(command).await.expect("put");
}

fn find(query: &str, marker: Option<Bytes>, limit: usize) -> FindBlobs {
    FindBlobs {
        account: AccountName::new("account1").expect("a name"),
        container: None,
        query: TagQuery::parse(query, QueryScope::Account).expect(query),
        versions: false,
        marker,
        limit,
    }
}

/// The names on each page.
async fn pages(store: &Store, query: &str, limit: usize) -> Vec<Vec<String>> {
    let (mut pages, mut marker) = (Vec::new(), None);
    loop {
        let found = store.domain.find_blobs(find(query, marker, limit)).await.expect("a page");
        assert!(found.blobs.len() <= limit);
        pages.push(found.blobs.into_iter().map(|found| found.name).collect());
        marker = found.next_marker;
        if marker.is_none() {
            return pages;
        }
        assert!(pages.len() < 100, "the pages end");
    }
}

fn numbered(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("{number:03}")).collect()
}

async fn with_blobs(count: usize) -> Store {
    let store = Store::with_container("photos").await;
    for number in 0..count {
        let parity = if number % 2 == 0 { "even" } else { "odd" };
        let text = format!("all=yes&parity={parity}&number={number:03}");
        put_tagged(&store, "photos", &format!("{number:03}"), &text).await;
    }
    store
}

#[tokio::test]
async fn pages_of_every_size_have_every_blob_once_and_in_order() {
    let store = with_blobs(20).await;
    for limit in [1, 3, 7, 19, 20, 21] {
        let pages = pages(&store, "all = 'yes'", limit).await;
        assert_eq!(pages.concat(), numbered(0..20), "{limit} to a page");
        // A full page does not know whether it is the last.
        assert!(pages.len() <= 20_usize.div_ceil(limit) + 1, "{limit} to a page");
        let full = &pages[..pages.len() - 1];
        assert!(full.iter().all(|page| page.len() == limit), "{limit} to a page");
    }
}

#[tokio::test]
async fn several_conditions_page_like_one() {
    let store = with_blobs(20).await;
    let odd: Vec<String> = numbered(0..20).into_iter().skip(1).step_by(2).collect();
    for query in [
        "all = 'yes' AND parity = 'odd'",
        "parity = 'odd' AND all = 'yes'",
        "parity = 'odd' AND number >= '000'",
        "@container = 'photos' AND parity = 'odd' AND number < '999'",
    ] {
        for limit in [1, 4, 100] {
            assert_eq!(pages(&store, query, limit).await.concat(), odd, "{query}, {limit}");
        }
    }
    let some = pages(&store, "number > '004' AND number <= '009'", 2).await;
    assert_eq!(some.concat(), numbered(5..10));
    assert_eq!(pages(&store, "all = 'no'", 5).await, [Vec::<String>::new()]);
}

#[tokio::test]
async fn blobs_that_go_or_come_between_pages_do_not_disturb_the_others() {
    let store = with_blobs(10).await;
    let page = |marker| store.domain.find_blobs(find("all = 'yes'", marker, 4));
    let first = page(None).await.expect("a page");
    assert_eq!(first.blobs.last().map(|found| found.name.as_str()), Some("003"));
    // The blob of the marker is deleted, one before it is added, one after it loses its tag.
    store.delete("004").await.expect("deleted");
    put_tagged(&store, "photos", "0005", "all=yes").await;
    let command = SetBlobTags {
        path: blob("006"),
        which: Which::Current,
        tags: tags("all=no"),
        conditions: Conditions::default(),
        lease_id: None,
    };
    store.domain.set_blob_tags(command).await.expect("tagged");
    let second = page(first.next_marker).await.expect("a page");
    let names: Vec<String> = second.blobs.into_iter().map(|found| found.name).collect();
    assert_eq!(names, ["005", "007", "008", "009"]);
}

#[tokio::test]
async fn an_expired_blob_is_not_found_whether_it_is_removed_yet_or_not() {
    let store = with_blobs(4).await;
    let expiry = Some(Expiry::AfterNow(HOUR));
    let command = PutBlob { tags: tags("all=yes"), expiry, ..put("001", NewBlob::Append) };
    store.domain.put_blob(command).await.expect("put");
    assert_eq!(pages(&store, "all = 'yes'", 10).await.concat(), numbered(0..4));
    store.clock.pass(HOUR);
    let others = ["000", "002", "003"];
    assert_eq!(pages(&store, "all = 'yes'", 10).await.concat(), others);
    assert_eq!(pages(&store, "all = 'yes'", 1).await.concat(), others, "in pages of one");
    store.do_what_is_due().await;
    assert_eq!(pages(&store, "all = 'yes'", 10).await.concat(), others);
}

#[tokio::test]
async fn blobs_of_a_deleted_container_are_not_found_and_those_of_its_successor_are() {
    let store = with_blobs(2).await;
    store.create("other").await.expect("created");
    put_tagged(&store, "other", "there", "all=yes").await;
    let command = DeleteContainer {
        path: container("photos"),
        conditions: DateConditions::default(),
        lease_id: None,
    };
    store.domain.delete_container(command).await.expect("deleted");
    assert_eq!(pages(&store, "all = 'yes'", 1).await.concat(), ["there"]);
    store.create("photos").await.expect("created again");
    put_tagged(&store, "photos", "new", "all=yes").await;
    store.do_what_is_due().await;
    let mut found = pages(&store, "all = 'yes'", 1).await.concat();
    found.sort_unstable();
    assert_eq!(found, ["new", "there"]);
    let only = FindBlobs {
        container: Some(ContainerName::new("photos").expect("a name")),
        ..find("all = 'yes'", None, 10)
    };
    let found = store.domain.find_blobs(only).await.expect("a page").blobs;
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].container.as_str(), found[0].name.as_str()), ("photos", "new"));
}

#[tokio::test]
async fn a_marker_of_another_query_is_refused() {
    let store = with_blobs(3).await;
    let first = store.domain.find_blobs(find("all = 'yes'", None, 1)).await.expect("a page");
    for (query, marker) in [
        ("parity = 'odd'", first.next_marker),
        ("all = 'yes'", Some(Bytes::from_static(b"garbage"))),
    ] {
        let refused = store.domain.find_blobs(find(query, marker, 1)).await;
        let expected = FindRefusal::InvalidMarker;
        assert!(
            matches!(refused, Err(Failure::Refused(refusal)) if refusal == expected),
            "{query}"
        );
    }
}

#[tokio::test]
async fn versions_are_paged_behind_the_current_blobs() {
    let features = Features { versioning: true, ..Features::default() };
    let store = Store::on(Arc::new(MemoryEngine::default()), features).await;
    store.create("photos").await.expect("created");
    for _ in 0..3 {
        put_tagged(&store, "photos", "blob", "all=yes").await;
        store.clock.pass(Duration::from_secs(1));
    }
    put_tagged(&store, "photos", "other", "all=yes").await;
    for limit in [1, 2, 10] {
        let (mut found, mut marker) = (Vec::new(), None);
        loop {
            let command = FindBlobs { versions: true, ..find("all = 'yes'", marker, limit) };
            let page = store.domain.find_blobs(command).await.expect("a page");
            found.extend(page.blobs.into_iter().map(|found| (found.name, found.current)));
            marker = page.next_marker;
            if marker.is_none() {
                break;
            }
        }
        let expected = [("blob", true), ("other", true), ("blob", false), ("blob", false)];
        assert_eq!(found, expected.map(|(name, current)| (name.to_owned(), current)), "{limit}");
    }
}
