//! The wildcards of SMB ([MS-FSA] 2.1.4.4): `*` and `?`, and the DOS variants that clients translate
//! them to: `<`, `>` and `"`.

use crate::names::{fold_text, length};

/// The maximum length of a name, [MS-FSA] 2.1.5.6.3: matching takes a step for each letter of the pattern
/// and each letter of each name in the directory.
const PATTERN_CHARS_MAX: usize = 255;

/// A pattern for names, compared without case.
#[derive(Clone, Debug)]
pub struct Pattern(Vec<char>);

impl Pattern {
    /// `None` if it is longer than any name.
    pub fn new(pattern: &str) -> Option<Self> {
        if length(pattern) > PATTERN_CHARS_MAX {
            return None;
        }
        let mut letters: Vec<char> = fold_text(pattern).chars().collect();
        // Two `*` in a row mean the same as one.
        letters.dedup_by(|next, before| *next == '*' && *before == '*');
        Some(Self(letters))
    }

    /// What every matching name begins with.
    pub fn prefix(&self) -> String {
        self.0.iter().take_while(|letter| !"*?<>\"".contains(**letter)).collect()
    }

    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = fold_text(name).chars().collect();
        let last_dot = name.iter().rposition(|letter| *letter == '.');
        // `at[i]`: whether the pattern so far matches the first `i` letters of the name.
        let mut at = vec![false; name.len() + 1];
        let mut next = at.clone();
        at[0] = true;
        for letter in &self.0 {
            step(*letter, &name, last_dot, &at, &mut next);
            std::mem::swap(&mut at, &mut next);
            if !at.contains(&true) {
                return false;
            }
        }
        at[name.len()]
    }
}

fn step(letter: char, name: &[char], last_dot: Option<usize>, at: &[bool], next: &mut [bool]) {
    next.fill(false);
    for index in 0..at.len() {
        let here = name.get(index).copied();
        let reached = at[index];
        match letter {
            '*' => {
                next[index] |= reached;
                if next[index] && here.is_some() {
                    next[index + 1] = true;
                }
            }
            // Up to the last dot, or all of a name without one.
            '<' => {
                next[index] |= reached;
                if next[index] && here.is_some() && Some(index) != last_dot {
                    next[index + 1] = true;
                }
            }
            '?' if reached && here.is_some() => next[index + 1] = true,
            // One character, but none at a dot or at the end.
            '>' if reached => match here {
                Some('.') | None => next[index] = true,
                Some(_) => next[index + 1] = true,
            },
            '"' if reached => match here {
                Some('.') => next[index + 1] = true,
                Some(_) => {}
                None => next[index] = true,
            },
            other if reached && here == Some(other) => next[index + 1] = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_windows_matches_them() {
        for (pattern, name, expected) in [
            ("*", "anything.txt", true),
            ("*", ".", true),
            ("**", "a", true),
            ("a***b*", "ab", true),
            ("***", "", true),
            ("*.txt", "a.TXT", true),
            ("*.txt", "a.txt.bak", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("A*", "abc", true),
            ("abc", "ABC", true),
            ("abc", "abcd", false),
            ("", "", true),
            ("", "a", false),
            ("<.txt", "a.b.txt", true),
            ("<.b", "a.b.txt", false),
            ("<", "name", true),
            ("a>>>", "ab", true),
            ("a>>>", "abcd", true),
            ("a>>>", "abcde", false),
            ("a>>.txt", "a.txt", true),
            ("a\"txt", "a.txt", true),
            ("a\"", "a", true),
            ("<\"*", "a", true),
            ("<\"*", "a.b.c", true),
            ("*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            let found = Pattern::new(pattern).expect("not too long").matches(name);
            assert_eq!(found, expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_search_begins_with_what_all_matches_begin_with() {
        for (pattern, prefix) in [("*", ""), ("ab*", "AB"), ("abc", "ABC"), ("a?b", "A")] {
            assert_eq!(Pattern::new(pattern).expect("not too long").prefix(), prefix);
        }
    }

    #[test]
    fn a_pattern_is_no_longer_than_a_name() {
        assert!(Pattern::new(&"?".repeat(255)).expect("a pattern").matches(&"n".repeat(255)));
        assert!(Pattern::new(&"?".repeat(256)).is_none());
        assert!(Pattern::new(&"*a".repeat(20_000)).is_none());
    }
}
