//! HTTP requests for an entity.

use hyper::Method;
use serde_json::Value;

use super::{Answer, EntityWorkload, Properties, Request, Write};
use crate::client::{Answer as HttpAnswer, Call};
use crate::connection::Connection;
use crate::etag::{Condition, ETag};
use crate::record::Target;

/// One client's access to one entity.
pub struct EntityTarget {
    pub connection: Connection,
    pub table: String,
    /// The RowKey, in the only partition.
    pub row: String,
}

const ACCEPT: (&str, &str) = ("accept", "application/json;odata=nometadata");

impl Target<EntityWorkload> for EntityTarget {
    async fn call(&mut self, request: &Request) -> Option<Answer> {
        let table = format!("/{}", self.table);
        let entity = format!("{table}(PartitionKey='p',RowKey='{}')", self.row);
        let mut headers = vec![ACCEPT];
        let (method, path, properties) = match request {
            Request::Insert(properties) => {
                headers.push(("prefer", "return-no-content"));
                (Method::POST, &table, Some(properties))
            }
            Request::Update { write, properties, condition } => {
                headers.extend(condition.header());
                let method = match write {
                    Write::Replace => Method::PUT,
                    Write::Merge => Method::PATCH,
                };
                (method, &entity, Some(properties))
            }
            Request::Delete { condition } => {
                headers.extend(condition.header().or(Condition::Exists.header()));
                (Method::DELETE, &entity, None)
            }
            Request::Get => (Method::GET, &entity, None),
        };
        let call = Call {
            headers: &headers,
            content_type: if properties.is_some() { "application/json" } else { "" },
            body: properties.map(|it| self.body(it)).unwrap_or_default().into(),
            ..Call::new(method, path)
        };
        let answer = self.connection.call(call).await?;
        Some(read(request, &answer))
    }
}

impl EntityTarget {
    fn body(&self, properties: &Properties) -> String {
        let mut body = format!(r#"{{"PartitionKey":"p","RowKey":"{}""#, self.row);
        for (name, value) in [("Left", properties.left), ("Right", properties.right)] {
            if value != 0 {
                body += &format!(r#","{name}":"{value:x}""#);
            }
        }
        body + "}"
    }
}

fn read(request: &Request, answer: &HttpAnswer) -> Answer {
    let HttpAnswer { status, code, headers, body } = answer;
    if *status >= 400 {
        return Answer::Refused { status: *status, code: code.clone() };
    }
    let etag = headers.get("etag").map(ETag::new);
    let read = match (request, *status, etag) {
        (Request::Delete { .. }, 204, _) => Some(Answer::Deleted),
        (Request::Insert(_) | Request::Update { .. }, 204, Some(etag)) => {
            Some(Answer::Written { etag })
        }
        (Request::Get, 200, Some(etag)) => {
            properties(body).map(|properties| Answer::Read { properties, etag })
        }
        _ => None,
    };
    read.unwrap_or_else(|| {
        Answer::Nonsense(format!("status {status}: {}", String::from_utf8_lossy(body)))
    })
}

fn properties(body: &[u8]) -> Option<Properties> {
    let entity: Value = serde_json::from_slice(body).ok()?;
    let property = |name| match entity.get(name) {
        Some(value) => u64::from_str_radix(value.as_str()?, 16).ok(),
        None => Some(0),
    };
    Some(Properties { left: property("Left")?, right: property("Right")? })
}
