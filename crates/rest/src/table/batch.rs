//! Entity group transactions: up to 100 changes to one partition, all or none; or one query.

use std::borrow::Cow;

use holdfast_domain::failure::Failure;
use holdfast_domain::names::TableName;
use holdfast_domain::table::{Change, EntityChange, RefusedChange, TablePath};
use hyper::StatusCode;
use uuid::Uuid;

use super::batch_body::{self, BatchBody, BatchRefusal, PartRequest};
use super::batch_query;
use super::entity_change::{ChangeAnswer, ChangeKind, ChangeRequest, check_range};
use super::json_format::{Level, Preference, accepted, check_content_type, check_versions};
use super::write_entity::EntityWriter;
use super::{Endpoint, in_its_words, odata_answer, refuse_conditions};
use crate::address::{Address, Resource};
use crate::answer::{Answer, AnswerBody};
use crate::body::RequestBody;
use crate::body::multipart;
use crate::error::{Code, Error, JSON_CONTENT_TYPE};
use crate::headers::RequestHeaders;
use crate::operation::{Operation, RouteRefusal, Scope, TUNNELLED_METHOD, TableOperation, route};
use crate::request::{Call, RequestId};
use crate::service::Service;
use crate::url_query::UrlQuery;

pub const CHANGES_MAX: usize = 100;
const BODY_BYTES_MAX: u64 = 4 * 1024 * 1024;

pub async fn run(call: &Call<'_>, id: RequestId, body: RequestBody) -> Result<Answer, Error> {
    const CONTENT_TYPE: &str = "content-type";
    check_versions(
        call.version,
        call.header("dataserviceversion")?,
        call.header("maxdataserviceversion")?,
    )?;
    refuse_conditions(call)?;
    let content_type = call.required_header(CONTENT_TYPE)?;
    let boundary = multipart::boundary(content_type)
        .ok_or_else(|| Error::invalid_header(CONTENT_TYPE, content_type))?;
    let body = body.whole(call, BODY_BYTES_MAX).await?;
    let guid = Uuid::new_v4();
    let answer_boundary = format!("batchresponse_{guid}");
    let mut text = Vec::with_capacity(1024);
    put(&mut text, &["--", &answer_boundary, "\r\n"]);
    match batch_body::parse(&body, boundary, CHANGES_MAX) {
        Ok(BatchBody::Changes(parts)) => {
            let changed = change(call, &parts).await;
            write_changes(call, id, &mut text, guid, &parts, changed)?;
        }
        // The service blames the last allowed operation.
        Err(refusal @ BatchRefusal::TooMany) => {
            let refused = Refused::Part(CHANGES_MAX - 1, refusal.into());
            write_changes(call, id, &mut text, guid, &[], Err(refused))?;
        }
        Err(refusal @ BatchRefusal::Unreadable(_)) => return Err(refusal.into()),
        Ok(BatchBody::Query(part)) => {
            put(&mut text, &[PART_HEAD]);
            match batch_query::answer(call, &part).await {
                Ok(answer) => batch_query::write(&mut text, part.content_id, answer).await?,
                Err(Refused::Part(_, error)) => {
                    let error = in_its_words(error).with_message_prefix("0:");
                    let body = error.json(id, call.frontend.domain().now());
                    write_error(&mut text, part.content_id, &error, &body);
                }
                Err(Refused::Batch(error)) => return Err(error),
            }
        }
    }
    put(&mut text, &["--", &answer_boundary, "--\r\n"]);
    let mut answer = odata_answer(StatusCode::ACCEPTED);
    answer.header("content-type", format!("multipart/mixed; boundary={answer_boundary}"));
    answer.body = AnswerBody::Whole(text.into());
    Ok(answer)
}

