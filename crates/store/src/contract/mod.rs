//! The suites that every implementation of this crate's traits passes. They hold no test of their
//! own: a test file names an implementation, and a macro makes one test of every case.

pub mod engine;
pub mod extents;

pub use engine::EngineFixture;
pub use holdfast_random::Random;

/// The seed in the environment variable `HOLDFAST_TEST_SEED`, or else the given one.
pub fn seed(usual: u64) -> u64 {
    holdfast_random::seed("HOLDFAST_TEST_SEED", usual)
}
