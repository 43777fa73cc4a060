//! IOCTL, [MS-SMB2] 2.2.31 and 2.2.32.

use bytes::{BufMut as _, Bytes};

use super::cursor::size;
use super::{Body, Cursor, FileId, HEADER_BYTES, Malformed};

pub mod codes {
    pub const DFS_GET_REFERRALS: u32 = 0x0006_0194;
    pub const DFS_GET_REFERRALS_EX: u32 = 0x0006_01B0;
    pub const PIPE_PEEK: u32 = 0x0011_400C;
    pub const PIPE_WAIT: u32 = 0x0011_0018;
    pub const PIPE_TRANSCEIVE: u32 = 0x0011_C017;
    pub const SRV_COPYCHUNK: u32 = 0x0014_40F2;
    pub const SRV_COPYCHUNK_WRITE: u32 = 0x0014_80F2;
    pub const SRV_ENUMERATE_SNAPSHOTS: u32 = 0x0014_4064;
    pub const SRV_REQUEST_RESUME_KEY: u32 = 0x0014_0078;
    pub const SRV_READ_HASH: u32 = 0x0014_41BB;
    pub const LMR_REQUEST_RESILIENCY: u32 = 0x0014_01D4;
    pub const QUERY_NETWORK_INTERFACE_INFO: u32 = 0x0014_01FC;
    pub const SET_REPARSE_POINT: u32 = 0x0009_00A4;
    pub const GET_REPARSE_POINT: u32 = 0x0009_00A8;
    pub const SET_SPARSE: u32 = 0x0009_00C4;
    pub const SET_ZERO_DATA: u32 = 0x0009_80C8;
    pub const QUERY_ALLOCATED_RANGES: u32 = 0x0009_40CF;
    pub const FILE_LEVEL_TRIM: u32 = 0x0009_8208;
    pub const CREATE_OR_GET_OBJECT_ID: u32 = 0x0009_00C0;
    pub const GET_COMPRESSION: u32 = 0x0009_003C;
    pub const SET_COMPRESSION: u32 = 0x0009_C040;
    pub const GET_INTEGRITY_INFORMATION: u32 = 0x0009_027C;
    pub const DUPLICATE_EXTENTS_TO_FILE: u32 = 0x0009_8344;
    pub const VALIDATE_NEGOTIATE_INFO: u32 = 0x0014_0204;
}

const IS_FSCTL: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// One of [`codes`].
    pub code: u32,
    pub file_id: FileId,
    pub input: Bytes,
    pub output_bytes_max: u32,
    /// Otherwise it is for a device, which is not supported.
    pub is_fsctl: bool,
}

impl Request {
    pub fn decode(message: &Bytes) -> Result<Self, Malformed> {
        let mut body = Body::new(message, 57)?;
        body.skip(2)?;
        let code = body.u32()?;
        let file_id = FileId::decode(&mut body)?;
        let (input_offset, input_length) = (body.u32()?, body.u32()?);
        body.skip(4)?;
        // Offset and length of output, unused in a request.
        body.skip(8)?;
        let output_bytes_max = body.u32()?;
        let is_fsctl = body.u32()? & IS_FSCTL != 0;
        body.skip(4)?;
        let input = body.part(size(input_offset), size(input_length))?;
        Ok(Self { code, file_id, input, output_bytes_max, is_fsctl })
    }
}

#[derive(Clone, Debug)]
pub struct Response {
    pub code: u32,
    pub file_id: FileId,
    pub output: Vec<u8>,
}

impl Response {
    pub fn encode(&self, out: &mut Vec<u8>) {
        let output_offset = HEADER_BYTES + 48;
        out.put_u16_le(49);
        out.put_u16_le(0);
        out.put_u32_le(self.code);
        self.file_id.encode(out);
        out.put_u32_le(output_offset as u32);
        out.put_u32_le(0);
        out.put_u32_le(output_offset as u32);
        out.put_u32_le(self.output.len() as u32);
        out.put_u32_le(0);
        out.put_u32_le(0);
        out.extend_from_slice(&self.output);
    }
}

/// What the client has negotiated from its view, to detect changes on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidateNegotiate {
    pub capabilities: u32,
    pub client_guid: [u8; 16],
    pub security_mode: u16,
    pub dialects: Vec<u16>,
}

impl ValidateNegotiate {
    pub fn decode(input: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Cursor::new(input);
        let capabilities = fields.u32()?;
        let client_guid = fields.array()?;
        let security_mode = fields.u16()?;
        let count = usize::from(fields.u16()?);
        if fields.rest().len() / 2 < count {
            return Err(Malformed);
        }
        let dialects = (0..count).map(|_| fields.u16()).collect::<Result<_, _>>()?;
        Ok(Self { capabilities, client_guid, security_mode, dialects })
    }
}

/// The ranges of a server-side copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyChunks {
    pub source_key: [u8; 24],
    pub chunks: Vec<Chunk>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub source_offset: u64,
    pub target_offset: u64,
    pub length: u32,
}

impl CopyChunks {
    pub fn decode(input: &[u8]) -> Result<Self, Malformed> {
        const CHUNK_BYTES: usize = 24;
        let mut fields = Cursor::new(input);
        let source_key = fields.array()?;
        let count = size(fields.u32()?);
        fields.skip(4)?;
        if fields.rest().len() / CHUNK_BYTES < count {
            return Err(Malformed);
        }
        let mut chunks = Vec::with_capacity(count);
        for _ in 0..count {
            let (source_offset, target_offset) = (fields.u64()?, fields.u64()?);
            let length = fields.u32()?;
            fields.skip(4)?;
            chunks.push(Chunk { source_offset, target_offset, length });
        }
        Ok(Self { source_key, chunks })
    }
}
