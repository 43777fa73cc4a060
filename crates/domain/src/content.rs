//! The bytes of blobs and files: a list of pieces of extents, or one row when they are few.
//!
//! Bytes are durable before the row that names them. Extents are counted: each row of an extent
//! holds how many contents refer to it, and is changed in the same commit as they are, so a copy
//! costs rows and not bytes, and the last release gives the space back.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use holdfast_store::extents::Pin;
use holdfast_store::{Extent, ExtentId, Extents, Fault, Snapshot};
use serde::{Deserialize, Serialize};

use crate::rows::{self, Stored};
use crate::transact::Transaction;

/// Contents up to this size are a row of their own: one synced commit, no second file. Measured in
/// `docs/design/0002-extents.md`.
pub const INLINE_BYTES_MAX: usize = 16 * 1024;

/// A body as it arrives. An error is the sender's: the connection broke, or the body is not what
/// it claims to be.
#[async_trait]
pub trait ByteSource: Send {
    type Refusal: Send;

    /// The next bytes, none of them empty; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Self::Refusal>;
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Content {
    Empty,
    /// The row [`rows::inline_content`] of this number.
    Inline(u64),
    /// One after the other.
    Extents(Vec<Piece>),
}

/// A part of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Piece {
    segment: u64,
    offset: u64,
    /// Where in the extent the part begins.
    start: u64,
    length: u64,
}

impl Piece {
    fn extent(&self) -> ExtentId {
        ExtentId { segment: self.segment, offset: self.offset }
    }
}

#[derive(Serialize, Deserialize)]
struct ExtentRow {
    references: u64,
    length: u64,
    checksums: Arc<[u32]>,
}

impl Stored for ExtentRow {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "an extent";
}

/// Bytes that have arrived and are durable (or small enough to go into a row), but that no row
/// names yet. Dropped unclaimed, their space is freed.
pub struct Received {
    extents: Arc<dyn Extents>,
    bytes: ReceivedBytes,
    length: u64,
    /// From the first attempt to commit on, a row may name the bytes.
    claimed: AtomicBool,
}

enum ReceivedBytes {
    Small(Bytes),
    Large(Vec<Extent>),
}

pub enum ReceiveFailure<R> {
    Source(R),
    Fault(Fault),
}

impl<R> From<Fault> for ReceiveFailure<R> {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Takes in a whole body, whatever its length, holding no more of it than [`INLINE_BYTES_MAX`]
/// and what the extents' writer is at work on.
pub(crate) async fn receive<R: Send>(
    extents: &Arc<dyn Extents>,
    source: &mut dyn ByteSource<Refusal = R>,
) -> Result<Received, ReceiveFailure<R>> {
    let mut small = BytesMut::new();
    let mut length = 0;
    let mut writer = None;
    while let Some(bytes) = source.next().await.map_err(ReceiveFailure::Source)? {
        length += bytes.len() as u64;
        if writer.is_none() && small.len() + bytes.len() <= INLINE_BYTES_MAX {
            small.extend_from_slice(&bytes);
            continue;
        }
        let writer = writer.get_or_insert_with(|| extents.writer());
        if !small.is_empty() {
            writer.append(std::mem::take(&mut small).freeze()).await?;
        }
        writer.append(bytes).await?;
    }
    let bytes = match writer {
        Some(writer) => ReceivedBytes::Large(writer.finish().await?),
        None => ReceivedBytes::Small(small.freeze()),
    };
    Ok(Received { extents: Arc::clone(extents), bytes, length, claimed: AtomicBool::new(false) })
}

impl Received {
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Adds the rows that make the bytes part of the store to `transaction`. `id` is unused by any
    /// other content. May be called for each attempt at a commit.
    ///
    /// From here on the bytes are freed only by [`Received::discard`]: whoever waits for the commit
    /// can be dropped (its client has gone away, say) while the commit goes on without it.
    pub(crate) fn claim(&self, transaction: &mut Transaction, id: u64) -> Content {
        self.claimed.store(true, Ordering::Relaxed);
        match &self.bytes {
            ReceivedBytes::Small(bytes) if bytes.is_empty() => Content::Empty,
            ReceivedBytes::Small(bytes) => {
                transaction.put(rows::inline_content(id), bytes.clone());
                Content::Inline(id)
            }
            ReceivedBytes::Large(extents) => {
                for extent in extents {
                    let row = ExtentRow {
                        references: 1,
                        length: extent.length,
                        checksums: Arc::clone(&extent.checksums),
                    };
                    transaction.put(rows::extent(extent.id), row.encode());
                }
                let piece = |extent: &Extent| Piece {
                    segment: extent.id.segment,
                    offset: extent.id.offset,
                    start: 0,
                    length: extent.length,
                };
                Content::Extents(extents.iter().map(piece).collect())
            }
        }
    }

