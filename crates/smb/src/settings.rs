//! What the operator decides about SMB.

use std::net::IpAddr;
use std::time::Duration;

use crate::auth::Accounts;

#[derive(Clone, Debug)]
pub struct Settings {
    pub accounts: Accounts,
    pub encryption: Encryption,
    pub signing: Signing,
    pub limits: Limits,
    /// Whether opens can outlive the process: only if their store does.
    pub persistent_handles: bool,
}

/// Which sessions must be encrypted. Others are if the client asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    Required,
    /// Sessions of clients on other machines.
    #[default]
    RequiredFromOutside,
    WhenAsked,
}

impl Encryption {
    pub fn is_required_from(self, address: IpAddr) -> bool {
        match self {
            Self::Required => true,
            Self::RequiredFromOutside => !address.to_canonical().is_loopback(),
            Self::WhenAsked => false,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signing {
    Required,
    #[default]
    WhenAsked,
}

#[derive(Clone, Debug)]
pub struct Limits {
    /// How long a connection may exist without a session.
    pub logon_timeout: Duration,
    /// How long a client may leave an answer unread, or a message unfinished.
    pub stall_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { logon_timeout: Duration::from_secs(30), stall_timeout: Duration::from_secs(60) }
    }
}
