//! Signatures and encryption of messages, and their keys. Works on bytes in place and knows no
//! session.

pub mod derivation;
pub mod encryption;
mod gmac;
pub mod preauth;
pub mod signing;

pub use encryption::{Cipher, CipherKey};
pub use preauth::PreauthHash;
pub use signing::{Signer, SigningAlgorithm};

/// The result of NTLM, from which all keys of a session are derived.
pub type SessionKey = [u8; 16];
