//! Messages in a stream of bytes: four bytes before each tell its length, [MS-SMB2] 2.1.

use std::io::{self, ErrorKind};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _};

pub const PREFIX_BYTES: usize = 4;

/// The prefix of a message.
pub fn prefix(length: usize) -> [u8; PREFIX_BYTES] {
    let mut prefix = (length as u32).to_be_bytes();
    prefix[0] = 0;
    prefix
}

/// The length of the next message, once its prefix is there; none at the end of the stream.
pub async fn read_prefix(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<usize>> {
    let mut prefix = [0; PREFIX_BYTES];
    match stream.read_exact(&mut prefix).await {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    // The first byte says what kind of message it is; anything but 0 belongs to NetBIOS.
    if prefix[0] != 0 {
        return Err(ErrorKind::InvalidData.into());
    }
    Ok(Some(u32::from_be_bytes(prefix) as usize))
}

/// Reads a message of `length` bytes. The memory for it is reserved at once, which costs nothing
/// until the bytes are there.
pub async fn read_message(
    stream: &mut (impl AsyncRead + Unpin),
    length: usize,
    stall_timeout: Duration,
) -> io::Result<BytesMut> {
    let mut message = BytesMut::with_capacity(length);
    let mut rest = stream.take(length as u64);
    while message.len() < length {
        let read = tokio::time::timeout(stall_timeout, rest.read_buf(&mut message)).await;
        if read.map_err(|_| ErrorKind::TimedOut)?? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(message)
}
