//! The bytes of the write-ahead log: segment headers, records, the checkpoint; and the segment that
//! is being written. What they mean together is decided in `recovery`.
//!
//! A segment is a file of fixed size whose blocks have all been written before, so that syncing a
//! group of records changes no metadata. It is reused; every use is an incarnation with its own
//! number, which each record carries, so that a leftover of an earlier use is never taken for a
//! record of this one.

#![allow(unsafe_code, reason = "fallocate has no safe form that says which blocks are written")]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::{BufMut, Bytes, BytesMut};

use super::Durability;
use super::folder::{OpenFolder, own_file};
use crate::engine::Write;

/// Groups begin at multiples of this: no write ever touches a block that holds an acknowledged
/// record, so a torn write cannot damage one.
pub(super) const BLOCK_BYTES: usize = 4096;
const RECORD_HEADER_BYTES: usize = 32;
/// Records begin at multiples of this, so that the length of one is never cut by the end of a block.
const RECORD_ALIGNMENT: usize = 8;

const SEGMENT_MAGIC: &[u8; 8] = b"HFLOG\0\0\x01";
const SEGMENT_HEADER_BYTES: usize = 32;
const CHECKPOINT_MAGIC: &[u8; 8] = b"HFCHKP\0\x01";
const CHECKPOINT_BYTES: usize = 28;
const CHECKPOINT_FILE: &str = "checkpoint";
const CHECKPOINT_DRAFT: &str = "checkpoint.tmp";

const RECORD_FIRST_OF_GROUP: u32 = 1;
const RECORD_CONTINUES_GROUP: u32 = 2;
const WRITE_PUT: u8 = 1;
const WRITE_DELETE: u8 = 2;

/// Everything up to here is in the tree's own files; the log before it is not needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Checkpoint {
    pub incarnation: u64,
    /// Of the last record of that incarnation or, if it had none, of an earlier one.
    pub sequence: u64,
}

impl Checkpoint {
    pub fn store(self, folder: &OpenFolder) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(CHECKPOINT_BYTES);
        bytes.put_slice(CHECKPOINT_MAGIC);
        bytes.put_u64_le(self.incarnation);
        bytes.put_u64_le(self.sequence);
        bytes.put_u32_le(crc32c::crc32c(&bytes));
        folder.replace_file(CHECKPOINT_FILE, CHECKPOINT_DRAFT, &bytes)
    }

    /// None was stored: the log is needed from its beginning.
    pub fn load(folder: &Path) -> io::Result<Self> {
        let bytes = match fs::read(folder.join(CHECKPOINT_FILE)) {
            Ok(bytes) => bytes,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(why) => return Err(why),
        };
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the checkpoint is damaged");
        if bytes.len() != CHECKPOINT_BYTES
            || !bytes.starts_with(CHECKPOINT_MAGIC)
            || u32_at(&bytes, 24) != Some(crc32c::crc32c(&bytes[..24]))
        {
            return Err(damaged());
        }
        let incarnation = u64_at(&bytes, 8).ok_or_else(damaged)?;
        let sequence = u64_at(&bytes, 16).ok_or_else(damaged)?;
        Ok(Self { incarnation, sequence })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub incarnation: u64,
    /// Of the last record before this segment.
    pub base_sequence: u64,
    pub durability: Durability,
}

impl SegmentHeader {
    fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BLOCK_BYTES);
        bytes.put_slice(SEGMENT_MAGIC);
        bytes.put_u64_le(self.incarnation);
        bytes.put_u64_le(self.base_sequence);
        bytes.put_u32_le(match self.durability {
            Durability::Fsync => 1,
            Durability::Relaxed => 0,
        });
        bytes.put_u32_le(crc32c::crc32c(&bytes));
        bytes.resize(BLOCK_BYTES, 0);
        bytes
    }

    /// `None` if the segment was never begun, or a crash cut its header before any record.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..SEGMENT_HEADER_BYTES)?;
        if !bytes.starts_with(SEGMENT_MAGIC) || u32_at(bytes, 28)? != crc32c::crc32c(&bytes[..28]) {
            return None;
        }
        Some(Self {
            incarnation: u64_at(bytes, 8)?,
            base_sequence: u64_at(bytes, 16)?,
            durability: match u32_at(bytes, 24)? {
                0 => Durability::Relaxed,
                _ => Durability::Fsync,
            },
        })
    }
}

