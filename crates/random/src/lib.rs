//! Random choices that a seed repeats: for the runs of `holdfast verify`, for loads and for tests. Not for
//! secrets.

#![forbid(unsafe_code)]

use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

/// The SplitMix64 generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A separate generator for one of many users of a seed.
    pub fn for_user(seed: u64, user: u64) -> Self {
        let mut random = Self(seed ^ user.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        random.number();
        random
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Uniform enough for choices.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// # Panics
    /// If the range is empty.
    pub fn within(&mut self, range: Range<usize>) -> usize {
        assert!(!range.is_empty(), "no number to choose");
        range.start + self.below((range.end - range.start) as u64) as usize
    }

    /// True with a probability of one in so many.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.within(0..times) == 0
    }

    /// True with so many percent probability.
    pub fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    pub fn pick<'items, T>(&mut self, items: &'items [T]) -> Option<&'items T> {
        if items.is_empty() { None } else { items.get(self.within(0..items.len())) }
    }

    /// Bytes that do not compress.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend_from_slice(&self.number().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }
}

/// The number in an environment variable, if it is set.
///
/// # Panics
/// If it is not a number: a seed that was set must not be ignored.
pub fn setting(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")))
}

/// The seed in an environment variable, or else the usual one. It is printed, so that a failed run can be
/// repeated.
pub fn seed(variable: &str, usual: u64) -> u64 {
    let seed = setting(variable).unwrap_or(usual);
    eprintln!("{variable}={seed}");
    seed
}

/// The same, with a different seed for every run.
pub fn seed_of_this_run(variable: &str) -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    seed(variable, since_epoch.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_makes_the_same_choices_and_users_of_it_different_ones() {
        let choices = |user| {
            let mut random = Random::for_user(7, user);
            (0..8).map(|_| random.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(choices(1), choices(1));
        assert_ne!(choices(1), choices(2));
    }

    #[test]
    fn choices_stay_within_their_bounds() {
        let mut random = Random::new(1);
        assert!((0..1000).all(|_| (3..5).contains(&random.within(3..5))));
        assert!((0..1000).all(|_| !random.percent(0) && random.percent(100)));
        assert!((0..1000).all(|_| random.one_in(1)));
        assert_eq!(random.pick::<u8>(&[]), None);
        assert_eq!(random.bytes(13).len(), 13);
    }
}
