//! Lease ids: GUIDs, whatever way a client writes them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Shown in lower case with dashes. Two texts of one GUID are the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeaseId(u128);

/// Lengths of the five groups of digits.
const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

impl LeaseId {
    pub const fn from_u128(id: u128) -> Self {
        Self(id)
    }

    /// Accepts the forms that .NET calls N, D, B, P and X: only digits, with dashes, with dashes in
    /// braces or parentheses, and `{0x…,0x…,0x…,{0x…,…}}`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(id) = parse_nested(text) {
            return Some(id);
        }
        let inner = match text.as_bytes() {
            [b'{', .., b'}'] | [b'(', .., b')'] => &text[1..text.len() - 1],
            _ => text,
        };
        let bracketed = inner.len() != text.len();
        let groups: Vec<_> = inner.split('-').collect();
        let plain = groups.len() == 1 && inner.len() == 32 && !bracketed;
        let dashed = groups.iter().map(|group| group.len()).eq(GROUPS);
        if plain || dashed { hex(&groups.concat()).map(Self) } else { None }
    }
}

/// `{0x00000000,0x0000,0x0000,{0x00,0x00,0x00,0x00,0x00,0x00,0x00,0x00}}`
fn parse_nested(text: &str) -> Option<LeaseId> {
    let inner = text.strip_prefix('{')?.strip_suffix("}}")?;
    let (fields, bytes) = inner.split_once(",{")?;
    let fields = fields.split(',').zip([8, 4, 4]);
    let bytes = bytes.split(',').zip([2; 8]);
    let mut digits = String::with_capacity(32);
    for (field, width) in fields.chain(bytes) {
        let field = field.trim().strip_prefix("0x")?;
        if field.is_empty() || field.len() > width {
            return None;
        }
        digits.extend(std::iter::repeat_n('0', width - field.len()));
        digits.push_str(field);
    }
    let complete = digits.len() == 32 && inner.matches(',').count() == 10;
    if complete { hex(&digits).map(LeaseId) } else { None }
}

fn hex(digits: &str) -> Option<u128> {
    let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if hex { u128::from_str_radix(digits, 16).ok() } else { None }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:032x}", self.0);
        let mut rest = digits.as_str();
        for (index, length) in GROUPS.into_iter().enumerate() {
            let (group, following) = rest.split_at(length);
            let dash = if index == 0 { "" } else { "-" };
            write!(formatter, "{dash}{group}")?;
            rest = following;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_form_of_a_guid_is_the_same_id() {
        let id = LeaseId::from_u128(0x1f81_2371_a41d_49e6_b123_f4b5_42e8_51c5);
        assert_eq!(id.to_string(), "1f812371-a41d-49e6-b123-f4b542e851c5");
        for text in [
            "1f812371-a41d-49e6-b123-f4b542e851c5",
            "1F812371-A41D-49E6-B123-F4B542E851C5",
            "1f812371a41d49e6b123f4b542e851c5",
            "{1f812371-a41d-49e6-b123-f4b542e851c5}",
            "(1f812371-a41d-49e6-b123-f4b542e851c5)",
            "{0x1f812371,0xa41d,0x49e6,{0xb1,0x23,0xf4,0xb5,0x42,0xe8,0x51,0xc5}}",
            " 1f812371-a41d-49e6-b123-f4b542e851c5 ",
        ] {
            assert_eq!(LeaseId::parse(text), Some(id), "2.1 proposed id / {text}");
        }
        let short = "{0x1,0x2,0x3,{0x4,0x5,0x6,0x7,0x8,0x9,0xa,0xb}}";
        let padded = LeaseId::parse("00000001-0002-0003-0405-060708090a0b");
        assert_eq!(LeaseId::parse(short), padded, "2.1 proposed id / {short}");
        assert!(padded.is_some());
    }

    #[test]
    fn text_that_is_no_guid_is_refused() {
        for text in [
            "",
            "x",
            "1f812371-a41d-49e6-b123-f4b542e851c",
            "1f812371-a41d-49e6-b123-f4b542e851c55",
            "1f812371-a41d-49e6-b123-f4b542e851cg",
            "1f812371-a41d-49e6-b123f4b542e851c5",
            "1f812371a-41d-49e6-b123-f4b542e851c5",
            "+f812371-a41d-49e6-b123-f4b542e851c5",
            "{1f812371-a41d-49e6-b123-f4b542e851c5",
            "{1f812371-a41d-49e6-b123-f4b542e851c5)",
            "{1f812371a41d49e6b123f4b542e851c5}",
            "éf812371-a41d-49e6-b123-f4b542e851c",
            "{0x1,0x2,0x3,{0x4,0x5,0x6,0x7,0x8,0x9,0xa}}",
            "{0x1,0x2,0x3,{0x4,0x5,0x6,0x7,0x8,0x9,0xa,0xb,0xc}}",
            "{0x1,0x2,0x3,{0x4,0x5,0x6,0x7,0x8,0x9,0xa,0xbcd}}",
            "{0x1,0x2,0x3,{0x4,0x5,0x6,0x7,0x8,0x9,0xa,0x}}",
            "{}}",
            "{",
        ] {
            assert_eq!(LeaseId::parse(text), None, "2.1 malformed id / {text}");
        }
    }
}
