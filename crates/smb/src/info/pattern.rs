//! Whether a name matches the pattern of a search, as FsRtlIsNameInExpression of [MS-FSA] 2.1.4.4
//! decides it: case does not count.
//!
//! `*` any characters, `?` one character, `<` any characters up to the last dot, `>` one character
//! or none before a dot or at the end, `"` a dot or the end.

/// As names are compared.
fn fold(character: char) -> char {
    let mut upper = character.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(single), None) => single,
        (_, _) => character,
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Folded.
    characters: Vec<char>,
    is_exact: bool,
}

impl Pattern {
    pub fn new(text: &str) -> Self {
        let characters: Vec<char> = text.chars().map(fold).collect();
        let is_exact = !text.contains(['*', '?', '<', '>', '"']);
        Self { characters, is_exact }
    }

    /// The only name that can match, if the pattern has no wildcards.
    pub fn exact(&self) -> Option<String> {
        self.is_exact.then(|| self.characters.iter().collect())
    }

    /// What every match begins with, folded.
    pub fn prefix(&self) -> String {
        let is_wild = |character: &&char| matches!(character, '*' | '?' | '<' | '>' | '"');
        self.characters.iter().take_while(|character| !is_wild(character)).collect()
    }

    pub fn matches(&self, name: &str) -> bool {
        if self.characters == ['*'] {
            return true;
        }
        let name: Vec<char> = name.chars().map(fold).collect();
        let last_dot = name.iter().rposition(|character| *character == '.');
        // Which parts of the pattern may come next: a character of the name takes each a step.
        let mut states = vec![false; self.characters.len() + 1];
        states[0] = true;
        for (index, character) in name.iter().enumerate() {
            self.skip(&mut states, Some(*character));
            let mut next = vec![false; states.len()];
            for (state, expected) in self.characters.iter().enumerate() {
                if !states[state] {
                    continue;
                }
                match expected {
                    '*' => next[state] = true,
                    // The last dot is left to what follows.
                    '<' if Some(index) != last_dot => next[state] = true,
                    '<' => {}
                    '?' => next[state + 1] = true,
                    '>' if *character != '.' => next[state + 1] = true,
                    '>' => {}
                    '"' if *character == '.' => next[state + 1] = true,
                    '"' => {}
                    expected if expected == character => next[state + 1] = true,
                    _ => {}
                }
            }
            states = next;
        }
        self.skip(&mut states, None);
        states.last() == Some(&true)
    }

    /// Passes over what can stand for nothing in front of `next`.
    fn skip(&self, states: &mut [bool], next: Option<char>) {
        for (state, expected) in self.characters.iter().enumerate() {
            let nothing = match expected {
                '*' | '<' => true,
                '>' => matches!(next, None | Some('.')),
                '"' => next.is_none(),
                _ => false,
            };
            if states[state] && nothing {
                states[state + 1] = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_as_in_windows() {
        for (pattern, name, expected) in [
            ("*", "anything.at.all", true),
            ("*", "", true),
            ("a*", "Abc", true),
            ("a*", "bac", false),
            ("*.txt", "a.TXT", true),
            ("*.txt", "a.txt.bak", false),
            ("*.*", "no dot", false),
            ("*.*", "a.b", true),
            ("?", "a", true),
            ("?", "ab", false),
            ("?", "", false),
            ("a?c", "abc", true),
            ("exact", "EXACT", true),
            ("exact", "exactly", false),
            ("<", "a.b", false),
            ("<", "ab", true),
            ("<.b", "x.a.b", true),
            ("<\"*", "plain", true),
            ("<\"*", "a.b", true),
            ("<.", "x.", true),
            (">>>", "ab", true),
            (">>>", "abcd", false),
            (">>>.t", "a.t", true),
            ("a\"", "a", true),
            ("a\"", "a.", true),
            ("a\"", "ab", false),
            ("ÄÖ*", "äöü", true),
            ("*a*b*c*", "xxaxxbxxcxx", true),
            ("*a*b*c*", "xxcxxbxxaxx", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(name), expected, "{pattern} / {name}");
        }
    }

    #[test]
    fn a_long_pattern_takes_no_longer_than_its_length_times_that_of_the_name() {
        let pattern = Pattern::new(&"*a".repeat(120));
        assert!(!pattern.matches(&"a".repeat(119)));
        assert!(pattern.matches(&"a".repeat(255)));
    }

    #[test]
    fn what_every_match_begins_with() {
        assert_eq!(Pattern::new("ab*c").prefix(), "AB");
        assert_eq!(Pattern::new("*").prefix(), "");
        assert_eq!(Pattern::new("a.b").exact().as_deref(), Some("A.B"));
        assert_eq!(Pattern::new("a?b").exact(), None);
    }
}
