//! The body of a batch: `multipart/mixed`, each part one request written as HTTP/1.1 without a body
//! of its own. Lines end in CRLF, as every client writes them. Nothing here knows what the requests
//! mean.

use hyper::{Method, Uri};

use crate::headers::RequestHeaders;

/// As many headers as a separate request may have.
const HEADERS_MAX: usize = 256;
/// From the grammar of multipart bodies.
const BOUNDARY_BYTES_MAX: usize = 70;

/// One request of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The Content-ID that identifies the answer, as the client wrote it.
    pub content_id: Option<String>,
    pub method: Method,
    /// Path and query, without a host.
    pub uri: Uri,
    pub headers: RequestHeaders,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MultipartRefusal {
    #[error("the body of the batch cannot be read: {0}")]
    Unreadable(&'static str),
    #[error("the batch has no parts")]
    Empty,
    #[error("the batch has too many parts")]
    TooManyParts,
}

use MultipartRefusal::Unreadable;

/// The boundary that a header `Content-Type` names, if the content is `multipart/mixed`.
pub fn boundary(content_type: &str) -> Option<&str> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/mixed") {
        return None;
    }
    let named = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then_some(value.trim())
    })?;
    let unquoted = named.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(named);
    (1..=BOUNDARY_BYTES_MAX).contains(&unquoted.len()).then_some(unquoted)
}

/// The parts of a body, in their order; all of them or a refusal.
pub fn parse(body: &[u8], boundary: &str, parts_max: usize) -> Result<Vec<Part>, MultipartRefusal> {
    let body = std::str::from_utf8(body).map_err(|_| Unreadable("it is not text"))?;
    let mut lines = body.split("\r\n");
    // By the grammar, everything before the first boundary is ignored.
    lines
        .find_map(|line| delimiter(line, boundary))
        .ok_or(Unreadable("the boundary is not found"))
        .and_then(|first| match first {
            Delimiter::Part => Ok(()),
            Delimiter::End => Err(MultipartRefusal::Empty),
        })?;
    let mut parts = Vec::new();
    loop {
        if parts.len() == parts_max {
            return Err(MultipartRefusal::TooManyParts);
        }
        let mut part = Vec::new();
        let ended_by = loop {
            let line = lines.next().ok_or(Unreadable("it does not end with the boundary"))?;
            match delimiter(line, boundary) {
                Some(delimiter) => break delimiter,
                None => part.push(line),
            }
        };
        parts.push(parse_part(&part)?);
        match ended_by {
            Delimiter::Part => {}
            Delimiter::End => return Ok(parts),
        }
    }
}

enum Delimiter {
    Part,
    End,
}

fn delimiter(line: &str, boundary: &str) -> Option<Delimiter> {
    let rest = line.strip_prefix("--")?.strip_prefix(boundary)?;
    match rest.trim_end_matches([' ', '\t']) {
        "" => Some(Delimiter::Part),
        "--" => Some(Delimiter::End),
        _ => None,
    }
}

fn parse_part(lines: &[&str]) -> Result<Part, MultipartRefusal> {
    let blank = lines.iter().position(|line| line.is_empty());
    let (envelope, request) = lines.split_at(blank.ok_or(Unreadable("a part has no request"))?);
    let envelope = parse_headers(envelope)?;
    let is_http = |kind: &str| {
        let (kind, _) = kind.split_once(';').unwrap_or((kind, ""));
        kind.trim().eq_ignore_ascii_case("application/http")
    };
    if !envelope.text("content-type").is_some_and(is_http) {
        return Err(Unreadable("a part is not application/http"));
    }

    let mut request = request[1..].iter().copied();
    let (method, uri) = parse_request_line(request.next().unwrap_or_default())?;
    let head: Vec<&str> = request.by_ref().take_while(|line| !line.is_empty()).collect();
    // Clients end a part with one blank line or two.
    if request.any(|line| !line.is_empty()) {
        return Err(Unreadable("a part has a body"));
    }
    let content_id = envelope.text("content-id").map(str::to_owned);
    Ok(Part { content_id, method, uri, headers: parse_headers(&head)? })
}

fn parse_request_line(line: &str) -> Result<(Method, Uri), MultipartRefusal> {
    let wrong = Unreadable("a part does not begin with a request line");
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(wrong);
    };
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| wrong)?;
    if !target.starts_with('/') {
        return Err(Unreadable("the address of a part is not a path"));
    }
    let uri = target.parse().map_err(|_| Unreadable("the address of a part is not valid"))?;
    Ok((method, uri))
}

