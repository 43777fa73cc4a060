//! The bytes of blobs and files.
//!
//! Bytes are durable before the row that names them. What was received in one piece is a [`Part`]:
//! a few bytes in the row itself, or pieces of extents. A content is one part, or a map of parts
//! (blocks, pages, appended blocks) that costs a row for each. Extents and maps have reference
//! counts, see [`References`], so a copy costs rows and not bytes.

mod differences;
mod headers;
mod layers;
mod map;
mod range;
mod reader;
mod references;
pub(crate) mod rows;
mod seal;
#[cfg(test)]
mod test_store;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use holdfast_store::extents::ExtentWriter;
use holdfast_store::{Extent, ExtentId, Extents, Fault};
use serde::{Deserialize, Serialize};

pub use differences::Difference;
pub(crate) use differences::Differences;
pub use headers::{ContentHeaders, ContentMd5};
pub(crate) use layers::{entries, fill_layered_map, first_layered_map};
pub(crate) use map::{Entry, Map, MapWriter, all_cleared, remove_condemned_map};
pub use range::ReadRange;
pub use reader::ContentReader;
pub(crate) use references::{References, Released, named_extent, stored_extent};
pub(crate) use seal::Seal;
pub use seal::{CustomerKey, Sealing};

use crate::transact::Transaction;
use seal::Sealer;

/// Contents up to this size are a row of their own: one synced commit, no second file. Measured in
/// `docs/design/0002-extents.md`.
pub const INLINE_BYTES_MAX: usize = 16 * 1024;

/// The prefix of the keys of those rows. They are put once, numbered in the order of time.
pub const INLINE_ROWS: &[u8] = &[rows::INLINE_CONTENT];

/// Parts of maps up to this size are in the row of their entry. Smaller than that of contents, since
/// the entries of a map (50,000 of them) are written and copied in one commit.
pub(crate) const INLINE_PART_BYTES_MAX: usize = 1024;

/// A body as it arrives. An error is caused by the sender: the connection broke, or the body does
/// not match its headers.
#[async_trait]
pub trait ByteSource: Send {
    type Refusal: Send;

    /// The next bytes, never empty; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Self::Refusal>;
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Content {
    Empty,
    /// The row [`rows::inline_content`] of this number.
    Inline(u64),
    /// In order.
    Extents(Vec<Piece>),
    /// The map of this number; zeros where it has no entry.
    Mapped(u64),
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
    fn whole(extent: &Extent) -> Self {
        let ExtentId { segment, offset } = extent.id;
        Self { segment, offset, start: 0, length: extent.length }
    }

    fn extent(&self) -> ExtentId {
        ExtentId { segment: self.segment, offset: self.offset }
    }
}

impl Content {
    /// The extents that it names itself; those of a map are named by its entries.
    pub fn extents(&self) -> impl Iterator<Item = ExtentId> {
        let pieces = match self {
            Self::Extents(pieces) => pieces.as_slice(),
            Self::Empty | Self::Inline(_) | Self::Mapped(_) => &[],
        };
        pieces.iter().map(Piece::extent)
    }
}

/// Bytes that were received in one piece, as stored inside another row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Part {
    Bytes(Bytes),
    Extents(Vec<Piece>),
    /// One of these two, holding sealed bytes.
    Sealed(Seal, Box<Self>),
    /// Zeros that hide what a map below has.
    Hole,
}

impl Part {
    pub fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Extents(pieces) => pieces.iter().map(|piece| piece.length).sum(),
            Self::Sealed(seal, _) => seal.length,
            Self::Hole => 0,
        }
    }

    pub fn extents(&self) -> impl Iterator<Item = ExtentId> {
        self.pieces().iter().map(Piece::extent)
    }

    fn pieces(&self) -> &[Piece] {
        match self {
            Self::Bytes(_) | Self::Hole => &[],
            Self::Extents(pieces) => pieces,
            Self::Sealed(_, part) => part.pieces(),
        }
    }
}

