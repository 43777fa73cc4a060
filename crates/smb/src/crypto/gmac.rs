//! GMAC: the tag of GCM for a message that is not encrypted. ring takes such a message in one piece
//! only, and an answer has several.

use aes::Aes128;
use aes::cipher::{BlockEncrypt as _, KeyInit as _};
use ghash::universal_hash::UniversalHash as _;
use ghash::{Block, GHash};

const BLOCK_BYTES: usize = 16;

pub struct Gmac {
    cipher: Aes128,
    /// Keyed, with nothing hashed yet.
    hash: GHash,
}

impl Gmac {
    pub fn new(key: &[u8; 16]) -> Self {
        let cipher = Aes128::new(key.into());
        let mut hash_key = [0; BLOCK_BYTES];
        cipher.encrypt_block((&mut hash_key).into());
        Self { hash: GHash::new(&hash_key.into()), cipher }
    }

    pub fn sign(&self, nonce: &[u8; 12], parts: &[&[u8]]) -> [u8; 16] {
        let mut hash = self.hash.clone();
        let mut pending = Vec::with_capacity(BLOCK_BYTES);
        let mut length = 0u64;
        for part in parts {
            length += part.len() as u64;
            let mut rest = *part;
            if !pending.is_empty() {
                let missing = (BLOCK_BYTES - pending.len()).min(rest.len());
                pending.extend_from_slice(&rest[..missing]);
                rest = &rest[missing..];
                if pending.len() == BLOCK_BYTES {
                    hash.update_padded(&pending);
                    pending.clear();
                }
            }
            let (blocks, rest) = rest.as_chunks::<BLOCK_BYTES>();
            hash.update(Block::cast_slice_from_core(blocks));
            pending.extend_from_slice(rest);
        }
        hash.update_padded(&pending);
        let mut lengths = Block::default();
        lengths[..8].copy_from_slice(&(length * 8).to_be_bytes());
        hash.update(&[lengths]);
        let tag: [u8; BLOCK_BYTES] = hash.finalize().into();

        let mut mask = [0; BLOCK_BYTES];
        mask[..12].copy_from_slice(nonce);
        mask[15] = 1;
        self.cipher.encrypt_block((&mut mask).into());
        std::array::from_fn(|index| tag[index] ^ mask[index])
    }
}

#[cfg(test)]
mod tests {
    use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};

    use super::*;
    use crate::hexadecimal;

    #[test]
    fn the_tag_is_that_of_gcm_without_a_message() {
        // NIST CAVP, gcmEncryptExtIV128: an empty text and 128 bits of additional data.
        let key = hexadecimal("77be63708971c4e240d1cb79e8d77feb").try_into().expect("16 bytes");
        let nonce = hexadecimal("e0e00f19fed7ba0136a797f3").try_into().expect("12 bytes");
        let message = hexadecimal("7a43ec1d9c0a5a78a0b16533a6213cab");
        let tag = Gmac::new(&key).sign(&nonce, &[&message]);
        assert_eq!(tag[..], hexadecimal("209fcc8d3675ed938e9c7166709dd946"));
    }

    #[test]
    fn it_does_not_matter_where_a_message_is_cut() {
        let (key, nonce) = ([3; 16], [4; 12]);
        let gmac = Gmac::new(&key);
        let unbound = UnboundKey::new(&aead::AES_128_GCM, &key).expect("a key");
        let reference = LessSafeKey::new(unbound);
        let message: Vec<u8> = (0..400u16).map(|number| number as u8).collect();
        for length in [0, 1, 15, 16, 17, 127, 128, 129, 400] {
            let message = &message[..length];
            let nonce_of_reference = Nonce::assume_unique_for_key(nonce);
            let expected = reference
                .seal_in_place_separate_tag(nonce_of_reference, Aad::from(message), &mut [])
                .expect("a tag");
            for cut in 0..=length {
                let (left, right) = message.split_at(cut);
                let (middle, right) = right.split_at(right.len().min(3));
                let tag = gmac.sign(&nonce, &[left, middle, right]);
                assert_eq!(tag[..], *expected.as_ref(), "{length} cut at {cut}");
            }
        }
    }
}
