//! Account keys, and the only function that compares signatures.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use base64_simd::AsOut as _;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

/// What HMAC-SHA256 produces.
pub type Signature = [u8; 32];

/// A signing key. Only the keyed state of the hash is kept, which saves hashing the key for each
/// request; neither it nor the original text can be printed.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an account key is not valid Base64 or is empty")]
pub struct InvalidKey;

impl Key {
    pub fn from_base64(text: &str) -> Result<Self, InvalidKey> {
        let bytes = STANDARD.decode(text.trim()).map_err(|_| InvalidKey)?;
        if bytes.is_empty() { Err(InvalidKey) } else { Ok(Self::from_bytes(&bytes)) }
    }

    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(Hmac::new_from_slice(bytes).expect("HMAC takes keys of any length"))
    }

    /// Signs the concatenation of `parts`.
    pub(super) fn sign(&self, parts: &[&[u8]]) -> Signature {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    pub(super) fn verifies(&self, parts: &[&[u8]], presented: &Signature) -> bool {
        self.sign(parts).ct_eq(presented).into()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(..)")
    }
}

/// Reads a presented signature. `None` for text that cannot be a signature, which is treated as one
/// that does not match.
pub(super) fn decode_signature(text: &str) -> Option<Signature> {
    // 32 bytes are always 44 characters, so a longer text is refused before any decoding.
    if text.len() != 44 {
        return None;
    }
    let mut decoded = [0; 44];
    let decoded = base64_simd::STANDARD.decode(text.as_bytes(), decoded.as_mut_slice().as_out());
    decoded.ok()?.as_ref().try_into().ok()
}

/// The keys of one account. Both are valid at any time, so that they can be rotated.
#[derive(Clone, Debug)]
pub struct AccountKeys {
    pub primary: Key,
    pub secondary: Option<Key>,
}

impl AccountKeys {
    pub(super) fn both(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.primary).chain(&self.secondary)
    }
}

/// The accounts that are served, by name. There are few, and every request looks one up three
/// times: comparing names is faster than hashing.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    keys: BTreeMap<String, AccountKeys>,
    /// Known accounts that are disabled.
    disabled: BTreeSet<String>,
}

impl Accounts {
    pub fn insert(&mut self, name: impl Into<String>, keys: AccountKeys) {
        self.keys.insert(name.into(), keys);
    }

    pub fn disable(&mut self, name: impl Into<String>) {
        self.disabled.insert(name.into());
    }

    pub fn is_disabled(&self, name: &str) -> bool {
        self.disabled.contains(name)
    }

    pub fn get(&self, name: &str) -> Option<&AccountKeys> {
        self.keys.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.keys.keys().map(String::as_str)
    }
}

impl FromIterator<(String, AccountKeys)> for Accounts {
    fn from_iter<I: IntoIterator<Item = (String, AccountKeys)>>(accounts: I) -> Self {
        Self { keys: accounts.into_iter().collect(), disabled: BTreeSet::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_printed() {
        let key = Key::from_base64("c2VjcmV0").expect("valid Base64");
        let keys = AccountKeys { primary: key.clone(), secondary: Some(key) };
        let text = format!("{keys:?}");
        assert_eq!(text, "AccountKeys { primary: Key(..), secondary: Some(Key(..)) }");
    }

    #[test]
    fn keys_that_are_not_base64_are_refused() {
        for text in ["", "not base64!", "abc"] {
            assert_eq!(Key::from_base64(text).err(), Some(InvalidKey), "{text}");
        }
    }
}
