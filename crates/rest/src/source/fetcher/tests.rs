use std::collections::VecDeque;
use std::io;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::super::HostPattern;
use super::*;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"e\"\r\nx-ms-blob-type: PageBlob\r\n\
                  x-ms-meta-Name: value\r\n\r\nhello";

/// Answers successive connections with these texts, and keeps the requests.
struct Origin {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn origin(answers: impl IntoIterator<Item = String>) -> Origin {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (seen, mut answers) = (Arc::clone(&asked), answers.into_iter().collect::<VecDeque<_>>());
    let task = tokio::spawn(async move {
        while let Some(answer) = answers.pop_front() {
            let Ok((mut stream, _)) = listener.accept().await else { return };
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read_exact(&mut byte).await.is_err() {
                    break;
                }
                request.push(byte[0]);
            }
            seen.lock().push(String::from_utf8_lossy(&request).into_owned());
            let _ = stream.write_all(answer.as_bytes()).await;
            if answer.contains("x-stay: open") {
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
        }
    });
    Origin { port, asked, task }
}

/// Answers successive lookups with these addresses; the last one repeatedly.
struct Answers(Mutex<VecDeque<&'static str>>);

#[async_trait]
impl Resolver for Answers {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        let mut answers = self.0.lock();
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().copied() };
        let answer = answer.ok_or(io::ErrorKind::NotFound)?;
        Ok(vec![answer.parse().map_err(io::Error::other)?])
    }
}

/// Long enough for any answer, however busy the machine is.
const PATIENT: FetchLimits = FetchLimits {
    connect_timeout: Duration::from_secs(60),
    answer_timeout: Duration::from_secs(60),
    stall_timeout: Duration::from_secs(60),
};
/// For answers that do not come.
const HASTY: FetchLimits = FetchLimits {
    answer_timeout: Duration::from_millis(300),
    stall_timeout: Duration::from_millis(300),
    ..PATIENT
};

