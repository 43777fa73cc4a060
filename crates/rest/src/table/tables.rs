//! Operations on tables.

use holdfast_domain::names::TableName;
use holdfast_domain::table::TablePath;
use hyper::StatusCode;
use serde::Deserialize;

use super::format::{Level, Preference, check_content_type};
use super::write_entity::put_text;
use super::{Speech, endpoint, json_answer, odata_answer};
use crate::answer::Answer;
use crate::error::{Code, Error};
use crate::request::Call;
use crate::request_body::RequestBody;

#[derive(Deserialize)]
struct NewTable {
    #[serde(rename = "TableName")]
    name: String,
}

pub async fn create(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let speech = Speech::of(call)?;
    check_content_type(call.header("content-type")?)?;
    let body = body.document(call).await?;
    let NewTable { name } = serde_json::from_slice(&body).map_err(|_| Code::InvalidInput)?;
    let path = TablePath { account: call.account()?, table: TableName::new(name)? };
    call.frontend.domain().create_table(&path).await?;
    let endpoint = endpoint(call);
    let name = path.table.as_str();
    let link = table_link(&endpoint, name);
    let mut answer = if speech.preference == Some(Preference::NoContent) {
        let mut answer = odata_answer(StatusCode::NO_CONTENT);
        answer.header("dataserviceid", &link);
        answer
    } else {
        let mut body = Vec::new();
        let table =
            TableWriter { level: speech.level, endpoint: &endpoint, account: call.address.account };
        table.element(&mut body, name);
        json_answer(StatusCode::CREATED, speech.level, body)
    };
    answer.optional_header("preference-applied", speech.preference.map(Preference::as_str));
    answer.header("location", &link);
    Ok(answer)
}

fn table_link(endpoint: &str, name: &str) -> String {
    format!("{endpoint}/Tables('{name}')")
}

/// Writes tables as clients get them. Their names need no escapes.
struct TableWriter<'a> {
    level: Level,
    endpoint: &'a str,
    account: &'a str,
}

impl TableWriter<'_> {
    fn element(&self, body: &mut Vec<u8>, name: &str) {
        body.push(b'{');
        self.metadata(body, "Tables/@Element");
        self.members(body, name);
    }

    fn metadata(&self, body: &mut Vec<u8>, of: &str) {
        if self.level != Level::None {
            body.extend_from_slice(b"\"odata.metadata\":");
            put_text(body, &format!("{}/$metadata#{of}", self.endpoint));
            body.push(b',');
        }
    }

    fn members(&self, body: &mut Vec<u8>, name: &str) {
        if self.level == Level::Full {
            for (member, value) in [
                ("\"odata.type\":", format!("{}.Tables", self.account)),
                ("\"odata.id\":", table_link(self.endpoint, name)),
                ("\"odata.editLink\":", format!("Tables('{name}')")),
            ] {
                body.extend_from_slice(member.as_bytes());
                put_text(body, &value);
                body.push(b',');
            }
        }
        body.extend_from_slice(b"\"TableName\":");
        put_text(body, name);
        body.push(b'}');
    }
}
