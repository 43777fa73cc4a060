//! UTF-16, the encoding of all names on the wire.

use super::Malformed;

pub fn decode(bytes: &[u8]) -> Result<String, Malformed> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(Malformed);
    }
    char::decode_utf16(pairs.iter().map(|pair| u16::from_le_bytes(*pair)))
        .collect::<Result<String, _>>()
        .map_err(|_| Malformed)
}

pub fn encode(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() * 2);
    append(text, &mut out);
    out
}

pub fn append(text: &str, out: &mut Vec<u8>) {
    for unit in text.encode_utf16() {
        out.extend_from_slice(&unit.to_le_bytes());
    }
}

/// How many bytes the text takes on the wire.
pub fn encoded_length(text: &str) -> usize {
    text.encode_utf16().count() * 2
}
