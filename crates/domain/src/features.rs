//! What an operator chooses for all accounts: switches that belong to the management of an account
//! and not to its clients.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Features {
    /// Every change of a blob keeps the state before it as a version.
    pub versioning: bool,
    /// For how long a deleted container can be restored; `None` where it cannot.
    pub container_retention: Option<Duration>,
    /// For how long the name of a deleted container cannot be used again.
    pub container_name_hold: Duration,
    /// For how long the name of a deleted queue cannot be used again.
    pub queue_name_hold: Duration,
    /// For how long the name of a deleted table cannot be used again.
    pub table_name_hold: Duration,
    /// For how long the name of a deleted share cannot be used again.
    pub share_name_hold: Duration,
    /// How long a blob takes to be rehydrated from the archive tier.
    pub rehydration: Duration,
    pub access_lists: AccessLists,
}

/// Whether the security descriptors of files are enforced. REST does not check them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AccessLists {
    /// The key of the account allows everything, as with the service.
    #[default]
    Ignored,
    Enforced,
}
