//! Reading a range of an extent: whole pieces, each compared with its checksum.

use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use holdfast_sync::spawn_blocking;

use super::Shared;
use super::buffer::Lent;
use super::file::SegmentFile;
use crate::engine::Fault;
use crate::extents::{Extent, ExtentId, PIECE_BYTES, READ_BYTES_MAX};

/// A caller that asks for so much is likely to go on, and one read at a time would not keep the disk busy:
/// so this much is read ahead.
const LONG_READ_BYTES: u64 = 512 * 1024;
const AHEAD_BYTES: u64 = 4 * 1024 * 1024;

/// The pieces of an extent that a read touches, and what has been read of them.
struct PieceRead {
    id: ExtentId,
    /// Where in the extent the pieces begin.
    start: u64,
    checksums: Vec<u32>,
    bytes: usize,
    /// Bytes from the start of the pieces, including what will probably be read next.
    ahead: u64,
    buffer: Vec<u8>,
}

impl Shared {
    pub(super) async fn read(
        self: &Arc<Self>,
        extent: &Extent,
        range: Range<u64>,
    ) -> Result<Bytes, Fault> {
        assert!(range.start < range.end && range.end <= extent.length, "range outside the extent");
        // It ends at the end of a piece, so that reading a whole extent verifies none twice.
        let start = range.start - range.start % PIECE_BYTES;
        let end = range.end.min(start + READ_BYTES_MAX);
        let mut pieces = PieceRead::new(extent, start, end)?;
        let long = range.end - range.start >= LONG_READ_BYTES;
        if long {
            pieces.ahead = (range.end - start).max(AHEAD_BYTES).min(extent.length - start);
        }

        // A failed cached read makes the kernel begin to load the pages.
        let cached = self
            .files
            .get(extent.id.segment)
            .filter(|file| !(long && pieces.are_cold(&**file)))
            .map(|file| pieces.fill_from_cache(&*file));
        let bytes = match cached {
            Some(Ok(())) => pieces.verified()?,
            Some(Err(error)) if error.kind() != ErrorKind::WouldBlock => {
                return Err(pieces.unreadable(error));
            }
            Some(Err(_)) | None => {
                let shared = Arc::clone(self);
                spawn_blocking(move || pieces.read_from_disk(&shared, long))
                    .await
                    .map_err(|why| Fault::because("a read was given up", why))??
            }
        };
        let from = (range.start - start) as usize;
        let to = (end - start) as usize;
        Ok(part(&bytes, from..to))
    }
}

/// A caller may keep a part for long (for a slow client) and counts only its length. So a short
/// part does not keep its whole pieces in memory.
fn part(bytes: &Bytes, range: Range<usize>) -> Bytes {
    if range.len() < bytes.len() / 2 {
        Bytes::copy_from_slice(&bytes[range])
    } else {
        bytes.slice(range)
    }
}

impl PieceRead {
    fn new(extent: &Extent, start: u64, end: u64) -> Result<Self, Fault> {
        let Extent { id, length, checksums } = extent;
        if checksums.len() as u64 != length.div_ceil(PIECE_BYTES) {
            return Err(Fault::new(format!(
                "{} is described by {} checksums for {length} bytes",
                Named(*id),
                checksums.len()
            )));
        }
        let end_of_pieces = end.next_multiple_of(PIECE_BYTES).min(*length);
        let pieces = (start / PIECE_BYTES) as usize..end_of_pieces.div_ceil(PIECE_BYTES) as usize;
        let bytes = (end_of_pieces - start) as usize;
        Ok(Self {
            id: *id,
            start,
            checksums: checksums[pieces].to_vec(),
            bytes,
            ahead: bytes as u64,
            buffer: Vec::with_capacity(bytes),
        })
    }

    fn are_cold(&self, file: &dyn SegmentFile) -> bool {
        file.is_cold(self.offset(), self.bytes as u64)
    }

    /// In the segment.
    fn offset(&self) -> u64 {
        self.id.offset.saturating_add(self.start)
    }

