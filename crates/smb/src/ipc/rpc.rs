//! Remote procedure calls over a pipe, [C706] chapter 12: binding, requests and answers, each in
//! fragments.

use bytes::BufMut as _;

use crate::status::Status;
use crate::wire::{Cursor, Malformed};

const HEADER_BYTES: usize = 16;
const REQUEST: u8 = 0;
const RESPONSE: u8 = 2;
const FAULT: u8 = 3;
const BIND: u8 = 11;
const BIND_ACK: u8 = 12;
const ALTER_CONTEXT: u8 = 14;
const ALTER_CONTEXT_RESPONSE: u8 = 15;
const FIRST_FRAGMENT: u8 = 1;
const LAST_FRAGMENT: u8 = 2;
const OBJECT_PRESENT: u8 = 0x80;

/// 4b324fc8-1670-01d3-1278-5a47bf6ee188, version 3.0
const SRVSVC: [u8; 20] = [
    0xC8, 0x4F, 0x32, 0x4B, 0x70, 0x16, 0xD3, 0x01, 0x12, 0x78, 0x5A, 0x47, 0xBF, 0x6E, 0xE1, 0x88,
    3, 0, 0, 0,
];
/// 8a885d04-1ceb-11c9-9fe8-08002b104860, version 2.0
const NDR: [u8; 20] = [
    0x04, 0x5D, 0x88, 0x8A, 0xEB, 0x1C, 0xC9, 0x11, 0x9F, 0xE8, 0x08, 0x00, 0x2B, 0x10, 0x48, 0x60,
    2, 0, 0, 0,
];
const PIPE_NAME: &[u8] = b"\\PIPE\\srvsvc\0";
/// Every implementation accepts this much, and this is the most that is sent at once.
const FRAGMENT_BYTES_MIN: u16 = 1432;
const FRAGMENT_BYTES_MAX: u16 = 4280;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    UnknownOperation,
    BadArguments,
}

impl Fault {
    fn code(self) -> u32 {
        match self {
            Self::UnknownOperation => 0x1C01_0002,
            Self::BadArguments => 0x0000_06F7,
        }
    }
}

impl From<Malformed> for Fault {
    fn from(_: Malformed) -> Self {
        Self::BadArguments
    }
}

pub struct Request {
    call_id: u32,
    context_id: u16,
    pub operation: u16,
    pub arguments: Vec<u8>,
}

pub enum Received {
    /// More fragments are to come.
    Part,
    Answered(Vec<u8>),
    Request(Request),
}

/// What client and server have negotiated.
#[derive(Default)]
pub struct Association {
    is_bound: bool,
    fragment_bytes_max: u16,
    partial: Option<Request>,
}

/// The length of the first fragment in `bytes`, once it is complete.
pub fn fragment_length(bytes: &[u8]) -> Result<Option<usize>, Status> {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let length = usize::from(u16::from_le_bytes([header[8], header[9]]));
    // Version 5.0, little-endian.
    if header[0] != 5 || header[1] != 0 || header[4] != 0x10 || length < HEADER_BYTES {
        return Err(Status::PIPE_DISCONNECTED);
    }
    Ok((bytes.len() >= length).then_some(length))
}

impl Association {
    /// The bytes of a call received in part.
    pub fn partial_bytes(&self) -> usize {
        self.partial.as_ref().map_or(0, |partial| partial.arguments.len())
    }

    pub fn receive(&mut self, fragment: &[u8], call_bytes_max: usize) -> Result<Received, Status> {
        let mut fields = Cursor::new(fragment);
        fields.skip(2)?;
        let (kind, flags) = (fields.u8()?, fields.u8()?);
        fields.skip(6)?;
        let has_authentication = fields.u16()? != 0;
        let call_id = fields.u32()?;
        if has_authentication {
            // The session is authenticated already.
            return Err(Status::PIPE_DISCONNECTED);
        }
        match kind {
            BIND => Ok(Received::Answered(self.bind(fields, call_id, BIND_ACK)?)),
            ALTER_CONTEXT => {
                Ok(Received::Answered(self.bind(fields, call_id, ALTER_CONTEXT_RESPONSE)?))
            }
            REQUEST if self.is_bound => self.request(fields, flags, call_id, call_bytes_max),
            _ => Err(Status::PIPE_DISCONNECTED),
        }
    }

