//! Puts the real names in the place of placeholders in outgoing bytes. Knows no I/O and no HTTP.

use std::collections::VecDeque;
use std::mem;

use memchr::memmem;

/// Every placeholder begins with it. It overlaps with itself nowhere.
const MARK: &[u8] = b"x-hf-";
const TOKEN_LENGTH: usize = 32;
/// `x-hf-`, the token, a dash, and four hexadecimal digits of index.
const PLACEHOLDER_LENGTH: usize = MARK.len() + TOKEN_LENGTH + 1 + 4;

/// The names of one answer. Each stands for one placeholder that is still to come.
pub struct Announcement {
    token: String,
    names: Vec<Option<String>>,
}

impl Announcement {
    /// The token is new for every announcement, so it is younger than any stored byte.
    pub fn new() -> Self {
        Self { token: uuid::Uuid::new_v4().as_simple().to_string(), names: Vec::new() }
    }

    /// The placeholder for `name`; nothing if there are more than a placeholder can count.
    pub fn add(&mut self, name: String) -> Option<String> {
        let index = u16::try_from(self.names.len()).ok()?;
        self.names.push(Some(name));
        Some(format!("x-hf-{}-{index:04x}", self.token))
    }

    pub fn is_empty(&self) -> bool {
        self.names.iter().all(Option::is_none)
    }

    /// The index in a placeholder of this announcement.
    fn index_in(&self, placeholder: &[u8]) -> Option<usize> {
        let index = placeholder
            .strip_prefix(MARK)?
            .strip_prefix(self.token.as_bytes())?
            .strip_prefix(b"-")?;
        usize::from_str_radix(std::str::from_utf8(index).ok()?, 16).ok()
    }
}

/// Replaces the placeholders of what was announced, in a stream of bytes in pieces.
#[derive(Default)]
pub struct Rewriter {
    /// The end of the last piece, where it may be the beginning of a placeholder.
    held: Vec<u8>,
}

impl Rewriter {
    pub fn holds_bytes(&self) -> bool {
        !self.held.is_empty()
    }

    /// Appends `piece` to `out`, with names for placeholders. What was announced and is written
    /// is taken out of `announced`; once nothing is left there, bytes are only copied.
    pub fn rewrite(
        &mut self,
        announced: &mut VecDeque<Announcement>,
        piece: &[u8],
        out: &mut Vec<u8>,
    ) {
        let mut joined = mem::take(&mut self.held);
        let mut rest = piece;
        if !joined.is_empty() {
            joined.extend_from_slice(piece);
            rest = &joined;
        }
        while !announced.is_empty() {
            let Some(start) = memmem::find(rest, MARK) else {
                let split = rest.len() - begun_mark_length(rest);
                out.extend_from_slice(&rest[..split]);
                self.held = rest[split..].to_vec();
                return;
            };
            out.extend_from_slice(&rest[..start]);
            rest = &rest[start..];
            if rest.len() < PLACEHOLDER_LENGTH {
                self.held = rest.to_vec();
                return;
            }
            let (placeholder, after) = rest.split_at(PLACEHOLDER_LENGTH);
            if let Some(name) = take_name(announced, placeholder) {
                out.extend_from_slice(name.as_bytes());
                rest = after;
            } else {
                out.extend_from_slice(MARK);
                rest = &rest[MARK.len()..];
            }
        }
        out.extend_from_slice(rest);
    }

    /// Appends what was held back: it is all that its writer has to say.
    pub fn release(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.held);
    }
}

/// How many bytes at the end of `bytes` may be the beginning of a mark.
fn begun_mark_length(bytes: &[u8]) -> usize {
    (1..MARK.len()).rev().find(|length| bytes.ends_with(&MARK[..*length])).unwrap_or(0)
}

