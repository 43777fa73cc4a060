//! Block and append blobs on the memory store: which blocks are kept, and which are removed.

mod support;

use std::sync::Arc;
use std::time::Duration;

use BlockSource::{Committed, Latest, Uncommitted};
use bytes::Bytes;
use holdfast_domain::Failure;
use holdfast_domain::blob::{
    AccessTier, AppendBlock, Appended, Blob, BlobRefusal, BlockId, BlockList, BlockListEntry,
    BlockSource, BlockTypes, Encryption, GetBlockList, ListedBlock, NewBlob, PutBlob, PutBlock,
    SealAppendBlob, Which,
};
use holdfast_domain::condition::{AppendConditions, AppendRefusal, Conditions, ETagList};
use holdfast_domain::content::Received;
use support::{Body, Store, blob, content, get, put};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

type Answer<T> = Result<T, Failure<BlobRefusal>>;

impl Store {
    async fn receive_part(&self, content: &[u8]) -> Received {
        match self.domain.receive_part(&mut Body::of(content), None).await {
            Ok(received) => received,
            Err(_) => panic!("a body in memory arrives"),
        }
    }

    async fn stage(&self, name: &str, id: &str, bytes: &[u8]) -> Answer<()> {
        let command = PutBlock {
            path: blob(name),
            id: block_id(id),
            content: self.receive_part(bytes).await,
            encryption: Encryption::Account,
            lease_id: None,
            create_only: false,
        };
        self.domain.put_block(command).await
    }

    async fn commit(&self, name: &str, list: &[(BlockSource, &str)]) -> Answer<Blob> {
        self.domain.put_blob(put(name, block_list(list))).await
    }

    async fn blocks(&self, name: &str) -> Answer<(Vec<(String, u64)>, Vec<(String, u64)>)> {
        let command = GetBlockList {
            path: blob(name),
            which: Which::Current,
            types: BlockTypes::All,
            conditions: Conditions::default(),
            lease_id: None,
        };
        let BlockList { committed, uncommitted, .. } = self.domain.get_block_list(&command).await?;
        Ok((named(committed), named(uncommitted)))
    }

    async fn create_append(&self, name: &str) {
        self.domain.put_blob(put(name, NewBlob::Append)).await.expect("an append blob");
    }

    async fn append(
        &self,
        name: &str,
        bytes: &[u8],
        append_conditions: AppendConditions,
    ) -> Answer<Appended> {
        let command = AppendBlock {
            path: blob(name),
            content: self.receive_part(bytes).await,
            conditions: Conditions::default(),
            append_conditions,
            lease_id: None,
            encryption: Encryption::Account,
        };
        self.domain.append_block(command).await
    }

    async fn seal(&self, name: &str, append_conditions: AppendConditions) -> Answer<Blob> {
        let (path, conditions) = (blob(name), Conditions::default());
        let command = SealAppendBlob { path, conditions, append_conditions, lease_id: None };
        self.domain.seal_append_blob(command).await
    }
}

fn block_id(text: &str) -> BlockId {
    BlockId::new(Bytes::copy_from_slice(text.as_bytes())).expect("an id")
}

fn block_list(list: &[(BlockSource, &str)]) -> NewBlob {
    let entry =
        |(source, id): &(BlockSource, &str)| BlockListEntry { id: block_id(id), source: *source };
    NewBlob::BlockList(list.iter().map(entry).collect())
}

fn named(blocks: Vec<ListedBlock>) -> Vec<(String, u64)> {
    let name = |block: &ListedBlock| String::from_utf8_lossy(block.id.as_bytes()).into_owned();
    blocks.iter().map(|block| (name(block), block.length)).collect()
}

fn names(blocks: &[(String, u64)]) -> Vec<&str> {
    blocks.iter().map(|(name, _)| name.as_str()).collect()
}

fn refusal<T>(answer: Answer<T>) -> BlobRefusal {
    match answer {
        Err(Failure::Refused(refusal)) => refusal,
        Err(failure) => panic!("{failure:?}"),
        Ok(_) => panic!("it was not refused"),
    }
}

