//! The suites that every implementation of this crate's traits passes. They hold no test of their
//! own: a test file names an implementation, and a macro makes one test of every case.

pub mod engine;
pub mod extents;
mod random;

pub use engine::EngineFixture;
pub use random::{Random, seed};
