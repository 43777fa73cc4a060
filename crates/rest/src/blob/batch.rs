//! Blob Batch: many deletions or changes of tier in one request. Each part is a request with its
//! own credentials, and passes through the whole front end.

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use hyper::{StatusCode, Version};

use crate::address::Address;
use crate::answer::{Answer, AnswerBody};
use crate::body::RequestBody;
use crate::body::multipart::{self, Part};
use crate::connection::{Parts, RequestCase};
use crate::error::{Code, Error};
use crate::operation::{BlobOperation, Operation, route};
use crate::request::Call;
use crate::url_query::UrlQuery;

const PARTS_MAX: usize = 256;
const BODY_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Enough for the parts to share syncs, few enough not to delay other requests.
const PARTS_AT_ONCE: usize = 32;

pub async fn run(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    const CONTENT_TYPE: &str = "content-type";
    let content_type = call.required_header(CONTENT_TYPE)?;
    let boundary = multipart::boundary(content_type)
        .ok_or_else(|| Error::invalid_header(CONTENT_TYPE, content_type))?;
    let body = body.whole(call, BODY_BYTES_MAX).await?;
    let parts = multipart::parse(&body, boundary, PARTS_MAX)?;
    check_parts(call, &parts)?;

    let case = RequestCase::default();
    let answers = stream::iter(parts)
        .map(|part| answer_part(call, &case, part))
        .buffered(PARTS_AT_ONCE)
        .collect::<Vec<_>>()
        .await;
    let boundary = format!("batchresponse_{}", uuid::Uuid::new_v4());
    let mut answer = Answer::new(StatusCode::ACCEPTED);
    answer.header("content-type", format!("multipart/mixed; boundary={boundary}"));
    answer.body = AnswerBody::Whole(write(&boundary, &answers));
    Ok(answer)
}

/// Nothing runs unless all parts have the same operation, allowed in a batch, and are in its
/// account.
fn check_parts(call: &Call<'_>, parts: &[Part]) -> Result<(), Error> {
    let mut first = None;
    for part in parts {
        let operation = operation_in_scope(call, part)?;
        if !matches!(
            operation,
            Operation::Blob(BlobOperation::DeleteBlob | BlobOperation::SetBlobTier)
        ) {
            return Err(Error::from(Code::InvalidInput)
                .detail("Reason", "a batch has deletions of blobs or changes of tier only"));
        }
        if *first.get_or_insert(operation) != operation {
            return Err(Code::AllBatchSubRequestsShouldBeSameApi.into());
        }
    }
    Ok(())
}

/// The operation of the part, if it is in the account of the batch. A part in another container than
/// the batch fails alone.
fn operation_in_scope(call: &Call<'_>, part: &Part) -> Result<Operation, Error> {
    let service = call.operation.service();
    let query = UrlQuery::parse(part.uri.query().unwrap_or_default())?;
    let host_style = call.frontend.host_style();
    let address = Address::parse(service, call.host, host_style, part.uri.path(), &query)?;
    let scope = address.resource.scope();
    let operation = route(service, part.method.as_str(), scope, &query, &part.headers)?;
    if (address.account, address.secondary) != (call.address.account, call.address.secondary) {
        let reason = "a part is for another account than the batch";
        return Err(Error::from(Code::InvalidInput).detail("Reason", reason));
    }
    Ok(operation)
}

/// The answer to a part, under the id that the client gave it.
async fn answer_part(call: &Call<'_>, case: &RequestCase, part: Part) -> (Option<String>, Answer) {
    const HOST: &str = "host";
    let Part { content_id, method, uri, mut headers } = part;
    headers.keep(HOST, 0);
    if let Some(host) = call.host {
        // It was a valid header in the request.
        let _ = headers.append(HOST, host.as_bytes());
    }
    let head = Parts { method, uri, version: Version::HTTP_11, headers };
    (content_id, call.frontend.handle_part(call, &head, case).await)
}

/// Headers that only the batch has, for all its parts.
const OF_THE_BATCH: [&str; 2] = ["date", "server"];

fn write(boundary: &str, answers: &[(Option<String>, Answer)]) -> Bytes {
    let mut text = Vec::new();
    for (content_id, answer) in answers {
        let mut head = format!("--{boundary}\r\nContent-Type: application/http\r\n");
        if let Some(content_id) = content_id {
            head += &format!("Content-ID: {content_id}\r\n");
        }
        head += &format!("\r\nHTTP/1.1 {} {}\r\n", answer.status.as_u16(), answer.reason());
        text.extend_from_slice(head.as_bytes());
        for (name, value) in answer.headers.iter().filter(|(name, _)| !OF_THE_BATCH.contains(name))
        {
            text.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        let body = match &answer.body {
            AnswerBody::Whole(body) => body.as_ref(),
            // No operation allowed in a batch answers with content.
            AnswerBody::Empty | AnswerBody::Stream(..) => b"",
        };
        text.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
        text.extend_from_slice(body);
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_of_parts_have_the_form_that_clients_read() {
        let mut deleted = Answer::new(StatusCode::ACCEPTED);
        deleted.header("x-ms-request-id", "one");
        deleted.header("date", "today");
        deleted.header("server", "this");
        let mut missing = Answer::xml(StatusCode::NOT_FOUND, "<Error/>".to_owned());
        missing.header("x-ms-error-code", "BlobNotFound");
        let written = write("b", &[(Some("0".to_owned()), deleted), (None, missing)]);
        assert_eq!(
            String::from_utf8_lossy(&written),
            "--b\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\n\
             HTTP/1.1 202 Accepted\r\nx-ms-request-id: one\r\ncontent-length: 0\r\n\r\n\r\n\
             --b\r\nContent-Type: application/http\r\n\r\n\
             HTTP/1.1 404 Not Found\r\ncontent-type: application/xml\r\n\
             x-ms-error-code: BlobNotFound\r\ncontent-length: 8\r\n\r\n<Error/>\r\n--b--\r\n"
        );
    }
}