/// An unused log file whose blocks are allocated and written.
pub(super) struct Spare {
    pub file: File,
    pub path: PathBuf,
    pub capacity: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fill {
    /// Write every block: slow to create, but later syncs write only data.
    Zeros,
    /// Only reserve the space, for a segment that is written once: syncing it costs more.
    Reserved,
}

impl Spare {
    pub fn create(folder: &OpenFolder, number: u64, capacity: u64, fill: Fill) -> io::Result<Self> {
        let path = folder.path().join(format!("{number:08}.log"));
        let file = own_file().read(true).write(true).create_new(true).open(&path)?;
        let filled = match fill {
            Fill::Zeros => fill_with_zeros(&file, capacity),
            Fill::Reserved => reserve(&file, capacity),
        };
        let durable = filled.and_then(|()| file.sync_all()).and_then(|()| folder.sync());
        if fill == Fill::Zeros && durable.is_ok() {
            // Long writes leave pages of up to 2 MiB in the page cache of newer kernels, and then each sync
            // of a block handles a whole one. This is only advice to the kernel.
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        }
        if let Err(why) = durable {
            // A file that did not fit must not keep its space.
            fs::remove_file(&path)?;
            return Err(why);
        }
        Ok(Self { file, path, capacity })
    }

    pub fn open(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        let capacity = file.metadata()?.len();
        Ok(Self { file, path, capacity })
    }

    pub fn begin(self, header: SegmentHeader) -> io::Result<ActiveSegment> {
        self.file.write_all_at(&header.encode(), 0)?;
        // Before the first record: then every incarnation number in a record on disk is also in a
        // header, and no later opening reuses it.
        self.file.sync_data()?;
        Ok(ActiveSegment {
            spare: self,
            incarnation: header.incarnation,
            last_sequence: header.base_sequence,
            position: BLOCK_BYTES as u64,
        })
    }
}

const ZEROS_BYTES: usize = 1024 * 1024;

fn fill_with_zeros(file: &File, capacity: u64) -> io::Result<()> {
    let zeros = vec![0; ZEROS_BYTES.min(capacity as usize)];
    let mut position = 0;
    while position < capacity {
        let length = zeros.len().min((capacity - position) as usize);
        file.write_all_at(&zeros[..length], position)?;
        position += length as u64;
    }
    Ok(())
}

pub(super) fn reserve(file: &File, capacity: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let length = libc::off_t::try_from(capacity)
        .map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
    // SAFETY: the descriptor is open for the whole call.
    match unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            // Not every file system can reserve; a length is enough to be correct.
            why if why.raw_os_error() == Some(libc::EOPNOTSUPP) => file.set_len(capacity),
            why => Err(why),
        },
    }
}

/// The segment that is being written.
pub(super) struct ActiveSegment {
    spare: Spare,
    pub incarnation: u64,
    pub last_sequence: u64,
    position: u64,
}

impl ActiveSegment {
    pub fn bytes_left(&self) -> u64 {
        self.spare.capacity - self.position
    }

    pub fn append(&mut self, group: &Group) -> io::Result<()> {
        self.spare.file.write_all_at(&group.content(), self.position)?;
        self.position += group.bytes();
        self.last_sequence = group.last_sequence;
        Ok(())
    }

    pub fn sync(&self) -> io::Result<()> {
        self.spare.file.sync_data()
    }

    pub fn seal(self) -> SealedSegment {
        let checkpoint = Checkpoint { incarnation: self.incarnation, sequence: self.last_sequence };
        SealedSegment { spare: self.spare, checkpoint }
    }
}

/// A segment whose records are on their way into the tree's files.
pub(super) struct SealedSegment {
    pub spare: Spare,
    /// What can be stored once they are there.
    pub checkpoint: Checkpoint,
}

/// A batch as the log holds it, without what depends on its place.
pub(super) struct Record(BytesMut);

/// Where a record is.
pub(super) struct RecordPlace {
    pub incarnation: u64,
    pub sequence: u64,
    pub is_first_of_group: bool,
}

