//! Answers of HTTP/1.1, read from a connection: the status, the error code if there is one, and
//! the body, counted or kept.

use bytes::Bytes;
use memchr::{memchr, memmem};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::client::Failure;

/// The size of one read: a small answer whole, a large one in few pieces.
const READ_BYTES: usize = 256 * 1024;
/// A longer head is an error.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// What to do with the bytes of a body.
pub enum Body {
    Counted(u64),
    Kept(Vec<u8>),
}

impl Body {
    pub fn length(&self) -> u64 {
        match self {
            Self::Counted(length) => *length,
            Self::Kept(bytes) => bytes.len() as u64,
        }
    }

    pub fn into_bytes(self) -> Bytes {
        match self {
            Self::Counted(_) => Bytes::new(),
            Self::Kept(bytes) => bytes.into(),
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        match self {
            Self::Counted(length) => *length += bytes.len() as u64,
            Self::Kept(kept) => kept.extend_from_slice(bytes),
        }
    }
}

/// Bytes of a connection that were read and not used yet.
#[derive(Default)]
pub struct AnswerReader {
    buffer: Vec<u8>,
    /// Everything before this is used.
    used: usize,
    filled: usize,
    /// Whether heads are kept; not needed for counting answers only.
    keeps_head: bool,
    head: Vec<u8>,
}

impl AnswerReader {
    pub fn keep_head(&mut self, keeps_head: bool) {
        self.keeps_head = keeps_head;
    }

    /// The headers of the last answer, if they were kept.
    pub fn take_headers(&mut self) -> Headers {
        Headers(std::mem::take(&mut self.head))
    }

    /// Reads one answer whole. `may_have_body` is false for answers to HEAD.
    pub async fn read(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        may_have_body: bool,
        body: &mut Body,
    ) -> Result<(u16, String), Failure> {
        let head = loop {
            if let Some(length) = head_length(self.unused()) {
                let head = Head::parse(&self.unused()[..length])?;
                if self.keeps_head {
                    self.head = self.unused()[..length].to_vec();
                }
                self.used += length;
                break head;
            }
            if self.filled - self.used > HEAD_BYTES_MAX {
                return Err(nonsense());
            }
            self.fill(stream).await?;
        };
        if may_have_body && !matches!(head.status, 204 | 304) {
            match head.length {
                Length::Known(length) => self.read_content(stream, length, body).await?,
                Length::Chunked => self.read_chunks(stream, body).await?,
            }
        }
        Ok((head.status, head.error_code))
    }

    fn unused(&self) -> &[u8] {
        &self.buffer[self.used..self.filled]
    }

    async fn read_content(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        mut length: u64,
        body: &mut Body,
    ) -> Result<(), Failure> {
        loop {
            let here = self.unused().len().min(usize::try_from(length).unwrap_or(usize::MAX));
            body.take(&self.buffer[self.used..self.used + here]);
            self.used += here;
            length -= here as u64;
            if length == 0 {
                return Ok(());
            }
            self.fill(stream).await?;
        }
    }

    async fn read_chunks(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        body: &mut Body,
    ) -> Result<(), Failure> {
        loop {
            let size = self.read_line(stream, |line| {
                let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
                let digits = std::str::from_utf8(digits.trim_ascii()).ok()?;
                u64::from_str_radix(digits, 16).ok()
            });
            match size.await?.ok_or_else(nonsense)? {
                0 => break,
                size => self.read_content(stream, size, body).await?,
            }
            self.read_line(stream, |_| ()).await?;
        }
        while !self.read_line(stream, <[u8]>::is_empty).await? {}
        Ok(())
    }

    /// What `read` makes of the next line, without its end.
    async fn read_line<T>(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, Failure> {
        loop {
            if let Some(end) = memchr(b'\n', self.unused()) {
                let line = &self.unused()[..end];
                let value = read(line.strip_suffix(b"\r").unwrap_or(line));
                self.used += end + 1;
                return Ok(value);
            }
            if self.filled - self.used > HEAD_BYTES_MAX {
                return Err(nonsense());
            }
            self.fill(stream).await?;
        }
    }

    /// Reads more, at least one byte.
    async fn fill(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Result<(), Failure> {
        self.buffer.copy_within(self.used..self.filled, 0);
        self.filled -= self.used;
        self.used = 0;
        // Enough for one read and what is kept between reads, at most a head.
        self.buffer.resize(HEAD_BYTES_MAX + READ_BYTES, 0);
        match stream.read(&mut self.buffer[self.filled..]).await.map_err(Failure::broken)? {
            0 => Err(Failure::Broken("the server closed it".to_owned())),
            count => {
                self.filled += count;
                Ok(())
            }
        }
    }
}

fn nonsense() -> Failure {
    Failure::Broken("the answer is not HTTP".to_owned())
}

/// The length including the empty line at the end, once it has arrived.
fn head_length(bytes: &[u8]) -> Option<usize> {
    memmem::find(bytes, b"\r\n\r\n").map(|end| end + 4)
}

#[derive(Debug, PartialEq, Eq)]
enum Length {
    Known(u64),
    Chunked,
}

#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    length: Length,
    /// Empty unless the request has failed.
    error_code: String,
}

impl Head {
    fn parse(head: &[u8]) -> Result<Self, Failure> {
        let status = head.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3));
        let status = status.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        let status = status.ok_or_else(nonsense)?;
        let (mut length, mut error_code) = (Length::Known(0), String::new());
        for line in Lines(head) {
            // Most headers are skipped by their first letter.
            match line.first() {
                Some(b'c' | b'C') => {
                    if let Some(value) = value_of(line, "content-length") {
                        length = Length::Known(value.parse().map_err(|_| nonsense())?);
                    }
                }
                Some(b't' | b'T') if value_of(line, "transfer-encoding").is_some() => {
                    length = Length::Chunked;
                }
                Some(b'x' | b'X') if status >= 400 => {
                    if let Some(code) = value_of(line, "x-ms-error-code") {
                        code.clone_into(&mut error_code);
                    }
                }
                _ => {}
            }
        }
        Ok(Self { status, length, error_code })
    }
}

