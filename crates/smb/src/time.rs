//! Times of the domain as the wire has them: ticks of 100 ns since 1601 instead of the year 1.

use holdfast_domain::time::Timestamp;

/// From the beginning of the year 1 to that of 1601.
const TICKS_TO_1601: u64 = 584_388 * 86_400 * 10_000_000;

/// 0, which the wire has for no time, for anything earlier.
pub fn to_wire(time: Timestamp) -> u64 {
    time.ticks().saturating_sub(TICKS_TO_1601)
}

pub fn from_wire(ticks: u64) -> Timestamp {
    Timestamp::from_ticks(ticks.saturating_add(TICKS_TO_1601)).min(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_second_of_1970_is_the_one_that_everybody_knows() {
        let epoch = Timestamp::from_unix(std::time::Duration::ZERO);
        assert_eq!(to_wire(epoch), 116_444_736_000_000_000);
        assert_eq!(from_wire(116_444_736_000_000_000), epoch);
        assert_eq!(from_wire(u64::MAX), Timestamp::MAX);
    }
}
