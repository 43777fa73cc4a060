//! Reading a range of a content, in bounded memory and from one state of the store.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use holdfast_store::extents::Pin;
use holdfast_store::{Extent, ExtentId, Extents, Fault, Snapshot};

use super::layers::Walk;
use super::references::ExtentRow;
use super::rows;
use super::seal::{FRAME_BYTES, FrameKey};
use super::{Content, CustomerKey, Entry, Part, Piece, Seal, missing_extent, missing_inline};
use crate::rows::Stored;
use crate::yield_budget::YieldBudget;

/// Zeros returned at a time.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// Short pieces are combined, since each costs a write to the client: up to so many bytes and pieces.
/// For longer ones the copy would cost more.
const TOGETHER_BYTES_MAX: u64 = 64 * 1024;
const TOGETHER_PIECES_MAX: usize = 64;

/// What a reader keeps of a map that it has scanned, and the entries read at a time; the rest is
/// looked up again. There may be many slow clients.
const KEPT_BYTES_MAX: usize = 128 * 1024;

/// A range of a content, returned piece by piece; its bytes stay in place until it is dropped,
/// whatever happens to the blob meanwhile.
#[derive(Clone)]
pub struct ContentReader {
    extents: Arc<dyn Extents>,
    spans: VecDeque<Span>,
    /// What of a map is still to be looked up.
    unread: Option<Unread>,
    remaining: u64,
    key: Option<CustomerKey>,
    _pin: Option<Arc<Pin>>,
}

#[derive(Clone)]
enum Span {
    Bytes(Bytes),
    Zeros(u64),
    Extent(Extent, Range<u64>),
    Sealed(Box<SealedSpan>),
}

/// A range of a sealed part, frame by frame.
#[derive(Clone)]
struct SealedSpan {
    key: Arc<FrameKey>,
    seal: Seal,
    /// The sealed bytes of all frames that the range touches.
    sealed: VecDeque<Span>,
    /// What has been read of the next frame.
    buffered: BytesMut,
    frame: u64,
    /// Bytes of the next frame that lie before the range.
    skip: usize,
    remaining: u64,
}

impl Span {
    fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Zeros(length) => *length,
            Self::Extent(_, range) => range.end - range.start,
            Self::Sealed(span) => span.remaining,
        }
    }

    /// Its size in memory, without the keys of sealed parts.
    fn kept_bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Bytes(bytes) => bytes.len(),
                Self::Zeros(_) => 0,
                Self::Extent(extent, _) => size_of_val(&*extent.checksums),
                Self::Sealed(span) => {
                    let sealed: usize = span.sealed.iter().map(Self::kept_bytes).sum();
                    size_of::<SealedSpan>() + sealed
                }
            }
    }

    fn part(&self, range: Range<u64>) -> Self {
        match self {
            Self::Bytes(bytes) => {
                Self::Bytes(bytes.slice(range.start as usize..range.end as usize))
            }
            Self::Zeros(_) => Self::Zeros(range.end - range.start),
            Self::Extent(extent, within) => {
                let part = within.start + range.start..within.start + range.end;
                Self::Extent(extent.clone(), part)
            }
            Self::Sealed(span) => Self::Sealed(Box::new(span.part(range))),
        }
    }
}

/// The parts of `spans` that lie in `range`, counted from the first one's beginning.
fn parts(spans: &VecDeque<Span>, range: Range<u64>) -> VecDeque<Span> {
    let mut parts = VecDeque::new();
    let mut begin = 0;
    for span in spans {
        let end = begin + span.length();
        let (first, last) = (begin.max(range.start), end.min(range.end));
        if first < last {
            parts.push_back(span.part(first - begin..last - begin));
        }
        begin = end;
    }
    parts
}

#[derive(Clone)]
struct Unread {
    snapshot: Arc<dyn Snapshot>,
    walk: Walk,
    /// The range for which there are no spans yet.
    range: Range<u64>,
}