/// The headers of one answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<u8>);

impl Headers {
    /// The value of the first header of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        Lines(&self.0).find_map(|line| value_of(line, name))
    }

    /// Every header of which name and value are text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        Lines(&self.0).skip(1).filter_map(|line| {
            let (name, value) = std::str::from_utf8(line).ok()?.split_once(':')?;
            Some((name, value.trim()))
        })
    }
}

/// The lines of a head, without their ends.
struct Lines<'head>(&'head [u8]);

impl<'head> Iterator for Lines<'head> {
    type Item = &'head [u8];

    fn next(&mut self) -> Option<&'head [u8]> {
        let end = memchr(b'\n', self.0)?;
        let line = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

/// The value of a header, if the line is that header.
fn value_of<'line>(line: &'line [u8], name: &str) -> Option<&'line str> {
    let (found, rest) = line.split_at_checked(name.len())?;
    if !found.eq_ignore_ascii_case(name.as_bytes()) {
        return None;
    }
    std::str::from_utf8(rest.strip_prefix(b":")?.trim_ascii()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, TcpStream};

    type Answer = (u16, String, Vec<u8>);

    /// Reads answers from `sent`, which arrives in pieces of `piece` bytes.
    fn read(sent: &[u8], piece: usize, answers: usize) -> Result<Vec<Answer>, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime can be made").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
            let address = listener.local_addr().expect("it is bound");
            let reading = async {
                let mut stream = TcpStream::connect(address).await.expect("it listens");
                let (mut reader, mut read) = (AnswerReader::default(), Vec::new());
                for _ in 0..answers {
                    let mut body = Body::Kept(Vec::new());
                    let (status, code) = reader.read(&mut stream, true, &mut body).await?;
                    read.push((status, code, body.into_bytes().to_vec()));
                }
                Ok(read)
            };
            let writing = async {
                let (mut stream, _) = listener.accept().await.expect("it connects");
                stream.set_nodelay(true).expect("it is open");
                for piece in sent.chunks(piece) {
                    stream.write_all(piece).await.expect("it is read");
                    tokio::task::yield_now().await;
                }
            };
            tokio::join!(reading, writing).0
        })
    }

    const ANSWERS: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nx-other: 1\r\n\r\nhello\
        HTTP/1.1 204 No Content\r\n\r\n\
        HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
        3\r\nabc\r\n10;extension\r\n0123456789abcdef\r\n0\r\ntrailer: 1\r\n\r\n\
        HTTP/1.1 404 The blob\r\nx-ms-error-code: BlobNotFound\r\ncontent-length: 2\r\n\r\nno";

    #[test]
    fn answers_are_read_whole_and_in_pieces() {
        let owned = |status, code: &str, body: &[u8]| (status, code.to_owned(), body.to_vec());
        let expected = vec![
            owned(200, "", b"hello"),
            owned(204, "", b""),
            owned(200, "", b"abc0123456789abcdef"),
            owned(404, "BlobNotFound", b"no"),
        ];
        for piece in [1, 2, 3, 7, 50, ANSWERS.len()] {
            assert_eq!(read(ANSWERS, piece, 4), Ok(expected.clone()), "{piece}");
        }
    }

    #[test]
    fn headers_are_found_by_names_of_either_case() {
        let headers = Headers(b"HTTP/1.1 200 OK\r\nETag: \"0x1\"\r\nx-ms-a:b\r\n\r\n".to_vec());
        assert_eq!(headers.get("etag"), Some("\"0x1\""));
        assert_eq!(headers.get("x-ms-a"), Some("b"));
        assert_eq!(headers.get("x-ms"), None);
        assert_eq!(headers.iter().collect::<Vec<_>>(), [("ETag", "\"0x1\""), ("x-ms-a", "b")]);
    }

    #[test]
    fn what_is_no_answer_or_not_whole_breaks_the_connection() {
        for sent in [
            b"SSH-2.0\r\n\r\n".as_slice(),
            b"HTTP/1.1 2x0 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n1",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n",
            b"HTTP/1.1 200 OK\r\n",
        ] {
            let failure = read(sent, sent.len(), 1).expect_err("it is no answer");
            assert!(failure.ends_connection(), "{}", String::from_utf8_lossy(sent));
        }
    }
}
