//! Extents as reference-counted buffers: a reader keeps what it reads by holding a reference.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use holdfast_sync::Mutex;

use crate::engine::Fault;
use crate::extents::{
    EXTENT_BYTES_MAX, Extent, ExtentId, ExtentStatistics, ExtentWriter, Extents, Pin,
    READ_BYTES_MAX, checksums_of,
};
use crate::pins::{FreedRange, Pins};

#[derive(Clone, Default)]
pub struct MemoryExtents {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    next_segment: u64,
    extents: HashMap<ExtentId, Bytes>,
    pins: Pins,
    statistics: ExtentStatistics,
}

#[async_trait]
impl Extents for MemoryExtents {
    fn writer(&self) -> Box<dyn ExtentWriter> {
        Box::new(MemoryWriter { extents: self.clone(), content: BytesMut::new(), done: Vec::new() })
    }

    async fn read(&self, extent: &Extent, range: Range<u64>) -> Result<Bytes, Fault> {
        assert!(range.start < range.end && range.end <= extent.length, "range outside the extent");
        let content = self
            .state
            .lock()
            .extents
            .get(&extent.id)
            .cloned()
            .ok_or_else(|| Fault::new(format!("extent {:?} is not in memory", extent.id)))?;
        let end = range.end.min(range.start + READ_BYTES_MAX);
        Ok(content.slice(range.start as usize..end as usize))
    }

    fn pin_all(&self) -> Pin {
        let epoch = self.state.lock().pins.pin_all();
        Pin::new(PinOfAll { state: Arc::clone(&self.state), epoch })
    }

    fn pin(&self, extents: &[ExtentId]) -> Pin {
        self.state.lock().pins.pin(extents);
        Pin::new(PinOfSome { state: Arc::clone(&self.state), extents: extents.into() })
    }

    fn free(&self, id: ExtentId, length: u64) {
        let mut state = self.state.lock();
        let reclaimable = state.pins.free(FreedRange { id, length });
        state.reclaim(reclaimable);
    }

    fn inherited_segments(&self) -> Vec<u64> {
        Vec::new()
    }

    fn keep_only(&self, _segment: u64, _live: &[(ExtentId, u64)]) {}

    fn poisoned(&self) -> Option<Fault> {
        None
    }

    fn statistics(&self) -> ExtentStatistics {
        let state = self.state.lock();
        ExtentStatistics { segments: state.extents.len() as u64, ..state.statistics }
    }
}

impl State {
    fn reclaim(&mut self, freed: impl IntoIterator<Item = FreedRange>) {
        for FreedRange { id, .. } in freed {
            if let Some(content) = self.extents.remove(&id) {
                self.statistics.bytes_freed += content.len() as u64;
            }
        }
    }
}

struct PinOfAll {
    state: Arc<Mutex<State>>,
    epoch: u64,
}

impl Drop for PinOfAll {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        let reclaimable = state.pins.unpin_all(self.epoch);
        state.reclaim(reclaimable);
    }
}

struct PinOfSome {
    state: Arc<Mutex<State>>,
    extents: Box<[ExtentId]>,
}

impl Drop for PinOfSome {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        let reclaimable = state.pins.unpin(&self.extents);
        state.reclaim(reclaimable);
    }
}

struct MemoryWriter {
    extents: MemoryExtents,
    content: BytesMut,
    done: Vec<Extent>,
}

impl MemoryWriter {
    fn seal(&mut self) {
        if self.content.is_empty() {
            return;
        }
        let content = self.content.split().freeze();
        let mut state = self.extents.state.lock();
        let id = ExtentId { segment: state.next_segment, offset: 0 };
        state.next_segment += 1;
        state.statistics.bytes_written += content.len() as u64;
        self.done.push(Extent {
            id,
            length: content.len() as u64,
            checksums: checksums_of(&content),
        });
        state.extents.insert(id, content);
    }
}

#[async_trait]
impl ExtentWriter for MemoryWriter {
    async fn append(&mut self, mut bytes: Bytes) -> Result<(), Fault> {
        while !bytes.is_empty() {
            let room = EXTENT_BYTES_MAX as usize - self.content.len();
            self.content.extend_from_slice(&bytes.split_to(room.min(bytes.len())));
            if self.content.len() as u64 == EXTENT_BYTES_MAX {
                self.seal();
            }
        }
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<Vec<Extent>, Fault> {
        self.seal();
        Ok(std::mem::take(&mut self.done))
    }
}

impl Drop for MemoryWriter {
    fn drop(&mut self) {
        for extent in std::mem::take(&mut self.done) {
            self.extents.free(extent.id, extent.length);
        }
    }
}
