//! Who asked for what, and what became of it: a record for each request that was answered, for an
//! operator who has to keep them.

use serde::Serialize;

use crate::auth::Identity;

/// Takes the records down. Requests wait for it.
pub trait AccessLog: Send + Sync {
    fn record(&self, record: &AccessRecord<'_>);
}

/// One request. Nothing here is a credential, and addresses are shown as the main log shows them.
#[derive(Debug, Serialize)]
pub struct AccessRecord<'a> {
    /// When the answer was ready, in ISO 8601.
    pub time: String,
    pub request_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<&'a str>,
    pub service: &'static str,
    pub operation: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<&'a str>,
    /// None if the request was refused before that was known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<&'a Caller>,
    pub ip: String,
    pub tls: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<&'a str>,
    pub method: &'a str,
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// Of the bodies, as they were announced.
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub micros: u64,
}

/// By which credentials a request came.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Caller {
    pub credentials: &'static str,
    /// Of whom a token is, or who asked for the key of a user delegation signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_id: Option<String>,
}

impl From<&Identity> for Caller {
    fn from(identity: &Identity) -> Self {
        let (credentials, object_id) = match identity {
            Identity::Owner => ("account-key", None),
            Identity::AccountSas(_) => ("account-sas", None),
            Identity::ServiceSas(_) => ("service-sas", None),
            Identity::UserDelegationSas(sas) => {
                ("user-delegation-sas", Some(sas.delegator.object_id.clone()))
            }
            Identity::Bearer(principal) => ("token", Some(principal.object_id.clone())),
            Identity::Anonymous(_) => ("anonymous", None),
        };
        Self { credentials, object_id }
    }
}
