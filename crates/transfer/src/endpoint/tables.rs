//! Entities of tables on a server.

use holdfast_verify::account::Service;
use hyper::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use super::lists::JSON;
use super::{Endpoint, Failure, Request, code_of, path};
use crate::edm::{read_entity, write_entity};
use crate::model::{Entity, Page};
use crate::source::Unusable;

const KEY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Stands at the beginning of a line of a batch, where JSON has no line breaks.
const BATCH: &str = "batch_6a4dbb08";
const CHANGES: &str = "changes_6a4dbb08";

/// How an entity is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// Only if there is none of its keys.
    Insert,
    Replace,
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn key(text: &str) -> String {
    format!("'{}'", utf8_percent_encode(&text.replace('\'', "''"), KEY))
}

/// Which entities lie between two of one partition, with both.
pub fn between(first: &Entity, last: &Entity) -> String {
    let (partition, first, last) =
        (quoted(&first.partition_key), quoted(&first.row_key), quoted(&last.row_key));
    format!("PartitionKey eq {partition} and RowKey ge {first} and RowKey le {last}")
}

fn address(table: &str, entity: &Entity, write: Write) -> (Method, String) {
    let table = path(table, "");
    match write {
        Write::Insert => (Method::POST, table),
        Write::Replace => {
            let (partition, row) = (key(&entity.partition_key), key(&entity.row_key));
            (Method::PUT, format!("{table}(PartitionKey={partition},RowKey={row})"))
        }
    }
}

impl Endpoint {
    pub async fn entities(
        &self,
        table: &str,
        filter: Option<&str>,
        after: Option<&str>,
    ) -> Result<Page<Result<Entity, Unusable>>, Failure> {
        let mut request =
            Request::get(Service::Table, format!("{}()", path(table, ""))).header(JSON.0, JSON.1);
        if let Some(filter) = filter {
            request = request.query("$filter", filter);
        }
        if let Some((partition, row)) = after.and_then(|after| after.split_once('\n')) {
            request = request.query("NextPartitionKey", partition);
            if !row.is_empty() {
                request = request.query("NextRowKey", row);
            }
        }
        let answer = self.send(request).await?;
        let unexpected = || Failure::unexpected("list of entities");
        let json: Value = serde_json::from_slice(&answer.body).map_err(|_| unexpected())?;
        let rows = json["value"].as_array().ok_or_else(unexpected)?;
        let entity = |row: &Value| {
            let none = Map::new();
            read_entity(row.as_object().unwrap_or(&none)).map_err(|error| Unusable {
                what: format!(
                    "entity ({}, {}) of table {table}",
                    row["PartitionKey"], row["RowKey"]
                ),
                why: error.to_string(),
            })
        };
        let continuation = |name| answer.headers.get(name).unwrap_or_default();
        let next = answer.headers.get("x-ms-continuation-NextPartitionKey").map(|partition| {
            format!("{partition}\n{}", continuation("x-ms-continuation-NextRowKey"))
        });
        Ok(Page { items: rows.iter().map(entity).collect(), next })
    }

    /// One entity, or several of one partition: all of them or none.
    pub async fn write_entities(
        &self,
        table: &str,
        entities: &[(&Entity, Write)],
    ) -> Result<(), Failure> {
        if let [(entity, write)] = entities {
            let (method, address) = address(table, entity, *write);
            let request = Request::new(Service::Table, method, address)
                .header(JSON.0, JSON.1)
                .header("prefer", "return-no-content")
                .content_type("application/json")
                .body(write_entity(entity));
            self.send(request).await?;
            return Ok(());
        }
        let url = self.account.endpoint(Service::Table).map(|it| it.url()).unwrap_or_default();
        let mut body =
            format!("--{BATCH}\r\nContent-Type: multipart/mixed; boundary={CHANGES}\r\n\r\n");
        for (entity, write) in entities {
            let (method, address) = address(table, entity, *write);
            let json = write_entity(entity);
            body.push_str(&format!(
                "--{CHANGES}\r\nContent-Type: application/http\r\n\
                 Content-Transfer-Encoding: binary\r\n\r\n{method} {url}{address} HTTP/1.1\r\n\
                 Accept: {accept}\r\nContent-Type: application/json\r\n\
                 Prefer: return-no-content\r\nDataServiceVersion: 3.0\r\n\
                 Content-Length: {length}\r\n\r\n{json}\r\n",
                accept = JSON.1,
                length = json.len(),
            ));
        }
        body.push_str(&format!("--{CHANGES}--\r\n--{BATCH}--\r\n"));
        let request = Request::new(Service::Table, Method::POST, "/$batch".to_owned())
            .header(JSON.0, JSON.1)
            .content_type(&format!("multipart/mixed; boundary={BATCH}"))
            .body(body);
        let answer = self.send(request).await?;
        match refusal(&String::from_utf8_lossy(&answer.body)) {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }
}

/// That of the first part of a batch that was refused: then none of them was written.
fn refusal(answer: &str) -> Option<Failure> {
    let mut parts = answer.split("HTTP/1.1 ").skip(1);
    parts.find_map(|part| {
        let status: u16 = part.get(..3)?.parse().ok()?;
        let body = part.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let json = body.rfind('}').map_or("", |end| &body[..=end]);
        (status >= 400).then(|| Failure::Refused { status, code: code_of(json.as_bytes()) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(partition: &str, row: &str) -> Entity {
        Entity {
            partition_key: partition.to_owned(),
            row_key: row.to_owned(),
            properties: Default::default(),
        }
    }

    #[test]
    fn quotes_and_slashes_in_keys_stay_within_them() {
        let (_, address) = address("T", &entity("a'/b", "ü)"), Write::Replace);
        assert_eq!(address, "/T(PartitionKey='a%27%27%2Fb',RowKey='%C3%BC%29')");
        assert_eq!(
            between(&entity("a'b", "1"), &entity("a'b", "2'")),
            "PartitionKey eq 'a''b' and RowKey ge '1' and RowKey le '2'''"
        );
    }

    #[test]
    fn refusal_of_one_part_is_that_of_the_batch() {
        let good = "--b\r\n\r\nHTTP/1.1 204 No Content\r\nETag: x\r\n\r\n\r\n--b--";
        assert_eq!(refusal(good), None);
        let bad = "--b\r\n\r\nHTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\n\r\n\
                   {\"odata.error\":{\"code\":\"EntityAlreadyExists\"}}\r\n--b--";
        let expected = Failure::Refused { status: 409, code: "EntityAlreadyExists".to_owned() };
        assert_eq!(refusal(bad), Some(expected));
    }
}
