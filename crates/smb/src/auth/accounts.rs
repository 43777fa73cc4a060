//! The accounts that may log on, with the hashes of their keys for NTLM.

use std::collections::HashMap;
use std::sync::Arc;

use md4::{Digest as _, Md4};

use crate::wire::text;

/// The NTLM hash of a password. As secret as the password itself: never shown.
#[derive(Clone)]
pub struct NtHash([u8; 16]);

impl NtHash {
    pub fn of_password(password: &str) -> Self {
        Self(Md4::digest(text::encode(password)).into())
    }

    pub(super) fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl std::fmt::Debug for NtHash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("NtHash(..)")
    }
}

#[derive(Clone, Debug, Default)]
pub struct Accounts {
    by_name: HashMap<Arc<str>, Vec<NtHash>>,
}

impl Accounts {
    /// Any of `keys` (in Base64, as users have them) can be used to log on.
    pub fn insert<'a>(&mut self, name: &str, keys: impl Iterator<Item = &'a str>) {
        let hashes = keys.map(NtHash::of_password).collect();
        self.by_name.insert(name.to_ascii_lowercase().into(), hashes);
    }

    /// Names of accounts are in lower case; users may type any case.
    pub(super) fn find(&self, user: &str) -> Option<(&Arc<str>, &[NtHash])> {
        let (name, hashes) = self.by_name.get_key_value(user.to_ascii_lowercase().as_str())?;
        Some((name, hashes))
    }
}
