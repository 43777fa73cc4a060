//! Blocks: Put Block, what Put Block List commits, Get Block List, and the removal of blocks that
//! are never committed.
//!
//! The rows of blocks change only together with that of their upload.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use bytes::Bytes;
use holdfast_store::{Fault, KeyRange, Order, Snapshot};
use holdfast_sync::yield_now;

use super::container::find_container;
use super::entry::{BlobEntry, find_blob};
use super::model::{Blob, Block, Encryption, Kind, Upload, Which};
use super::rows;
use super::{BlobPath, BlobRefusal, check_changeable};
use crate::condition::{self, Conditions};
use crate::content::{self, Content, Entry, MapWriter, Received};
use crate::domain::{Domain, Stamp, read};
use crate::due_task::DueTask;
use crate::etag::ETag;
use crate::failure::Failure;
use crate::lease::{self, Access, LeaseId};
use crate::rows::{NOTHING, Stored};
use crate::time::Timestamp;
use crate::transact::Transaction;

const ID_BYTES_MAX: usize = 64;
/// For each blob.
const UNCOMMITTED_BLOCKS_MAX: u32 = 100_000;
pub(super) const COMMITTED_BLOCKS_MAX: u32 = 50_000;
/// How long blocks wait to be committed since the last one came.
const UPLOAD_IDLE_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Rows of blocks read at a time.
const ROWS_PER_SCAN: usize = 1024;

/// What a client calls a block, unique in its blob.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockId(Bytes);

