//! The body of an error response, [MS-SMB2] 2.2.2.

use bytes::BufMut as _;

/// `data` is empty for most statuses; STATUS_BUFFER_TOO_SMALL has the required length.
pub fn encode(data: &[u8], out: &mut Vec<u8>) {
    out.put_u16_le(9);
    out.put_u16_le(0);
    out.put_u32_le(data.len() as u32);
    out.extend_from_slice(data);
    if data.is_empty() {
        // The structure counts one byte of data even if there is none.
        out.put_u8(0);
    }
}

/// The body of requests and responses without content: LOGOFF, TREE_DISCONNECT, ECHO, FLUSH, LOCK.
pub fn encode_empty(out: &mut Vec<u8>) {
    out.put_u16_le(4);
    out.put_u16_le(0);
}