impl ContentReader {
    /// `pin` was taken before `snapshot`.
    pub(crate) async fn open(
        extents: &Arc<dyn Extents>,
        snapshot: Box<dyn Snapshot>,
        pin: Pin,
        content: &Content,
        range: Range<u64>,
        key: Option<CustomerKey>,
    ) -> Result<Self, Fault> {
        let mut reader = Self {
            extents: Arc::clone(extents),
            spans: VecDeque::new(),
            unread: None,
            remaining: range.end - range.start,
            key,
            _pin: None,
        };
        match content {
            _ if range.is_empty() => {}
            // The reserved size of a page blob that was never written.
            Content::Empty => reader.spans.push_back(Span::Zeros(reader.remaining)),
            Content::Inline(id) => {
                let bytes = snapshot.get(&rows::inline_content(*id)).await?;
                let bytes = bytes.filter(|bytes| bytes.len() as u64 >= range.end);
                let bytes = bytes.ok_or_else(|| missing_inline(*id))?;
                let asked = bytes.slice(range.start as usize..range.end as usize);
                reader.spans.push_back(Span::Bytes(asked));
            }
            Content::Extents(pieces) => {
                reader.spans = extent_spans(&*snapshot, pieces, range).await?;
                reader.pin(&pieces.iter().map(Piece::extent).collect::<Vec<_>>());
            }
            Content::Mapped(map) => {
                let walk = Walk::new(*map, range.clone());
                let unread = Unread { snapshot: Arc::from(snapshot), walk, range };
                reader.read_map(unread).await?;
            }
        }
        drop(pin);
        Ok(reader)
    }

    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// A reader of a part of what remains here, from the same state.
    pub fn part(&self, range: Range<u64>) -> Self {
        let mut part = Self {
            extents: Arc::clone(&self.extents),
            spans: parts(&self.spans, range.clone()),
            unread: None,
            remaining: range.end - range.start,
            key: self.key.clone(),
            _pin: self._pin.clone(),
        };
        let begin = self.spans.iter().map(Span::length).sum();
        if let Some(Unread { snapshot, walk, range: unread }) = &self.unread
            && begin < range.end
        {
            let start = unread.start + range.start.saturating_sub(begin);
            let range = start..unread.start + (range.end - begin);
            let (snapshot, walk) = (Arc::clone(snapshot), walk.part(range.clone()));
            part.unread = Some(Unread { snapshot, walk, range });
        }
        part
    }

