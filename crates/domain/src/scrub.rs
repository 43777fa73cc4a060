//! Reads every extent that a row names, and lists which are damaged and what they belong to.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_store::{Engine, ExtentId, Extents, Fault, KeyRange, Order, Row, Snapshot};

use crate::blob::{self, Blob, ContainerPlace, PastBlob};
use crate::content::{self, Content, Entry, stored_extent};
use crate::rows::{Stored, number_at};
use crate::share::{NODE, Node, NodeKind};

/// The bytes of one checksum: damage is reported by pieces of this size.
const PIECE_BYTES: u64 = 64 * 1024;
const ROWS_PER_SCAN: usize = 1024;

/// Bytes that are not what was written.
#[derive(Debug)]
pub struct DamagedExtent {
    pub id: ExtentId,
    /// Where in the extent the pieces begin that do not match their checksums.
    pub pieces: Vec<u64>,
    pub why: Fault,
    /// What these bytes belong to, as far as is known.
    pub owners: Vec<String>,
}

/// Reads everything: a damaged table of rows is an error.
pub async fn scrub_extents(
    engine: &dyn Engine,
    extents: &dyn Extents,
) -> Result<Vec<DamagedExtent>, Fault> {
    let snapshot = engine.snapshot().await?;
    let mut damaged = BTreeMap::new();
    let mut after = None;
    while let Some(rows) = page(&*snapshot, content::rows::all_extents(), &mut after).await? {
        for row in rows {
            let extent = stored_extent(&row.key, &row.value)?;
            for start in (0..extent.length).step_by(PIECE_BYTES as usize) {
                let end = (start + PIECE_BYTES).min(extent.length);
                if let Err(why) = extents.read(&extent, start..end).await {
                    let found = damaged.entry(extent.id).or_insert_with(|| DamagedExtent {
                        id: extent.id,
                        pieces: Vec::new(),
                        why,
                        owners: Vec::new(),
                    });
                    found.pieces.push(start);
                }
            }
        }
    }
    if !damaged.is_empty() {
        name_owners(&*snapshot, &mut damaged).await?;
    }
    Ok(damaged.into_values().collect())
}

async fn page(
    snapshot: &dyn Snapshot,
    prefix: bytes::Bytes,
    after: &mut Option<bytes::Bytes>,
) -> Result<Option<Vec<Row>>, Fault> {
    let mut range = KeyRange::prefix(prefix);
    if let Some(after) = after.take() {
        range = range.after(after);
    }
    let rows = snapshot.scan(&range, Order::Ascending, ROWS_PER_SCAN).await?;
    *after = rows.last().map(|row| row.key.clone());
    Ok((!rows.is_empty()).then_some(rows))
}

async fn name_owners(
    snapshot: &dyn Snapshot,
    damaged: &mut BTreeMap<ExtentId, DamagedExtent>,
) -> Result<(), Fault> {
    // First the maps that have damaged extents, then the owners of those maps.
    let mut maps: BTreeMap<u64, BTreeSet<ExtentId>> = BTreeMap::new();
    let mut after = None;
    while let Some(rows) = page(snapshot, content::rows::all_map_entries(), &mut after).await? {
        for row in rows {
            let map = number_at(&row.key, 1).unwrap_or_default();
            let entry = Entry::decode(&row.value)?;
            let damaged_here = entry.part.extents().filter(|id| damaged.contains_key(id));
            maps.entry(map).or_default().extend(damaged_here);
        }
    }
    for prefix in with_contents() {
        let mut after = None;
        while let Some(rows) = page(snapshot, prefix.clone(), &mut after).await? {
            for row in rows {
                let content = content_of(&row)?;
                let extents: BTreeSet<ExtentId> = match &content {
                    Some(Content::Mapped(map)) => maps.get(map).cloned().unwrap_or_default(),
                    Some(content) => content.extents().collect(),
                    None => continue,
                };
                for id in extents {
                    if let Some(damaged) = damaged.get_mut(&id) {
                        damaged.owners.push(name(snapshot, &row).await?);
                    }
                }
            }
        }
    }
    Ok(())
}

/// Which rows say where a content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HasContent {
    Blob,
    PastBlob,
    Node,
}

/// The beginnings of the keys of all rows that say where a content is.
fn with_contents() -> [bytes::Bytes; 3] {
    [&[blob::rows::BLOB], &[blob::rows::PAST_BLOB], &[NODE]]
        .map(|kind| bytes::Bytes::from_static(kind))
}

fn content_kind(key: &[u8]) -> Option<HasContent> {
    match *key.first()? {
        blob::rows::BLOB => Some(HasContent::Blob),
        blob::rows::PAST_BLOB => Some(HasContent::PastBlob),
        NODE => Some(HasContent::Node),
        _ => None,
    }
}

fn content_of(row: &Row) -> Result<Option<Content>, Fault> {
    Ok(match content_kind(&row.key) {
        Some(HasContent::Blob) => Some(Blob::decode(&row.value)?.content),
        Some(HasContent::PastBlob) => Some(PastBlob::decode(&row.value)?.blob.content),
        Some(HasContent::Node) => match Node::decode(&row.value)?.kind {
            NodeKind::File(file) => Some(file.content),
            NodeKind::Directory(_) | NodeKind::SymbolicLink(_) => None,
        },
        None => None,
    })
}

async fn name(snapshot: &dyn Snapshot, row: &Row) -> Result<String, Fault> {
    Ok(match content_kind(&row.key) {
        Some(HasContent::Blob) => {
            format!(
                "blob {}{}",
                container(snapshot, &row.key).await?,
                blob::rows::blob_name(&row.key)?
            )
        }
        Some(HasContent::PastBlob) => {
            let (name, moment) = blob::rows::past_blob_name(&row.key)?;
            let container = container(snapshot, &row.key).await?;
            format!("blob {container}{name} as of {}", moment.rfc1123())
        }
        Some(HasContent::Node) => {
            let name = Node::decode(&row.value)?.name;
            let share = number_at(&row.key, 1).unwrap_or_default();
            format!("file {} of share number {share}", name.as_ref().map_or("", |it| it.as_str()))
        }
        None => String::new(),
    })
}

/// Account and name of the container in the key of something in it, with a slash behind each.
async fn container(snapshot: &dyn Snapshot, key: &[u8]) -> Result<String, Fault> {
    let number = blob::rows::container_of(key)?;
    let Some(place) = snapshot.get(&blob::rows::container_place(number)).await? else {
        return Ok(format!("container number {number}/"));
    };
    let ContainerPlace { account, name } = ContainerPlace::decode(&place)?;
    Ok(format!("{account}/{name}/"))
}
