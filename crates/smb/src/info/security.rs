//! Parts of a self-relative security descriptor, [MS-DTYP] 2.4.6: clients get and set some of them.

use bytes::BufMut as _;

use crate::status::Status;
use crate::wire::query_info::security::{DACL, GROUP, OWNER, SACL};
use crate::wire::{Cursor, Malformed};

const HEADER_BYTES: usize = 20;
const SELF_RELATIVE: u16 = 0x8000;
/// The bits of the control word that belong to each list.
const DACL_BITS: u16 = 0x1508 | 0x0004;
const SACL_BITS: u16 = 0x2A20 | 0x0010;
const DACL_PRESENT: u16 = 0x0004;
const SACL_PRESENT: u16 = 0x0010;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Parts<'a> {
    control: u16,
    owner: Option<&'a [u8]>,
    group: Option<&'a [u8]>,
    sacl: Option<&'a [u8]>,
    dacl: Option<&'a [u8]>,
}

/// Whether it has a discretionary list, even a null one.
pub fn has_dacl(descriptor: &[u8]) -> bool {
    Parts::decode(descriptor).map_or(true, |parts| parts.control & DACL_PRESENT != 0)
}

/// The `wanted` parts of a descriptor, by the bits of [`crate::wire::query_info::security`].
pub fn select(descriptor: &[u8], wanted: u32) -> Result<Vec<u8>, Status> {
    let parts = Parts::decode(descriptor).map_err(|Malformed| Status::INVALID_SECURITY_DESCR)?;
    Ok(Parts::default().with(&parts, wanted).encode())
}

/// `current` with those parts of `given` that are set. Setting a list without giving one allows
/// everything to everybody.
pub fn merge(current: &[u8], given: &[u8], set: u32) -> Result<Vec<u8>, Status> {
    let broken = |Malformed| Status::INVALID_SECURITY_DESCR;
    let current = Parts::decode(current).map_err(broken)?;
    let mut merged = current.with(&Parts::decode(given).map_err(broken)?, set);
    if set & DACL != 0 {
        merged.control |= DACL_PRESENT;
    }
    Ok(merged.encode())
}

impl<'a> Parts<'a> {
    fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Cursor::new(bytes);
        fields.skip(2)?;
        let control = fields.u16()?;
        let mut offset = || fields.u32().map(|offset| offset as usize);
        let (owner, group, sacl, dacl) = (offset()?, offset()?, offset()?, offset()?);
        Ok(Self {
            control,
            owner: part(bytes, owner, sid_length)?,
            group: part(bytes, group, sid_length)?,
            sacl: part(bytes, sacl, acl_length)?,
            dacl: part(bytes, dacl, acl_length)?,
        })
    }

    fn with(self, other: &Self, which: u32) -> Self {
        let mut parts = self;
        if which & OWNER != 0 {
            parts.owner = other.owner;
        }
        if which & GROUP != 0 {
            parts.group = other.group;
        }
        if which & DACL != 0 {
            parts.dacl = other.dacl;
            parts.control = parts.control & !DACL_BITS | other.control & DACL_BITS;
        }
        if which & SACL != 0 {
            parts.sacl = other.sacl;
            parts.control = parts.control & !SACL_BITS | other.control & SACL_BITS;
        }
        parts
    }

    fn encode(&self) -> Vec<u8> {
        let mut control = self.control | SELF_RELATIVE;
        if self.dacl.is_some() {
            control |= DACL_PRESENT;
        }
        if self.sacl.is_some() {
            control |= SACL_PRESENT;
        }
        let mut out = vec![1, 0];
        out.put_u16_le(control);
        let parts = [self.owner, self.group, self.sacl, self.dacl];
        let mut end = HEADER_BYTES;
        for part in parts {
            out.put_u32_le(if part.is_some() { end as u32 } else { 0 });
            end += part.map_or(0, <[u8]>::len);
        }
        for part in parts.into_iter().flatten() {
            out.extend_from_slice(part);
        }
        out
    }
}

/// An offset of zero means that the part is absent.
fn part(
    bytes: &[u8],
    offset: usize,
    length: fn(&[u8]) -> Option<usize>,
) -> Result<Option<&[u8]>, Malformed> {
    if offset == 0 {
        return Ok(None);
    }
    let rest = bytes.get(offset..).ok_or(Malformed)?;
    let length = length(rest).ok_or(Malformed)?;
    rest.get(..length).map(Some).ok_or(Malformed)
}

fn sid_length(bytes: &[u8]) -> Option<usize> {
    Some(8 + 4 * usize::from(*bytes.get(1)?))
}

fn acl_length(bytes: &[u8]) -> Option<usize> {
    let length = bytes.get(2..4)?.first_chunk()?;
    Some(usize::from(u16::from_le_bytes(*length))).filter(|length| *length >= 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: [u8; 12] = [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
    const WORLD: [u8; 12] = [1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    const EMPTY_LIST: [u8; 8] = [2, 0, 8, 0, 0, 0, 0, 0];

    fn descriptor(owner: &[u8], dacl: &[u8]) -> Vec<u8> {
        let parts = Parts { owner: Some(owner), dacl: Some(dacl), ..Parts::default() };
        parts.encode()
    }

    #[test]
    fn only_what_is_asked_for_is_told() {
        let whole = descriptor(&SYSTEM, &EMPTY_LIST);
        assert_eq!(select(&whole, OWNER | GROUP | DACL | SACL), Ok(whole.clone()));
        let owner = select(&whole, OWNER).expect("a descriptor");
        assert_eq!(owner.len(), 32);
        assert_eq!(owner[2..4], [0, 0x80]);
        assert_eq!(owner[20..], SYSTEM);
        assert_eq!(select(&whole, SACL).expect("a descriptor").len(), 20);
    }

    #[test]
    fn only_what_is_set_is_replaced() {
        let before = descriptor(&SYSTEM, &EMPTY_LIST);
        let given = descriptor(&WORLD, &[2, 0, 12, 0, 0, 0, 0, 0, 9, 9, 9, 9]);
        let after = merge(&before, &given, OWNER).expect("a descriptor");
        assert_eq!(after, descriptor(&WORLD, &EMPTY_LIST));
        let no_list = select(&given, OWNER).expect("a descriptor");
        let after = merge(&before, &no_list, DACL).expect("a descriptor");
        let mut null_list = select(&before, OWNER).expect("a descriptor");
        null_list[2] |= 4;
        assert_eq!(after, null_list);
    }

    #[test]
    fn a_broken_descriptor_is_refused() {
        let whole = descriptor(&SYSTEM, &EMPTY_LIST);
        for length in 0..whole.len() {
            let outcome = select(&whole[..length], OWNER);
            assert_eq!(outcome, Err(Status::INVALID_SECURITY_DESCR), "{length}");
        }
    }
}