/// The answer to a change set: one part for each operation, or one error for all.
fn write_changes(
    call: &Call<'_>,
    id: RequestId,
    text: &mut Vec<u8>,
    guid: Uuid,
    parts: &[PartRequest<'_>],
    changed: Result<Vec<ChangeAnswer>, Refused>,
) -> Result<(), Error> {
    let boundary = format!("changesetresponse_{guid}");
    put(text, &["Content-Type: multipart/mixed; boundary=", &boundary, "\r\n\r\n"]);
    match changed {
        Ok(answers) => write_answers(text, &boundary, parts, &answers),
        Err(Refused::Part(index, error)) => {
            put(text, &["--", &boundary, "\r\n", PART_HEAD]);
            let content_id = parts.get(index).map(|part| content_id(part, index));
            let now = call.frontend.domain().now();
            let error = in_its_words(error).with_message_prefix(format!("{index}:"));
            write_error(text, content_id.as_deref(), &error, &error.json(id, now));
        }
        Err(Refused::Batch(error)) => return Err(error),
    }
    put(text, &["--", &boundary, "--\r\n"]);
    Ok(())
}

/// The beginning of each part of the answer.
const PART_HEAD: &str =
    "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n";

/// Why a batch is refused.
pub(super) enum Refused {
    /// The batch itself is not valid, or its caller is not authorized.
    Batch(Error),
    /// The part with this index is refused.
    Part(usize, Error),
}

impl Refused {
    fn by(failure: Failure<RefusedChange>) -> Self {
        match failure.refusal() {
            Ok(RefusedChange { index, refusal }) => Self::Part(index, refusal.into()),
            Err(failure) => Self::Batch(failure.into()),
        }
    }
}

/// A parsed part.
struct Planned {
    kind: ChangeKind,
    level: Level,
    preference: Option<Preference>,
}

/// All of the changes, or none.
async fn change(call: &Call<'_>, parts: &[PartRequest<'_>]) -> Result<Vec<ChangeAnswer>, Refused> {
    let mut plans = Vec::with_capacity(parts.len());
    let mut changes = Vec::with_capacity(parts.len());
    let mut table: Option<TableName> = None;
    for (index, part) in parts.iter().enumerate() {
        let refused = |error: Error| Refused::Part(index, error);
        let query = part_query(part).map_err(refused)?;
        let address = part_address(call, part, &query).map_err(refused)?;
        let kind = part_kind(part, &address).map_err(refused)?;
        let named = check_part(call, kind.operation(), &address)?;
        let other_table = Code::CommandsInBatchActOnDifferentPartitions;
        match &table {
            Some(table) if *table != named => return Err(refused(other_table.into())),
            Some(_) => {}
            None => table = Some(named),
        }
        let (plan, change) = plan(kind, &address.resource, &query, part).map_err(refused)?;
        let range = call.granted.scope().key_range.as_ref();
        check_range(range, &change.key).map_err(Refused::Batch)?;
        plans.push(plan);
        changes.push(change);
    }
    let table = table.ok_or_else(|| Refused::Batch(Code::InvalidInput.into()))?;
    let path = TablePath { account: call.account().map_err(Refused::Batch)?, table };
    let done = call.frontend.domain().change_entities(&path, &changes).await;
    let etags = done.map_err(Refused::by)?;
    let endpoint = Endpoint(call);
    let answered = plans.iter().zip(&changes).zip(etags);
    Ok(answered
        .map(|((plan, change), etag)| match &change.change {
            Change::Insert(properties) => {
                let writer = EntityWriter {
                    level: plan.level,
                    endpoint: &endpoint,
                    account: call.address.account,
                    table: path.table.as_str(),
                    select: None,
                };
                ChangeAnswer::inserted(&writer, plan.preference, &change.key, properties, etag)
            }
            Change::Replace(..) | Change::Merge(..) | Change::Delete(_) => {
                ChangeAnswer::changed(plan.kind, etag)
            }
        })
        .collect())
}

fn plan(
    kind: ChangeKind,
    resource: &Resource<'_>,
    query: &UrlQuery<'_>,
    part: &PartRequest<'_>,
) -> Result<(Planned, EntityChange), Error> {
    if kind != ChangeKind::Delete {
        check_content_type(part.header("content-type"))?;
    }
    let request = ChangeRequest {
        kind,
        resource,
        if_match: part.header("if-match"),
        if_none_match: part.header("if-none-match"),
        body: part.body,
    };
    let plan = Planned {
        kind,
        level: accepted(part.header("accept"), query.get_nonempty("$format"))?,
        preference: Preference::parse(part.header("prefer")),
    };
    Ok((plan, request.parse()?))
}

pub(super) fn part_query<'a>(part: &PartRequest<'a>) -> Result<UrlQuery<'a>, Error> {
    let (_, query) = part.target.split_once('?').unwrap_or((part.target, ""));
    Ok(UrlQuery::parse(query)?)
}