/// A record ready to be written. Its checksum covers its place.
pub(super) struct PlacedRecord(Bytes);

impl Record {
    pub fn encode(writes: &[Write]) -> Self {
        let mut bytes = BytesMut::with_capacity(RECORD_HEADER_BYTES + payload_bytes(writes));
        bytes.put_bytes(0, RECORD_HEADER_BYTES);
        encode_writes(&mut bytes, writes);
        Self(bytes)
    }

    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    pub fn place(self, place: &RecordPlace) -> PlacedRecord {
        let Self(mut bytes) = self;
        let payload = bytes.len() - RECORD_HEADER_BYTES;
        let kind = match place.is_first_of_group {
            true => RECORD_FIRST_OF_GROUP,
            false => RECORD_CONTINUES_GROUP,
        };
        let mut header = &mut bytes[4..RECORD_HEADER_BYTES];
        header.put_u32_le(payload as u32);
        header.put_u64_le(place.incarnation);
        header.put_u64_le(place.sequence);
        header.put_u32_le(kind);
        let checksum = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        PlacedRecord(bytes.freeze())
    }
}

impl PlacedRecord {
    /// The writes, which share the memory of the record, so that no row keeps a whole request body
    /// alive.
    pub fn writes(&self) -> Vec<Write> {
        decode_writes(&self.0.slice(RECORD_HEADER_BYTES..)).expect("a record decodes as encoded")
    }
}

/// Records that are written and synced together.
#[derive(Default)]
pub(super) struct Group {
    records: Vec<PlacedRecord>,
    /// Without the padding of its last block.
    bytes: usize,
    pub last_sequence: u64,
}

impl Group {
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// What the group takes of a segment.
    pub fn bytes(&self) -> u64 {
        self.bytes.next_multiple_of(BLOCK_BYTES) as u64
    }

    /// What it takes with one more record of so many bytes.
    pub fn bytes_with(&self, record_bytes: usize) -> u64 {
        let bytes = self.bytes + record_bytes.next_multiple_of(RECORD_ALIGNMENT);
        bytes.next_multiple_of(BLOCK_BYTES) as u64
    }

    pub fn push(&mut self, record: PlacedRecord, sequence: u64) {
        self.bytes += record.0.len().next_multiple_of(RECORD_ALIGNMENT);
        self.records.push(record);
        self.last_sequence = sequence;
    }

    fn content(&self) -> Vec<u8> {
        let mut content = Vec::with_capacity(self.bytes() as usize);
        for PlacedRecord(record) in &self.records {
            content.extend_from_slice(record);
            content.resize(content.len().next_multiple_of(RECORD_ALIGNMENT), 0);
        }
        content.resize(content.len().next_multiple_of(BLOCK_BYTES), 0);
        content
    }
}

fn payload_bytes(writes: &[Write]) -> usize {
    writes
        .iter()
        .map(|write| match write {
            Write::Put { key, value } => 1 + 2 + 4 + key.len() + value.len(),
            Write::Delete { key } => 1 + 2 + key.len(),
        })
        .sum()
}

fn encode_writes(bytes: &mut BytesMut, writes: &[Write]) {
    for write in writes {
        match write {
            Write::Put { key, value } => {
                bytes.put_u8(WRITE_PUT);
                bytes.put_u16_le(key.len() as u16);
                bytes.put_u32_le(value.len() as u32);
                bytes.put_slice(key);
                bytes.put_slice(value);
            }
            Write::Delete { key } => {
                bytes.put_u8(WRITE_DELETE);
                bytes.put_u16_le(key.len() as u16);
                bytes.put_slice(key);
            }
        }
    }
}

