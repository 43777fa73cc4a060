//! CHANGE_NOTIFY, [MS-SMB2] 2.2.35. The answer is that of [`super::query_info`].

use bytes::{BufMut as _, Bytes};

use super::{Body, FileId, Malformed, pad, text};

const WATCH_TREE: u16 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whether changes in directories below count, too.
    pub watch_tree: bool,
    pub output_bytes_max: u32,
    pub file_id: FileId,
    pub filter: u32,
}

impl Request {
    pub fn decode(message: &Bytes) -> Result<Self, Malformed> {
        let mut body = Body::new(message, 32)?;
        let watch_tree = body.u16()? & WATCH_TREE != 0;
        let output_bytes_max = body.u32()?;
        let file_id = FileId::decode(&mut body)?;
        let filter = body.u32()?;
        body.skip(4)?;
        Ok(Self { watch_tree, output_bytes_max, file_id, filter })
    }
}

/// FILE_NOTIFY_INFORMATION of [MS-FSCC] 2.7.1: the action (by number) and the name.
pub fn encode_changes<'a>(changes: impl Iterator<Item = (u32, &'a str)>) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::new();
    let mut previous = None;
    for (action, name) in changes {
        pad(&mut out, 0, 4);
        let start = out.len();
        if let Some(previous) = previous.replace(start) {
            let distance = (start - previous) as u32;
            out[previous..previous + 4].copy_from_slice(&distance.to_le_bytes());
        }
        out.put_u32_le(0);
        out.put_u32_le(action);
        out.put_u32_le(text::encoded_length(name) as u32);
        text::append(name, &mut out);
    }
    out
}