/// The resource of the part, if it is in the account of the batch. Its host is ignored: the batch
/// has one already.
pub(super) fn part_address<'a>(
    call: &Call<'a>,
    part: &PartRequest<'a>,
    query: &UrlQuery<'_>,
) -> Result<Address<'a>, Error> {
    let (target, _) = part.target.split_once('?').unwrap_or((part.target, ""));
    let path = match target.split_once("://") {
        Some((_, behind)) => &behind[behind.find('/').ok_or(Code::InvalidInput)?..],
        None => target,
    };
    let host_style = call.frontend.host_style();
    let service = call.operation.service();
    let address = Address::parse(service, call.host, host_style, path, query)?;
    if address.account == call.address.account {
        Ok(address)
    } else {
        Err(Code::InvalidInput.into())
    }
}

fn part_kind(part: &PartRequest<'_>, address: &Address<'_>) -> Result<ChangeKind, Error> {
    let mut headers = RequestHeaders::default();
    for name in ["if-match", TUNNELLED_METHOD] {
        for value in part.headers(name) {
            headers.append(name, value.as_bytes()).ok_or(Code::InvalidInput)?;
        }
    }
    let operation = part_operation(part, address, &headers)?;
    ChangeKind::of(operation).ok_or_else(|| Code::InvalidInput.into())
}

/// The operation of the part, by the operation table. A batch uses only `headers`, and not the
/// parameters that select other operations on the same resource.
pub(super) fn part_operation(
    part: &PartRequest<'_>,
    address: &Address<'_>,
    headers: &RequestHeaders,
) -> Result<TableOperation, Error> {
    let scope = address.resource.scope();
    match route(Service::Table, part.method, scope, &UrlQuery::default(), headers) {
        Ok(Operation::Table(operation)) if scope != Scope::BelowTable => Ok(operation),
        Err(
            refusal @ (RouteRefusal::TunnelNotUsingPost
            | RouteRefusal::TunnelIncorrectCount
            | RouteRefusal::TunnelIncorrectValue),
        ) => Err(refusal.into()),
        Ok(_) | Err(_) => Err(Code::InvalidInput.into()),
    }
}

/// The table of the part, if the caller of the batch is authorized for it.
pub(super) fn check_part(
    call: &Call<'_>,
    operation: TableOperation,
    address: &Address<'_>,
) -> Result<TableName, Refused> {
    let part = address.named_resource(call.operation.service());
    call.authorize_second_for(&Operation::from(operation).row().need, &part)
        .map_err(Refused::Batch)?;
    let name = address.resource.container().unwrap_or_default();
    TableName::new(name).map_err(|refusal| Refused::Batch(refusal.into()))
}

fn write_answers(
    text: &mut Vec<u8>,
    boundary: &str,
    parts: &[PartRequest<'_>],
    answers: &[ChangeAnswer],
) {
    for (index, (part, answer)) in parts.iter().zip(answers).enumerate() {
        put(text, &["--", boundary, "\r\n", PART_HEAD]);
        answer.write_part(text, Some(&content_id(part, index)));
    }
}

/// The Content-ID of the part, or else its number, from 1 on.
fn content_id<'a>(part: &PartRequest<'a>, index: usize) -> Cow<'a, str> {
    match part.content_id {
        Some(id) => Cow::Borrowed(id),
        None => Cow::Owned((index + 1).to_string()),
    }
}

fn write_error(text: &mut Vec<u8>, content_id: Option<&str>, error: &Error, body: &str) {
    let status = error.status();
    let reason = status.canonical_reason().unwrap_or_default();
    put(text, &["HTTP/1.1 ", status.as_str(), " ", reason, "\r\n"]);
    if let Some(content_id) = content_id {
        put(text, &["Content-ID: ", content_id, "\r\n"]);
    }
    put(text, &["X-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n"]);
    put(text, &["DataServiceVersion: 3.0;\r\nContent-Type: ", JSON_CONTENT_TYPE, "\r\n"]);
    put(text, &["\r\n", body, "\r\n"]);
}

pub(super) fn put(text: &mut Vec<u8>, pieces: &[&str]) {
    for piece in pieces {
        text.extend_from_slice(piece.as_bytes());
    }
}