fn parse_headers(lines: &[&str]) -> Result<RequestHeaders, MultipartRefusal> {
    if lines.len() > HEADERS_MAX {
        return Err(Unreadable("a part has too many headers"));
    }
    let wrong = Unreadable("a header of a part is not valid");
    let mut headers = RequestHeaders::default();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(wrong)?;
        headers.append(name, value.trim().as_bytes()).ok_or(wrong)?;
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDARY: &str = "batch_1";

    fn parsed(body: &str) -> Result<Vec<Part>, MultipartRefusal> {
        parse(body.replace('\n', "\r\n").as_bytes(), BOUNDARY, 3)
    }

    fn part(text: &str) -> String {
        format!("--batch_1\n{text}\n--batch_1--\n")
    }

    #[test]
    fn the_forms_that_clients_send_are_read() {
        let python = "--batch_1\nContent-Type: application/http\nContent-ID: 0\n\
                      Content-Transfer-Encoding: binary\n\nDELETE /c/a%20b?snapshot=x HTTP/1.1\n\
                      x-ms-date: Mon\nContent-Length: 0\n\n\n--batch_1\n\
                      Content-Type: application/http\nContent-ID: 1\n\nPUT /c/b?comp=tier HTTP/1.1\n\
                      x-ms-access-tier: Cool\n\n\n--batch_1--\n";
        let parts = parsed(python).expect("it is read");
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].content_id.as_deref(), Some("0"));
        assert_eq!((&parts[0].method, parts[0].uri.path()), (&Method::DELETE, "/c/a%20b"));
        assert_eq!(parts[0].uri.query(), Some("snapshot=x"));
        assert_eq!(parts[0].headers.text("x-ms-date"), Some("Mon"));
        assert_eq!(parts[0].headers.len(), 2, "those of the envelope stay with it");
        assert_eq!((&parts[1].method, parts[1].uri.query()), (&Method::PUT, Some("comp=tier")));

        let javascript = "--batch_1\nContent-Type: application/http\n\
                          Content-Transfer-Encoding: binary\nContent-ID: 7\n\n\
                          DELETE /c/a HTTP/1.1\naccept: application/xml\n\n--batch_1--\n";
        let parts = parsed(javascript).expect("it is read");
        assert_eq!(parts[0].content_id.as_deref(), Some("7"));
        assert_eq!(parts[0].headers.text("accept"), Some("application/xml"));
    }

    #[test]
    fn what_surrounds_the_parts_and_the_content_id_may_be_left_out_or_be_there() {
        let request = "Content-Type: application/http; msgtype=request\n\nDELETE /c/a HTTP/1.1";
        for (case, body) in [
            ("neither headers nor a blank line", part(request)),
            ("a preamble", format!("nothing\n\n{}", part(request))),
            ("an epilogue", format!("{}what follows\n--batch_1\n", part(request))),
            ("no line end at the end", part(request).trim_end().to_owned()),
            ("spaces after the boundary", part(request).replace("batch_1\n", "batch_1 \t\n")),
        ] {
            let parts = parsed(&body).expect(case);
            assert_eq!(parts.len(), 1, "{case}");
            assert_eq!(parts[0].content_id, None, "{case}");
            assert!(parts[0].headers.is_empty(), "{case}");
        }
    }

    #[test]
    fn a_body_that_cannot_be_read_is_refused_whole() {
        let good = "Content-Type: application/http\n\nDELETE /c/a HTTP/1.1\na: b\n";
        let with = |from: &str, to: &str| part(&good.replace(from, to));
        for (case, body) in [
            ("nothing", String::new()),
            ("another boundary", part(good).replace("batch_1", "batch_2")),
            ("a longer boundary", part(good).replace("batch_1", "batch_12")),
            ("no end", part(good).replace("--batch_1--", "")),
            ("an end without dashes", part(good).replace("batch_1--", "batch_1")),
            ("an empty part", part("")),
            ("a part without a request", part("Content-Type: application/http\n\n")),
            ("no envelope", part("\nDELETE /c/a HTTP/1.1\n")),
            ("another type", with("application/http", "text/plain")),
            ("no version", with(" HTTP/1.1", "")),
            ("another version", with("HTTP/1.1", "HTTP/2")),
            ("too many words", with("/c/a", "/c/a b")),
            ("a host", with("/c/a", "http://h/c/a")),
            ("no slash", with("/c/a", "c/a")),
            ("a bad method", with("DELETE", "DEL(ETE")),
            ("an address that is none", with("/c/a", "/c/<a>\u{7f}")),
            ("a header without a colon", with("a: b", "a b")),
            ("a folded header", with("a: b", "a: b\n c")),
            ("a header with a space before its colon", with("a: b", "a : b")),
            ("a header without a name", with("a: b", ": b")),
            ("a body", with("a: b\n", "a: b\n\ncontent")),
            ("bad after good", format!("--batch_1\n{good}\n{}", part("bad"))),
            ("too many headers", with("a: b", &"a: b\n".repeat(HEADERS_MAX + 1))),
        ] {
            assert!(matches!(parsed(&body), Err(Unreadable(_))), "{case}: {:?}", parsed(&body));
        }
        assert!(parse(b"--batch_1\r\n\xff", BOUNDARY, 3).is_err(), "bytes that are no text");
        let bare = part(good);
        assert!(parse(bare.as_bytes(), BOUNDARY, 3).is_err(), "bare line feeds");
    }

    #[test]
    fn a_batch_has_at_least_one_part_and_at_most_so_many() {
        let one = "--batch_1\nContent-Type: application/http\n\nDELETE /c/a HTTP/1.1\n\n";
        assert_eq!(parsed("--batch_1--\n"), Err(MultipartRefusal::Empty));
        let of = |count: usize| format!("{}--batch_1--\n", one.repeat(count));
        assert_eq!(parsed(&of(3)).map(|parts| parts.len()), Ok(3));
        assert_eq!(parsed(&of(4)), Err(MultipartRefusal::TooManyParts));
    }

    #[test]
    fn the_boundary_is_found_in_the_content_type() {
        for (header, expected) in [
            ("multipart/mixed; boundary=batch_1", Some("batch_1")),
            ("Multipart/Mixed;charset=utf-8; Boundary=\"batch_1\"", Some("batch_1")),
            ("multipart/mixed;boundary=a=b", Some("a=b")),
            ("multipart/mixed", None),
            ("multipart/mixed; boundary=", None),
            ("multipart/form-data; boundary=batch_1", None),
            ("application/xml", None),
        ] {
            assert_eq!(boundary(header), expected, "{header}");
        }
        let long = format!("multipart/mixed; boundary={}", "b".repeat(BOUNDARY_BYTES_MAX + 1));
        assert_eq!(boundary(&long), None);
    }
}
