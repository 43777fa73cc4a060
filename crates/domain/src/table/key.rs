//! The key of an entity within its table.

/// In UTF-16 units, 1 KiB.
const KEY_UNITS_MAX: usize = 512;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EntityKey {
    partition_key: String,
    row_key: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyRefusal {
    #[error("a key is longer than 1 KiB")]
    TooLong,
    #[error("a key has characters that are not allowed in it")]
    Characters,
}

impl EntityKey {
    pub fn new(
        partition_key: impl Into<String>,
        row_key: impl Into<String>,
    ) -> Result<Self, KeyRefusal> {
        let (partition_key, row_key) = (partition_key.into(), row_key.into());
        check(&partition_key)?;
        check(&row_key)?;
        Ok(Self { partition_key, row_key })
    }

    pub fn partition_key(&self) -> &str {
        &self.partition_key
    }

    pub fn row_key(&self) -> &str {
        &self.row_key
    }
}

fn check(key: &str) -> Result<(), KeyRefusal> {
    // A text never has more units than bytes.
    if key.len() > KEY_UNITS_MAX && key.encode_utf16().count() > KEY_UNITS_MAX {
        return Err(KeyRefusal::TooLong);
    }
    let forbidden = |character| matches!(character, '/' | '\\' | '#' | '?' | '\0'..='\u{1F}' | '\u{7F}'..='\u{9F}');
    if key.chars().any(forbidden) { Err(KeyRefusal::Characters) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_length_and_characters() {
        let (at_512, at_513) = ("k".repeat(512), "k".repeat(513));
        let (emoji_256, emoji_257) = ("😀".repeat(256), "😀".repeat(257));
        for (key, expected) in [
            ("", Ok(())),
            ("it's (a) key, %41 & \"more\" 100%", Ok(())),
            ("é\u{A0}\u{E000}", Ok(())),
            (&at_512, Ok(())),
            (&at_513, Err(KeyRefusal::TooLong)),
            (&emoji_256, Ok(())),
            (&emoji_257, Err(KeyRefusal::TooLong)),
            ("a/b", Err(KeyRefusal::Characters)),
            ("a\\b", Err(KeyRefusal::Characters)),
            ("#", Err(KeyRefusal::Characters)),
            ("?", Err(KeyRefusal::Characters)),
            ("\0", Err(KeyRefusal::Characters)),
            ("\t", Err(KeyRefusal::Characters)),
            ("\u{1F}", Err(KeyRefusal::Characters)),
            ("\u{7F}", Err(KeyRefusal::Characters)),
            ("\u{9F}", Err(KeyRefusal::Characters)),
        ] {
            assert_eq!(EntityKey::new(key, "r").map(drop), expected, "4.2 PartitionKey {key:?}");
            assert_eq!(EntityKey::new("p", key).map(drop), expected, "4.2 RowKey {key:?}");
        }
    }
}
