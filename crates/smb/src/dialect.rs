//! The supported dialects, and what a connection has negotiated.

use crate::crypto::{Cipher, SigningAlgorithm};
use crate::wire::negotiate::capabilities;

/// The most bytes that one request transfers, in any dialect.
pub const TRANSFER_BYTES_MAX: u32 = 8 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum Dialect {
    Smb2_0_2 = 0x0202,
    Smb2_1 = 0x0210,
    Smb3_0 = 0x0300,
    Smb3_0_2 = 0x0302,
    Smb3_1_1 = 0x0311,
}

impl Dialect {
    /// Best first.
    pub const ALL: [Self; 5] =
        [Self::Smb3_1_1, Self::Smb3_0_2, Self::Smb3_0, Self::Smb2_1, Self::Smb2_0_2];

    pub fn best_of(offered: &[u16]) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| offered.contains(&(*dialect as u16)))
    }

    /// Whether a request may transfer more than 64 KiB, for more credits.
    pub fn has_large_requests(self) -> bool {
        self >= Self::Smb2_1
    }

    pub fn has_persistent_handles(self) -> bool {
        self >= Self::Smb3_0
    }

    pub fn capabilities(self) -> u32 {
        let mut all = 0;
        if self.has_large_requests() {
            all |= capabilities::LEASING | capabilities::LARGE_MTU;
        }
        if matches!(self, Self::Smb3_0 | Self::Smb3_0_2) {
            all |= capabilities::ENCRYPTION;
        }
        all
    }

    /// The most bytes of one read, write or other transfer.
    pub fn transfer_bytes_max(self) -> u32 {
        if self.has_large_requests() { TRANSFER_BYTES_MAX } else { 64 * 1024 }
    }
}

/// What a connection has negotiated.
#[derive(Clone, Debug)]
pub struct Negotiated {
    pub dialect: Dialect,
    pub client_guid: [u8; 16],
    /// As sent by the client, to be compared when it sends them again.
    pub client_capabilities: u32,
    pub client_security_mode: u16,
    pub offered_dialects: Vec<u16>,
    pub signing: SigningAlgorithm,
    /// `None` if client and server have none in common.
    pub cipher: Option<Cipher>,
    pub capabilities: u32,
    pub security_mode: u16,
}

impl Negotiated {
    /// Whether opens of shares can outlive the process.
    pub fn has_persistent_handles(&self) -> bool {
        self.capabilities & capabilities::PERSISTENT_HANDLES != 0
    }
}