    /// Frees the bytes: no attempt to commit a row that names them has succeeded or can succeed yet.
    pub(crate) fn discard(self) {
        self.claimed.store(false, Ordering::Relaxed);
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        if let ReceivedBytes::Large(extents) = &self.bytes
            && !self.claimed.load(Ordering::Relaxed)
        {
            for extent in extents {
                self.extents.free(extent.id, extent.length);
            }
        }
    }
}

/// Extents whose last reference goes with a commit: freed after it.
#[derive(Default)]
pub(crate) struct Released(Vec<(ExtentId, u64)>);

impl Released {
    pub fn free(self, extents: &dyn Extents) {
        for (id, length) in self.0 {
            extents.free(id, length);
        }
    }

    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// Takes one reference off everything `content` refers to.
pub(crate) async fn release(
    transaction: &mut Transaction,
    content: &Content,
) -> Result<Released, Fault> {
    let mut released = Released::default();
    match content {
        Content::Empty => {}
        Content::Inline(id) => transaction.delete(rows::inline_content(*id)),
        Content::Extents(pieces) => {
            for piece in pieces {
                let key = rows::extent(piece.extent());
                let row = transaction.get(&key).await?.ok_or_else(|| missing(piece.extent()))?;
                let row = ExtentRow::decode(&row)?;
                if row.references > 1 {
                    let row = ExtentRow { references: row.references - 1, ..row };
                    transaction.put(key, row.encode());
                } else {
                    transaction.delete(key);
                    released.0.push((piece.extent(), row.length));
                }
            }
        }
    }
    Ok(released)
}

/// The extents of one segment that rows name.
pub(crate) fn named_extent(key: &[u8], value: &[u8]) -> Result<(ExtentId, u64), Fault> {
    Ok((rows::extent_id(key)?, ExtentRow::decode(value)?.length))
}

/// A range of a content, handed out piece by piece; what it reads stays in place until it is
/// dropped, whatever happens to the blob meanwhile.
#[derive(Clone)]
pub struct ContentReader {
    extents: Arc<dyn Extents>,
    parts: VecDeque<Part>,
    remaining: u64,
    _pin: Option<Arc<Pin>>,
}

#[derive(Clone)]
enum Part {
    Bytes(Bytes),
    Extent(Extent, Range<u64>),
}

impl ContentReader {
    /// `pin` was taken before `snapshot`.
    pub(crate) async fn open(
        extents: &Arc<dyn Extents>,
        snapshot: &dyn Snapshot,
        pin: Pin,
        content: &Content,
        range: Range<u64>,
    ) -> Result<Self, Fault> {
        let mut reader = Self {
            extents: Arc::clone(extents),
            parts: VecDeque::new(),
            remaining: range.end - range.start,
            _pin: None,
        };
        match content {
            _ if range.is_empty() => {}
            Content::Empty => {
                return Err(Fault::new("a range reaches past the end of its content"));
            }
            Content::Inline(id) => {
                let bytes = snapshot.get(&rows::inline_content(*id)).await?;
                let bytes = bytes.filter(|bytes| bytes.len() as u64 >= range.end);
                let bytes = bytes.ok_or_else(|| Fault::new(format!("content {id} is missing")))?;
                reader
                    .parts
                    .push_back(Part::Bytes(bytes.slice(range.start as usize..range.end as usize)));
            }
            Content::Extents(pieces) => {
                let mut begin = 0;
                for piece in pieces {
                    let end = begin + piece.length;
                    let (first, last) = (begin.max(range.start), end.min(range.end));
                    if first < last {
                        let extent = read_extent_row(snapshot, piece.extent()).await?;
                        let within = piece.start + first - begin..piece.start + last - begin;
                        reader.parts.push_back(Part::Extent(extent, within));
                    }
                    begin = end;
                }
                let ids: Vec<ExtentId> = pieces.iter().map(Piece::extent).collect();
                reader._pin = Some(Arc::new(extents.pin(&ids)));
            }
        }
        drop(pin);
        Ok(reader)
    }

    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    pub async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        let bytes = match self.parts.pop_front() {
            None => return Ok(None),
            Some(Part::Bytes(bytes)) => bytes,
            Some(Part::Extent(extent, range)) => {
                let bytes = self.extents.read(&extent, range.clone()).await?;
                let rest = range.start + bytes.len() as u64..range.end;
                if !rest.is_empty() {
                    self.parts.push_front(Part::Extent(extent, rest));
                }
                bytes
            }
        };
        self.remaining -= bytes.len() as u64;
        Ok(Some(bytes))
    }
}

async fn read_extent_row(snapshot: &dyn Snapshot, id: ExtentId) -> Result<Extent, Fault> {
    let row = snapshot.get(&rows::extent(id)).await?.ok_or_else(|| missing(id))?;
    let ExtentRow { length, checksums, .. } = ExtentRow::decode(&row)?;
    Ok(Extent { id, length, checksums })
}

fn missing(id: ExtentId) -> Fault {
    Fault::new(format!("the row of extent {}/{} is missing", id.segment, id.offset))
}