/// Answers leave in the order of their announcements: one that is older than the placeholder
/// belongs to an answer that was never sent, and is forgotten.
fn take_name(announced: &mut VecDeque<Announcement>, placeholder: &[u8]) -> Option<String> {
    let mut places = announced.iter().enumerate();
    let (position, index) =
        places.find_map(|(position, one)| Some((position, one.index_in(placeholder)?)))?;
    let name = announced[position].names.get_mut(index)?.take()?;
    let done = if announced[position].is_empty() { position + 1 } else { position };
    announced.drain(..done);
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announce(names: &[&str]) -> (Announcement, Vec<String>) {
        let mut announcement = Announcement::new();
        let placeholders = names.iter().map(|name| announcement.add((*name).to_owned()));
        let placeholders = placeholders.map(|placeholder| placeholder.expect("few")).collect();
        (announcement, placeholders)
    }

    #[test]
    fn placeholders_are_replaced_at_every_split() {
        const TEXT_LENGTH: usize = 209;
        for split in 0..=TEXT_LENGTH {
            let (first, one) = announce(&["x-ms-meta-One", "x-ms-meta-Two"]);
            let (second, two) = announce(&["x-ms-meta-Three"]);
            let text = format!(
                "body x-hf-x-hf-{} x\r\n{}: 2\r\n{}: 1\r\n\r\nx-x-h{}: 3\r\nx-hf-",
                "0".repeat(37),
                one[1],
                one[0],
                two[0]
            );
            assert_eq!(text.len(), TEXT_LENGTH);
            let expected = format!(
                "body x-hf-x-hf-{} x\r\nx-ms-meta-Two: 2\r\nx-ms-meta-One: 1\r\n\r\n\
                 x-x-hx-ms-meta-Three: 3\r\nx-hf-",
                "0".repeat(37)
            );
            let mut announced = VecDeque::from([first, second]);
            let (mut rewriter, mut out) = (Rewriter::default(), Vec::new());
            for piece in [&text.as_bytes()[..split], &text.as_bytes()[split..]] {
                rewriter.rewrite(&mut announced, piece, &mut out);
            }
            assert_eq!(String::from_utf8_lossy(&out), expected, "{split}");
            assert!(announced.is_empty() && !rewriter.holds_bytes());
        }
    }

    #[test]
    fn placeholders_are_replaced_byte_by_byte() {
        let (announcement, placeholders) = announce(&["x-ms-meta-One"]);
        let mut announced = VecDeque::from([announcement]);
        let (mut rewriter, mut out) = (Rewriter::default(), Vec::new());
        for byte in format!("xx-hf{}x", placeholders[0]).as_bytes().chunks(1) {
            rewriter.rewrite(&mut announced, byte, &mut out);
        }
        assert_eq!(out, b"xx-hfx-ms-meta-Onex");
    }

    #[test]
    fn the_announcement_of_an_answer_never_sent_is_forgotten() {
        let (lost, _) = announce(&["x-ms-meta-Lost"]);
        let (sent, placeholders) = announce(&["x-ms-meta-Sent"]);
        let (later, _) = announce(&["x-ms-meta-Later"]);
        let mut announced = VecDeque::from([lost, sent, later]);
        let (mut rewriter, mut out) = (Rewriter::default(), Vec::new());
        rewriter.rewrite(&mut announced, placeholders[0].as_bytes(), &mut out);
        assert_eq!(out, b"x-ms-meta-Sent");
        assert_eq!(announced.len(), 1);
        assert_eq!(announced[0].names, [Some("x-ms-meta-Later".to_owned())]);
    }

    #[test]
    fn no_more_than_a_beginning_is_held_and_a_release_gives_it_out() {
        let (announcement, placeholders) = announce(&["x-ms-meta-One"]);
        let mut announced = VecDeque::from([announcement]);
        let (mut rewriter, mut out) = (Rewriter::default(), Vec::new());
        rewriter.rewrite(&mut announced, b"the end x-h", &mut out);
        assert_eq!(out, b"the end ");
        rewriter.release(&mut out);
        assert_eq!(out, b"the end x-h");
        assert!(!rewriter.holds_bytes());
        rewriter.rewrite(&mut announced, &placeholders[0].as_bytes()[..41], &mut out);
        assert_eq!(out, b"the end x-h");
        rewriter.rewrite(&mut announced, b"no digit", &mut out);
        assert!(out.ends_with(b"no digit"));
        assert_eq!(announced.len(), 1);
    }
}
