//! Operations that services share: service properties, replication statistics, and user delegation
//! keys.

use holdfast_domain::delegator::Delegator;
use holdfast_domain::time::Timestamp;
use hyper::StatusCode;

use crate::answer::Answer;
use crate::auth::{ClaimTexts, KeyFields, issue_user_delegation_key, key_time};
use crate::body::RequestBody;
use crate::error::{Code, Error};
use crate::request::Call;
use crate::service::properties_document;
use crate::url_query::QueryRefusal;
use crate::xml::Writer;
use crate::xml::document::{self, DocumentRefusal};

pub async fn get_properties(call: &Call<'_>) -> Result<Answer, Error> {
    let (account, service) = (call.account()?, call.operation.service());
    let properties = call.frontend.domain().service_properties(&account, service.kind()).await?;
    let body = properties_document::write(service, &properties, call.version);
    Ok(Answer::xml(StatusCode::OK, body))
}

pub async fn set_properties(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let (account, service) = (call.account()?, call.operation.service());
    let document = body.document(call).await?;
    let update = properties_document::parse(service, &document)?;
    let domain = call.frontend.domain();
    domain.set_service_properties(&account, service.kind(), |stored| update.apply(stored)).await?;
    Ok(Answer::new(StatusCode::ACCEPTED))
}

/// Replication statistics, only at the secondary name. There is one copy of the data, so reads by
/// that name are always up to date.
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

pub async fn user_delegation_key(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let document = body.document(call).await?;
    let info = document::parse(&document, "KeyInfo")?;
    let info = info.fields(&["Start", "Expiry", "DelegatedUserTid"])?;
    let now = call.frontend.domain().now();
    let start = match info.text("Start") {
        Some(text) => time("Start", text)?,
        None => now,
    };
    let principal = call.granted.principal.as_ref().ok_or(Code::AuthorizationFailure)?;
    let service = call.operation.service();
    let fields = KeyFields {
        signed_oid: principal.object_id.clone(),
        signed_tid: principal.tenant_id.clone().unwrap_or_default(),
        signed_start: start,
        signed_expiry: time("Expiry", info.required_text("Expiry")?)?,
        signed_service: service.sas_letter().to_string(),
        signed_version: call.version.to_string(),
        signed_delegated_user_tid: info.text("DelegatedUserTid").map(str::to_owned),
    };
    let keys = call.frontend.accounts().get(call.address.account).ok_or(Code::ResourceNotFound)?;
    let key = issue_user_delegation_key(fields, keys, now)?;
    let delegator = Delegator { claims: ClaimTexts::clone(&principal.claims) };
    let domain = call.frontend.domain();
    domain.note_delegator(&call.account()?, &key.fields.identity(), &delegator).await?;

    let mut xml = Writer::document();
    xml.open("UserDelegationKey");
    xml.element("SignedOid", &key.fields.signed_oid);
    xml.element("SignedTid", &key.fields.signed_tid);
    xml.element("SignedStart", &key_time(key.fields.signed_start));
    xml.element("SignedExpiry", &key_time(key.fields.signed_expiry));
    xml.element("SignedService", &key.fields.signed_service);
    xml.element("SignedVersion", &key.fields.signed_version);
    xml.optional("SignedDelegatedUserTid", key.fields.signed_delegated_user_tid.as_deref());
    xml.element("Value", &key.value);
    xml.close("UserDelegationKey");
    Ok(Answer::xml(StatusCode::OK, xml.finish()))
}

fn time(name: &'static str, text: &str) -> Result<Timestamp, DocumentRefusal> {
    let invalid = || DocumentRefusal::InvalidNodeValue { name, value: text.to_owned() };
    Timestamp::parse_iso8601(text).ok_or_else(invalid)
}
