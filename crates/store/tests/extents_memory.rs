//! The contract of extents, kept in memory.

use holdfast_store::memory::MemoryExtents;

holdfast_store::extents_contract!(Box::new(MemoryExtents::default()));
