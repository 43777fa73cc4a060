//! Scans of short texts, of which every request and its answer have about thirty: whether they are
//! valid, and where to split them. Several bytes are checked at once.

/// Whether no byte is below a space, and none is one of `others`.
pub fn is_plain<const OTHERS: usize>(text: &[u8], others: [u8; OTHERS]) -> bool {
    let (words, _) = text.as_chunks::<8>();
    let mut last = [b' '; 8];
    match text.last_chunk() {
        Some(chunk) => last = *chunk,
        None => last[..text.len()].copy_from_slice(text),
    }
    words.iter().chain([&last]).all(|word| is_plain_word(u64::from_ne_bytes(*word), others))
}

fn is_plain_word<const OTHERS: usize>(word: u64, others: [u8; OTHERS]) -> bool {
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    // A byte smaller than `bound` borrows, which sets its highest bit.
    let below = |word: u64, bound: u64| word.wrapping_sub(EACH * bound) & !word;
    let is_other = |found, other| found | below(word ^ (EACH * u64::from(other)), 1);
    others.into_iter().fold(below(word, 0x20), is_other) & (EACH * 0x80) == 0
}

/// The texts before and after the first such byte, which is ASCII. Texts in requests are short: the search
/// of the standard library takes several times as long to start.
pub fn split_at_byte(text: &str, byte: u8) -> Option<(&str, &str)> {
    let at = memchr::memchr(byte, text.as_bytes())?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_seen_wherever_it_stands() {
        for byte in 0..=u8::MAX {
            for at in 0..20 {
                let mut text = [b'a'; 20];
                text[at] = byte;
                let expected = byte >= b' ' && byte != b'"' && byte != 0x7f;
                for part in [&text[..], &text[at..], &text[at..=at]] {
                    assert_eq!(is_plain(part, [b'"', 0x7f]), expected, "{part:?}");
                    assert_eq!(is_plain(part, []), byte >= b' ', "{part:?}");
                }
            }
        }
        assert!(is_plain(b"", [b'"']));
    }

    #[test]
    fn a_text_is_split_at_the_first_such_byte() {
        assert_eq!(split_at_byte("ä=b=c", b'='), Some(("ä", "b=c")));
        assert_eq!(split_at_byte("=", b'='), Some(("", "")));
        assert_eq!(split_at_byte("ä", b'='), None);
    }
}