#[tokio::test]
async fn blocks_become_a_blob_in_the_order_of_the_list() {
    let store = Store::with_container("photos").await;
    let (small, large) = (content(700), content(700_000));
    store.stage("blob", "b", &large).await.expect("staged");
    store.stage("blob", "a", &small).await.expect("staged");
    assert_eq!(store.get("blob", None).await, Err(BlobRefusal::NotFound));
    let (committed, uncommitted) = store.blocks("blob").await.expect("a list");
    assert_eq!(committed, []);
    assert_eq!(uncommitted, [("a".to_owned(), 700), ("b".to_owned(), 700_000)]);

    let list = [(Latest, "b"), (Latest, "a"), (Latest, "b")];
    let blob = store.commit("blob", &list).await.expect("committed");
    assert_eq!(blob.length, 1_400_700);
    let expected = [large.clone(), small, large].concat();
    assert!(store.get("blob", None).await.as_ref() == Ok(&expected));
    let (committed, uncommitted) = store.blocks("blob").await.expect("a list");
    assert_eq!(names(&committed), ["b", "a", "b"]);
    assert_eq!(uncommitted, []);
    assert_eq!(store.bytes_in_extents(), 700_000, "the repeated block is stored once");
}

#[tokio::test]
async fn the_source_of_a_block_decides_where_it_is_looked_for() {
    let store = Store::with_container("photos").await;
    for (id, bytes) in [("a", b"a1"), ("b", b"b1")] {
        store.stage("blob", id, bytes).await.expect("staged");
    }
    store.commit("blob", &[(Uncommitted, "a"), (Uncommitted, "b")]).await.expect("committed");
    for (id, bytes) in [("a", b"a2"), ("c", b"c2")] {
        store.stage("blob", id, bytes).await.expect("staged");
    }
    for missing in [(Uncommitted, "b"), (Committed, "c"), (Latest, "d")] {
        let refused = store.commit("blob", &[(Latest, "a"), missing]).await;
        assert_eq!(refusal(refused), BlobRefusal::InvalidBlockList, "{missing:?}");
    }
    let list = [(Latest, "a"), (Latest, "b"), (Latest, "c")];
    store.commit("blob", &list).await.expect("committed");
    assert_eq!(store.get("blob", None).await.as_deref(), Ok(b"a2b1c2".as_slice()));
    store.commit("blob", &[(Committed, "c"), (Committed, "a")]).await.expect("committed");
    assert_eq!(store.get("blob", None).await.as_deref(), Ok(b"c2a2".as_slice()));
    store.commit("blob", &[]).await.expect("committed");
    assert_eq!(store.get("blob", None).await.as_deref(), Ok(b"".as_slice()));
}

#[tokio::test]
async fn space_comes_back_from_blocks_that_are_replaced_refused_left_out_or_overwritten() {
    let store = Store::with_container("photos").await;
    let large = content(100_000);
    store.stage("blob", "a", &large).await.expect("staged");
    store.stage("blob", "a", &large).await.expect("staged again");
    assert_eq!(store.bytes_in_extents(), 100_000, "the replaced block is freed");
    let refused = store.stage("blob", "longer", &large).await;
    assert_eq!(refusal(refused), BlobRefusal::BlockIdLength);
    assert_eq!(store.bytes_in_extents(), 100_000, "the refused block is freed");

    store.stage("blob", "b", &large).await.expect("staged");
    store.commit("blob", &[(Latest, "a")]).await.expect("committed");
    store.collect_garbage().await;
    assert_eq!(store.bytes_in_extents(), 100_000, "the block left out is freed");

    store.stage("blob", "longer", &large).await.expect("the ids of committed blocks do not count");
    store.commit("blob", &[(Committed, "a"), (Committed, "a")]).await.expect("committed");
    store.collect_garbage().await;
    assert_eq!(store.bytes_in_extents(), 100_000, "the map that was replaced shared its block");

    store.stage("blob", "c", &large).await.expect("staged");
    store.put("blob", b"small").await.expect("overwritten");
    assert_eq!(store.blocks("blob").await.expect("a list"), (Vec::new(), Vec::new()));
    store.collect_garbage().await;
    assert_eq!(store.bytes_in_extents(), 0, "an overwrite drops the uncommitted blocks too");
}

