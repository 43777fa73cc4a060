//! Keys of a session: SP800-108 in counter mode with HMAC-SHA256, [MS-SMB2] 3.1.4.2.

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use super::preauth::PreauthHash;
use super::{Cipher, SessionKey};

/// What the keys of a session are bound to.
#[derive(Clone, Debug)]
pub enum Binding {
    /// 3.0 and 3.0.2: constant labels only.
    Words,
    /// 3.1.1: also the hash of all earlier messages.
    Preauth(PreauthHash),
}

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Signing,
    FromClient,
    ToClient,
}

impl Binding {
    pub fn signing_key(&self, session_key: &SessionKey) -> [u8; 16] {
        let mut key = [0; 16];
        self.derive(session_key, Purpose::Signing, &mut key);
        key
    }

    /// A key of the length of the cipher.
    pub fn cipher_key(
        &self,
        session_key: &SessionKey,
        purpose: Purpose,
        cipher: Cipher,
    ) -> Vec<u8> {
        let mut key = vec![0; cipher.key_bytes()];
        self.derive(session_key, purpose, &mut key);
        key
    }

    fn derive(&self, session_key: &SessionKey, purpose: Purpose, key: &mut [u8]) {
        let (label, context): (&[u8], &[u8]) = match (self, purpose) {
            (Self::Words, Purpose::Signing) => (b"SMB2AESCMAC\0", b"SmbSign\0"),
            (Self::Words, Purpose::FromClient) => (b"SMB2AESCCM\0", b"ServerIn \0"),
            (Self::Words, Purpose::ToClient) => (b"SMB2AESCCM\0", b"ServerOut\0"),
            (Self::Preauth(hash), Purpose::Signing) => (b"SMBSigningKey\0", hash.value()),
            (Self::Preauth(hash), Purpose::FromClient) => (b"SMBC2SCipherKey\0", hash.value()),
            (Self::Preauth(hash), Purpose::ToClient) => (b"SMBS2CCipherKey\0", hash.value()),
        };
        let bits = (key.len() * 8) as u32;
        let mut mac =
            Hmac::<Sha256>::new_from_slice(session_key).expect("HMAC takes keys of any length");
        mac.update(&1u32.to_be_bytes());
        mac.update(label);
        mac.update(&[0]);
        mac.update(context);
        mac.update(&bits.to_be_bytes());
        // No key is longer than one round of the hash.
        let round = mac.finalize().into_bytes();
        key.copy_from_slice(&round[..key.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hexadecimal;

    /// From examples published by the authors of the protocol, as are those below.
    #[test]
    fn keys_of_3_0_are_those_of_the_published_examples() {
        let session = hexadecimal("7CD451825D0450D235424E44BA6E78CC");
        let session = session.try_into().expect("16 bytes");
        let signing = Binding::Words.signing_key(&session);
        assert_eq!(signing[..], hexadecimal("0B7E9C5CAC36C0F6EA9AB275298CEDCE"));

        let session = hexadecimal("B4546771B515F766A86735532DD6C4F0");
        let session = session.try_into().expect("16 bytes");
        for (purpose, expected) in [
            (Purpose::FromClient, "261B72350558F2E9DCF613070383EDBF"),
            (Purpose::ToClient, "8FE2B57EC34D2DB5B1A9727F526BBDB5"),
        ] {
            let key = Binding::Words.cipher_key(&session, purpose, Cipher::Aes128Ccm);
            assert_eq!(key, hexadecimal(expected));
        }
    }

    #[test]
    fn keys_of_3_1_1_are_those_of_the_published_example() {
        let session = hexadecimal("270E1BA896585EEB7AF3472D3B4C75A7");
        let session = session.try_into().expect("16 bytes");
        let hash = hexadecimal(
            "0DD13628CC3ED218EF9DF9772D436D0887AB9814BFAE63A80AA845F36909DB79\
             28622DDDAD522D9751640A459762C5A9D6BB084CBB3CE6BDADEF5D5BCE3C6C01",
        );
        let hash = PreauthHash::from_value(hash.try_into().expect("64 bytes"));
        let signing = Binding::Preauth(hash).signing_key(&session);
        assert_eq!(signing[..], hexadecimal("73FE7A9A77BEF0BDE49C650D8CCB5F76"));
    }
}
