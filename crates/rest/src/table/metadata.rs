//! `$metadata`: the description of the service in the language of its protocol. Entities of one
//! table need not have the same properties, so it contains little more than the names of tables.

use holdfast_domain::table::ListTables;
use hyper::StatusCode;

use crate::answer::Answer;
use crate::error::Error;
use crate::request::Call;
use crate::xml::Writer;

/// A caller whose signature is for one table sees only that table.
pub async fn get(call: &Call<'_>) -> Result<Answer, Error> {
    let command = ListTables { account: call.account()?, from: None, limit: usize::MAX };
    let visible = |name: &str| {
        call.granted.scope().table.as_ref().is_none_or(|table| table.eq_ignore_ascii_case(name))
    };
    let tables = call.frontend.domain().list_tables(command, visible).await?;
    Ok(Answer::xml(StatusCode::OK, write(call.address.account, &tables.names)))
}

fn write(account: &str, tables: &[String]) -> String {
    let mut xml = Writer::document();
    xml.open_with(
        "edmx:Edmx",
        &[("Version", "1.0"), ("xmlns:edmx", "http://schemas.microsoft.com/ado/2007/06/edmx")],
    );
    xml.open_with(
        "edmx:DataServices",
        &[
            ("xmlns:m", "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"),
            ("m:DataServiceVersion", "3.0"),
        ],
    );
    xml.open_with(
        "Schema",
        &[("Namespace", account), ("xmlns", "http://schemas.microsoft.com/ado/2009/11/edm")],
    );
    entity_type(&mut xml, "Tables", &["TableName"], &[("TableName", "Edm.String")]);
    for table in tables {
        let keys = ["PartitionKey", "RowKey"];
        let timestamp = ("Timestamp", "Edm.DateTime");
        let properties = [(keys[0], "Edm.String"), (keys[1], "Edm.String"), timestamp];
        entity_type(&mut xml, table, &keys, &properties);
    }
    xml.open_with("EntityContainer", &[("Name", account), ("m:IsDefaultEntityContainer", "true")]);
    for table in std::iter::once("Tables").chain(tables.iter().map(String::as_str)) {
        let of_type = format!("{account}.{table}");
        xml.empty_with("EntitySet", &[("Name", table), ("EntityType", &of_type)]);
    }
    for element in ["EntityContainer", "Schema", "edmx:DataServices", "edmx:Edmx"] {
        xml.close(element);
    }
    xml.finish()
}

fn entity_type(xml: &mut Writer, name: &str, keys: &[&str], properties: &[(&str, &str)]) {
    let open = if name == "Tables" { "false" } else { "true" };
    xml.open_with("EntityType", &[("Name", name), ("OpenType", open)]);
    xml.open("Key");
    for key in keys {
        xml.empty_with("PropertyRef", &[("Name", key)]);
    }
    xml.close("Key");
    for (property, edm) in properties {
        xml.empty_with("Property", &[("Name", property), ("Type", edm), ("Nullable", "false")]);
    }
    xml.close("EntityType");
}