    fn bind(
        &mut self,
        mut fields: Cursor<'_>,
        call_id: u32,
        answer_kind: u8,
    ) -> Result<Vec<u8>, Malformed> {
        fields.skip(2)?;
        let receives = fields.u16()?;
        fields.skip(4)?;
        let contexts = fields.u8()?;
        fields.skip(3)?;
        self.fragment_bytes_max = receives.clamp(FRAGMENT_BYTES_MIN, FRAGMENT_BYTES_MAX);
        let mut results = Vec::new();
        for _ in 0..contexts {
            fields.skip(2)?;
            let syntaxes = fields.u8()?;
            fields.skip(1)?;
            let is_known = fields.array::<20>()? == SRVSVC;
            let mut has_ndr = false;
            for _ in 0..syntaxes {
                has_ndr |= fields.array::<20>()? == NDR;
            }
            results.push((is_known, has_ndr));
        }
        self.is_bound |= results.contains(&(true, true));

        let mut body = Vec::new();
        body.put_u16_le(FRAGMENT_BYTES_MAX);
        body.put_u16_le(FRAGMENT_BYTES_MAX);
        // The association group; one for each pipe.
        body.put_u32_le(1);
        body.put_u16_le(PIPE_NAME.len() as u16);
        body.extend_from_slice(PIPE_NAME);
        body.resize(body.len().next_multiple_of(4), 0);
        body.put_u32_le(results.len() as u32);
        for (is_known, has_ndr) in results {
            let (result, reason) = match (is_known, has_ndr) {
                (true, true) => (0, 0),
                (false, _) => (2, 1),
                (true, false) => (2, 2),
            };
            body.put_u16_le(result);
            body.put_u16_le(reason);
            body.extend_from_slice(if result == 0 { &NDR } else { &[0; 20] });
        }
        Ok(fragment(answer_kind, FIRST_FRAGMENT | LAST_FRAGMENT, call_id, &body))
    }

    fn request(
        &mut self,
        mut fields: Cursor<'_>,
        flags: u8,
        call_id: u32,
        call_bytes_max: usize,
    ) -> Result<Received, Status> {
        fields.skip(4)?;
        let (context_id, operation) = (fields.u16()?, fields.u16()?);
        if flags & OBJECT_PRESENT != 0 {
            fields.skip(16)?;
        }
        let is_first = flags & FIRST_FRAGMENT != 0;
        let partial = match (self.partial.take(), is_first) {
            (None, true) => Request { call_id, context_id, operation, arguments: Vec::new() },
            (Some(partial), false) if partial.call_id == call_id => partial,
            (Some(_) | None, _) => return Err(Status::PIPE_DISCONNECTED),
        };
        let mut request = partial;
        request.arguments.extend_from_slice(fields.rest());
        if request.arguments.len() > call_bytes_max {
            return Err(Status::INSUFFICIENT_RESOURCES);
        }
        if flags & LAST_FRAGMENT == 0 {
            self.partial = Some(request);
            return Ok(Received::Part);
        }
        Ok(Received::Request(request))
    }

    /// The fragments of an answer.
    pub fn answer(&self, request: &Request, outcome: Result<Vec<u8>, Fault>) -> Vec<Vec<u8>> {
        let Request { call_id, context_id, .. } = *request;
        let head = |left: usize, out: &mut Vec<u8>| {
            out.put_u32_le(left as u32);
            out.put_u16_le(context_id);
            out.put_u16_le(0);
        };
        let results = match outcome {
            Ok(results) => results,
            Err(fault) => {
                let mut body = Vec::new();
                head(0, &mut body);
                body.put_u32_le(fault.code());
                body.put_u32_le(0);
                return vec![fragment(FAULT, FIRST_FRAGMENT | LAST_FRAGMENT, call_id, &body)];
            }
        };
        // A multiple of 8, so that no value is split.
        let piece = (usize::from(self.fragment_bytes_max) - HEADER_BYTES - 8) / 8 * 8;
        let count = results.len().div_ceil(piece).max(1);
        let fragments = (0..count).map(|index| {
            let start = index * piece;
            let end = results.len().min(start + piece);
            let mut body = Vec::with_capacity(8 + piece);
            head(results.len() - start, &mut body);
            body.extend_from_slice(&results[start..end]);
            let mut flags = 0;
            flags |= if index == 0 { FIRST_FRAGMENT } else { 0 };
            flags |= if index + 1 == count { LAST_FRAGMENT } else { 0 };
            fragment(RESPONSE, flags, call_id, &body)
        });
        fragments.collect()
    }
}

fn fragment(kind: u8, flags: u8, call_id: u32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES + body.len());
    out.extend_from_slice(&[5, 0, kind, flags, 0x10, 0, 0, 0]);
    out.put_u16_le((HEADER_BYTES + body.len()) as u16);
    out.put_u16_le(0);
    out.put_u32_le(call_id);
    out.extend_from_slice(body);
    out
}
