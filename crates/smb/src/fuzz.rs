//! One entry point per parser of untrusted SMB input, for fuzzers: it must never panic, and
//! never take more memory than a small multiple of what it is given.

use bytes::Bytes;

use crate::auth::{Accounts, Exchange, Step};
use crate::connection::{answers_of, can_be_split};
use crate::info;
use crate::ipc;
use crate::wire::transform::Transform;
use crate::wire::{self, Command, Header};

/// Reads `bytes` as any packet, whole or in an envelope, or as a call of a pipe.
pub fn packet(bytes: &[u8]) -> bool {
    let message = Bytes::copy_from_slice(bytes);
    let is_request = Header::decode(bytes)
        .ok()
        .and_then(|header| header.known_command())
        .is_some_and(|command| decode_request(command, &message));
    is_request
        | can_be_split(bytes)
        | Transform::decode(bytes).is_ok()
        | ipc::can_be_received(bytes)
}

/// Reads `bytes` as the requests of a compound, each answered with the most that it asks for.
pub fn answers(bytes: &[u8]) -> bool {
    answers_of(bytes)
}

/// Reads `bytes` as the tokens of a logon, each after its length in two bytes.
pub fn logon(bytes: &[u8]) -> bool {
    let mut accounts = Accounts::default();
    accounts.insert("account", ["password"].into_iter());
    let mut exchange = Exchange::default();
    let (mut rest, mut understood) = (bytes, false);
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(behind.len());
        let (token, next) = behind.split_at(length);
        match exchange.step(&accounts, token, [0; 8], 0) {
            Ok(Step::Continue(_)) => understood = true,
            Ok(Step::Done(_)) => return true,
            Err(_) => return understood,
        }
        rest = next;
    }
    understood
}

/// As the command that its header names.
pub fn decode_request(command: Command, message: &Bytes) -> bool {
    match command {
        Command::Negotiate => wire::negotiate::Request::decode(message).is_ok(),
        Command::SessionSetup => wire::session_setup::Request::decode(message).is_ok(),
        Command::TreeConnect => wire::tree::Request::decode(message).is_ok(),
        Command::Create => wire::create::Request::decode(message)
            .is_ok_and(|request| info::path::parse(&request.name).is_ok()),
        Command::Close => wire::close::Request::decode(message).is_ok(),
        Command::Flush => wire::flush::Request::decode(message).is_ok(),
        Command::Read => wire::read::Request::decode(message).is_ok(),
        Command::Write => wire::write::Request::decode(message).is_ok(),
        Command::Lock => wire::lock::Request::decode(message).is_ok(),
        Command::Ioctl => wire::ioctl::Request::decode(message).is_ok_and(|request| {
            let _ = wire::ioctl::ValidateNegotiate::decode(&request.input);
            let _ = wire::ioctl::CopyChunks::decode(&request.input);
            true
        }),
        Command::QueryDirectory => wire::query_directory::Request::decode(message).is_ok(),
        Command::ChangeNotify => wire::change_notify::Request::decode(message).is_ok(),
        Command::QueryInfo => wire::query_info::Request::decode(message).is_ok(),
        Command::SetInfo => wire::set_info::Request::decode(message).is_ok_and(|request| {
            let _ = info::set::decode(request.class, &request.data);
            true
        }),
        Command::OplockBreak => wire::oplock_break::Acknowledgement::decode(message).is_ok(),
        Command::Logoff | Command::TreeDisconnect | Command::Cancel | Command::Echo => {
            wire::tree::decode_empty(message).is_ok()
        }
    }
}
