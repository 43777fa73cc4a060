//! A batch with one query, which is answered as if it had been sent alone.

use futures_util::StreamExt as _;

use super::batch::{Refused, check_part, part_address, part_operation, part_query, put};
use super::batch_body::PartRequest;
use super::{entity, query_entities};
use crate::answer::{Answer, AnswerBody};
use crate::error::{Code, Error};
use crate::headers::RequestHeaders;
use crate::operation::TableOperation;
use crate::request::Call;

pub async fn answer(call: &Call<'_>, part: &PartRequest<'_>) -> Result<Answer, Refused> {
    let refused = |error: Error| Refused::Part(0, error);
    let query = part_query(part).map_err(refused)?;
    let address = part_address(call, part, &query).map_err(refused)?;
    let headers = headers(part);
    let operation = part_operation(part, &address, &headers).map_err(refused)?;
    if !matches!(operation, TableOperation::GetEntity | TableOperation::QueryEntities) {
        // Changes must be in a change set, even a single one.
        return Err(refused(Code::InvalidInput.into()));
    }
    check_part(call, operation, &address)?;
    let inner = Call {
        frontend: call.frontend,
        operation: operation.into(),
        address: &address,
        query: &query,
        headers: &headers,
        case: call.case,
        version: call.version,
        caller: call.caller,
        granted: call.granted,
        peer: call.peer,
        host: call.host,
    };
    let read = if operation == TableOperation::GetEntity {
        entity::get(&inner).await
    } else {
        query_entities::query(&inner).await
    };
    read.map_err(refused)
}

/// The headers that a query uses.
fn headers(part: &PartRequest<'_>) -> RequestHeaders {
    let names = ["accept", "dataserviceversion", "maxdataserviceversion"];
    names.into_iter().filter_map(|name| Some((name, part.header(name)?))).collect()
}

pub async fn write(
    text: &mut Vec<u8>,
    content_id: Option<&str>,
    answer: Answer,
) -> Result<(), Error> {
    put(text, &["HTTP/1.1 ", answer.status.as_str(), " ", answer.reason(), "\r\n"]);
    if let Some(content_id) = content_id {
        put(text, &["Content-ID: ", content_id, "\r\n"]);
    }
    for (name, value) in answer.headers.iter() {
        let name = if name == "etag" { "ETag" } else { name };
        put(text, &[name, ": ", value, "\r\n"]);
    }
    put(text, &["DataServiceVersion: 3.0;\r\n\r\n"]);
    match answer.body {
        AnswerBody::Empty => {}
        AnswerBody::Whole(body) => text.extend_from_slice(&body),
        AnswerBody::Stream(_, mut pieces) => {
            while let Some(piece) = pieces.next().await {
                text.extend_from_slice(&piece.map_err(|_| Code::InternalError)?);
            }
        }
    }
    put(text, &["\r\n"]);
    Ok(())
}
