//! NTLM version 2, server side, [MS-NLMP] 3.3.2 and 3.4.

use hmac::{Hmac, Mac as _};
use md5::{Digest as _, Md5};
use rc4::consts::U16;
use rc4::{KeyInit as _, Rc4, StreamCipher as _};

use super::accounts::NtHash;
use super::ntlm_messages::{Authenticate, MIC_RANGE, Proof, flags};
use crate::crypto::SessionKey;
use crate::crypto::encryption::is_same_secret;
use crate::wire::{Malformed, text};

/// The messages before AUTHENTICATE, as sent.
#[derive(Debug)]
pub struct Before {
    pub negotiate: Vec<u8>,
    pub challenge_message: Vec<u8>,
    pub challenge: [u8; 8],
}

/// The session key, if the client has proved to know the password of `hash`.
pub fn check(
    hash: &NtHash,
    before: &Before,
    message: &[u8],
    authenticate: &Authenticate<'_>,
) -> Result<Option<SessionKey>, Malformed> {
    let proof = Proof::decode(authenticate.nt_response)?;
    let user = authenticate.user.to_uppercase();
    let name = text::encode(&(user + &authenticate.domain));
    let owner_key = hmac_md5(hash.bytes(), &[&name]);
    let expected = hmac_md5(&owner_key, &[&before.challenge, proof.blob]);
    if !is_same_secret(&expected, proof.proof) {
        return Ok(None);
    }
    let mut session_key = hmac_md5(&owner_key, &[&expected]);
    if authenticate.flags & flags::KEY_EXCHANGE != 0 {
        let mut exchanged: SessionKey =
            authenticate.encrypted_session_key.try_into().map_err(|_| Malformed)?;
        rc4(&session_key).apply_keystream(&mut exchanged);
        session_key = exchanged;
    }
    let is_intact = !proof.has_mic || mic_fits(&session_key, before, message)?;
    Ok(is_intact.then_some(session_key))
}

fn mic_fits(key: &SessionKey, before: &Before, message: &[u8]) -> Result<bool, Malformed> {
    let presented = message.get(MIC_RANGE).ok_or(Malformed)?;
    let (start, end) = (&message[..MIC_RANGE.start], &message[MIC_RANGE.end..]);
    let expected =
        hmac_md5(key, &[&before.negotiate, &before.challenge_message, start, &[0; 16], end]);
    Ok(is_same_secret(&expected, presented))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    FromClient,
    ToClient,
}

/// The checksum of each side over the list of mechanisms, with its first sequence number.
pub fn message_signature(
    session_key: &SessionKey,
    direction: Direction,
    negotiated: u32,
    message: &[u8],
) -> [u8; 16] {
    let (signing, sealing): (&[u8], &[u8]) = match direction {
        Direction::FromClient => (
            b"session key to client-to-server signing key magic constant\0",
            b"session key to client-to-server sealing key magic constant\0",
        ),
        Direction::ToClient => (
            b"session key to server-to-client signing key magic constant\0",
            b"session key to server-to-client sealing key magic constant\0",
        ),
    };
    let signing_key = md5(&[session_key, signing]);
    let sequence = [0; 4];
    let code = hmac_md5(&signing_key, &[&sequence, message]);
    let mut checksum = [0; 8];
    checksum.copy_from_slice(&code[..8]);
    if negotiated & flags::KEY_EXCHANGE != 0 {
        let strength = if negotiated & flags::KEY_128 != 0 {
            16
        } else if negotiated & flags::KEY_56 != 0 {
            7
        } else {
            5
        };
        let sealing_key = md5(&[&session_key[..strength], sealing]);
        rc4(&sealing_key).apply_keystream(&mut checksum);
    }
    let mut signature = [0; 16];
    signature[0] = 1;
    signature[4..12].copy_from_slice(&checksum);
    signature
}

fn rc4(key: &[u8; 16]) -> Rc4<U16> {
    Rc4::new(key.into())
}

fn md5(parts: &[&[u8]]) -> [u8; 16] {
    let mut hash = Md5::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

fn hmac_md5(key: &[u8; 16], parts: &[&[u8]]) -> [u8; 16] {
    let mut mac = <Hmac<Md5> as hmac::Mac>::new_from_slice(key).expect("HMAC takes any key");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}
