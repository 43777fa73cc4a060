//! Processes a received message: decrypts it, splits it into the requests of a compound, and checks
//! signatures.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::Connection;
use crate::crypto::signing::Origin;
use crate::session::Session;
use crate::wire::header::{PROTOCOL, SIGNATURE_RANGE};
use crate::wire::transform::{self, AUTHENTICATED_RANGE, TRANSFORM_BYTES, Transform};
use crate::wire::{Command, Flags, HEADER_BYTES, Header};

pub const SMB1_PROTOCOL: [u8; 4] = [0xFF, b'S', b'M', b'B'];
/// More than any client sends.
const COMPOUND_MAX: usize = 64;

/// The client violates the protocol; the connection ends.
#[derive(Debug)]
pub struct Disconnect;

/// The requests of one message.
pub struct Batch {
    pub messages: Vec<Message>,
    /// The session whose key it was encrypted with.
    pub encrypted_by: Option<Arc<Session>>,
}

pub struct Message {
    pub header: Header,
    /// From its header to its end.
    pub bytes: Bytes,
    pub signature: Signature,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    None,
    Fits,
    Wrong,
}

impl Message {
    pub fn is_cancel(&self) -> bool {
        self.header.known_command() == Some(Command::Cancel)
    }
}

impl Batch {
    /// Whether the next message is read only after this one is answered: for requests that change
    /// the session.
    pub fn runs_in_turn(&self) -> bool {
        let [message] = &self.messages[..] else { return false };
        match message.header.known_command() {
            Some(
                Command::Negotiate
                | Command::SessionSetup
                | Command::Logoff
                | Command::TreeConnect
                | Command::TreeDisconnect
                | Command::Cancel
                | Command::Echo,
            )
            | None => true,
            Some(
                Command::Create
                | Command::Close
                | Command::Flush
                | Command::Read
                | Command::Write
                | Command::Lock
                | Command::Ioctl
                | Command::QueryDirectory
                | Command::ChangeNotify
                | Command::QueryInfo
                | Command::SetInfo
                | Command::OplockBreak,
            ) => false,
        }
    }
}

pub fn unpack(connection: &Connection, mut bytes: BytesMut) -> Result<Batch, Disconnect> {
    let mut encrypted_by = None;
    if bytes.starts_with(&transform::PROTOCOL) {
        let (session, message) = decrypt(connection, bytes)?;
        encrypted_by = Some(session);
        bytes = message;
    }
    let places = split(&bytes)?;
    let mut signatures = Vec::with_capacity(places.len());
    let mut signer: Option<Arc<Session>> = None;
    for (header, range) in &places {
        if !header.flags.contains(Flags::RELATED) || signer.is_none() {
            signer = connection.session(header.session_id);
        }
        let is_signed = header.flags.contains(Flags::SIGNED) && encrypted_by.is_none();
        let message = &mut bytes[range.clone()];
        message[SIGNATURE_RANGE].fill(0);
        signatures.push(match &signer {
            Some(session) if is_signed => check(session, header, message),
            Some(_) | None => Signature::None,
        });
    }
    let bytes = bytes.freeze();
    let messages = places.into_iter().zip(signatures);
    let messages = messages.map(|((header, range), signature)| Message {
        header,
        bytes: bytes.slice(range),
        signature,
    });
    Ok(Batch { messages: messages.collect(), encrypted_by })
}

fn check(session: &Session, header: &Header, message: &[u8]) -> Signature {
    // A signature that cannot be checked yet (the second message of an authentication) counts as
    // none.
    let Some(established) = session.established() else { return Signature::None };
    let origin = Origin {
        message_id: header.message_id,
        is_from_server: false,
        is_cancel: header.known_command() == Some(Command::Cancel),
    };
    if established.signer.verifies(message, &header.signature, origin) {
        Signature::Fits
    } else {
        Signature::Wrong
    }
}

fn decrypt(
    connection: &Connection,
    mut bytes: BytesMut,
) -> Result<(Arc<Session>, BytesMut), Disconnect> {
    let transform = Transform::decode(&bytes).map_err(|_| Disconnect)?;
    let session = connection.session(transform.session_id).ok_or(Disconnect)?;
    let ciphers = session.established().and_then(|established| established.ciphers.as_ref());
    let mut message = bytes.split_off(TRANSFORM_BYTES);
    ciphers
        .ok_or(Disconnect)?
        .from_client
        .open(&transform.nonce, &bytes[AUTHENTICATED_RANGE], &mut message, &transform.signature)
        .map_err(|_| Disconnect)?;
    Ok((session, message))
}

type Place = (Header, std::ops::Range<usize>);

/// Where the requests of a compound are.
pub(super) fn split(bytes: &[u8]) -> Result<Vec<Place>, Disconnect> {
    let mut places = Vec::with_capacity(1);
    let mut start = 0;
    loop {
        let rest = &bytes[start..];
        if !rest.starts_with(&PROTOCOL) || places.len() == COMPOUND_MAX {
            return Err(Disconnect);
        }
        let header = Header::decode(rest).map_err(|_| Disconnect)?;
        if header.flags.contains(Flags::RESPONSE) {
            return Err(Disconnect);
        }
        let next = header.next_command as usize;
        if next == 0 {
            places.push((header, start..bytes.len()));
            return Ok(places);
        }
        if !next.is_multiple_of(8) || next < HEADER_BYTES || next >= rest.len() {
            return Err(Disconnect);
        }
        places.push((header, start..start + next));
        start += next;
    }
}

/// Whether the bytes have the form of requests.
pub fn can_be_split(bytes: &[u8]) -> bool {
    split(bytes).is_ok()
}
