//! The running hash over all messages before a session is established, [MS-SMB2] 3.3.5.4: if a
//! message is changed on the way, client and server derive different keys.

use sha2::{Digest as _, Sha512};

#[derive(Clone)]
pub struct PreauthHash([u8; 64]);

impl Default for PreauthHash {
    fn default() -> Self {
        Self([0; 64])
    }
}

impl PreauthHash {
    #[cfg(test)]
    pub fn from_value(value: [u8; 64]) -> Self {
        Self(value)
    }

    pub fn value(&self) -> &[u8; 64] {
        &self.0
    }

    pub fn add(&mut self, message: &[u8]) {
        let hash = Sha512::new().chain_update(self.0).chain_update(message);
        self.0 = hash.finalize().into();
    }
}

impl std::fmt::Debug for PreauthHash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("PreauthHash(..)")
    }
}
