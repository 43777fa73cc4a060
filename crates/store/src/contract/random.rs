//! Random choices that a seed repeats.

use std::ops::Range;

/// The seed in the environment variable `HOLDFAST_TEST_SEED`, or else the given one. It is printed,
/// so that a failed run can be repeated.
pub fn seed(usual: u64) -> u64 {
    let seed = match std::env::var("HOLDFAST_TEST_SEED") {
        Ok(text) => text.parse().expect("HOLDFAST_TEST_SEED is a number"),
        Err(_) => usual,
    };
    eprintln!("HOLDFAST_TEST_SEED={seed}");
    seed
}

/// The splitmix64 generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// # Panics
    /// If the range is empty.
    pub fn within(&mut self, range: Range<usize>) -> usize {
        assert!(!range.is_empty(), "no number to choose");
        range.start + (self.number() % (range.end - range.start) as u64) as usize
    }

    /// True once in so many times.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.within(0..times) == 0
    }
}
