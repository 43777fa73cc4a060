//! Static websites: serves the container `$web` of an account at its web endpoint. Everybody may
//! read there, whatever the public access of the container, and nothing else is allowed; there are
//! no signatures, versions or CORS.

use std::borrow::Cow;

use bytes::Bytes;
use holdfast_domain::account::StaticWebsite;
use holdfast_domain::names::with_slashes;
use hyper::{Method, StatusCode};

use crate::address::{Address, Resource};
use crate::answer::{Answer, AnswerBody};
use crate::auth::{Granted, Identity};
use crate::blob;
use crate::connection::{Parts, RequestCase};
use crate::error::{Code, Error};
use crate::frontend::{Frontend, Peer};
use crate::headers::RequestHeaders;
use crate::operation::{BlobOperation, Verbs};
use crate::request::Call;
use crate::url_query::{Plus, UrlQuery, decode};
use crate::version::Version;

const CONTAINER: &str = "$web";
/// The version that web endpoints use and return.
pub const VERSION: Version = Version::V2018_03_28;
pub const SERVER_HEADER: &str = "Windows-Azure-Web/1.0 Microsoft-HTTPAPI/2.0";

/// The account that a host of the form `account.web.…` or `account.zN.web.…` names.
pub fn account_of_host(host: &str) -> Option<&str> {
    let (account, rest) = host.split_once('.')?;
    let rest = match rest.split_once('.') {
        Some((zone, rest)) if is_zone(zone) => rest,
        Some(_) | None => rest,
    };
    let (web, domain) = rest.split_once('.')?;
    let found = !account.is_empty() && web.eq_ignore_ascii_case("web") && !domain.is_empty();
    found.then_some(account.strip_suffix("-secondary").unwrap_or(account))
}

fn is_zone(label: &str) -> bool {
    let digits = label.strip_prefix(['z', 'Z']);
    digits.is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The blobs that a path may mean, the first that exists is served.
fn candidates(path: &str, website: &StaticWebsite) -> Vec<String> {
    let name = path.strip_prefix('/').unwrap_or(path);
    let folder = name.is_empty() || name.ends_with('/');
    let mut candidates = Vec::new();
    if !folder {
        candidates.push(name.to_owned());
    }
    match (&website.index_document, &website.default_index_document_path) {
        (Some(index), _) if folder => candidates.push(format!("{name}{index}")),
        (Some(index), _) => candidates.push(format!("{name}/{index}")),
        (None, Some(default)) if folder => candidates.push(unslashed(default).to_owned()),
        (None, _) => {}
    }
    candidates
}

/// Settings name paths with or without the slash in front.
fn unslashed(path: &str) -> &str {
    path.strip_prefix('/').unwrap_or(path)
}

/// Answers one request at the web endpoint of `account`.
pub async fn answer(
    frontend: &Frontend,
    peer: Peer,
    account: &str,
    parts: &Parts,
    website: &StaticWebsite,
) -> Result<Answer, Error> {
    let operation = match parts.method {
        Method::GET => BlobOperation::GetBlob,
        Method::HEAD => BlobOperation::GetBlobProperties,
        _ => {
            let allow = Verbs::GET_OR_HEAD.to_string();
            return Err(Error::from(Code::UnsupportedHttpVerb).header("allow", allow));
        }
    };
    if frontend.accounts().is_disabled(account) {
        return Err(Code::AccountIsDisabled.into());
    }
    if !website.enabled {
        return Err(Code::WebContentNotFound.into());
    }
    let path = decode(parts.uri.path(), Plus::IsPlus).ok_or(Code::InvalidUri)?;
    let asked = asked_headers(&parts.headers);
    let read = Read { frontend, peer, account, operation };
    for name in candidates(&with_slashes(path), website) {
        if let Some(answer) = read.blob(&name, &asked).await? {
            return Ok(answer);
        }
    }
    let Some(document) = &website.error_document_404_path else {
        return Err(Code::WebContentNotFound.into());
    };
    // The conditions and the range were for the missing blob.
    match read.blob(unslashed(document), &RequestHeaders::default()).await? {
        Some(mut answer) => {
            answer.status = StatusCode::NOT_FOUND;
            answer.header("x-ms-error-code", Code::WebContentNotFound.name());
            Ok(answer)
        }
        None => Err(Code::WebContentNotFound.into()),
    }
}

/// The request headers that apply to a website.
fn asked_headers(sent: &RequestHeaders) -> RequestHeaders {
    let conditions = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];
    // A range with If-Range is ignored: answering with the whole is always correct.
    let range = (!sent.contains("if-range")).then_some("range");
    let mut asked = RequestHeaders::default();
    for name in conditions.into_iter().chain(range) {
        if let Some(value) = sent.get(name) {
            // It was a valid header in the request.
            let _ = asked.append(name, value);
        }
    }
    asked
}

struct Read<'a> {
    frontend: &'a Frontend,
    peer: Peer,
    account: &'a str,
    operation: BlobOperation,
}

