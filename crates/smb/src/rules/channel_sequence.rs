//! Whether a request was sent before its client lost a channel, by a number that the client
//! increments each time, [MS-SMB2] 3.3.5.2.10. A request from before that arrives late must not undo
//! later ones.

/// A number that is this far ahead or less is newer; any other is older. Numbers wrap.
const AHEAD_MAX: u16 = 0x7FFF;

/// The requests of one open that are not answered yet.
#[derive(Debug)]
pub struct ChannelSequence {
    number: u16,
    /// How often the number has changed: two requests may have the same number and a wrap between
    /// them.
    changes: u64,
    outstanding: u64,
    /// The number of requests with older numbers.
    outstanding_before: u64,
}

/// A request that is counted until it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    changes: u64,
}

impl ChannelSequence {
    /// Begins with the number of the request that has opened the file.
    pub fn new(number: u16) -> Self {
        Self { number, changes: 0, outstanding: 0, outstanding_before: 0 }
    }

    /// `None` if the request comes too late, or repeats one that may still be running: it must not
    /// change anything.
    pub fn begin(&mut self, number: u16, is_replay: bool) -> Option<Counted> {
        let ahead = number.wrapping_sub(self.number);
        if ahead > AHEAD_MAX {
            return None;
        }
        if ahead > 0 {
            self.outstanding_before += std::mem::take(&mut self.outstanding);
            self.number = number;
            self.changes += 1;
        }
        if is_replay && self.outstanding_before > 0 {
            return None;
        }
        self.outstanding += 1;
        Some(Counted { changes: self.changes })
    }

    pub fn end(&mut self, counted: Counted) {
        if counted.changes == self.changes {
            self.outstanding -= 1;
        } else {
            self.outstanding_before -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_taken(sequence: &mut ChannelSequence, number: u16, is_replay: bool) -> bool {
        let counted = sequence.begin(number, is_replay);
        counted.inspect(|counted| sequence.end(*counted)).is_some()
    }

    #[test]
    fn only_requests_with_older_numbers_come_too_late() {
        for is_replay in [false, true] {
            let mut sequence = ChannelSequence::new(0);
            for (number, expected) in [
                (0, true),
                (0x8000, false),
                (0xFFFF, false),
                (0x7FFF, true),
                (0x7FFE, false),
                (0, false),
                (0x8000, true),
                (0xFFFF, true),
                (0, true),
                (1, true),
                (0, false),
                (1, true),
            ] {
                let taken = is_taken(&mut sequence, number, is_replay);
                assert_eq!(taken, expected, "{number:#x}, a replay: {is_replay}");
            }
        }
    }

    #[test]
    fn nothing_is_repeated_while_a_request_of_a_lost_channel_is_at_work() {
        let mut sequence = ChannelSequence::new(0);
        let first = sequence.begin(0, false).expect("in time");
        assert!(!is_taken(&mut sequence, 1, true));
        assert!(!is_taken(&mut sequence, 1, true));
        assert!(is_taken(&mut sequence, 1, false));
        sequence.end(first);
        assert!(is_taken(&mut sequence, 1, true));
    }

    #[test]
    fn what_is_at_work_on_the_same_channel_is_in_nobodys_way() {
        let mut sequence = ChannelSequence::new(3);
        let first = sequence.begin(3, false).expect("in time");
        assert!(is_taken(&mut sequence, 3, true));
        sequence.end(first);
    }

    #[test]
    fn a_number_that_comes_round_again_is_another() {
        let mut sequence = ChannelSequence::new(0);
        let first = sequence.begin(0, false).expect("in time");
        for number in [30_000, 60_000, 0] {
            assert!(is_taken(&mut sequence, number, false));
        }
        assert!(!is_taken(&mut sequence, 0, true));
        sequence.end(first);
        assert!(is_taken(&mut sequence, 0, true));
    }
}