    fn fill_from_cache(&mut self, file: &dyn SegmentFile) -> io::Result<()> {
        self.fill(|buffer, offset| file.read_cached_at(buffer, offset))
    }

    fn read_from_disk(mut self, shared: &Shared, long: bool) -> Result<Bytes, Fault> {
        let file = match shared.file(self.id.segment) {
            Ok(file) => file,
            Err(error) => return Err(self.unreadable(error)),
        };
        if long
            && self.buffer.is_empty()
            && self.are_cold(&*file)
            && !shared.recent_reads.record(self.id.segment, self.offset())
        {
            let mut lent = Lent::from(&shared.chunks);
            match file.read_direct_at(lent.room(self.bytes), self.offset()) {
                Ok(()) => {
                    self.verify(lent.as_ref())?;
                    return Ok(Bytes::from_owner(lent));
                }
                Err(error) if error.kind() == ErrorKind::Unsupported => {}
                Err(error) => return Err(self.unreadable(error)),
            }
        }
        if self.ahead > self.bytes as u64 {
            file.will_need(self.offset(), self.ahead);
        }
        match self.fill(|buffer, offset| file.read_at(buffer, offset)) {
            Ok(()) => self.verified(),
            Err(error) => Err(self.unreadable(error)),
        }
    }

    /// Reads on from what the buffer already holds.
    fn fill(
        &mut self,
        mut read: impl FnMut(&mut Vec<u8>, u64) -> io::Result<usize>,
    ) -> io::Result<()> {
        while self.buffer.len() < self.bytes {
            let offset = (self.id.offset)
                .checked_add(self.start + self.buffer.len() as u64)
                .ok_or(ErrorKind::UnexpectedEof)?;
            if read(&mut self.buffer, offset)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        // The allocator may have given more room than asked for.
        self.buffer.truncate(self.bytes);
        Ok(())
    }

    fn verified(self) -> Result<Bytes, Fault> {
        self.verify(&self.buffer)?;
        Ok(self.buffer.into())
    }

    fn verify(&self, bytes: &[u8]) -> Result<(), Fault> {
        let pieces = bytes.chunks(PIECE_BYTES as usize).zip(&self.checksums);
        for (index, (piece, expected)) in pieces.enumerate() {
            let found = crc32c::crc32c(piece);
            if found != *expected {
                let piece_start = self.start + index as u64 * PIECE_BYTES;
                let what = format!(
                    "{} is damaged: the piece at {piece_start} has checksum {found:08x} instead \
                     of {expected:08x}",
                    Named(self.id)
                );
                tracing::error!("{what}");
                return Err(Fault::new(what));
            }
        }
        Ok(())
    }

    fn unreadable(&self, why: io::Error) -> Fault {
        let what = format!("{} cannot be read", Named(self.id));
        tracing::error!(%why, "{what}");
        Fault::because(what, why)
    }
}

struct Named(ExtentId);

impl std::fmt::Display for Named {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "extent (segment {}, offset {})", self.0.segment, self.0.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SegmentExtents, SegmentOptions};
    use crate::embedded::DataFolder;
    use crate::extents::Extents as _;

    #[tokio::test]
    async fn part_of_an_extent_keeps_little_more_in_memory_than_its_length() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::open(folder.path().join("data")).unwrap();
        let extents = SegmentExtents::open(&data, &SegmentOptions::default()).unwrap();
        let bytes: Vec<u8> = (0..1_000_000).map(|number| (number / 7) as u8).collect();
        let mut writer = extents.writer();
        writer.append(bytes.clone().into()).await.unwrap();
        let written = writer.finish().await.unwrap();
        let [extent] = &written[..] else { panic!("{} extents", written.len()) };
        for range in [0..1, 0..4096, 65_530..65_540, 999_999..1_000_000, 10..65_546, 0..500_000] {
            let read = extents.read(extent, range.clone()).await.unwrap();
            assert_eq!(read, bytes[range.start as usize..range.end as usize], "{range:?}");
            let length = read.len();
            let kept = read.try_into_mut().expect("nobody else has it").capacity();
            assert!(kept <= 2 * length + 1, "{kept} bytes for {range:?}");
        }
    }
}
