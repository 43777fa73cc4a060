//! LIKE: `%` stands for any text, `_` for one character.

/// Longer patterns match nothing useful, and matching takes as long as text times pattern (the
/// maximum is that of Transact-SQL).
pub const PATTERN_BYTES_MAX: usize = 8000;

enum Sign {
    Any,
    One,
    Letter(char),
}

pub fn matches(text: &str, pattern: &str, escape: Option<char>) -> bool {
    let signs = signs(pattern, escape);
    let letters: Vec<char> = text.chars().collect();
    let (mut at, mut sign) = (0, 0);
    // Where to go on from when a match fails: behind the last `%`, one letter further.
    let mut retry: Option<(usize, usize)> = None;
    while at < letters.len() {
        match signs.get(sign) {
            Some(Sign::Any) => {
                retry = Some((sign + 1, at));
                sign += 1;
            }
            Some(Sign::One) => {
                at += 1;
                sign += 1;
            }
            Some(Sign::Letter(letter)) if *letter == letters[at] => {
                at += 1;
                sign += 1;
            }
            Some(Sign::Letter(_)) | None => {
                let Some((behind, from)) = retry else { return false };
                retry = Some((behind, from + 1));
                sign = behind;
                at = from + 1;
            }
        }
    }
    signs[sign..].iter().all(|sign| matches!(sign, Sign::Any))
}

fn signs(pattern: &str, escape: Option<char>) -> Vec<Sign> {
    let mut signs = Vec::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        signs.push(match letter {
            _ if Some(letter) == escape => Sign::Letter(letters.next().unwrap_or(letter)),
            '%' => Sign::Any,
            '_' => Sign::One,
            _ => Sign::Letter(letter),
        });
    }
    signs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_stands_for_any_text_and_underscore_for_one_character() {
        for (text, pattern, expected) in [
            ("", "", true),
            ("", "%", true),
            ("", "_", false),
            ("abc", "abc", true),
            ("abc", "ABC", false),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "%b%", true),
            ("abc", "a_c", true),
            ("aüc", "a_c", true),
            ("abc", "a_", false),
            ("aXbXc", "a%X_", true),
            ("abababc", "%abc", true),
            ("abababd", "%abc", false),
        ] {
            assert_eq!(matches(text, pattern, None), expected, "{text} {pattern}");
        }
    }

    #[test]
    fn an_escaped_sign_stands_for_itself() {
        assert!(matches("50%", "50!%", Some('!')));
        assert!(!matches("500", "50!%", Some('!')));
        assert!(matches("a!", "a!!", Some('!')));
    }
}