/// Bytes that have arrived and are durable (or small enough to go into a row), but that no row
/// names yet. If they are dropped unclaimed, their space is freed.
pub struct Received {
    extents: Arc<dyn Extents>,
    bytes: ReceivedBytes,
    seal: Option<Seal>,
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

/// Receives a whole body of any length, holding no more of it in memory than `inline_bytes_max` and
/// the buffers of the extent writer.
pub(crate) async fn receive<R: Send>(
    extents: &Arc<dyn Extents>,
    source: &mut dyn ByteSource<Refusal = R>,
    sealing: Option<&Sealing>,
    inline_bytes_max: usize,
) -> Result<Received, ReceiveFailure<R>> {
    let mut taking = Taking { extents, inline_bytes_max, small: BytesMut::new(), writer: None };
    let mut sealer = sealing.map(Sealer::new);
    let mut length = 0;
    while let Some(mut bytes) = source.next().await.map_err(ReceiveFailure::Source)? {
        length += bytes.len() as u64;
        match &mut sealer {
            None => taking.take(bytes).await?,
            Some(sealer) => {
                while !bytes.is_empty() {
                    if let Some(frame) = sealer.push(&mut bytes) {
                        taking.take(frame).await?;
                    }
                }
            }
        }
    }
    if let Some(frame) = sealer.as_mut().and_then(Sealer::finish) {
        taking.take(frame).await?;
    }
    let bytes = taking.finish().await?;
    let seal = sealer.map(Sealer::into_seal);
    let (extents, claimed) = (Arc::clone(extents), AtomicBool::new(false));
    Ok(Received { extents, bytes, seal, length, claimed })
}

/// Bytes on their way into a row, or, once they are too many, into extents.
struct Taking<'a> {
    extents: &'a Arc<dyn Extents>,
    inline_bytes_max: usize,
    small: BytesMut,
    writer: Option<Box<dyn ExtentWriter>>,
}

impl Taking<'_> {
    async fn take(&mut self, bytes: Bytes) -> Result<(), Fault> {
        if self.writer.is_none() && self.small.len() + bytes.len() <= self.inline_bytes_max {
            self.small.extend_from_slice(&bytes);
            return Ok(());
        }
        let writer = self.writer.get_or_insert_with(|| self.extents.writer());
        if !self.small.is_empty() {
            writer.append(std::mem::take(&mut self.small).freeze()).await?;
        }
        writer.append(bytes).await
    }

    async fn finish(self) -> Result<ReceivedBytes, Fault> {
        Ok(match self.writer {
            Some(writer) => ReceivedBytes::Large(writer.finish().await?),
            None => ReceivedBytes::Small(self.small.freeze()),
        })
    }
}

impl Received {
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Makes the bytes a content of the store with `transaction`. `id` is unused by any other
    /// content. May be called for each attempt at a commit.
    ///
    /// From here on only [`Received::conclude`] frees the bytes: the future that waits for the
    /// commit may be dropped (when its client disconnects) while the commit goes on.
    pub(crate) fn claim(&self, transaction: &mut Transaction, id: u64) -> Content {
        match self.claim_part(transaction) {
            Part::Bytes(bytes) if bytes.is_empty() => Content::Empty,
            Part::Bytes(bytes) => {
                transaction.put(rows::inline_content(id), bytes);
                Content::Inline(id)
            }
            Part::Extents(pieces) => Content::Extents(pieces),
            part @ (Part::Sealed(..) | Part::Hole) => {
                let mut map = MapWriter::new(transaction, id);
                map.push(transaction, &Entry::whole(part, id));
                map.finish()
            }
        }
    }

    /// As [`Received::claim`], as a content that can be changed in place.
    pub(crate) fn claim_map(&self, transaction: &mut Transaction, id: u64) -> Content {
        let part = self.claim_part(transaction);
        if self.length == 0 {
            return Content::Empty;
        }
        let mut map = MapWriter::new(transaction, id);
        map.push(transaction, &Entry::whole(part, id));
        map.finish()
    }