impl BlockId {
    pub fn new(id: impl Into<Bytes>) -> Option<Self> {
        let id = id.into();
        (1..=ID_BYTES_MAX).contains(&id.len()).then_some(Self(id))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

pub struct PutBlock {
    pub path: BlobPath,
    pub id: BlockId,
    /// By [`Domain::receive_part`].
    pub content: Received,
    pub encryption: Encryption,
    pub lease_id: Option<LeaseId>,
    /// Whether blocks may be put only while there is no blob.
    pub create_only: bool,
}

/// A block that Put Block List makes a part of the blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockListEntry {
    pub id: BlockId,
    pub source: BlockSource,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSource {
    Committed,
    Uncommitted,
    /// The uncommitted one, if there is one.
    Latest,
}

pub struct GetBlockList {
    pub path: BlobPath,
    pub which: Which,
    pub types: BlockTypes,
    pub conditions: Conditions,
    pub lease_id: Option<LeaseId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockTypes {
    Committed,
    Uncommitted,
    All,
}

/// The blocks of a blob, without those of a type that was not asked for.
pub struct BlockList {
    /// None while nothing is committed.
    pub blob: Option<(ETag, Timestamp)>,
    /// Of what is committed.
    pub length: u64,
    /// In the order of the blob.
    pub committed: Vec<ListedBlock>,
    pub uncommitted: Vec<ListedBlock>,
}

pub struct ListedBlock {
    pub id: BlockId,
    pub length: u64,
}

impl Domain {
    /// Keeps a block for the list that will commit it. The blob itself does not change.
    pub async fn put_block(&self, command: PutBlock) -> Result<(), Failure<BlobRefusal>> {
        let PutBlock { path, id, content, encryption, lease_id, create_only } = command;
        let written = self
            .transact_pipelined(&[path.latch()], async |mut transaction| {
                let stamp = self.stamp();
                let blob_entry = BlobEntry::read(&mut transaction, &path).await?;
                decide_stage(blob_entry.current.as_ref(), lease_id, create_only, stamp.now)
                    .map_err(Failure::Refused)?;
                let key = blob_entry.upload_key();
                let upload: Option<Upload> = read(&mut transaction, &key).await?;
                let replaced = match &upload {
                    Some(upload) => block(transaction.snapshot(), upload, &id).await?,
                    None => None,
                };
                let key_sha256 =
                    blob_entry.encryption(&encryption).map_err(Failure::Refused)?.key_sha256();
                let new = NewBlock { id: &id, replaces: replaced.is_some(), key_sha256 };
                let after = decide_upload(upload.as_ref(), new, stamp).map_err(Failure::Refused)?;
                if let Some(replaced) = &replaced {
                    content::release_part(&mut transaction, &replaced.part);
                }
                if upload.is_none() {
                    plan_drop(&mut transaction, &key, &after);
                }
                let part = content.claim_part(&mut transaction);
                transaction.put(rows::block(after.id, id.as_bytes()), Block { part }.encode());
                transaction.put(key, after.encode());
                Ok(((), transaction))
            })
            .await;
        content.conclude(written)
    }

    pub async fn get_block_list(
        &self,
        command: &GetBlockList,
    ) -> Result<BlockList, Failure<BlobRefusal>> {
        let now = self.now();
        let snapshot = &*self.engine.snapshot().await?;
        let found = find_blob(snapshot, &command.path, command.which, now).await?;
        let upload = match command.which {
            Which::Current => find_upload(snapshot, &command.path).await?,
            Which::Snapshot(_) | Which::Version(_) => None,
        };
        let blob = found.map(|(blob, _)| blob);
        decide_list(blob.as_deref(), upload.is_some(), command, now).map_err(Failure::Refused)?;

        let (committed, uncommitted) = match command.types {
            BlockTypes::Committed => (true, false),
            BlockTypes::Uncommitted => (false, true),
            BlockTypes::All => (true, true),
        };
        let mut list = BlockList {
            blob: blob.as_ref().map(|blob| (blob.etag, blob.last_modified)),
            length: blob.as_ref().map_or(0, |blob| blob.length),
            committed: Vec::new(),
            uncommitted: Vec::new(),
        };
        if let Some(blob) = blob.filter(|_| committed) {
            for_each_committed(snapshot, &blob.content, |id, entry| {
                list.committed.push(ListedBlock { id, length: entry.length });
            })
            .await?;
        }
        if let Some(upload) = upload.filter(|_| uncommitted) {
            list.uncommitted = uncommitted_blocks(snapshot, &upload).await?;
        }
        Ok(list)
    }
}

/// Whether a block may be put, given the blob that is there.
fn decide_stage(
    existing: Option<&Blob>,
    lease_id: Option<LeaseId>,
    create_only: bool,
    now: Timestamp,
) -> Result<(), BlobRefusal> {
    let Some(existing) = existing else { return Ok(lease::check_absent(lease_id)?) };
    if create_only {
        return Err(BlobRefusal::OverwriteNotPermitted);
    }
    if existing.kind != Kind::Block {
        return Err(BlobRefusal::WrongKind);
    }
    if existing.is_archived() {
        return Err(BlobRefusal::Archived);
    }
    match check_changeable(existing, now) {
        // A blob that is held is not changed before the list is committed.
        Ok(()) | Err(BlobRefusal::Immutable | BlobRefusal::LegalHold) => {}
        Err(refusal) => return Err(refusal),
    }
    existing.lease_after(Access::WriteBeside, lease_id, now).map(drop)
}

/// A block as its upload sees it.
#[derive(Clone, Copy)]
struct NewBlock<'a> {
    id: &'a BlockId,
    /// One of the same id is there already.
    replaces: bool,
    key_sha256: Option<[u8; 32]>,
}

/// The upload with the block in it.
///
/// Ids must be as long as those that wait already. The reference compares them with uncommitted
/// blocks only: clients that build ids differently do overwrite each other's blobs.
fn decide_upload(
    upload: Option<&Upload>,
    new: NewBlock<'_>,
    stamp: Stamp,
) -> Result<Upload, BlobRefusal> {
    let id_bytes = new.id.as_bytes().len() as u8;
    let Some(upload) = upload else {
        return Ok(Upload {
            id: stamp.etag.ticks(),
            created: stamp.now,
            last_activity: stamp.now,
            block_id_bytes: id_bytes,
            blocks: 1,
            key_sha256: new.key_sha256,
        });
    };
    if upload.key_sha256 != new.key_sha256 {
        return Err(BlobRefusal::OtherKey);
    }
    if upload.block_id_bytes != id_bytes {
        return Err(BlobRefusal::BlockIdLength);
    }
    let blocks = if new.replaces { upload.blocks } else { upload.blocks + 1 };
    if blocks > UNCOMMITTED_BLOCKS_MAX {
        return Err(BlobRefusal::TooManyUncommittedBlocks);
    }
    Ok(Upload { last_activity: stamp.now, blocks, ..upload.clone() })
}

/// The content that a list of blocks makes, and its length. An uncommitted block goes from its
/// upload into the blob; the upload itself goes when the blob is replaced.
pub(super) async fn commit(
    transaction: &mut Transaction,
    blob_entry: &BlobEntry,
    list: &[BlockListEntry],
    encryption: &Encryption,
    stamp: Stamp,
) -> Result<(Content, u64), Failure<BlobRefusal>> {
    check_list(list).map_err(Failure::Refused)?;
    if list.is_empty() {
        return Ok((Content::Empty, 0));
    }
    let upload: Option<Upload> = read(transaction, &blob_entry.upload_key()).await?;
    let mut committed = HashMap::new();
    if let Some(current) = &blob_entry.current
        && list.iter().any(|entry| entry.source != BlockSource::Uncommitted)
    {
        for_each_committed(transaction.snapshot(), &current.content, |id, entry| {
            committed.insert(id, entry);
        })
        .await?;
    }
    let key_sha256 = encryption.key_sha256();
    let same_key = |other| {
        if other == key_sha256 { Ok(()) } else { Err(Failure::Refused(BlobRefusal::OtherKey)) }
    };
    let mut map = MapWriter::new(transaction, stamp.etag.ticks());
    let mut moved = HashSet::new();
    for BlockListEntry { id, source } in list {
        let staged = match (&upload, source) {
            (Some(upload), BlockSource::Uncommitted | BlockSource::Latest) => {
                block(transaction.snapshot(), upload, id).await?.map(|block| (upload, block))
            }
            (Some(_), BlockSource::Committed) | (None, _) => None,
        };
        if let Some((upload, Block { part })) = staged {
            same_key(upload.key_sha256)?;
            if moved.insert(id) {
                transaction.delete(rows::block(upload.id, id.as_bytes()));
            } else {
                content::retain_part(transaction, &part);
            }
            let entry = Entry::whole(part, stamp.etag.ticks());
            map.push(transaction, &Entry { block: Some(id.0.clone()), ..entry });
            continue;
        }
        match (committed.get(id), source) {
            (Some(entry), BlockSource::Committed | BlockSource::Latest) => {
                same_key(
                    blob_entry.current.as_ref().and_then(|blob| blob.encryption.key_sha256()),
                )?;
                content::retain_part(transaction, &entry.part);
                map.push(transaction, entry);
            }
            (Some(_), BlockSource::Uncommitted) | (None, _) => {
                return Err(Failure::Refused(BlobRefusal::InvalidBlockList));
            }
        }
    }
    let length = map.length();
    Ok((map.finish(), length))
}

/// What can be said of a list before the blocks are looked up.
fn check_list(list: &[BlockListEntry]) -> Result<(), BlobRefusal> {
    if list.len() > COMMITTED_BLOCKS_MAX as usize {
        return Err(BlobRefusal::BlockListTooLong);
    }
    let mut sources = HashMap::new();
    for BlockListEntry { id, source } in list {
        if sources.insert(id, source).is_some_and(|earlier| earlier != source) {
            return Err(BlobRefusal::InvalidBlockList);
        }
    }
    let id_bytes = |entry: &BlockListEntry| entry.id.as_bytes().len();
    let of_first = list.first().map(id_bytes);
    if list.iter().any(|entry| Some(id_bytes(entry)) != of_first) {
        return Err(BlobRefusal::BlockIdLength);
    }
    Ok(())
}

fn decide_list(
    blob: Option<&Blob>,
    has_upload: bool,
    command: &GetBlockList,
    now: Timestamp,
) -> Result<(), BlobRefusal> {
    condition::check_read(&command.conditions, blob.map(Blob::subject).as_ref())
        .map_err(|refusal| BlobRefusal::of_read(refusal, blob))?;
    let Some(blob) = blob else {
        lease::check_absent(command.lease_id)?;
        return if has_upload { Ok(()) } else { Err(BlobRefusal::NotFound) };
    };
    if blob.kind != Kind::Block {
        return Err(BlobRefusal::WrongKind);
    }
    if blob.is_archived() {
        return Err(BlobRefusal::Archived);
    }
    blob.lease_after(Access::Read, command.lease_id, now).map(drop)
}

async fn find_upload(snapshot: &dyn Snapshot, path: &BlobPath) -> Result<Option<Upload>, Fault> {
    let Some(container) = find_container(snapshot, &path.container).await? else { return Ok(None) };
    let row = snapshot.get(&rows::upload(container.id, path.blob.as_str())).await?;
    row.map(|row| Upload::decode(&row)).transpose()
}

async fn block(
    snapshot: &dyn Snapshot,
    upload: &Upload,
    id: &BlockId,
) -> Result<Option<Block>, Fault> {
    let row = snapshot.get(&rows::block(upload.id, id.as_bytes())).await?;
    row.map(|row| Block::decode(&row)).transpose()
}

async fn uncommitted_blocks(
    snapshot: &dyn Snapshot,
    upload: &Upload,
) -> Result<Vec<ListedBlock>, Fault> {
    let mut range = KeyRange::prefix(rows::blocks(upload.id));
    let mut blocks = Vec::new();
    loop {
        let found = snapshot.scan(&range, Order::Ascending, ROWS_PER_SCAN).await?;
        for row in &found {
            let id = BlockId(Bytes::copy_from_slice(rows::block_id(&row.key)?));
            blocks.push(ListedBlock { id, length: Block::decode(&row.value)?.part.length() });
        }
        match found.last() {
            Some(last) if found.len() == ROWS_PER_SCAN => range = range.after(last.key.clone()),
            Some(_) | None => return Ok(blocks),
        }
        yield_now().await;
    }
}

/// The blocks of a content in order; one that was put whole has none.
async fn for_each_committed(
    snapshot: &dyn Snapshot,
    content: &Content,
    mut each: impl FnMut(BlockId, Entry),
) -> Result<(), Fault> {
    let Content::Mapped(map) = content else { return Ok(()) };
    let mut from = 0;
    loop {
        let found = content::entries(snapshot, *map, from..u64::MAX).await?;
        let Some((offset, entry)) = found.last() else { return Ok(()) };
        from = offset + entry.length;
        for (_, entry) in found {
            if let Some(id) = entry.block.clone() {
                each(BlockId(id), entry);
            }
        }
        yield_now().await;
    }
}

fn plan_drop(transaction: &mut Transaction, key: &Bytes, upload: &Upload) {
    let at = upload.last_activity.plus(UPLOAD_IDLE_MAX);
    DueTask::DropUpload(key.clone(), upload.id).plan(transaction, at, upload.id);
}

/// Drops an upload that has received no block for long; otherwise checks again later.
pub(crate) async fn drop_idle_upload(
    transaction: &mut Transaction,
    key: &Bytes,
    id: u64,
    now: Timestamp,
) -> Result<(), Fault> {
    let upload: Option<Upload> = read(transaction, key).await?;
    let Some(upload) = upload.filter(|upload| upload.id == id) else { return Ok(()) };
    if upload.last_activity.plus(UPLOAD_IDLE_MAX) <= now {
        transaction.delete(key.clone());
        transaction.put(rows::condemned_upload(id), NOTHING);
    } else {
        plan_drop(transaction, key, &upload);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> BlockId {
        BlockId::new(text.as_bytes().to_vec()).expect("an id")
    }

    fn stamp(ticks: u64) -> Stamp {
        Stamp { now: Timestamp::from_ticks(ticks), etag: ETag::from_ticks(ticks) }
    }

    #[test]
    fn ids_have_between_1_and_64_bytes() {
        for (length, expected) in [(0, false), (1, true), (64, true), (65, false)] {
            assert_eq!(BlockId::new(vec![7; length]).is_some(), expected, "{length} bytes");
        }
    }

    #[test]
    fn an_upload_counts_its_blocks_and_takes_ids_of_one_length() {
        let upload = |blocks| Upload {
            id: 1,
            created: Timestamp::from_ticks(1),
            last_activity: Timestamp::from_ticks(1),
            block_id_bytes: 2,
            blocks,
            key_sha256: None,
        };
        for (cell, upload, id, replaces, expected) in [
            ("3.2 Put Block on a missing blob", None, id("aa"), false, Ok(1)),
            ("3.2 another id", Some(upload(1)), id("bb"), false, Ok(2)),
            ("3.2 same id twice", Some(upload(1)), id("aa"), true, Ok(1)),
            ("3.2 the 100,000th", Some(upload(99_999)), id("bb"), false, Ok(100_000)),
            (
                "3.2 the 100,001st",
                Some(upload(100_000)),
                id("bb"),
                false,
                Err(BlobRefusal::TooManyUncommittedBlocks),
            ),
            ("3.2 one of 100,000 again", Some(upload(100_000)), id("aa"), true, Ok(100_000)),
            ("3.2 longer id", Some(upload(1)), id("aaa"), false, Err(BlobRefusal::BlockIdLength)),
            ("3.2 shorter id", Some(upload(1)), id("a"), false, Err(BlobRefusal::BlockIdLength)),
        ] {
            let new = NewBlock { id: &id, replaces, key_sha256: None };
            let decided = decide_upload(upload.as_ref(), new, stamp(9));
            let blocks = decided.map(|after| {
                assert_eq!(after.last_activity, stamp(9).now, "{cell}");
                after.blocks
            });
            assert_eq!(blocks, expected, "{cell}");
        }
    }

    #[test]
    fn a_list_names_each_block_in_one_way_and_at_most_50_000() {
        use BlockSource::{Committed, Latest, Uncommitted};
        let list = |entries: &[(&str, BlockSource)]| -> Vec<BlockListEntry> {
            let entry = |(text, source): &(&str, BlockSource)| BlockListEntry {
                id: id(text),
                source: *source,
            };
            entries.iter().map(entry).collect()
        };
        let repeated = |times| vec![BlockListEntry { id: id("aa"), source: Latest }; times];
        for (cell, list, expected) in [
            ("3.2 no block", list(&[]), Ok(())),
            ("3.2 repeated, same kind", list(&[("aa", Latest), ("aa", Latest)]), Ok(())),
            (
                "3.2 repeated, other kind",
                list(&[("aa", Committed), ("bb", Latest), ("aa", Uncommitted)]),
                Err(BlobRefusal::InvalidBlockList),
            ),
            (
                "3.2 ids of unequal length",
                list(&[("aa", Latest), ("b", Latest)]),
                Err(BlobRefusal::BlockIdLength),
            ),
            ("3.2 50,000 entries", repeated(50_000), Ok(())),
            ("3.2 over 50,000 entries", repeated(50_001), Err(BlobRefusal::BlockListTooLong)),
        ] {
            assert_eq!(check_list(&list), expected, "{cell}");
        }
    }
}
