//! The default store on one machine: rows in a log-structured tree behind a write-ahead log of our
//! own, in one locked data folder.
//!
//! `docs/on-disk-format.md` describes the files and what each crash leaves;
//! `docs/design/0001-write-ahead-log.md` says why it is built this way.

mod batch_caller;
mod commit;
mod disk_space;
mod engine;
mod engine_state;
mod folder;
mod log;
mod placing;
mod recent_writes;
mod recovery;
mod row_cache;
mod scrub;
mod segments;
mod snapshots;
mod thread_row_cache;
mod tree;
mod trees;
mod upkeep;

pub use engine::{EmbeddedEngine, EngineOptions};
pub use folder::{DataFolder, OpenError};
pub use scrub::{Damage, scrub_rows};
pub use segments::{SegmentExtents, SegmentOptions};

/// What must be on disk before a write is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The write itself: it survives a power cut.
    #[default]
    Fsync,
    /// Nothing: it survives the end of the process; a power cut may lose the newest writes, in
    /// order, but never part of one.
    Relaxed,
}
