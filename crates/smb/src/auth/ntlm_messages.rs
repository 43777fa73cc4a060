//! The three messages of NTLM, [MS-NLMP] 2.2.1.

use bytes::BufMut as _;

use crate::wire::{Cursor, Malformed, text};

pub const SIGNATURE: &[u8; 8] = b"NTLMSSP\0";
/// Where an AUTHENTICATE has the checksum over all three, if it has one.
pub const MIC_RANGE: std::ops::Range<usize> = 72..88;

pub mod flags {
    pub const UNICODE: u32 = 0x0000_0001;
    pub const REQUEST_TARGET: u32 = 0x0000_0004;
    pub const SIGN: u32 = 0x0000_0010;
    pub const SEAL: u32 = 0x0000_0020;
    pub const NTLM: u32 = 0x0000_0200;
    pub const ANONYMOUS: u32 = 0x0000_0800;
    pub const ALWAYS_SIGN: u32 = 0x0000_8000;
    pub const TARGET_TYPE_SERVER: u32 = 0x0002_0000;
    pub const EXTENDED_SESSION_SECURITY: u32 = 0x0008_0000;
    pub const TARGET_INFO: u32 = 0x0080_0000;
    pub const VERSION: u32 = 0x0200_0000;
    pub const KEY_128: u32 = 0x2000_0000;
    pub const KEY_EXCHANGE: u32 = 0x4000_0000;
    pub const KEY_56: u32 = 0x8000_0000;
}

/// Kinds of target attributes.
mod attribute {
    pub const END: u16 = 0;
    pub const COMPUTER_NAME: u16 = 1;
    pub const DOMAIN_NAME: u16 = 2;
    pub const DNS_COMPUTER_NAME: u16 = 3;
    pub const DNS_DOMAIN_NAME: u16 = 4;
    pub const FLAGS: u16 = 6;
    pub const TIMESTAMP: u16 = 7;
}

fn message(bytes: &[u8], kind: u32) -> Result<Cursor<'_>, Malformed> {
    let mut fields = Cursor::new(bytes);
    let is_right = fields.array::<8>()? == *SIGNATURE && fields.u32()? == kind;
    if is_right { Ok(fields) } else { Err(Malformed) }
}

/// The flags of a NEGOTIATE; nothing else in it is used.
pub fn negotiate_flags(bytes: &[u8]) -> Result<u32, Malformed> {
    message(bytes, 1)?.u32()
}

/// `time` in units of 100 ns since 1601.
pub fn challenge(asked: u32, challenge: &[u8; 8], name: &str, time: u64) -> Vec<u8> {
    const FIXED: u32 = 56;
    let always = flags::UNICODE
        | flags::REQUEST_TARGET
        | flags::NTLM
        | flags::TARGET_TYPE_SERVER
        | flags::EXTENDED_SESSION_SECURITY
        | flags::TARGET_INFO
        | flags::VERSION;
    let when_asked = flags::SIGN
        | flags::SEAL
        | flags::ALWAYS_SIGN
        | flags::KEY_128
        | flags::KEY_EXCHANGE
        | flags::KEY_56;
    let target = text::encode(name);
    let mut info = Vec::new();
    for kind in [
        attribute::DOMAIN_NAME,
        attribute::COMPUTER_NAME,
        attribute::DNS_DOMAIN_NAME,
        attribute::DNS_COMPUTER_NAME,
    ] {
        info.put_u16_le(kind);
        info.put_u16_le(target.len() as u16);
        info.extend_from_slice(&target);
    }
    // With the time, clients protect all three messages with a checksum.
    info.put_u16_le(attribute::TIMESTAMP);
    info.put_u16_le(8);
    info.put_u64_le(time);
    info.put_u16_le(attribute::END);
    info.put_u16_le(0);

    let mut out = Vec::new();
    out.extend_from_slice(SIGNATURE);
    out.put_u32_le(2);
    put_field(&target, FIXED, &mut out);
    out.put_u32_le(always | asked & when_asked);
    out.extend_from_slice(challenge);
    out.put_u64_le(0);
    put_field(&info, FIXED + target.len() as u32, &mut out);
    // The version of an operating system; only its form matters.
    out.extend_from_slice(&[10, 0, 0, 0, 0, 0, 0, 15]);
    out.extend_from_slice(&target);
    out.extend_from_slice(&info);
    out
}

fn put_field(content: &[u8], offset: u32, out: &mut Vec<u8>) {
    out.put_u16_le(content.len() as u16);
    out.put_u16_le(content.len() as u16);
    out.put_u32_le(offset);
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticate<'a> {
    pub nt_response: &'a [u8],
    pub domain: String,
    pub user: String,
    /// The machine name sent by the client.
    pub workstation: String,
    pub encrypted_session_key: &'a [u8],
    pub flags: u32,
}

impl<'a> Authenticate<'a> {
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = message(bytes, 3)?;
        let _lm_response = field(bytes, &mut fields)?;
        let nt_response = field(bytes, &mut fields)?;
        let domain = field(bytes, &mut fields)?;
        let user = field(bytes, &mut fields)?;
        let workstation = field(bytes, &mut fields)?;
        let encrypted_session_key = field(bytes, &mut fields)?;
        let flags = fields.u32()?;
        let (domain, user) = (text::decode(domain)?, text::decode(user)?);
        // An invalid one is not a reason for refusal.
        let workstation = text::decode(workstation).unwrap_or_default();
        Ok(Self { nt_response, domain, user, workstation, encrypted_session_key, flags })
    }
}

fn field<'a>(bytes: &'a [u8], fields: &mut Cursor<'a>) -> Result<&'a [u8], Malformed> {
    let length = usize::from(fields.u16()?);
    fields.skip(2)?;
    let offset = crate::wire::cursor::size(fields.u32()?);
    if length == 0 {
        return Ok(&[]);
    }
    let end = offset.checked_add(length).ok_or(Malformed)?;
    bytes.get(offset..end).ok_or(Malformed)
}

/// The response of NTLM version 2: a proof, and the data that it covers besides the challenge.
#[derive(Clone, Copy, Debug)]
pub struct Proof<'a> {
    pub proof: &'a [u8; 16],
    pub blob: &'a [u8],
    /// Whether the client announces a checksum in its AUTHENTICATE.
    pub has_mic: bool,
}

impl<'a> Proof<'a> {
    pub fn decode(response: &'a [u8]) -> Result<Self, Malformed> {
        const MIC_PROVIDED: u32 = 2;
        let (proof, blob) = response.split_first_chunk().ok_or(Malformed)?;
        let mut fields = Cursor::new(blob);
        // Two versions of the response, both 1, then reserved bytes, a time, a challenge.
        if fields.array::<2>()? != [1, 1] {
            return Err(Malformed);
        }
        fields.skip(26)?;
        let mut has_mic = false;
        loop {
            let (kind, length) = (fields.u16()?, fields.u16()?);
            let value = fields.bytes(usize::from(length))?;
            match kind {
                attribute::END => break,
                attribute::FLAGS => has_mic = Cursor::new(value).u32()? & MIC_PROVIDED != 0,
                _ => {}
            }
        }
        Ok(Self { proof, blob, has_mic })
    }
}