    pub async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        let Some(first) = self.next_piece().await? else { return Ok(None) };
        let (mut length, mut together) = (first.len() as u64, BytesMut::new());
        for _ in 1..TOGETHER_PIECES_MAX {
            if self.remaining == 0 || length + self.next_length().await? > TOGETHER_BYTES_MAX {
                break;
            }
            if together.is_empty() {
                together.reserve(TOGETHER_BYTES_MAX.min(length + self.remaining) as usize);
                together.extend_from_slice(&first);
            }
            let Some(piece) = self.next_piece().await? else { break };
            together.extend_from_slice(&piece);
            length += piece.len() as u64;
        }
        Ok(Some(if together.is_empty() { first } else { together.freeze() }))
    }

    async fn next_piece(&mut self) -> Result<Option<Bytes>, Fault> {
        self.look_up().await?;
        let bytes = match self.spans.pop_front() {
            Some(Span::Sealed(mut span)) => {
                let bytes = span.next(&*self.extents).await?;
                if span.remaining > 0 {
                    self.spans.push_front(Span::Sealed(span));
                }
                Some(bytes)
            }
            Some(span) => {
                self.spans.push_front(span);
                next_plain(&*self.extents, &mut self.spans).await?
            }
            None => None,
        };
        if let Some(bytes) = &bytes {
            self.remaining -= bytes.len() as u64;
        }
        Ok(bytes)
    }

    /// How many bytes follow in one place; they may be returned in several pieces.
    async fn next_length(&mut self) -> Result<u64, Fault> {
        self.look_up().await?;
        Ok(self.spans.front().map_or(0, Span::length))
    }

    fn pin(&mut self, ids: &[ExtentId]) {
        self._pin = Some(Arc::new(self.extents.pin(ids)));
    }

    /// Scans the map once: pins every extent that the range needs, and keeps the first spans.
    async fn read_map(&mut self, mut unread: Unread) -> Result<(), Fault> {
        let mut pinned = Vec::new();
        let mut walk = unread.walk.clone();
        let (mut kept, mut yield_budget) = (0, YieldBudget::default());
        while !walk.is_done() {
            let found = walk.next(&*unread.snapshot).await?;
            for (_, entry) in &found {
                pinned.extend(entry.part.pieces().iter().map(Piece::extent));
            }
            if kept < KEPT_BYTES_MAX {
                kept += self.add_spans(&mut unread, &found).await?;
                unread.walk = walk.clone();
            }
            yield_budget.passed(found.len()).await;
        }
        self.pin(&pinned);
        self.go_on_with(unread);
        Ok(())
    }

    /// Looks up the next entries of the map if there is nothing else.
    async fn look_up(&mut self) -> Result<(), Fault> {
        while self.spans.is_empty()
            && let Some(mut unread) = self.unread.take()
        {
            let found = unread.walk.next(&*unread.snapshot).await?;
            self.add_spans(&mut unread, &found).await?;
            self.go_on_with(unread);
            YieldBudget::default().passed(found.len()).await;
        }
        Ok(())
    }

    /// The snapshot is released with the last entries.
    fn go_on_with(&mut self, unread: Unread) {
        if !unread.walk.is_done() {
            self.unread = Some(unread);
        } else if !unread.range.is_empty() {
            self.spans.push_back(Span::Zeros(unread.range.end - unread.range.start));
        }
    }

    /// Adds spans for the next entries and the zeros between them. Returns their size in memory.
    async fn add_spans(
        &mut self,
        unread: &mut Unread,
        found: &[(u64, Entry)],
    ) -> Result<usize, Fault> {
        let before = self.spans.len();
        let rest = &mut unread.range;
        for (offset, entry) in found {
            if *offset > rest.start {
                self.spans.push_back(Span::Zeros(offset - rest.start));
            }
            let end = (offset + entry.length).min(rest.end);
            let begin = (*offset).max(rest.start);
            let range = entry.start + begin - offset..entry.start + end - offset;
            let spans = self.part_spans(&*unread.snapshot, &entry.part, range).await?;
            self.spans.extend(spans);
            rest.start = end;
        }
        Ok(self.spans.iter().skip(before).map(Span::kept_bytes).sum())
    }

    async fn part_spans(
        &self,
        snapshot: &dyn Snapshot,
        part: &Part,
        range: Range<u64>,
    ) -> Result<VecDeque<Span>, Fault> {
        let Part::Sealed(seal, part) = part else {
            return plain_spans(snapshot, part, range).await;
        };
        let key = self.key.as_ref().ok_or_else(|| Fault::new("a sealed part without its key"))?;
        let first = range.start / FRAME_BYTES;
        let end = Seal::sealed_offset(range.end.div_ceil(FRAME_BYTES)).min(seal.sealed_length());
        let span = SealedSpan {
            key: Arc::new(FrameKey::new(key, &seal.salt)),
            seal: seal.clone(),
            sealed: plain_spans(snapshot, part, Seal::sealed_offset(first)..end).await?,
            buffered: BytesMut::new(),
            frame: first,
            skip: (range.start - first * FRAME_BYTES) as usize,
            remaining: range.end - range.start,
        };
        Ok(VecDeque::from([Span::Sealed(Box::new(span))]))
    }
}

