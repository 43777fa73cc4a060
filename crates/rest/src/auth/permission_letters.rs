//! Sets of the letters for permissions, services and resource types.

/// A set of lower-case letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Letters(u32);

impl Letters {
    /// `None` if a character is not a lower-case letter or appears twice.
    pub fn parse(text: &str) -> Option<Self> {
        text.bytes().try_fold(Self(0), |letters, byte| {
            let bit = bit(byte)?;
            if letters.0 & bit == 0 { Some(Self(letters.0 | bit)) } else { None }
        })
    }

    pub fn contains(self, letter: char) -> bool {
        u8::try_from(letter).ok().and_then(bit).is_some_and(|bit| self.0 & bit != 0)
    }

    pub fn contains_all(self, letters: &str) -> bool {
        letters.chars().all(|letter| self.contains(letter))
    }

    #[must_use]
    pub(super) fn without(self, letters: &str) -> Self {
        letters.bytes().filter_map(bit).fold(self, |left, bit| Self(left.0 & !bit))
    }
}

fn bit(byte: u8) -> Option<u32> {
    if byte.is_ascii_lowercase() { Some(1 << (byte - b'a')) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_or_foreign_letter_is_refused() {
        for text in ["rr", "raxr", "R", "r w", "1", "é"] {
            assert_eq!(Letters::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_set_has_the_letters_it_was_made_of() {
        let letters = Letters::parse("racwdxltmeop").expect("valid letters");
        assert!(letters.contains_all("powder"));
        assert!(letters.contains_all(""));
        assert!(!letters.contains_all("ri"));
        assert!(!letters.contains('é'));
        assert!(!letters.without("rx").contains('r'));
        assert!(letters.without("rx").contains('w'));
    }
}
