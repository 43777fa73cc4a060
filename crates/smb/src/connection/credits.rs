//! Which messages a client may send: a window of numbers, each worth one credit, [MS-SMB2] 3.3.1.1
//! and 3.3.1.2.

/// The most credits that a client holds: what it may have under way at once, in units of 64 KiB.
pub const CREDITS_MAX: u16 = 8192;
const WORDS: usize = CREDITS_MAX as usize / 64;

/// The message is outside of the window or a repetition; the connection must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfWindow;

#[derive(Debug)]
pub struct Window {
    /// The first unused number.
    low: u64,
    /// How many numbers from `low` on are granted.
    granted: u16,
    /// Which of them are used, a ring of bits.
    used: Box<[u64; WORDS]>,
}

impl Default for Window {
    fn default() -> Self {
        Self { low: 0, granted: 1, used: Box::new([0; WORDS]) }
    }
}

impl Window {
    /// Uses up `charge` numbers from `message_id` on.
    pub fn take(&mut self, message_id: u64, charge: u16) -> Result<(), OutOfWindow> {
        let charge = u64::from(charge.max(1));
        let end = message_id.checked_add(charge).ok_or(OutOfWindow)?;
        if message_id < self.low || end > self.low + u64::from(self.granted) {
            return Err(OutOfWindow);
        }
        if (message_id..end).any(|number| self.is_used(number)) {
            return Err(OutOfWindow);
        }
        for number in message_id..end {
            let (word, bit) = place(number);
            self.used[word] |= bit;
        }
        while self.granted > 0 && self.is_used(self.low) {
            let (word, bit) = place(self.low);
            self.used[word] &= !bit;
            self.low += 1;
            self.granted -= 1;
        }
        Ok(())
    }

    /// Grants what was asked for, within the limit, but never leaves a client without credits.
    pub fn grant(&mut self, asked: u16) -> u16 {
        let granted = asked.max(1).min(CREDITS_MAX - self.granted);
        self.granted += granted;
        granted
    }

    fn is_used(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.used[word] & bit != 0
    }
}

fn place(number: u64) -> (usize, u64) {
    let index = (number % u64::from(CREDITS_MAX)) as usize;
    (index / 64, 1 << (index % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_good_once_and_in_any_order() {
        let mut window = Window::default();
        assert_eq!(window.take(1, 1), Err(OutOfWindow));
        assert_eq!(window.take(0, 1), Ok(()));
        assert_eq!(window.take(0, 1), Err(OutOfWindow));
        assert_eq!(window.grant(4), 4);
        assert_eq!(window.take(4, 1), Ok(()));
        assert_eq!(window.take(4, 1), Err(OutOfWindow));
        assert_eq!(window.take(2, 2), Ok(()));
        assert_eq!(window.take(1, 1), Ok(()));
        assert_eq!((window.low, window.granted), (5, 0));
        assert_eq!(window.grant(0), 1);
    }

    #[test]
    fn a_charge_that_reaches_beyond_the_window_is_refused() {
        let mut window = Window::default();
        window.grant(3);
        assert_eq!(window.take(2, 3), Err(OutOfWindow));
        assert_eq!(window.take(u64::MAX, 2), Err(OutOfWindow));
        assert_eq!(window.take(1, 3), Ok(()));
    }

    #[test]
    fn no_client_gets_more_than_the_limit() {
        let mut window = Window::default();
        let granted = window.grant(u16::MAX);
        assert_eq!(granted, CREDITS_MAX - 1);
        assert_eq!(window.grant(10), 0);
        for number in 0..u64::from(CREDITS_MAX) * 3 {
            assert_eq!(window.take(number, 1), Ok(()), "{number}");
            assert_eq!(window.grant(1), 1);
        }
    }
}