#[tokio::test]
async fn a_block_leaves_the_blob_as_it_is() {
    let store = Store::with_container("photos").await;
    store.put("blob", b"content").await.expect("written");
    let before = store.domain.get_blob_properties(&get("blob")).await.expect("a blob").blob;
    store.clock.pass(DAY);
    store.stage("blob", "a", b"block").await.expect("staged");
    let after = store.domain.get_blob_properties(&get("blob")).await.expect("a blob").blob;
    assert_eq!((before.etag, before.last_modified), (after.etag, after.last_modified));
    assert_eq!(store.get("blob", None).await.as_deref(), Ok(b"content".as_slice()));
}

#[tokio::test]
async fn blocks_are_refused_on_blobs_of_other_kinds_and_in_the_archive() {
    let store = Store::with_container("photos").await;
    store.create_append("log").await;
    assert_eq!(refusal(store.stage("log", "a", b"x").await), BlobRefusal::WrongKind);
    assert_eq!(refusal(store.commit("log", &[]).await), BlobRefusal::WrongKind);
    assert_eq!(refusal(store.blocks("log").await), BlobRefusal::WrongKind);

    let archived = PutBlob { tier: Some(AccessTier::Archive), ..put("old", block_list(&[])) };
    store.domain.put_blob(archived).await.expect("archived");
    assert_eq!(refusal(store.stage("old", "a", b"x").await), BlobRefusal::Archived);
    assert_eq!(refusal(store.commit("old", &[]).await), BlobRefusal::Archived);
    assert_eq!(refusal(store.blocks("old").await), BlobRefusal::Archived);
    assert_eq!(refusal(store.blocks("none").await), BlobRefusal::NotFound);
}

#[tokio::test]
async fn a_list_that_fails_its_conditions_leaves_the_blocks_to_be_committed() {
    let store = Store::with_container("photos").await;
    store.put("blob", b"content").await.expect("written");
    store.stage("blob", "a", b"block").await.expect("staged");
    let conditions = Conditions { if_none_match: Some(ETagList::Any), ..Conditions::default() };
    let command = PutBlob { conditions, ..put("blob", block_list(&[(Latest, "a")])) };
    let refused = store.domain.put_blob(command).await;
    assert_eq!(refusal(refused), BlobRefusal::AlreadyExists);
    store.commit("blob", &[(Latest, "a")]).await.expect("committed");
    assert_eq!(store.get("blob", None).await.as_deref(), Ok(b"block".as_slice()));
}

#[tokio::test]
async fn blocks_go_a_week_after_the_last_of_them() {
    let store = Store::with_container("photos").await;
    store.stage("blob", "a", &content(100_000)).await.expect("staged");
    store.clock.pass(6 * DAY);
    store.stage("blob", "b", &content(100_000)).await.expect("staged");
    store.clock.pass(6 * DAY);
    store.domain.do_what_is_due().await.expect("done");
    assert_eq!(names(&store.blocks("blob").await.expect("a list").1), ["a", "b"]);
    store.clock.pass(DAY);
    store.domain.do_what_is_due().await.expect("done");
    assert_eq!(refusal(store.blocks("blob").await), BlobRefusal::NotFound);
    store.collect_garbage().await;
    assert_eq!(store.bytes_in_extents(), 0);
}

#[tokio::test]
async fn the_end_that_was_planned_for_committed_blocks_spares_those_that_follow() {
    let store = Store::with_container("photos").await;
    store.stage("blob", "a", b"x").await.expect("staged");
    store.commit("blob", &[(Latest, "a")]).await.expect("committed");
    store.clock.pass(6 * DAY);
    store.stage("blob", "b", b"x").await.expect("staged");
    store.clock.pass(DAY);
    store.domain.do_what_is_due().await.expect("done");
    assert_eq!(names(&store.blocks("blob").await.expect("a list").1), ["b"]);
}

