//! Security identifiers of owners and in rules ([MS-DTYP] 2.4.2).

use std::fmt;

const REVISION: u8 = 1;
const SUB_AUTHORITIES_MAX: usize = 15;
const AUTHORITY_BYTES: usize = 6;
const AUTHORITY_MAX: u64 = (1 << 48) - 1;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sid {
    authority: u64,
    sub_authorities: Vec<u32>,
}

impl Sid {
    pub const EVERYONE: (u64, &[u32]) = (1, &[0]);
    pub const CREATOR_OWNER: (u64, &[u32]) = (3, &[0]);
    pub const CREATOR_GROUP: (u64, &[u32]) = (3, &[1]);
    pub const OWNER_RIGHTS: (u64, &[u32]) = (3, &[4]);
    pub const NETWORK: (u64, &[u32]) = (5, &[2]);
    pub const AUTHENTICATED_USERS: (u64, &[u32]) = (5, &[11]);
    pub const LOCAL_SYSTEM: (u64, &[u32]) = (5, &[18]);
    pub const ADMINISTRATORS: (u64, &[u32]) = (5, &[32, 544]);
    pub const USERS: (u64, &[u32]) = (5, &[32, 545]);

    /// A well-known identifier.
    pub fn well_known((authority, sub_authorities): (u64, &[u32])) -> Self {
        Self { authority, sub_authorities: sub_authorities.to_vec() }
    }

    pub fn is(&self, (authority, sub_authorities): (u64, &[u32])) -> bool {
        self.authority == authority && self.sub_authorities == sub_authorities
    }

    /// `S-1-5-32-544`; an authority beyond 32 bits is written `0x…`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let letter = parts.next()?;
        if !letter.eq_ignore_ascii_case("S") || number(parts.next()?)? != u64::from(REVISION) {
            return None;
        }
        let authority = number(parts.next()?).filter(|authority| *authority <= AUTHORITY_MAX)?;
        let sub_authorities: Option<Vec<u32>> =
            parts.map(|part| number(part)?.try_into().ok()).collect();
        let sub_authorities = sub_authorities?;
        let fits = sub_authorities.len() <= SUB_AUTHORITIES_MAX;
        fits.then_some(Self { authority, sub_authorities })
    }

    /// The identifier at the beginning of `bytes`, and what follows it.
    pub fn from_bytes(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&[revision, count], rest) = bytes.split_first_chunk()?;
        let (authority, rest) = rest.split_first_chunk::<AUTHORITY_BYTES>()?;
        let count = usize::from(count);
        if revision != REVISION || count > SUB_AUTHORITIES_MAX {
            return None;
        }
        let (numbers, rest) = rest.split_at_checked(count * 4)?;
        let authority = authority.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let (numbers, _) = numbers.as_chunks();
        let sub_authorities = numbers.iter().map(|number| u32::from_le_bytes(*number)).collect();
        Some((Self { authority, sub_authorities }, rest))
    }

    pub fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend([REVISION, self.sub_authorities.len() as u8]);
        bytes.extend(&self.authority.to_be_bytes()[8 - AUTHORITY_BYTES..]);
        bytes.extend(self.sub_authorities.iter().flat_map(|number| number.to_le_bytes()));
    }
}

fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, radix).ok().filter(|_| plain)
}

impl fmt::Display for Sid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.authority <= u64::from(u32::MAX) {
            write!(formatter, "S-{REVISION}-{}", self.authority)?;
        } else {
            write!(formatter, "S-{REVISION}-0x{:X}", self.authority)?;
        }
        self.sub_authorities.iter().try_for_each(|number| write!(formatter, "-{number}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_the_same_in_text_and_in_bytes() {
        for (text, bytes) in [
            ("S-1-5-18", vec![1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0]),
            ("S-1-5-32-544", vec![1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0]),
            ("S-1-0x123456789ABC-1", vec![1, 1, 0x12, 0x34, 0x56, 0x78, 0x9A, 0xBC, 1, 0, 0, 0]),
        ] {
            let sid = Sid::parse(text).expect(text);
            assert_eq!(sid.to_string(), text);
            let mut written = Vec::new();
            sid.write(&mut written);
            assert_eq!(written, bytes, "{text}");
            written.push(7);
            assert_eq!(Sid::from_bytes(&written), Some((sid, &[7][..])), "{text}");
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        let many = format!("S-1-5{}", "-1".repeat(16));
        for text in ["", "S", "S-1", "S-2-5-18", "S-1-5-", "S-1-5--1", "S-1-5-+1", "S-1-5-x", &many]
        {
            assert_eq!(Sid::parse(text), None, "{text}");
        }
        assert_eq!(Sid::parse("S-1-5-4294967296"), None);
        for bytes in [&[][..], &[1, 1, 0, 0, 0, 0, 0, 5, 1, 0, 0], &[2, 0, 0, 0, 0, 0, 0, 5]] {
            assert_eq!(Sid::from_bytes(bytes), None);
        }
        let sixteen = [[1, 16].as_slice(), &[0; 70]].concat();
        assert_eq!(Sid::from_bytes(&sixteen), None);
    }
}