impl Read<'_> {
    /// What Get Blob or Get Blob Properties answers, if there is such a blob.
    async fn blob(&self, name: &str, headers: &RequestHeaders) -> Result<Option<Answer>, Error> {
        let resource =
            Resource::Blob { container: Cow::Borrowed(CONTAINER), blob: Cow::Borrowed(name) };
        let address = Address {
            account: self.account,
            secondary: false,
            path_style: false,
            raw_path: "",
            resource,
        };
        let call = Call {
            frontend: self.frontend,
            operation: self.operation.into(),
            address: &address,
            query: &UrlQuery::default(),
            headers,
            case: &RequestCase::default(),
            version: VERSION,
            caller: &Identity::public(),
            granted: &Granted::public(),
            peer: self.peer,
            host: None,
        };
        match blob::read(&call, self.operation).await {
            Ok(mut answer) => {
                keep_web_headers(&mut answer);
                Ok(Some(answer))
            }
            Err(error) if is_absent(error.code) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "every other code is an answer to what is there")]
fn is_absent(code: Code) -> bool {
    match code {
        // A path that is not a valid blob name matches no blob.
        Code::BlobNotFound
        | Code::ContainerNotFound
        | Code::InvalidResourceName
        | Code::InvalidUri
        | Code::OutOfRangeInput => true,
        _ => false,
    }
}

/// A browser gets the headers of the content, but not the service's headers about the blob.
fn keep_web_headers(answer: &mut Answer) {
    answer.headers.retain(|name| !name.starts_with("x-ms-"));
}

/// An error page, if there is no error document.
pub fn page(status: StatusCode, code: Code, request_id: &str, bodiless: bool) -> Answer {
    let mut answer = Answer::new(status);
    answer.header("x-ms-error-code", code.name());
    if bodiless || status == StatusCode::NOT_MODIFIED {
        return answer;
    }
    let (number, name, message) = (status.as_u16(), code.name(), code.message());
    let reason = status.canonical_reason().unwrap_or_default();
    let body = format!(
        "<!DOCTYPE html><html><head><title>{number} {reason}</title></head><body>\
         <h1>{message}</h1><ul><li>HttpStatusCode: {number}</li><li>ErrorCode: {name}</li>\
         <li>RequestId: {request_id}</li></ul></body></html>\n"
    );
    answer.header("content-type", "text/html");
    answer.body = AnswerBody::Whole(Bytes::from(body));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_web_endpoints_name_the_account() {
        for (host, expected) in [
            ("acct.web.localhost:10000", Some("acct")),
            ("acct.z6.web.core.windows.net", Some("acct")),
            ("acct.Z22.WEB.example.org", Some("acct")),
            ("acct-secondary.z6.web.example.org", Some("acct")),
            ("acct.z.web.example.org", None),
            ("acct.zone.web.example.org", None),
            ("acct.blob.localhost", None),
            ("acct.web", None),
            ("acct.web.", None),
            (".web.localhost", None),
            ("web.localhost", None),
            ("127.0.0.1:10000", None),
            ("localhost", None),
        ] {
            assert_eq!(account_of_host(host), expected, "{host}");
        }
    }

    #[test]
    fn a_path_means_the_blob_or_the_index_of_its_folder() {
        let text = |text: &str| Some(text.to_owned());
        let index = StaticWebsite { index_document: text("index.html"), ..Default::default() };
        let default = StaticWebsite {
            default_index_document_path: text("/app/start.html"),
            ..Default::default()
        };
        let neither = StaticWebsite::default();
        let none: &[&str] = &[];
        for (website, path, expected) in [
            (&index, "/", &["index.html"][..]),
            (&index, "/a/", &["a/index.html"]),
            (&index, "/a", &["a", "a/index.html"]),
            (&index, "/a/b.css", &["a/b.css", "a/b.css/index.html"]),
            (&default, "/", &["app/start.html"]),
            (&default, "/a/", &["app/start.html"]),
            (&default, "/a", &["a"]),
            (&neither, "/", none),
            (&neither, "/a", &["a"]),
        ] {
            assert_eq!(candidates(path, website), expected, "3.17 StaticWebsite: {path}");
        }
    }

    #[test]
    fn only_conditions_and_a_plain_range_are_looked_at() {
        let sent = |pairs: &[(&'static str, &'static str)]| {
            pairs.iter().copied().collect::<RequestHeaders>()
        };
        let asked = asked_headers(&sent(&[
            ("range", "bytes=1-2"),
            ("if-none-match", "\"e\""),
            ("x-ms-range", "bytes=0-0"),
            ("x-ms-lease-id", "x"),
            ("authorization", "x"),
        ]));
        assert_eq!(asked, sent(&[("if-none-match", "\"e\""), ("range", "bytes=1-2")]));
        assert!(asked_headers(&sent(&[("range", "bytes=1-2"), ("if-range", "\"e\"")])).is_empty());
    }
}
