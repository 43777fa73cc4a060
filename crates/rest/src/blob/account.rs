//! What can be asked about the account itself: its kind, and how its copy is doing.

use hyper::StatusCode;

use crate::answer::Answer;
use crate::error::Error;
use crate::query::QueryRefusal;
use crate::request::Call;
use crate::version::Version;
use crate::xml::Writer;

/// An account that can be read by its secondary name, as this server lets it be.
const SKU: &str = "Standard_RAGRS";
const KIND: &str = "StorageV2";

/// Get Account Information. The container or blob of the address need not exist.
pub fn information(call: &Call<'_>) -> Answer {
    let mut answer = Answer::new(StatusCode::OK);
    answer.header("x-ms-sku-name", SKU);
    answer.header("x-ms-account-kind", KIND);
    if call.version >= Version::V2019_07_07 {
        answer.header("x-ms-is-hns-enabled", "false");
    }
    answer
}

/// Get Blob Service Stats: only the secondary name knows. There is one copy of the data, so what
/// is read by that name is as new as it can be.
pub fn statistics(call: &Call<'_>) -> Result<Answer, Error> {
    if !call.address.secondary {
        return Err(QueryRefusal::InvalidValue { name: "comp", value: "stats".to_owned() }.into());
    }
    let mut xml = Writer::document();
    xml.open("StorageServiceStats");
    xml.open("GeoReplication");
    xml.element("Status", "live");
    xml.element("LastSyncTime", &call.frontend.domain().now().rfc1123().to_string());
    xml.close("GeoReplication");
    xml.close("StorageServiceStats");
    Ok(Answer::xml(StatusCode::OK, xml.finish()))
}
