//! The body of an entity group transaction: `multipart/mixed`, in it either one change set, which
//! is `multipart/mixed` again with one request in each part, or one query. Requests are written as
//! HTTP/1.1, with a body. Nothing here knows what they mean.
//!
//! Lines end in CRLF, or in LF alone as hand-written clients send them. The first blank line ends
//! the headers; clients that send a second one send JSON after it, which ignores it.

use memchr::{memchr, memmem};

use crate::body::multipart::boundary;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchRefusal {
    #[error("the body of the batch cannot be read: {0}")]
    Unreadable(&'static str),
    #[error("the batch has more than 100 operations")]
    TooMany,
}

use BatchRefusal::Unreadable;

/// As many headers as a separate request may have.
const HEADERS_MAX: usize = 256;

/// One request of a batch.
#[derive(Debug, PartialEq, Eq)]
pub struct PartRequest<'a> {
    pub method: &'a str,
    /// As sent: with scheme and host, or beginning with the path.
    pub target: &'a str,
    headers: Vec<(&'a str, &'a str)>,
    pub body: &'a [u8],
    /// The Content-ID, which identifies the answer. It may be in the headers of the part or of the
    /// request in it.
    pub content_id: Option<&'a str>,
}

impl<'a> PartRequest<'a> {
    pub fn header(&self, name: &str) -> Option<&'a str> {
        find(&self.headers, name)
    }

    /// All values of that name.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let named = move |(sent, _): &&(&str, &str)| sent.eq_ignore_ascii_case(name);
        self.headers.iter().filter(named).map(|(_, value)| *value)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum BatchBody<'a> {
    Changes(Vec<PartRequest<'a>>),
    Query(PartRequest<'a>),
}

/// All of the body, or a refusal. `boundary` is that of the batch.
pub fn parse<'a>(
    body: &'a [u8],
    batch_boundary: &str,
    changes_max: usize,
) -> Result<BatchBody<'a>, BatchRefusal> {
    let not_one = Unreadable("it must have one change set or one query");
    let parts = split(body, batch_boundary, 1).map_err(|refusal| match refusal {
        BatchRefusal::TooMany => not_one,
        Unreadable(_) => refusal,
    })?;
    let [part] = parts.as_slice() else { return Err(not_one) };
    let (headers, content) = parse_headers(part)?;
    let content_type = find(&headers, "content-type").unwrap_or_default();
    let Some(changes_boundary) = boundary(content_type) else {
        let query = parse_request(headers, content)?;
        return Ok(BatchBody::Query(query));
    };
    let parts = split(content, changes_boundary, changes_max)?;
    let changes = parts.into_iter().map(|part| {
        let (headers, content) = parse_headers(part)?;
        parse_request(headers, content)
    });
    Ok(BatchBody::Changes(changes.collect::<Result<_, _>>()?))
}

/// The parts between the boundary lines, each without its last line end.
fn split<'a>(
    body: &'a [u8],
    boundary: &str,
    parts_max: usize,
) -> Result<Vec<&'a [u8]>, BatchRefusal> {
    let delimiter = format!("--{boundary}");
    let mut parts: Vec<&[u8]> = Vec::new();
    // The start of the part that the next delimiter ends. What is before the first one is ignored.
    let mut start = None;
    for at in memmem::find_iter(body, delimiter.as_bytes()) {
        if at > 0 && body[at - 1] != b'\n' {
            continue;
        }
        let behind = &body[at + delimiter.len()..];
        let line_end = memchr(b'\n', behind).map_or(behind.len(), |end| end + 1);
        let is_last = match behind[..line_end].trim_ascii() {
            b"" => false,
            b"--" => true,
            // A longer boundary that begins like this one.
            _ => continue,
        };
        if let Some(start) = start {
            if parts.len() == parts_max {
                return Err(BatchRefusal::TooMany);
            }
            parts.push(body.get(start..at).unwrap_or_default());
        }
        if is_last {
            return Ok(parts);
        }
        start = Some(at + delimiter.len() + line_end);
    }
    match start {
        // Old JavaScript clients omit the dashes after the last boundary.
        Some(start) if !parts.is_empty() && body[start..].trim_ascii().is_empty() => Ok(parts),
        Some(_) => Err(Unreadable("it does not end with the boundary")),
        None => Err(Unreadable("the boundary is not found")),
    }
}

type Headers<'a> = Vec<(&'a str, &'a str)>;

fn find<'a>(headers: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    let mut headers = headers.iter();
    headers.find(|(sent, _)| sent.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
}

/// The headers that `bytes` begins with, and what follows the blank line that ends them.
fn parse_headers(bytes: &[u8]) -> Result<(Headers<'_>, &[u8]), BatchRefusal> {
    let mut headers = Vec::with_capacity(8);
    let mut rest = bytes;
    loop {
        let Some((line, behind)) = take_line(rest)? else { return Ok((headers, &[])) };
        rest = behind;
        if line.is_empty() {
            return Ok((headers, rest));
        }
        if headers.len() == HEADERS_MAX {
            return Err(Unreadable("a part has too many headers"));
        }
        let colon = memchr(b':', line.as_bytes()).ok_or(Unreadable("a header is not valid"))?;
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        headers.push((name.trim_ascii(), value.trim_ascii()));
    }
}

fn parse_request<'a>(
    envelope: Headers<'a>,
    content: &'a [u8],
) -> Result<PartRequest<'a>, BatchRefusal> {
    let kind = find(&envelope, "content-type").unwrap_or_default();
    let (kind, _) = kind.split_once(';').unwrap_or((kind, ""));
    if !kind.trim().eq_ignore_ascii_case("application/http") {
        return Err(Unreadable("a part is not application/http"));
    }
    let wrong = Unreadable("a part does not begin with a request line");
    let (line, rest) = take_line(content)?.ok_or(wrong)?;
    let (method, target) = line.split_once(' ').ok_or(wrong)?;
    // A key in the address may have unencoded spaces.
    let (target, protocol) = target.rsplit_once(' ').ok_or(wrong)?;
    if !matches!(protocol, "HTTP/1.1" | "HTTP/1.0") {
        return Err(wrong);
    }
    let (headers, body) = parse_headers(rest)?;
    let content_id = find(&envelope, "content-id").or_else(|| find(&headers, "content-id"));
    Ok(PartRequest { method, target: target.trim(), headers, body, content_id })
}

/// The first line without its end, and what follows it; `None` if there is none.
fn take_line(bytes: &[u8]) -> Result<Option<(&str, &[u8])>, BatchRefusal> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (line, rest) = match memchr(b'\n', bytes) {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[][..]),
    };
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = std::str::from_utf8(line).map_err(|_| Unreadable("it is not text"))?;
    Ok(Some((line, rest)))
}

#[cfg(test)]
mod tests;
