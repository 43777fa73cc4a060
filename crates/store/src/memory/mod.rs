//! The simplest correct implementations of both contracts. They keep nothing: for `--memory`, and
//! as the model the other engines are compared with.

mod engine;
mod extents;

pub use engine::MemoryEngine;
pub use extents::MemoryExtents;
