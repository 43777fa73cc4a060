//! One bit for each block of a segment.

pub(super) struct Bitmap {
    words: Vec<u64>,
    length: u64,
    ones: u64,
}

impl Bitmap {
    pub(super) fn zeros(length: u64) -> Self {
        Self { words: vec![0; length.div_ceil(64) as usize], length, ones: 0 }
    }

    pub(super) fn ones(&self) -> u64 {
        self.ones
    }

    pub(super) fn get(&self, bit: u64) -> bool {
        self.words[(bit / 64) as usize] & 1 << (bit % 64) != 0
    }

    /// Sets the bits of `[start, end)` and returns how many were not set before.
    pub(super) fn set(&mut self, start: u64, end: u64) -> u64 {
        assert!(start <= end && end <= self.length, "bits outside the map");
        let before = self.ones;
        let mut bit = start;
        while bit < end {
            let in_word = (64 - bit % 64).min(end - bit);
            let mask = (u64::MAX >> (64 - in_word)) << (bit % 64);
            let word = &mut self.words[(bit / 64) as usize];
            self.ones += u64::from((mask & !*word).count_ones());
            *word |= mask;
            bit += in_word;
        }
        self.ones - before
    }

    /// The longest runs `[start, end)` of blocks for which `wanted` holds, in order.
    pub(super) fn runs(&self, wanted: impl Fn(u64) -> bool) -> Vec<(u64, u64)> {
        let mut runs = Vec::new();
        let mut start = None;
        for bit in 0..self.length {
            match (wanted(bit), start) {
                (true, None) => start = Some(bit),
                (false, Some(first)) => {
                    runs.push((first, bit));
                    start = None;
                }
                (true, Some(_)) | (false, None) => {}
            }
        }
        runs.extend(start.map(|first| (first, self.length)));
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_counts_each_bit_once_across_words() {
        let mut map = Bitmap::zeros(200);
        assert_eq!(map.set(60, 130), 70);
        assert_eq!(map.set(0, 200), 130);
        assert_eq!(map.set(5, 5), 0);
        assert_eq!(map.ones(), 200);
    }

    #[test]
    fn runs_are_the_longest_ones() {
        let mut map = Bitmap::zeros(200);
        map.set(0, 3);
        map.set(3, 64);
        map.set(100, 200);
        assert_eq!(map.runs(|bit| map.get(bit)), [(0, 64), (100, 200)]);
        assert_eq!(map.runs(|bit| !map.get(bit)), [(64, 100)]);
    }
}