#[tokio::test]
async fn names_with_nothing_committed_are_listed_among_the_others_on_request() {
    let store = Store::with_container("photos").await;
    for name in ["a", "c/1", "d", "e/x"] {
        store.put(name, b"x").await.expect("written");
    }
    for name in ["0", "b", "c/2", "d", "f/1", "f/2"] {
        store.stage(name, "id", b"x").await.expect("staged");
    }
    let flat = ["(0)", "a", "(b)", "c/1", "(c/2)", "d", "e/x", "(f/1)", "(f/2)"];
    let top = ["(0)", "a", "(b)", "<c/>", "d", "<e/>", "<f/>"];
    for limit in 1..11 {
        let (found, pages) = store.list_with("", None, limit, true).await;
        assert_eq!(found, flat, "pages of {limit}");
        assert_eq!(pages, flat.len().div_ceil(limit), "pages of {limit}");
        let (found, pages) = store.list_with("", Some("/"), limit, true).await;
        assert_eq!(found, top, "pages of {limit}");
        assert_eq!(pages, top.len().div_ceil(limit), "pages of {limit}");
    }
    assert_eq!(store.list_with("c/", None, 10, true).await.0, ["c/1", "(c/2)"]);
    assert_eq!(store.list("", None, 10).await.0, ["a", "c/1", "d", "e/x"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_appenders_lose_and_reorder_nothing() {
    const APPENDERS: usize = 64;
    const APPENDS_EACH: usize = 8;
    let store = Arc::new(Store::with_container("photos").await);
    store.create_append("log").await;
    let appenders: Vec<_> = (0..APPENDERS)
        .map(|appender| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut offsets = Vec::new();
                for number in 0..APPENDS_EACH {
                    let line = format!("{appender:02} {number}\n");
                    let appended =
                        store.append("log", line.as_bytes(), AppendConditions::default()).await;
                    offsets.push((appended.expect("appended").offset as usize, line));
                }
                offsets
            })
        })
        .collect();
    let mut lines = Vec::new();
    for appender in appenders {
        let offsets = appender.await.expect("no appender panics");
        assert!(offsets.is_sorted(), "one after the other");
        lines.extend(offsets);
    }
    lines.sort();
    let expected: String = lines.iter().map(|(_, line)| line.as_str()).collect();
    let found = store.get("log", None).await.expect("the blob");
    assert_eq!(String::from_utf8_lossy(&found), expected);
    let last = store.append("log", b"x", AppendConditions::default()).await.expect("appended");
    assert_eq!(last.blocks as usize, APPENDERS * APPENDS_EACH + 1);
    assert_eq!(last.offset as usize, expected.len());
}

#[tokio::test]
async fn appends_are_held_against_their_position_and_size_and_a_seal_ends_them() {
    let store = Store::with_container("photos").await;
    store.create_append("log").await;
    let at = |position| AppendConditions { position: Some(position), ..Default::default() };
    let up_to = |size| AppendConditions { size_bytes_max: Some(size), ..Default::default() };
    let large = content(50_000);
    store.append("log", &large, at(0)).await.expect("appended");
    let refused = store.append("log", &large, at(0)).await;
    let not_met = |refusal| BlobRefusal::AppendConditionNotMet(refusal);
    assert_eq!(refusal(refused), not_met(AppendRefusal::PositionNotMet));
    let refused = store.append("log", &large, up_to(99_999)).await;
    assert_eq!(refusal(refused), not_met(AppendRefusal::SizeNotMet));
    assert_eq!(store.bytes_in_extents(), 50_000, "refused blocks are freed");
    store.append("log", b"end", up_to(50_003)).await.expect("appended");

    let refused = store.seal("log", at(1)).await;
    assert_eq!(refusal(refused), not_met(AppendRefusal::PositionNotMet));
    let sealed = store.seal("log", at(50_003)).await.expect("sealed");
    let again = store.seal("log", AppendConditions::default()).await.expect("sealed");
    assert_eq!(sealed.etag, again.etag, "sealing again changes nothing");
    let refused = store.append("log", b"x", AppendConditions::default()).await;
    assert_eq!(refusal(refused), BlobRefusal::Sealed);
    assert!(store.get("log", None).await == Ok([large, b"end".to_vec()].concat()));
    store.delete("log").await.expect("deleted");
    store.collect_garbage().await;
    assert_eq!(store.bytes_in_extents(), 0);
}

#[tokio::test]
async fn appends_and_seals_are_for_append_blobs_that_are_there() {
    let store = Store::with_container("photos").await;
    store.put("blob", b"x").await.expect("written");
    for (name, expected) in [("blob", BlobRefusal::WrongKind), ("none", BlobRefusal::NotFound)] {
        let appended = store.append(name, b"x", AppendConditions::default()).await;
        assert_eq!(refusal(appended), expected, "append to {name}");
        let sealed = store.seal(name, AppendConditions::default()).await;
        assert_eq!(refusal(sealed), expected, "seal {name}");
    }
}
