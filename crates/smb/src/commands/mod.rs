//! One file for each command: decode, call the domain, encode. Session and tree are found before.

mod change_notify;
pub mod close;
pub mod create;
mod flush;
mod ioctl;
mod lock;
mod logoff;
pub mod negotiate;
mod oplock_break;
mod pending_answer;
mod query_directory;
mod query_info;
mod read;
mod session_setup;
mod set_info;
mod tree_connect;
mod tree_disconnect;
mod write;

use bytes::Bytes;

use crate::answer::Answer;
use crate::call::Call;
use crate::dialect::TRANSFER_BYTES_MAX;
use crate::info::fsctl::copy_limits;
use crate::status::Status;
use crate::wire::ioctl::codes;
use crate::wire::{self, Command};

pub type Result<T = Answer> = std::result::Result<T, Status>;

pub async fn handle(call: &mut Call, command: Command) -> Answer {
    let handled = match command {
        Command::Negotiate => negotiate::handle(call),
        Command::SessionSetup => session_setup::handle(call).await,
        Command::Logoff => logoff::handle(call).await,
        Command::TreeConnect => tree_connect::handle(call).await,
        Command::TreeDisconnect => tree_disconnect::handle(call).await,
        Command::Echo => echo(call),
        Command::Create => create::handle(call).await,
        Command::Close => close::handle(call).await,
        Command::Read => read::handle(call).await,
        Command::Write => write::handle(call).await,
        Command::Ioctl => ioctl::handle(call).await,
        Command::Flush => flush::handle(call).await,
        Command::Lock => lock::handle(call).await,
        Command::QueryDirectory => query_directory::handle(call).await,
        Command::ChangeNotify => change_notify::handle(call).await,
        Command::QueryInfo => query_info::handle(call).await,
        Command::SetInfo => set_info::handle(call).await,
        Command::OplockBreak => oplock_break::handle(call).await,
        // CANCEL has no answer and is handled before.
        Command::Cancel => Err(Status::INVALID_PARAMETER),
    };
    handled.unwrap_or_else(Answer::refusal)
}

fn echo(call: &Call) -> Result {
    wire::tree::decode_empty(&call.message)?;
    Ok(Answer::empty())
}

/// The most bytes that a request sends or asks for, whichever is more. Its command refuses an
/// invalid request.
pub fn bytes_moved(command: Command, message: &Bytes) -> u64 {
    let asked = match command {
        Command::Read => wire::read::Request::decode(message).map(|it| u64::from(it.length)),
        Command::Write => wire::write::Request::decode(message).map(|it| it.data.len() as u64),
        Command::Ioctl => wire::ioctl::Request::decode(message)
            .map(|it| (it.input.len() as u64).max(u64::from(it.output_bytes_max))),
        Command::QueryDirectory => {
            wire::query_directory::Request::decode(message).map(|it| u64::from(it.output_bytes_max))
        }
        Command::QueryInfo => wire::query_info::Request::decode(message)
            .map(|it| (it.input.len() as u64).max(u64::from(it.output_bytes_max))),
        Command::ChangeNotify => {
            wire::change_notify::Request::decode(message).map(|it| u64::from(it.output_bytes_max))
        }
        Command::SetInfo => wire::set_info::Request::decode(message).map(|it| it.data.len() as u64),
        Command::Negotiate
        | Command::SessionSetup
        | Command::Logoff
        | Command::TreeConnect
        | Command::TreeDisconnect
        | Command::Create
        | Command::Close
        | Command::Flush
        | Command::Lock
        | Command::Cancel
        | Command::Echo
        | Command::OplockBreak => Ok(0),
    };
    asked.unwrap_or(0)
}

/// How much additional memory a request can take, for its answer or while it runs. Its command refuses
/// an invalid request, or one that asks for more than the maximum.
pub fn room_bytes_max(command: Command, message: &Bytes) -> usize {
    let asked = match command {
        Command::Read => wire::read::Request::decode(message).map(|it| it.length),
        Command::Ioctl => wire::ioctl::Request::decode(message).map(|it| match it.code {
            // A chunk is read before it is written.
            codes::SRV_COPYCHUNK | codes::SRV_COPYCHUNK_WRITE => {
                it.output_bytes_max.max(copy_limits::CHUNK_BYTES_MAX)
            }
            _ => it.output_bytes_max,
        }),
        Command::QueryDirectory => {
            wire::query_directory::Request::decode(message).map(|it| it.output_bytes_max)
        }
        Command::QueryInfo => {
            wire::query_info::Request::decode(message).map(|it| it.output_bytes_max)
        }
        // It may wait for days, and the length of its answer depends on the changes.
        Command::ChangeNotify
        | Command::Negotiate
        | Command::SessionSetup
        | Command::Logoff
        | Command::TreeConnect
        | Command::TreeDisconnect
        | Command::Create
        | Command::Close
        | Command::Flush
        | Command::Lock
        | Command::Write
        | Command::SetInfo
        | Command::Cancel
        | Command::Echo
        | Command::OplockBreak => Ok(0),
    };
    asked.unwrap_or(0).min(TRANSFER_BYTES_MAX) as usize
}

#[cfg(test)]
mod tests {
    use bytes::BufMut as _;

    use super::*;
    use crate::wire::HEADER_BYTES;

    #[test]
    fn a_copy_takes_room_for_the_chunk_that_it_reads() {
        let asked = |code: u32, output_bytes: u32| {
            let mut message = vec![0; HEADER_BYTES];
            message.put_u16_le(57);
            message.put_u16_le(0);
            message.put_u32_le(code);
            message.put_bytes(0, 16 + 4 * 5);
            message.put_u32_le(output_bytes);
            message.put_u32_le(1);
            message.put_u32_le(0);
            room_bytes_max(Command::Ioctl, &message.into())
        };
        for copies in [codes::SRV_COPYCHUNK, codes::SRV_COPYCHUNK_WRITE] {
            assert_eq!(asked(copies, 12), copy_limits::CHUNK_BYTES_MAX as usize);
        }
        assert_eq!(asked(codes::PIPE_TRANSCEIVE, 4280), 4280);
        assert_eq!(asked(codes::PIPE_TRANSCEIVE, u32::MAX), TRANSFER_BYTES_MAX as usize);
    }
}
