//! A disk that can be watched, cut off and made to fail, for tests of what survives a crash.
//!
//! `disk` stands in for the C library's file functions in the test's own process and records what
//! is done below one folder; `trace` rebuilds from the record what a disk could hold after a power
//! cut at any point of it.

pub mod disk;
pub mod trace;

use std::path::Path;

/// A folder in memory where the system has one: thousands of small folders are made in it, and what
/// the real disk does with them is not looked at.
pub fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }
        .expect("a folder for the test")
}