    /// As [`Received::claim`], for a row that keeps the part itself.
    pub(crate) fn claim_part(&self, transaction: &mut Transaction) -> Part {
        self.claimed.store(true, Ordering::Relaxed);
        let part = match &self.bytes {
            ReceivedBytes::Small(bytes) => Part::Bytes(bytes.clone()),
            ReceivedBytes::Large(extents) => {
                for extent in extents {
                    transaction.references.introduce(extent);
                }
                Part::Extents(extents.iter().map(Piece::whole).collect())
            }
        };
        match &self.seal {
            Some(seal) if self.length > 0 => Part::Sealed(seal.clone(), Box::new(part)),
            Some(_) | None => part,
        }
    }

    /// Frees the bytes if the outcome of the transaction that claimed them shows that no row names
    /// them. If that is unknown, the next start collects them.
    pub(crate) fn conclude<T, R>(
        self,
        outcome: Result<T, crate::Failure<R>>,
    ) -> Result<T, crate::Failure<R>> {
        match outcome {
            Ok(_) | Err(crate::Failure::OutcomeUnknown(_)) => {}
            Err(_) => self.claimed.store(false, Ordering::Relaxed),
        }
        outcome
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

/// Takes one reference off everything `content` refers to.
pub(crate) fn release(transaction: &mut Transaction, content: &Content) {
    match content {
        Content::Empty => {}
        Content::Inline(id) => transaction.delete(rows::inline_content(*id)),
        Content::Extents(pieces) => transaction.references.release(pieces),
        Content::Mapped(id) => transaction.references.release_map(*id),
    }
}

/// Takes one reference off everything `part` refers to.
pub(crate) fn release_part(transaction: &mut Transaction, part: &Part) {
    transaction.references.release(part.pieces());
}

/// Adds one reference to everything `part` refers to.
pub(crate) fn retain_part(transaction: &mut Transaction, part: &Part) {
    transaction.references.retain(part.pieces());
}

/// A second content with the same bytes; only bytes in a row are copied. `id` is unused by any
/// other content.
pub(crate) async fn share(
    transaction: &mut Transaction,
    content: &Content,
    id: u64,
) -> Result<Content, Fault> {
    match content {
        Content::Empty => {}
        Content::Inline(row) => {
            let bytes = transaction.get(&rows::inline_content(*row)).await?;
            let bytes = bytes.ok_or_else(|| missing_inline(*row))?;
            transaction.put(rows::inline_content(id), bytes);
            return Ok(Content::Inline(id));
        }
        Content::Extents(pieces) => transaction.references.retain(pieces),
        Content::Mapped(map) => transaction.references.retain_map(*map),
    }
    Ok(content.clone())
}

/// As [`share`], as a content that can be changed in place.
pub(crate) async fn share_as_map(
    transaction: &mut Transaction,
    content: &Content,
    id: u64,
) -> Result<Content, Fault> {
    let part = match content {
        Content::Empty | Content::Mapped(_) => return share(transaction, content, id).await,
        Content::Inline(row) => {
            let bytes = transaction.get(&rows::inline_content(*row)).await?;
            Part::Bytes(bytes.ok_or_else(|| missing_inline(*row))?)
        }
        Content::Extents(pieces) => {
            transaction.references.retain(pieces);
            Part::Extents(pieces.clone())
        }
    };
    let mut map = MapWriter::new(transaction, id);
    map.push(transaction, &Entry::whole(part, id));
    Ok(map.finish())
}

fn missing_inline(id: u64) -> Fault {
    Fault::new(format!("content {id} is missing"))
}

fn missing_extent(id: ExtentId) -> Fault {
    Fault::new(format!("the row of extent {}/{} is missing", id.segment, id.offset))
}
