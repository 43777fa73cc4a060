//! Who may do what without the account's key: public access and stored access policies.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// What callers without credentials may read of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PublicAccess {
    #[default]
    None,
    Blob,
    Container,
}

/// A stored access policy, which a shared access signature can name instead of repeating it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPolicy {
    pub id: String,
    pub start: Option<Timestamp>,
    pub expiry: Option<Timestamp>,
    pub permissions: Option<String>,
}