impl SealedSpan {
    fn part(&self, range: Range<u64>) -> Self {
        let start = self.skip as u64 + range.start;
        let frames = start / FRAME_BYTES;
        let mut sealed = self.sealed.clone();
        sealed.push_front(Span::Bytes(self.buffered.clone().freeze()));
        Self {
            key: Arc::clone(&self.key),
            seal: self.seal.clone(),
            sealed: parts(&sealed, Seal::sealed_offset(frames)..u64::MAX),
            buffered: BytesMut::new(),
            frame: self.frame + frames,
            skip: (start - frames * FRAME_BYTES) as usize,
            remaining: range.end - range.start,
        }
    }

    /// The bytes of the range in the next frame.
    async fn next(&mut self, extents: &dyn Extents) -> Result<Bytes, Fault> {
        let length = self.seal.frame_length(self.frame);
        while self.buffered.len() < length {
            let bytes = next_plain(extents, &mut self.sealed).await?;
            let bytes = bytes.ok_or_else(|| Fault::new("a sealed part is cut short"))?;
            self.buffered.extend_from_slice(&bytes);
        }
        let frame = self.buffered.split_to(length);
        let mut plain = self.key.open(self.frame, frame)?;
        plain.advance(std::mem::take(&mut self.skip));
        plain.truncate(self.remaining.min(plain.len() as u64) as usize);
        self.frame += 1;
        self.remaining -= plain.len() as u64;
        Ok(plain)
    }
}

/// The next bytes of spans that are not sealed.
async fn next_plain(
    extents: &dyn Extents,
    spans: &mut VecDeque<Span>,
) -> Result<Option<Bytes>, Fault> {
    let bytes = match spans.pop_front() {
        None => return Ok(None),
        Some(Span::Bytes(bytes)) => bytes,
        Some(Span::Zeros(length)) => {
            let now = length.min(ZEROS.len() as u64);
            if now < length {
                spans.push_front(Span::Zeros(length - now));
            }
            Bytes::from_static(&ZEROS[..now as usize])
        }
        Some(Span::Extent(extent, range)) => {
            let bytes = extents.read(&extent, range.clone()).await?;
            let rest = range.start + bytes.len() as u64..range.end;
            if !rest.is_empty() {
                spans.push_front(Span::Extent(extent, rest));
            }
            bytes
        }
        Some(Span::Sealed(_)) => return Err(Fault::new("a part is sealed twice")),
    };
    Ok(Some(bytes))
}

/// The spans of a range of a part as it is stored.
async fn plain_spans(
    snapshot: &dyn Snapshot,
    part: &Part,
    range: Range<u64>,
) -> Result<VecDeque<Span>, Fault> {
    match part {
        Part::Bytes(bytes) => {
            let bytes = bytes.slice(range.start as usize..range.end as usize);
            Ok(VecDeque::from([Span::Bytes(bytes)]))
        }
        Part::Extents(pieces) => extent_spans(snapshot, pieces, range).await,
        Part::Hole => Ok(VecDeque::from([Span::Zeros(range.end - range.start)])),
        Part::Sealed(..) => Err(Fault::new("a part is sealed twice")),
    }
}

async fn extent_spans(
    snapshot: &dyn Snapshot,
    pieces: &[Piece],
    range: Range<u64>,
) -> Result<VecDeque<Span>, Fault> {
    let mut spans = VecDeque::new();
    let mut begin = 0;
    for piece in pieces {
        let end = begin + piece.length;
        let (first, last) = (begin.max(range.start), end.min(range.end));
        if first < last {
            let extent = read_extent_row(snapshot, piece.extent()).await?;
            let within = piece.start + first - begin..piece.start + last - begin;
            spans.push_back(Span::Extent(extent, within));
        }
        begin = end;
    }
    Ok(spans)
}

async fn read_extent_row(snapshot: &dyn Snapshot, id: ExtentId) -> Result<Extent, Fault> {
    let row = snapshot.get(&rows::extent(id)).await?.ok_or_else(|| missing_extent(id))?;
    let ExtentRow { length, checksums, .. } = ExtentRow::decode(&row)?;
    Ok(Extent { id, length, checksums })
}

#[cfg(test)]
mod tests;
