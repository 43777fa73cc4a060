//! Bytes encrypted with a key of the client, which is never stored.
//!
//! What is received in one piece is sealed under its own key, derived from the client's key and a
//! salt that is stored: AES-256-GCM in frames, each with its number as nonce, so that any range can
//! be opened by reading the frames it touches.

use std::fmt;

use bytes::{Bytes, BytesMut};
use holdfast_store::Fault;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::{digest, hmac};
use serde::{Deserialize, Serialize};

/// Plain bytes per frame; the last frame may have fewer.
pub(super) const FRAME_BYTES: u64 = 64 * 1024;
const TAG_BYTES: u64 = 16;
const SEALED_FRAME_BYTES: u64 = FRAME_BYTES + TAG_BYTES;

/// Separates this use of the client's key from any other.
const PURPOSE: &[u8] = b"holdfast content 1";

#[derive(Clone, PartialEq, Eq)]
pub struct CustomerKey([u8; 32]);

impl CustomerKey {
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub fn sha256(&self) -> [u8; 32] {
        let mut sha256 = [0; 32];
        sha256.copy_from_slice(digest::digest(&digest::SHA256, &self.0).as_ref());
        sha256
    }
}

impl fmt::Debug for CustomerKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CustomerKey(…)")
    }
}

/// How a body is sealed. The salt is used only once.
#[derive(Clone, Debug)]
pub struct Sealing {
    pub key: CustomerKey,
    pub salt: [u8; 32],
}

/// What is stored of a [`Sealing`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seal {
    pub salt: [u8; 32],
    /// Of the plain bytes.
    pub length: u64,
}

impl Seal {
    /// The offset of `frame` among the sealed bytes.
    pub fn sealed_offset(frame: u64) -> u64 {
        frame * SEALED_FRAME_BYTES
    }

    pub fn sealed_length(&self) -> u64 {
        self.length + self.length.div_ceil(FRAME_BYTES) * TAG_BYTES
    }

    /// How many sealed bytes a frame has.
    pub fn frame_length(&self, frame: u64) -> usize {
        let plain = (self.length - frame * FRAME_BYTES).min(FRAME_BYTES);
        (plain + TAG_BYTES) as usize
    }
}

pub(crate) struct FrameKey(LessSafeKey);

impl FrameKey {
    pub fn new(key: &CustomerKey, salt: &[u8; 32]) -> Self {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &key.0));
        context.update(PURPOSE);
        context.update(salt);
        let derived = UnboundKey::new(&AES_256_GCM, context.sign().as_ref());
        Self(LessSafeKey::new(derived.expect("a SHA-256 is as long as the key")))
    }

    pub fn seal(&self, frame: u64, mut plain: BytesMut) -> Bytes {
        let sealed = self.0.seal_in_place_append_tag(nonce(frame), Aad::empty(), &mut plain);
        sealed.expect("a frame is far shorter than the cipher allows");
        plain.freeze()
    }

    pub fn open(&self, frame: u64, mut sealed: BytesMut) -> Result<Bytes, Fault> {
        let opened = self.0.open_in_place(nonce(frame), Aad::empty(), &mut sealed);
        let length = opened.map_err(|_| Fault::new("sealed bytes do not open"))?.len();
        sealed.truncate(length);
        Ok(sealed.freeze())
    }
}

/// Each frame has its own, under a key that seals one content only.
fn nonce(frame: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&frame.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// Seals a body as it arrives.
pub(super) struct Sealer {
    key: FrameKey,
    salt: [u8; 32],
    frame: u64,
    plain: BytesMut,
    length: u64,
}

impl Sealer {
    pub fn new(sealing: &Sealing) -> Self {
        Self {
            key: FrameKey::new(&sealing.key, &sealing.salt),
            salt: sealing.salt,
            frame: 0,
            plain: BytesMut::new(),
            length: 0,
        }
    }

    /// Takes bytes from the front of `bytes`, and gives a frame when there is a full one.
    pub fn push(&mut self, bytes: &mut Bytes) -> Option<Bytes> {
        let room = FRAME_BYTES as usize - self.plain.len();
        let taken = bytes.split_to(room.min(bytes.len()));
        self.plain.extend_from_slice(&taken);
        self.length += taken.len() as u64;
        (self.plain.len() == FRAME_BYTES as usize).then(|| self.seal())
    }

    /// The last frame, if something is left for one.
    pub fn finish(&mut self) -> Option<Bytes> {
        (!self.plain.is_empty()).then(|| self.seal())
    }

    pub fn into_seal(self) -> Seal {
        Seal { salt: self.salt, length: self.length }
    }

    fn seal(&mut self) -> Bytes {
        let sealed = self.key.seal(self.frame, std::mem::take(&mut self.plain));
        self.frame += 1;
        sealed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealing(key: u8, salt: u8) -> Sealing {
        Sealing { key: CustomerKey::new([key; 32]), salt: [salt; 32] }
    }

    fn seal(sealing: &Sealing, plain: &[u8]) -> (Vec<Bytes>, Seal) {
        let mut sealer = Sealer::new(sealing);
        let (mut bytes, mut frames) = (Bytes::copy_from_slice(plain), Vec::new());
        while !bytes.is_empty() {
            frames.extend(sealer.push(&mut bytes));
        }
        frames.extend(sealer.finish());
        (frames, sealer.into_seal())
    }

    #[test]
    fn frames_open_one_by_one_and_have_the_lengths_that_the_seal_tells() {
        let plain: Vec<u8> = (0..150_000_u32).map(|number| number as u8).collect();
        let (frames, seal) = seal(&sealing(1, 2), &plain);
        assert_eq!(frames.iter().map(Bytes::len).sum::<usize>() as u64, seal.sealed_length());
        let key = FrameKey::new(&CustomerKey::new([1; 32]), &seal.salt);
        let mut opened = Vec::new();
        for (number, frame) in frames.iter().enumerate() {
            assert_eq!(frame.len(), seal.frame_length(number as u64));
            let frame = BytesMut::from(&frame[..]);
            opened.extend_from_slice(&key.open(number as u64, frame).expect("it opens"));
        }
        assert_eq!(opened, plain);
    }

    #[test]
    fn nothing_opens_with_another_key_salt_or_place_or_after_a_change() {
        let (frames, seal) = seal(&sealing(1, 2), b"secret");
        let frame = || BytesMut::from(&frames[0][..]);
        let key = |key: u8, salt| FrameKey::new(&CustomerKey::new([key; 32]), salt);
        assert!(key(1, &seal.salt).open(0, frame()).is_ok());
        assert!(key(9, &seal.salt).open(0, frame()).is_err(), "another key");
        assert!(key(1, &[9; 32]).open(0, frame()).is_err(), "another salt");
        assert!(key(1, &seal.salt).open(1, frame()).is_err(), "another place");
        let mut changed = frame();
        changed[0] ^= 1;
        assert!(key(1, &seal.salt).open(0, changed).is_err(), "a flipped bit");
        assert!(!frames[0].windows(6).any(|window| window == b"secret"));
    }
}
