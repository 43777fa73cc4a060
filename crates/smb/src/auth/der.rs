//! The part of DER that SPNEGO needs, strictly: definite lengths in the shortest form.

use crate::wire::Malformed;

pub const SEQUENCE: u8 = 0x30;
pub const OCTET_STRING: u8 = 0x04;
pub const OBJECT_IDENTIFIER: u8 = 0x06;
pub const ENUMERATED: u8 = 0x0A;
pub const GENERAL_STRING: u8 = 0x1B;
/// The GSS-API tag around the first token.
pub const APPLICATION: u8 = 0x60;

/// The tag of a field of a sequence or of a choice.
pub const fn context(number: u8) -> u8 {
    0xA0 | number
}

/// Takes the next value, which must have `tag`.
pub fn take<'a>(bytes: &mut &'a [u8], tag: u8) -> Result<&'a [u8], Malformed> {
    take_if(bytes, tag)?.ok_or(Malformed)
}

/// Takes the next value if it has `tag`.
pub fn take_if<'a>(bytes: &mut &'a [u8], tag: u8) -> Result<Option<&'a [u8]>, Malformed> {
    match bytes.first() {
        Some(first) if *first == tag => {}
        Some(_) | None => return Ok(None),
    }
    let (length, rest) = length(&bytes[1..])?;
    let (value, rest) = rest.split_at_checked(length).ok_or(Malformed)?;
    *bytes = rest;
    Ok(Some(value))
}

/// As [`take`], but the value must be all there is.
pub fn whole(mut bytes: &[u8], tag: u8) -> Result<&[u8], Malformed> {
    let value = take(&mut bytes, tag)?;
    if bytes.is_empty() { Ok(value) } else { Err(Malformed) }
}

fn length(bytes: &[u8]) -> Result<(usize, &[u8]), Malformed> {
    const LONG: u8 = 0x80;
    let (first, rest) = bytes.split_first().ok_or(Malformed)?;
    if *first < LONG {
        return Ok((usize::from(*first), rest));
    }
    // Two bytes of length are 64 KiB, more than any token here has.
    let digits = usize::from(*first & !LONG);
    if !(1..=2).contains(&digits) {
        return Err(Malformed);
    }
    let (digits, rest) = rest.split_at_checked(digits).ok_or(Malformed)?;
    let length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
    let is_shortest = digits[0] != 0 && length >= usize::from(LONG);
    if is_shortest { Ok((length, rest)) } else { Err(Malformed) }
}

/// One value with its tag and length.
pub fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 4);
    out.push(tag);
    match content.len() {
        length @ 0..0x80 => out.push(length as u8),
        length @ 0x80..0x100 => out.extend_from_slice(&[0x81, length as u8]),
        length => {
            out.push(0x82);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(content);
    out
}
