//! Signatures of messages: HMAC-SHA256 up to 2.1, AES-CMAC from 3.0, AES-GMAC where 3.1.1 agrees
//! on it, [MS-SMB2] 3.1.4.1.

use aes::Aes128;
use cmac::Cmac;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::gmac::Gmac;

pub type Signature = [u8; 16];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningAlgorithm {
    HmacSha256,
    AesCmac,
    AesGmac,
}

impl SigningAlgorithm {
    /// By its number in a negotiate context.
    pub fn from_code(code: u16) -> Option<Self> {
        match code {
            0 => Some(Self::HmacSha256),
            1 => Some(Self::AesCmac),
            2 => Some(Self::AesGmac),
            _ => None,
        }
    }

    pub const fn code(self) -> u16 {
        match self {
            Self::HmacSha256 => 0,
            Self::AesCmac => 1,
            Self::AesGmac => 2,
        }
    }
}

/// The sender and number of a message: GMAC must never sign two messages with the same.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    pub message_id: u64,
    pub is_from_server: bool,
    pub is_cancel: bool,
}

impl Origin {
    fn nonce(self) -> [u8; 12] {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&self.message_id.to_le_bytes());
        nonce[8] = u8::from(self.is_from_server) | u8::from(self.is_cancel) << 1;
        nonce
    }
}

/// A key, expanded once.
pub enum Signer {
    HmacSha256(Box<Hmac<Sha256>>),
    AesCmac(Box<Cmac<Aes128>>),
    AesGmac(Box<Gmac>),
}

impl Signer {
    pub fn new(algorithm: SigningAlgorithm, key: &[u8; 16]) -> Self {
        match algorithm {
            SigningAlgorithm::HmacSha256 => {
                let mac = Hmac::new_from_slice(key).expect("HMAC takes keys of any length");
                Self::HmacSha256(Box::new(mac))
            }
            SigningAlgorithm::AesCmac => {
                let mac = Cmac::new_from_slice(key).expect("the key has 16 bytes");
                Self::AesCmac(Box::new(mac))
            }
            SigningAlgorithm::AesGmac => Self::AesGmac(Box::new(Gmac::new(key))),
        }
    }

    /// Signs the concatenation of `parts`, in which the signature itself is zeros.
    pub fn sign(&self, parts: &[&[u8]], origin: Origin) -> Signature {
        match self {
            Self::HmacSha256(mac) => {
                let mut mac = mac.clone();
                parts.iter().for_each(|part| mac.update(part));
                let code = mac.finalize().into_bytes();
                *code.first_chunk().expect("the hash has 32 bytes")
            }
            Self::AesCmac(mac) => {
                let mut mac = mac.clone();
                parts.iter().for_each(|part| mac.update(part));
                mac.finalize().into_bytes().into()
            }
            Self::AesGmac(gmac) => gmac.sign(&origin.nonce(), parts),
        }
    }

    /// `message` has zeros in place of `presented`.
    pub fn verifies(&self, message: &[u8], presented: &Signature, origin: Origin) -> bool {
        self.sign(&[message], origin).ct_eq(presented).into()
    }
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Signer(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hexadecimal;

    fn key(text: &str) -> [u8; 16] {
        hexadecimal(text).try_into().expect("16 bytes")
    }

    const ORIGIN: Origin = Origin { message_id: 1, is_from_server: false, is_cancel: false };

    #[test]
    fn cmac_is_that_of_rfc_4493() {
        let signer =
            Signer::new(SigningAlgorithm::AesCmac, &key("2b7e151628aed2a6abf7158809cf4f3c"));
        let message = hexadecimal(
            "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411",
        );
        for (length, expected) in [
            (0, "bb1d6929e95937287fa37d129b756746"),
            (16, "070a16b46b4d4144f79bdd9dd04a287c"),
            (40, "dfa66747de9ae63030ca32611497c827"),
        ] {
            assert_eq!(signer.sign(&[&message[..length]], ORIGIN), key(expected), "{length}");
            let (left, right) = message[..length].split_at(length / 3);
            assert_eq!(signer.sign(&[left, right], ORIGIN), key(expected), "{length} in parts");
        }
    }

    #[test]
    fn hmac_is_the_first_half_of_that_of_rfc_4231() {
        let signer = Signer::HmacSha256(Box::new(
            Hmac::new_from_slice(b"Jefe").expect("HMAC takes keys of any length"),
        ));
        let signature = signer.sign(&[b"what do ya want ", b"for nothing?"], ORIGIN);
        assert_eq!(signature, key("5bdcc146bf60754e6a042426089575c7"));
    }

    #[test]
    fn gmac_depends_on_who_says_which_message() {
        let signer = Signer::new(SigningAlgorithm::AesGmac, &[7; 16]);
        let signature = signer.sign(&[b"hello"], ORIGIN);
        assert_eq!(signer.sign(&[b"he", b"llo"], ORIGIN), signature);
        for other in [
            Origin { message_id: 2, ..ORIGIN },
            Origin { is_from_server: true, ..ORIGIN },
            Origin { is_cancel: true, ..ORIGIN },
        ] {
            assert!(!signer.verifies(b"hello", &signature, other), "{other:?}");
        }
        assert!(signer.verifies(b"hello", &signature, ORIGIN));
        assert!(!signer.verifies(b"hellO", &signature, ORIGIN));
    }
}
