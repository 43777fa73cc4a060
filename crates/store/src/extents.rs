//! The contract of a byte store: streams appended as immutable, checksummed extents.
//!
//! An extent is durable when [`ExtentWriter::finish`] returns it, before any row names it: a crash
//! between the two leaves garbage for [`Extents::keep_only`], never a row without bytes. The
//! descriptor [`Extent`] carries the checksums, so a caller keeps it in a row and hands it back to
//! read.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::engine::Fault;

/// Each checksum covers this many bytes of an extent (the last one may cover fewer).
pub const PIECE_BYTES: u64 = 64 * 1024;
/// A longer stream becomes several extents, so that a descriptor stays a small row.
pub const EXTENT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The most that one call of [`Extents::read`] returns.
pub const READ_BYTES_MAX: u64 = 1024 * 1024;

/// Where an extent begins. Ordered by segment, then offset; never reused while a row names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtentId {
    pub segment: u64,
    pub offset: u64,
}

impl ExtentId {
    /// Big-endian, so that keys made of it sort as ids do.
    pub fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.segment) << 64 | u128::from(self.offset)).to_be_bytes()
    }

    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let whole = u128::from_be_bytes(bytes);
        Self { segment: (whole >> 64) as u64, offset: whole as u64 }
    }
}

/// Everything needed to read an extent back and to know that the bytes are the ones written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    pub id: ExtentId,
    pub length: u64,
    /// CRC-32C of each [`PIECE_BYTES`] of the content.
    pub checksums: Arc<[u32]>,
}

#[async_trait]
pub trait Extents: Send + Sync + 'static {
    fn writer(&self) -> Box<dyn ExtentWriter>;

    /// The bytes of `range`, or a first part of them (at least one byte, at most
    /// [`READ_BYTES_MAX`]); every piece touched is verified. Cached bytes are returned without
    /// leaving the calling thread.
    ///
    /// # Panics
    /// If `range` is empty or reaches past the end of the extent.
    async fn read(&self, extent: &Extent, range: Range<u64>) -> Result<Bytes, Fault>;

    /// Holds back every [`Extents::free`] that is called from now on, until dropped. Taken before
    /// the row that names an extent is read, and replaced by a [`Extents::pin`] as soon as the
    /// extents are known: it delays the reclaim of all extents.
    fn pin_all(&self) -> Pin;

    /// Holds back the reclaim of these extents until dropped.
    fn pin(&self, extents: &[ExtentId]) -> Pin;

    /// Gives the space of an extent back once nobody who pinned it still reads it. The caller has
    /// committed that no row names it any more.
    fn free(&self, id: ExtentId, length: u64);

    /// Segments of earlier runs: anything in them that no row names is garbage.
    fn inherited_segments(&self) -> Vec<u64>;

    /// Frees everything in an inherited segment but `live`: the extents, in order, that rows named
    /// at some moment after the store was opened.
    fn keep_only(&self, segment: u64, live: &[(ExtentId, u64)]);

    /// Why nothing is written any more, once a write or sync has failed. Reads go on.
    fn poisoned(&self) -> Option<Fault>;

    fn statistics(&self) -> ExtentStatistics;
}

/// If it is dropped without `finish`, what was appended is freed.
#[async_trait]
pub trait ExtentWriter: Send {
    async fn append(&mut self, bytes: Bytes) -> Result<(), Fault>;

    /// Makes everything appended durable. No bytes: no extents.
    async fn finish(self: Box<Self>) -> Result<Vec<Extent>, Fault>;
}

/// Releases what it holds when dropped.
pub struct Pin(#[allow(dead_code, reason = "held for its Drop")] Box<dyn Send + Sync>);

impl Pin {
    pub fn new(held: impl Send + Sync + 'static) -> Self {
        Self(Box::new(held))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtentStatistics {
    pub segments: u64,
    pub bytes_written: u64,
    pub bytes_freed: u64,
    pub syncs: u64,
}

/// The checksums of `content`, as a descriptor carries them.
pub fn checksums_of(content: &[u8]) -> Arc<[u32]> {
    content.chunks(PIECE_BYTES as usize).map(crc32c::crc32c).collect()
}