/// The writes of a record, sharing its memory; none if the payload is not what `encode` makes.
pub(super) fn decode_writes(payload: &Bytes) -> Option<Vec<Write>> {
    let mut writes = Vec::new();
    let mut position = 0;
    while position < payload.len() {
        let tag = *payload.get(position)?;
        let key_bytes = usize::from(u16_at(payload, position + 1)?);
        match tag {
            WRITE_PUT => {
                let value_bytes = u32_at(payload, position + 3)? as usize;
                let key = part(payload, position + 7, key_bytes)?;
                let value = part(payload, position + 7 + key_bytes, value_bytes)?;
                writes.push(Write::Put { key, value });
                position += 7 + key_bytes + value_bytes;
            }
            WRITE_DELETE => {
                let key = part(payload, position + 3, key_bytes)?;
                writes.push(Write::Delete { key });
                position += 3 + key_bytes;
            }
            _ => return None,
        }
    }
    Some(writes)
}

fn part(bytes: &Bytes, start: usize, length: usize) -> Option<Bytes> {
    let end = start.checked_add(length)?;
    (end <= bytes.len()).then(|| bytes.slice(start..end))
}

/// Reads the records of one incarnation, up to the first incomplete one.
pub(super) struct SegmentReader {
    content: Bytes,
    incarnation: u64,
    position: usize,
    last_sequence: u64,
}

impl SegmentReader {
    pub fn new(content: Bytes, header: SegmentHeader) -> Self {
        Self {
            content,
            incarnation: header.incarnation,
            position: BLOCK_BYTES,
            last_sequence: header.base_sequence,
        }
    }

    pub fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    pub fn position(&self) -> usize {
        self.position
    }

    /// Whether a group was begun after the place where reading ended. With synced groups, what was
    /// there had been acknowledged by then, so it is damaged, not torn.
    pub fn later_group_exists(&self) -> bool {
        let mut boundary = (self.position + 1).next_multiple_of(BLOCK_BYTES);
        while boundary < self.content.len() {
            let found = self.record_at(boundary);
            if found.is_some_and(|found| found.kind == RECORD_FIRST_OF_GROUP) {
                return true;
            }
            boundary += BLOCK_BYTES;
        }
        false
    }

    fn record_at(&self, position: usize) -> Option<FoundRecord> {
        let header = self.content.get(position..position.checked_add(RECORD_HEADER_BYTES)?)?;
        let length = u32_at(header, 4)? as usize;
        let incarnation = u64_at(header, 8)?;
        let sequence = u64_at(header, 16)?;
        if length == 0 || incarnation != self.incarnation || sequence <= self.last_sequence {
            return None;
        }
        let payload = part(&self.content, position + RECORD_HEADER_BYTES, length)?;
        let checked = &self.content[position + 4..position + RECORD_HEADER_BYTES + length];
        if u32_at(header, 0)? != crc32c::crc32c(checked) {
            return None;
        }
        Some(FoundRecord { sequence, kind: u32_at(header, 24)?, payload })
    }
}

struct FoundRecord {
    sequence: u64,
    kind: u32,
    payload: Bytes,
}

impl Iterator for SegmentReader {
    type Item = (u64, Bytes);

    fn next(&mut self) -> Option<Self::Item> {
        if !self.position.is_multiple_of(BLOCK_BYTES)
            && u64_at(&self.content, self.position) == Some(0)
        {
            self.position = self.position.next_multiple_of(BLOCK_BYTES);
        }
        let found = self.record_at(self.position)?;
        self.position +=
            (RECORD_HEADER_BYTES + found.payload.len()).next_multiple_of(RECORD_ALIGNMENT);
        self.last_sequence = found.sequence;
        Some((found.sequence, found.payload))
    }
}

