//! HTTP requests for a partition.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hyper::Method;
use serde_json::Value;

use super::{Answer, Change, List, PartitionWorkload, Request, Row};
use crate::client::{Answer as HttpAnswer, Call};
use crate::connection::Connection;
use crate::etag::ETag;
use crate::record::Target;

/// One client's access to one partition.
pub struct PartitionTarget {
    pub connection: Connection,
    pub table: String,
    pub partition: String,
}

impl Target<PartitionWorkload> for PartitionTarget {
    async fn call(&mut self, request: &Request) -> Option<Answer> {
        match request {
            Request::Query { rows } => {
                let path = format!("/{}()", self.table);
                let filter = format!(
                    "PartitionKey eq '{}' and RowKey ge '{}' and RowKey lt '{}'",
                    self.partition, rows.start, rows.end
                );
                let call = Call {
                    query: &[("$filter", &filter)],
                    headers: &[("accept", "application/json;odata=fullmetadata")],
                    ..Call::new(Method::GET, &path)
                };
                let answer = self.connection.call(call).await?;
                Some(read_rows(&answer))
            }
            Request::Batch { changes, .. } => {
                let body = self.batch(changes);
                let call = Call {
                    headers: &[("accept", "application/json")],
                    content_type: "multipart/mixed; boundary=batch_1",
                    body: body.into(),
                    ..Call::new(Method::POST, "/$batch")
                };
                let answer = self.connection.call(call).await?;
                read_batch(&answer, changes.len())
            }
        }
    }
}

impl PartitionTarget {
    fn batch(&self, changes: &[Change]) -> String {
        let mut body =
            "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n".to_owned();
        let (url, table, partition) = (self.connection.url(), &self.table, &self.partition);
        for Change { row, before, etag, element } in changes {
            let elements = before.iter().chain([element]).map(|it| format!("{it:x}"));
            let list = elements.collect::<Vec<_>>().join(" ");
            let keys = format!("PartitionKey='{partition}',RowKey='{row}'");
            let (line, condition) = match etag {
                Some(etag) => {
                    (format!("PUT {url}/{table}({keys})"), format!("If-Match: {}\r\n", etag.0))
                }
                None => (format!("POST {url}/{table}"), String::new()),
            };
            write!(
                body,
                "--changeset_1\r\nContent-Type: application/http\r\n\
                 Content-Transfer-Encoding: binary\r\n\r\n{line} HTTP/1.1\r\n\
                 Content-Type: application/json\r\nAccept: application/json;odata=nometadata\r\n\
                 Prefer: return-no-content\r\nDataServiceVersion: 3.0\r\n{condition}\r\n\
                 {{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\",\"List\":\"{list}\"}}\r\n"
            )
            .expect("a string takes all");
        }
        body + "--changeset_1--\r\n--batch_1--\r\n"
    }
}

fn read_rows(answer: &HttpAnswer) -> Answer {
    if answer.status >= 400 {
        return Answer::Refused { status: answer.status, code: answer.code.clone() };
    }
    let rows = serde_json::from_slice::<Value>(&answer.body).ok().and_then(|body| {
        let rows = body.get("value")?.as_array()?.iter().map(read_row);
        rows.collect::<Option<BTreeMap<_, _>>>()
    });
    rows.map_or_else(
        || Answer::Nonsense(String::from_utf8_lossy(&answer.body).into_owned()),
        Answer::Rows,
    )
}

fn read_row(row: &Value) -> Option<(Row, (List, ETag))> {
    let number = row.get("RowKey")?.as_str()?.parse().ok()?;
    let list = row.get("List")?.as_str()?;
    let list = list.split(' ').map(|it| u64::from_str_radix(it, 16).ok()).collect::<Option<_>>()?;
    Some((number, (list, ETag::new(row.get("odata.etag")?.as_str()?))))
}

/// `None` if a part reports a fault of the server.
fn read_batch(answer: &HttpAnswer, changes: usize) -> Option<Answer> {
    if answer.status >= 400 {
        return Some(Answer::Refused { status: answer.status, code: answer.code.clone() });
    }
    let text = String::from_utf8_lossy(&answer.body);
    let statuses: Vec<u16> =
        text.split("HTTP/1.1 ").skip(1).filter_map(|part| part.get(..3)?.parse().ok()).collect();
    if statuses.len() == changes && statuses.iter().all(|status| (200..300).contains(status)) {
        return Some(Answer::Committed);
    }
    match statuses.iter().find(|status| **status >= 400) {
        Some(500..) => None,
        Some(status) => {
            let code = text.split_once("\"code\":\"").and_then(|(_, rest)| rest.split_once('"'));
            let code = code.map_or_else(String::new, |(code, _)| code.to_owned());
            Some(Answer::Refused { status: *status, code })
        }
        None => Some(Answer::Nonsense(text.into_owned())),
    }
}
