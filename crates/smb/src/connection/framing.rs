//! Messages in a stream of bytes: each begins with its length in four bytes, [MS-SMB2] 2.1.

use std::io::{self, ErrorKind};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _};

pub const PREFIX_BYTES: usize = 4;

/// The longest message whose length fits the prefix.
pub const MESSAGE_BYTES_MAX: usize = 0xFF_FFFF;

/// The prefix of a message; `None` if it is too long.
pub fn prefix(length: usize) -> Option<[u8; PREFIX_BYTES]> {
    let short = u32::try_from(length).ok().filter(|_| length <= MESSAGE_BYTES_MAX);
    short.map(u32::to_be_bytes)
}

/// Reads the length of the next message; `None` at the end of the stream.
pub async fn read_prefix(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<usize>> {
    let mut prefix = [0; PREFIX_BYTES];
    match stream.read_exact(&mut prefix).await {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    // The first byte is the kind of message; anything but 0 is NetBIOS.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_the_prefix_cannot_tell_is_told_by_none() {
        assert_eq!(prefix(0x01_0203), Some([0, 1, 2, 3]));
        assert_eq!(prefix(MESSAGE_BYTES_MAX), Some([0, 0xFF, 0xFF, 0xFF]));
        assert_eq!(prefix(MESSAGE_BYTES_MAX + 1), None);
    }
}