fn u16_at(bytes: &[u8], position: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(position..position + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], position: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(position..position + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], position: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(position..position + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: SegmentHeader =
        SegmentHeader { incarnation: 7, base_sequence: 10, durability: Durability::Fsync };

    fn put(key: &str, value_bytes: usize) -> Write {
        Write::Put { key: key.to_owned().into(), value: vec![b'v'; value_bytes].into() }
    }

    fn group(incarnation: u64, batches: &[(u64, Vec<Write>)]) -> Vec<u8> {
        let mut group = Group::default();
        for (sequence, writes) in batches {
            let is_first_of_group = group.is_empty();
            let place = RecordPlace { incarnation, sequence: *sequence, is_first_of_group };
            group.push(Record::encode(writes).place(&place), *sequence);
        }
        assert_eq!(group.bytes(), group.content().len() as u64);
        group.content()
    }

    /// Three groups: records 11 and 12, record 13, records 14 and 15.
    fn segment() -> (Vec<u8>, Vec<usize>) {
        let mut content = HEADER.encode();
        let mut starts = Vec::new();
        for batches in [
            vec![
                (11, vec![put("a", 5)]),
                (12, vec![put("b", 100), Write::Delete { key: "a".into() }]),
            ],
            vec![(13, vec![put("c", 4000)])],
            vec![(14, vec![put("d", 9)]), (15, vec![put("e", 4100)])],
        ] {
            starts.push(content.len());
            content.extend_from_slice(&group(7, &batches));
        }
        content.resize(content.len() + 3 * BLOCK_BYTES, 0xAA);
        (content, starts)
    }

    fn sequences(content: &[u8]) -> (Vec<u64>, bool) {
        let mut reader = SegmentReader::new(Bytes::copy_from_slice(content), HEADER);
        let read = reader.by_ref().map(|(sequence, _)| sequence).collect();
        (read, reader.later_group_exists())
    }

    #[test]
    fn records_read_back_as_written() {
        let (content, _) = segment();
        assert_eq!(SegmentHeader::decode(&content), Some(HEADER));
        assert_eq!(sequences(&content), (vec![11, 12, 13, 14, 15], false));
        let mut reader = SegmentReader::new(content.into(), HEADER);
        let (_, payload) = reader.nth(1).unwrap();
        let writes = decode_writes(&payload).unwrap();
        assert_eq!(writes, [put("b", 100), Write::Delete { key: "a".into() }]);
    }

    #[test]
    fn cut_anywhere_leaves_whole_records_in_order() {
        let (content, _) = segment();
        for end in BLOCK_BYTES..content.len() {
            let (read, _) = sequences(&content[..end]);
            let expected: Vec<u64> = (11..).take(read.len()).collect();
            assert_eq!(read, expected, "cut at {end}");
        }
    }

    #[test]
    fn damage_before_a_later_group_is_told_from_a_torn_end() {
        let (content, starts) = segment();
        let mut torn = content.clone();
        torn[starts[2] + 40] ^= 1;
        assert_eq!(sequences(&torn), (vec![11, 12, 13], false));
        let mut damaged = content;
        damaged[starts[1] + 40] ^= 1;
        assert_eq!(sequences(&damaged), (vec![11, 12], true));
    }

    #[test]
    fn record_of_an_earlier_incarnation_ends_the_segment() {
        let (mut content, starts) = segment();
        let stale = group(6, &[(14, vec![put("d", 9)])]);
        content[starts[2]..starts[2] + stale.len()].copy_from_slice(&stale);
        assert_eq!(sequences(&content).0, [11, 12, 13]);
    }

    #[test]
    fn header_with_a_flipped_bit_is_no_header() {
        for bit in 0..SEGMENT_HEADER_BYTES * 8 {
            let mut bytes = HEADER.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::decode(&bytes), None, "bit {bit}");
        }
    }

    #[test]
    fn checkpoint_with_a_flipped_bit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let stored = Checkpoint { incarnation: 3, sequence: 99 };
        assert_eq!(Checkpoint::load(folder.path()).unwrap(), Checkpoint::default());
        stored.store(&OpenFolder::open(folder.path()).unwrap()).unwrap();
        assert_eq!(Checkpoint::load(folder.path()).unwrap(), stored);
        let file = folder.path().join(CHECKPOINT_FILE);
        let mut bytes = fs::read(&file).unwrap();
        bytes[10] ^= 1;
        fs::write(&file, bytes).unwrap();
        assert!(Checkpoint::load(folder.path()).is_err());
    }

    #[test]
    fn payload_that_lies_about_its_lengths_is_refused() {
        let place = RecordPlace { incarnation: 1, sequence: 1, is_first_of_group: true };
        let PlacedRecord(record) = Record::encode(&[put("key", 20)]).place(&place);
        let whole = record.slice(RECORD_HEADER_BYTES..);
        assert!(decode_writes(&whole).is_some());
        for end in 1..whole.len() {
            assert!(decode_writes(&whole.slice(..end)).is_none(), "cut at {end}");
        }
    }
}
