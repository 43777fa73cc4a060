//! Operations on tables.

use holdfast_domain::names::TableName;
use holdfast_domain::table::filter::NamedTable;
use holdfast_domain::table::{ListTables, TablePath};
use hyper::StatusCode;
use serde::Deserialize;

use super::json_format::{Level, Preference, check_content_type};
use super::query_entities::{Options, options};
use super::write_entity::put_member;
use super::{Endpoint, Speech, continuation_token, json_answer, odata_answer, refuse_conditions};
use crate::answer::Answer;
use crate::body::RequestBody;
use crate::error::{Code, Error};
use crate::request::Call;

#[derive(Deserialize)]
struct NewTable {
    #[serde(rename = "TableName")]
    name: String,
}

pub async fn create(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let speech = Speech::of(call)?;
    refuse_conditions(call)?;
    check_content_type(call.header("content-type")?)?;
    let body = body.document(call).await?;
    let NewTable { name } = serde_json::from_slice(&body).map_err(|_| Code::InvalidInput)?;
    let path = TablePath { account: call.account()?, table: TableName::new(name)? };
    call.frontend.domain().create_table(&path).await?;
    let endpoint = Endpoint(call).to_string();
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

pub async fn get(call: &Call<'_>) -> Result<Answer, Error> {
    let speech = Speech::of(call)?;
    let table = call.frontend.domain().get_table(&call.table_path()?).await?;
    let mut body = Vec::new();
    TableWriter::new(call, &speech, &Endpoint(call).to_string()).element(&mut body, &table.name);
    Ok(json_answer(StatusCode::OK, speech.level, body))
}

pub async fn delete(call: &Call<'_>) -> Result<Answer, Error> {
    refuse_conditions(call)?;
    call.frontend.domain().delete_table(&call.table_path()?).await?;
    Ok(odata_answer(StatusCode::NO_CONTENT))
}

/// Query Tables.
pub async fn list(call: &Call<'_>) -> Result<Answer, Error> {
    let speech = Speech::of(call)?;
    let Options { filter, limit } = options(call.query)?;
    let command = ListTables {
        account: call.account()?,
        from: match call.query.get_nonempty("NextTableName") {
            Some(token) => Some(continuation_token::decode(token).ok_or(Code::InvalidInput)?),
            None => None,
        },
        limit,
    };
    let matches = |name: &str| filter.matches(&NamedTable(name));
    let page = call.frontend.domain().list_tables(command, matches).await?;
    let (mut body, endpoint) = (Vec::with_capacity(1024), Endpoint(call).to_string());
    TableWriter::new(call, &speech, &endpoint).list(&mut body, &page.names);
    let mut answer = json_answer(StatusCode::OK, speech.level, body);
    let token = page.next.as_deref().map(continuation_token::encode);
    answer.optional_header("x-ms-continuation-nexttablename", token);
    Ok(answer)
}

fn table_link(endpoint: &str, name: &str) -> String {
    format!("{endpoint}/Tables('{name}')")
}

/// Writes tables in answers. Their names need no escaping.
struct TableWriter<'a> {
    level: Level,
    endpoint: &'a str,
    account: &'a str,
}

impl<'a> TableWriter<'a> {
    fn new(call: &'a Call<'_>, speech: &Speech, endpoint: &'a str) -> Self {
        Self { level: speech.level, endpoint, account: call.address.account }
    }

    fn list(&self, body: &mut Vec<u8>, names: &[String]) {
        body.push(b'{');
        self.metadata(body, "Tables");
        body.extend_from_slice(b"\"value\":[");
        for (at, name) in names.iter().enumerate() {
            body.extend_from_slice(if at > 0 { b",{" } else { b"{" });
            self.members(body, name);
        }
        body.extend_from_slice(b"]}");
    }

    fn element(&self, body: &mut Vec<u8>, name: &str) {
        body.push(b'{');
        self.metadata(body, "Tables/@Element");
        self.members(body, name);
    }

    fn metadata(&self, body: &mut Vec<u8>, of: &str) {
        if self.level != Level::None {
            put_member(body, "odata.metadata", &format!("{}/$metadata#{of}", self.endpoint));
        }
    }

    fn members(&self, body: &mut Vec<u8>, name: &str) {
        if self.level == Level::Full {
            put_member(body, "odata.type", &format!("{}.Tables", self.account));
            put_member(body, "odata.id", &table_link(self.endpoint, name));
            put_member(body, "odata.editLink", &format!("Tables('{name}')"));
        }
        put_member(body, "TableName", name);
        // Replaces the comma after the last member.
        body.pop();
        body.push(b'}');
    }
}