fn fetcher(patterns: &[String], addresses: &[&'static str]) -> Fetcher {
    fetcher_within(PATIENT, patterns, addresses)
}

fn fetcher_within(limits: FetchLimits, patterns: &[String], addresses: &[&'static str]) -> Fetcher {
    let hosts = patterns.iter().map(|text| text.parse::<HostPattern>().expect(text)).collect();
    let settings = SourceSettings {
        own_addresses: Vec::new(),
        hosts,
        roots: roots(Vec::new()).expect("roots"),
        key_opens_copy_from_url: false,
    };
    let resolver = Answers(Mutex::new(addresses.iter().copied().collect()));
    Fetcher::with(&settings, limits, Arc::new(resolver))
}

/// A fetcher that may read from the origin by its address.
fn for_origin(origin: &Origin) -> Fetcher {
    fetcher(&[format!("127.0.0.1:{}", origin.port)], &[])
}

fn url(text: &str) -> SourceUrl {
    SourceUrl::parse(text).expect(text)
}

async fn read(
    fetcher: &Fetcher,
    url: &SourceUrl,
    asked: &Asked,
    length_max: u64,
) -> Result<(Fetched, Vec<u8>), SourceFailure> {
    let mut fetched = fetcher.open(url, asked, length_max).await?;
    let mut all = Vec::new();
    while let Some(bytes) = fetched.bytes.next().await? {
        all.extend_from_slice(&bytes);
    }
    Ok((fetched, all))
}

async fn failure(fetcher: &Fetcher, url: &SourceUrl, length_max: u64) -> FailureKind {
    match read(fetcher, url, &Asked::default(), length_max).await {
        Ok(_) => panic!("{url:?} was read"),
        Err(failure) => failure.kind,
    }
}

#[tokio::test]
async fn bytes_and_properties_come_from_a_host_that_is_allowed() {
    let origin = origin([OK.to_owned()]).await;
    let at = url(&format!("http://127.0.0.1:{}/c/b%20c?sig=x", origin.port));
    let mut asked = Asked::default();
    asked.conditions.insert(header::IF_MATCH, HeaderValue::from_static("\"e\""));
    let (fetched, bytes) = read(&for_origin(&origin), &at, &asked, 5).await.expect("read");
    assert_eq!((bytes.as_slice(), fetched.length), (&b"hello"[..], Some(5)));
    assert_eq!(fetched.properties.etag.as_deref(), Some("\"e\""));
    assert_eq!(fetched.properties.blob_type.as_deref(), Some("PageBlob"));
    assert_eq!(fetched.properties.metadata.iter().collect::<Vec<_>>(), [("name", "value")]);
    let request = origin.asked.lock()[0].clone();
    for part in ["GET /c/b%20c?sig=x HTTP/1.1\r\n", "if-match: \"e\"", &at.authority()] {
        assert!(request.contains(part), "{part} in {request}");
    }
}

#[tokio::test]
async fn nothing_is_asked_of_a_host_or_an_address_that_is_not_allowed() {
    let origin = origin([]).await;
    let port = origin.port;
    let none = fetcher(&[], &["127.0.0.1"]);
    let by_address = url(&format!("http://127.0.0.1:{port}/"));
    assert_eq!(failure(&none, &by_address, 5).await, FailureKind::HostNotAllowed);
    for address in ["127.0.0.1", "::ffff:127.0.0.1", "169.254.169.254", "fd00:ec2::254", "0.0.0.0"]
    {
        let named = fetcher(&[format!("store.example:{port}")], &[address]);
        let at = url(&format!("http://store.example:{port}/"));
        assert_eq!(failure(&named, &at, 5).await, FailureKind::AddressNotAllowed, "{address}");
    }
    assert!(origin.asked.lock().is_empty());
}

#[tokio::test]
async fn a_name_whose_answer_changes_is_connected_to_where_it_was_checked() {
    let origin = origin([OK.to_owned()]).await;
    let port = origin.port;
    let patterns = [format!("store.example:{port}"), format!("127.0.0.1:{port}")];
    let changing = fetcher(&patterns, &["127.0.0.1", "169.254.169.254"]);
    let at = url(&format!("http://store.example:{port}/"));
    let (_, bytes) = read(&changing, &at, &Asked::default(), 5).await.expect("read");
    assert_eq!(bytes, b"hello");
    assert_eq!(failure(&changing, &at, 5).await, FailureKind::AddressNotAllowed);
}

#[tokio::test]
async fn a_redirection_is_held_to_the_same_rules() {
    for (location, expected) in [
        ("http://169.254.169.254/latest/meta-data", FailureKind::HostNotAllowed),
        ("http://[::1]/", FailureKind::HostNotAllowed),
        ("http://metadata.example/", FailureKind::AddressNotAllowed),
        ("http://127.0.0.1@metadata.example/", FailureKind::TooManyRedirections),
        ("file:///etc/passwd", FailureKind::TooManyRedirections),
    ] {
        let origin = origin([format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\n\r\n")]).await;
        let patterns = [format!("127.0.0.1:{}", origin.port), "metadata.example".to_owned()];
        let fetcher = fetcher(&patterns, &["169.254.169.254"]);
        let at = url(&format!("http://127.0.0.1:{}/", origin.port));
        assert_eq!(failure(&fetcher, &at, 5).await, expected, "{location}");
    }
}

#[tokio::test]
async fn redirections_are_followed_three_times() {
    let again = || "HTTP/1.1 307 Again\r\nLocation: /next\r\n\r\n".to_owned();
    let three = origin([again(), again(), again(), OK.to_owned()]).await;
    let at = url(&format!("http://127.0.0.1:{}/", three.port));
    let (_, bytes) =
        read(&for_origin(&three), &at, &Asked::default(), 5).await.expect("three redirections");
    assert_eq!(bytes, b"hello");
    let four = origin([again(), again(), again(), again(), OK.to_owned()]).await;
    let at = url(&format!("http://127.0.0.1:{}/", four.port));
    assert_eq!(failure(&for_origin(&four), &at, 5).await, FailureKind::TooManyRedirections);
}

#[tokio::test]
async fn a_token_is_not_sent_over_http() {
    let origin = origin([]).await;
    let at = url(&format!("http://127.0.0.1:{}/", origin.port));
    let asked = Asked { token: Some("secret".to_owned()), ..Asked::default() };
    let refused = for_origin(&origin).open(&at, &asked, 5).await.err().map(|refused| refused.kind);
    assert_eq!(refused, Some(FailureKind::InsecureToken));
    assert!(origin.asked.lock().is_empty());
}

#[tokio::test]
async fn what_is_slow_broken_off_or_too_long_is_refused() {
    let long = FailureKind::TooLarge { length_max: 4 };
    for (case, answer, expected) in [
        ("no answer", "HTTP/1.1 200 OK\r\nx-stay: open\r\n", FailureKind::TimedOut),
        (
            "stalls",
            "HTTP/1.1 200 OK\r\nx-stay: open\r\nContent-Length: 4\r\n\r\nhe",
            FailureKind::TimedOut,
        ),
        ("broken off", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhe", FailureKind::BrokenOff),
        ("declares too much", OK, long.clone()),
        ("sends too much", "HTTP/1.1 200 OK\r\n\r\nhello", long),
        ("no HTTP", "hello, who is there?\r\n\r\n", FailureKind::UnexpectedAnswer),
        ("accepted", "HTTP/1.1 202 OK\r\nContent-Length: 0\r\n\r\n", FailureKind::UnexpectedAnswer),
    ] {
        let origin = origin([answer.to_owned()]).await;
        let at = url(&format!("http://127.0.0.1:{}/", origin.port));
        let limits = if expected == FailureKind::TimedOut { HASTY } else { PATIENT };
        let fetcher = fetcher_within(limits, &[at.authority()], &[]);
        assert_eq!(failure(&fetcher, &at, 4).await, expected, "{case}");
    }
}

#[tokio::test]
async fn the_error_of_a_source_is_told_by_its_status_and_code() {
    let answer = "HTTP/1.1 404 No\r\nx-ms-error-code: BlobNotFound\r\nContent-Length: 0\r\n\r\n";
    let origin = origin([answer.to_owned()]).await;
    let at = url(&format!("http://127.0.0.1:{}/", origin.port));
    let refused = for_origin(&origin).head(&at, &Asked::default()).await.expect_err("refused");
    let code = Some("BlobNotFound".to_owned());
    assert_eq!(refused, SourceFailure::answered(StatusCode::NOT_FOUND, code));
}

#[tokio::test]
async fn a_range_is_taken_only_if_it_is_the_one_asked_for() {
    let part = |range: &str| {
        format!("HTTP/1.1 206 Part\r\nContent-Range: {range}\r\nContent-Length: 3\r\n\r\nell")
    };
    for (case, answer, taken) in [
        ("the range", part("bytes 1-3/9"), true),
        ("the range of something endless", part("bytes 1-3/*"), true),
        ("another range", part("bytes 2-4/9"), false),
        ("less", part("bytes 1-2/9"), false),
        ("no range", OK.to_owned(), false),
    ] {
        let origin = origin([answer]).await;
        let at = url(&format!("http://127.0.0.1:{}/", origin.port));
        let range = Some(ReadRange { first: 1, last: Some(3) });
        let asked = Asked { range, ..Asked::default() };
        let opened = for_origin(&origin).open(&at, &asked, 100).await;
        assert_eq!(opened.is_ok(), taken, "{case}");
        assert!(origin.asked.lock()[0].contains("range: bytes=1-3\r\n"), "{case}");
    }
}

#[test]
fn whatever_is_stored_as_the_md5_of_a_source_is_known() {
    let known = |pairs: &[(&'static str, &str)]| {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().expect("a value"));
        }
        properties(&headers).headers.content_md5.map(|md5| md5.as_ref().to_vec())
    };
    assert_eq!(known(&[("content-md5", "bWQ1")]), Some(b"md5".to_vec()));
    let of_part = [("content-md5", "bWQ1"), ("content-range", "bytes 0-1/5")];
    assert_eq!(known(&of_part), None);
    assert_eq!(known(&[("content-md5", "no base64!")]), None);
}
