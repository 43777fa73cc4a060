//! Get Account Information.

use hyper::StatusCode;

use crate::answer::Answer;
use crate::request::Call;
use crate::version::Version;

/// An account with a readable secondary, as on this server.
const SKU: &str = "Standard_RAGRS";
const KIND: &str = "StorageV2";

/// The container or blob of the address need not exist.
pub fn information(call: &Call<'_>) -> Answer {
    let mut answer = Answer::new(StatusCode::OK);
    answer.header("x-ms-sku-name", SKU);
    answer.header("x-ms-account-kind", KIND);
    if call.version >= Version::V2019_07_07 {
        answer.header("x-ms-is-hns-enabled", "false");
    }
    answer
}
