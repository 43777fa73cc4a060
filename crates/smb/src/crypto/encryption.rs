//! Encryption of messages by AES in CCM or GCM, in place, [MS-SMB2] 3.1.4.3.

use aes::{Aes128, Aes256};
use ccm::aead::AeadInPlace as _;
use ccm::aead::generic_array::GenericArray;
use ccm::consts::{U11, U16};
use ccm::{Ccm, KeyInit as _};
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use subtle::ConstantTimeEq as _;

/// By their numbers in a negotiate context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Cipher {
    Aes128Ccm = 1,
    Aes128Gcm = 2,
    Aes256Ccm = 3,
    Aes256Gcm = 4,
}

impl Cipher {
    pub fn from_code(code: u16) -> Option<Self> {
        let all = [Self::Aes128Ccm, Self::Aes128Gcm, Self::Aes256Ccm, Self::Aes256Gcm];
        all.into_iter().find(|cipher| *cipher as u16 == code)
    }

    pub const fn key_bytes(self) -> usize {
        match self {
            Self::Aes128Ccm | Self::Aes128Gcm => 16,
            Self::Aes256Ccm | Self::Aes256Gcm => 32,
        }
    }
}

pub type Tag = [u8; 16];

/// The key of one direction, expanded once. CCM uses the first 11 bytes of a nonce and GCM the
/// first 12.
pub enum CipherKey {
    Aes128Ccm(Box<Ccm<Aes128, U16, U11>>),
    Aes256Ccm(Box<Ccm<Aes256, U16, U11>>),
    Gcm(Box<LessSafeKey>),
}

/// The tag does not match the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tampered;

impl CipherKey {
    /// `key` must have the length of the cipher's key.
    pub fn new(cipher: Cipher, key: &[u8]) -> Self {
        match cipher {
            Cipher::Aes128Ccm => {
                Self::Aes128Ccm(Box::new(Ccm::new_from_slice(key).expect("16 bytes")))
            }
            Cipher::Aes256Ccm => {
                Self::Aes256Ccm(Box::new(Ccm::new_from_slice(key).expect("32 bytes")))
            }
            Cipher::Aes128Gcm => Self::gcm(&aead::AES_128_GCM, key),
            Cipher::Aes256Gcm => Self::gcm(&aead::AES_256_GCM, key),
        }
    }

    fn gcm(algorithm: &'static aead::Algorithm, key: &[u8]) -> Self {
        let key = UnboundKey::new(algorithm, key).expect("as many bytes as the cipher takes");
        Self::Gcm(Box::new(LessSafeKey::new(key)))
    }

    /// A nonce must never be used twice.
    pub fn seal(&self, nonce: &[u8; 16], additional: &[u8], message: &mut [u8]) -> Tag {
        const SHORT: &str = "a message is shorter than 4 GiB";
        let short = GenericArray::from_slice(&nonce[..11]);
        match self {
            Self::Aes128Ccm(ccm) => {
                ccm.encrypt_in_place_detached(short, additional, message).expect(SHORT).into()
            }
            Self::Aes256Ccm(ccm) => {
                ccm.encrypt_in_place_detached(short, additional, message).expect(SHORT).into()
            }
            Self::Gcm(key) => {
                let aad = Aad::from(additional);
                let tag = key.seal_in_place_separate_tag(gcm_nonce(nonce), aad, message);
                let tag = tag.expect(SHORT);
                tag.as_ref().try_into().expect("a tag has 16 bytes")
            }
        }
    }

    /// After a failure `message` must not be used.
    pub fn open(
        &self,
        nonce: &[u8; 16],
        additional: &[u8],
        message: &mut [u8],
        tag: &Tag,
    ) -> Result<(), Tampered> {
        let short = GenericArray::from_slice(&nonce[..11]);
        let opened = match self {
            Self::Aes128Ccm(ccm) => {
                ccm.decrypt_in_place_detached(short, additional, message, tag.into()).is_ok()
            }
            Self::Aes256Ccm(ccm) => {
                ccm.decrypt_in_place_detached(short, additional, message, tag.into()).is_ok()
            }
            Self::Gcm(key) => {
                let aad = Aad::from(additional);
                let tag = aead::Tag::from(*tag);
                key.open_in_place_separate_tag(gcm_nonce(nonce), aad, tag, message, 0..).is_ok()
            }
        };
        if opened { Ok(()) } else { Err(Tampered) }
    }
}

fn gcm_nonce(nonce: &[u8; 16]) -> Nonce {
    Nonce::assume_unique_for_key(*nonce.first_chunk().expect("12 of 16 bytes"))
}

impl std::fmt::Debug for CipherKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("CipherKey(..)")
    }
}

/// Compares two secrets in constant time.
pub fn is_same_secret(left: &[u8], right: &[u8]) -> bool {
    left.ct_eq(right).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hexadecimal;

    #[test]
    fn what_is_sealed_is_opened_and_nothing_else() {
        for cipher in [1, 2, 3, 4].map(|code| Cipher::from_code(code).expect("a cipher")) {
            let key = CipherKey::new(cipher, &vec![5; cipher.key_bytes()]);
            let (nonce, additional) = ([9; 16], [1, 2, 3]);
            let mut message = *b"some words of a message";
            let tag = key.seal(&nonce, &additional, &mut message);
            assert_ne!(&message, b"some words of a message");
            let sealed = message;
            assert_eq!(key.open(&nonce, &additional, &mut message, &tag), Ok(()));
            assert_eq!(&message, b"some words of a message");
            let mut wrong = sealed;
            assert_eq!(key.open(&nonce, &[1, 2], &mut wrong, &tag), Err(Tampered));
            wrong = sealed;
            wrong[3] ^= 1;
            assert_eq!(key.open(&nonce, &additional, &mut wrong, &tag), Err(Tampered));
        }
    }

    #[test]
    fn gcm_is_that_of_its_specification() {
        // Test case 4 of "The Galois/Counter Mode of Operation".
        let key =
            CipherKey::new(Cipher::Aes128Gcm, &hexadecimal("feffe9928665731c6d6a8f9467308308"));
        let mut nonce = [0; 16];
        nonce[..12].copy_from_slice(&hexadecimal("cafebabefacedbaddecaf888"));
        let mut message = hexadecimal(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
             1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        );
        let additional = hexadecimal("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let tag = key.seal(&nonce, &additional, &mut message);
        assert_eq!(tag[..], hexadecimal("5bc94fbc3221a5db94fae95ae7121a47"));
        assert_eq!(message[..4], hexadecimal("42831ec2"));
    }
}
