//! What is stored about a service of an account.

use serde::{Deserialize, Serialize};

/// Numbered as in the keys of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ServiceKind {
    Blob = 0,
    Queue = 1,
    Table = 2,
    File = 3,
}

/// The properties of one service. Those that a service does not have stay at their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceProperties {
    pub logging: Logging,
    pub hour_metrics: Metrics,
    pub minute_metrics: Metrics,
    pub cors: Vec<CorsRule>,
    /// For requests that name no version.
    pub default_version: Option<String>,
    pub delete_retention: DeleteRetention,
    pub static_website: StaticWebsite,
    pub protocols: ProtocolSettings,
    /// Whether deletions have ever been retained. If not, no deleted state exists, and a write need
    /// not look for one.
    pub has_retained: bool,
}

/// For how many days something is kept; `None` is forever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionPolicy {
    pub days: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logging {
    pub version: String,
    pub delete: bool,
    pub read: bool,
    pub write: bool,
    pub retention: RetentionPolicy,
}

impl Default for Logging {
    fn default() -> Self {
        Self {
            version: "1.0".to_owned(),
            delete: false,
            read: false,
            write: false,
            retention: RetentionPolicy::default(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    pub version: String,
    pub enabled: bool,
    /// Only metrics that are enabled say whether they are kept for each operation.
    pub include_apis: Option<bool>,
    pub retention: RetentionPolicy,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            version: "1.0".to_owned(),
            enabled: false,
            include_apis: None,
            retention: RetentionPolicy::default(),
        }
    }
}

/// How long deleted items can be restored; `days` is `None` if they cannot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteRetention {
    pub days: Option<u32>,
    pub allow_permanent_delete: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticWebsite {
    pub enabled: bool,
    pub index_document: Option<String>,
    pub error_document_404_path: Option<String>,
    pub default_index_document_path: Option<String>,
}

/// Switches of the file protocols; `None` is not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolSettings {
    pub smb_multichannel: Option<bool>,
    pub smb_encryption_required: Option<bool>,
    pub nfs_encryption_required: Option<bool>,
    pub smb_versions: Option<Choices>,
    pub smb_authentication_methods: Option<Choices>,
    pub smb_kerberos_ticket_encryption: Option<Choices>,
    pub smb_channel_encryption: Option<Choices>,
}

/// Which of a list of known things are allowed: a bit for each, in the order of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choices(pub u8);

/// What pages of other origins may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorsRule {
    pub allowed_origins: Vec<String>,
    pub allowed_methods: Vec<String>,
    pub allowed_headers: Vec<String>,
    pub exposed_headers: Vec<String>,
    pub max_age_seconds: u32,
}
