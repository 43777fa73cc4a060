//! NEGOTIATE and its contexts, [MS-SMB2] 2.2.3 and 2.2.4.

use bytes::{BufMut as _, Bytes};

use super::cursor::size;
use super::{Body, Cursor, HEADER_BYTES, Malformed, pad};

pub const SIGNING_ENABLED: u16 = 1;
pub const SIGNING_REQUIRED: u16 = 2;

/// Capabilities of both sides besides the dialect.
pub mod capabilities {
    pub const DFS: u32 = 0x01;
    pub const LEASING: u32 = 0x02;
    /// Reads and writes of more than 64 KiB, for more than one credit.
    pub const LARGE_MTU: u32 = 0x04;
    pub const MULTI_CHANNEL: u32 = 0x08;
    pub const PERSISTENT_HANDLES: u32 = 0x10;
    pub const DIRECTORY_LEASING: u32 = 0x20;
    /// For 3.0 and 3.0.2; 3.1.1 has a context for it.
    pub const ENCRYPTION: u32 = 0x40;
}

const PREAUTH_INTEGRITY: u16 = 1;
const ENCRYPTION: u16 = 2;
const SIGNING: u16 = 8;
/// More kinds of context than there are, and more algorithms in one than exist.
const CONTEXTS_MAX: u16 = 32;
const ALGORITHMS_MAX: u16 = 32;
const DIALECTS_MAX: u16 = 64;
pub const SHA_512: u16 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub security_mode: u16,
    pub capabilities: u32,
    pub client_guid: [u8; 16],
    pub dialects: Vec<u16>,
    /// Only 3.1.1 has contexts.
    pub contexts: Contexts,
}

/// By the numbers of the wire; unknown contexts are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contexts {
    pub preauth_hashes: Option<Vec<u16>>,
    pub ciphers: Option<Vec<u16>>,
    pub signing: Option<Vec<u16>>,
}

pub const DIALECT_3_1_1: u16 = 0x0311;

impl Request {
    pub fn decode(message: &Bytes) -> Result<Self, Malformed> {
        let mut body = Body::new(message, 36)?;
        let dialect_count = body.u16()?;
        let security_mode = body.u16()?;
        body.skip(2)?;
        let capabilities = body.u32()?;
        let client_guid = body.array()?;
        let context_offset = body.u32()?;
        let context_count = body.u16()?;
        body.skip(2)?;
        if dialect_count == 0 || dialect_count > DIALECTS_MAX {
            return Err(Malformed);
        }
        let dialects = (0..dialect_count).map(|_| body.u16()).collect::<Result<Vec<_>, _>>()?;
        let mut contexts = Contexts::default();
        if dialects.contains(&DIALECT_3_1_1) {
            let start = size(context_offset);
            let length = message.len().checked_sub(start).ok_or(Malformed)?;
            contexts = Contexts::decode(&body.part(start, length)?, context_count)?;
        }
        Ok(Self { security_mode, capabilities, client_guid, dialects, contexts })
    }
}

impl Contexts {
    fn decode(bytes: &[u8], count: u16) -> Result<Self, Malformed> {
        if count > CONTEXTS_MAX {
            return Err(Malformed);
        }
        let mut contexts = Self::default();
        let mut fields = Cursor::new(bytes);
        for index in 0..count {
            if index > 0 {
                let read = bytes.len() - fields.rest().len();
                fields.skip(read.next_multiple_of(8) - read)?;
            }
            let kind = fields.u16()?;
            let length = fields.u16()?;
            fields.skip(4)?;
            let data = fields.bytes(usize::from(length))?;
            let slot = match kind {
                PREAUTH_INTEGRITY => &mut contexts.preauth_hashes,
                ENCRYPTION => &mut contexts.ciphers,
                SIGNING => &mut contexts.signing,
                _ => continue,
            };
            // Each kind once: with a second one the request would be ambiguous.
            if slot.replace(algorithms(kind, data)?).is_some() {
                return Err(Malformed);
            }
        }
        Ok(contexts)
    }
}

fn algorithms(kind: u16, data: &[u8]) -> Result<Vec<u16>, Malformed> {
    let mut fields = Cursor::new(data);
    let count = fields.u16()?;
    if count == 0 || count > ALGORITHMS_MAX {
        return Err(Malformed);
    }
    if kind == PREAUTH_INTEGRITY {
        let salt_length = fields.u16()?;
        let hashes = (0..count).map(|_| fields.u16()).collect::<Result<_, _>>()?;
        fields.skip(usize::from(salt_length))?;
        return Ok(hashes);
    }
    (0..count).map(|_| fields.u16()).collect()
}

#[derive(Clone, Debug)]
pub struct Response {
    pub security_mode: u16,
    pub dialect: u16,
    pub server_guid: [u8; 16],
    pub capabilities: u32,
    pub transact_bytes_max: u32,
    pub read_bytes_max: u32,
    pub write_bytes_max: u32,
    /// In units of 100 ns since 1601.
    pub system_time: u64,
    pub security_token: Vec<u8>,
    /// The contexts of 3.1.1.
    pub chosen: Option<Chosen>,
}

#[derive(Clone, Debug)]
pub struct Chosen {
    pub salt: [u8; 32],
    /// 0 if none of the client's is supported.
    pub cipher: Option<u16>,
    pub signing: Option<u16>,
}

impl Response {
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let token_offset = HEADER_BYTES + 64;
        let token_end = token_offset + self.security_token.len();
        let contexts = self.chosen.as_ref().map(Chosen::contexts).unwrap_or_default();
        out.put_u16_le(65);
        out.put_u16_le(self.security_mode);
        out.put_u16_le(self.dialect);
        out.put_u16_le(contexts.len() as u16);
        out.extend_from_slice(&self.server_guid);
        out.put_u32_le(self.capabilities);
        out.put_u32_le(self.transact_bytes_max);
        out.put_u32_le(self.read_bytes_max);
        out.put_u32_le(self.write_bytes_max);
        out.put_u64_le(self.system_time);
        // The start time of the server; sent as 0, since it would only help attackers.
        out.put_u64_le(0);
        out.put_u16_le(token_offset as u16);
        out.put_u16_le(self.security_token.len() as u16);
        let context_offset =
            if contexts.is_empty() { 0 } else { token_end.next_multiple_of(8) as u32 };
        out.put_u32_le(context_offset);
        out.extend_from_slice(&self.security_token);
        for (kind, data) in contexts {
            pad(out, start, 8);
            out.put_u16_le(kind);
            out.put_u16_le(data.len() as u16);
            out.put_u32_le(0);
            out.extend_from_slice(&data);
        }
    }
}

impl Chosen {
    fn contexts(&self) -> Vec<(u16, Vec<u8>)> {
        let mut preauth = Vec::with_capacity(38);
        preauth.put_u16_le(1);
        preauth.put_u16_le(self.salt.len() as u16);
        preauth.put_u16_le(SHA_512);
        preauth.extend_from_slice(&self.salt);
        let mut contexts = vec![(PREAUTH_INTEGRITY, preauth)];
        for (kind, chosen) in [(ENCRYPTION, self.cipher), (SIGNING, self.signing)] {
            if let Some(algorithm) = chosen {
                let mut data = Vec::with_capacity(4);
                data.put_u16_le(1);
                data.put_u16_le(algorithm);
                contexts.push((kind, data));
            }
        }
        contexts
    }
}
