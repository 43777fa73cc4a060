//! One door to everything that reads bytes of strangers, for fuzzers: it must never panic, and
//! never take more memory than a small multiple of what it is given.

use bytes::Bytes;

use crate::auth::{Accounts, Exchange};
use crate::connection::can_be_split;
use crate::info;
use crate::ipc;
use crate::wire::transform::Transform;
use crate::wire::{self, Command, Header};

/// Reads `bytes` as whatever they might be; whether they were anything.
pub fn decode_any(bytes: &[u8]) -> bool {
    let message = Bytes::copy_from_slice(bytes);
    let is_request = Header::decode(bytes)
        .ok()
        .and_then(|header| header.known_command())
        .is_some_and(|command| decode_request(command, &message));
    let is_token = Exchange::default().step(&Accounts::default(), bytes, [0; 8], 0).is_ok();
    is_request
        | is_token
        | can_be_split(bytes)
        | Transform::decode(bytes).is_ok()
        | ipc::can_be_received(bytes)
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Enough to meet every branch many times, and short enough to run always.
    const SECONDS: Duration = Duration::from_secs(3);
    const PACKETS_MAX: u64 = 5_000_000;

    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        fn below(&mut self, bound: usize) -> usize {
            (self.next() % bound as u64) as usize
        }
    }

    fn mutate(packet: &mut Vec<u8>, random: &mut Random) {
        const EDGES: [u8; 8] = [0, 1, 0x7F, 0x80, 0xFE, 0xFF, 0x40, 0x10];
        for _ in 0..=random.below(4) {
            if packet.is_empty() {
                return;
            }
            let place = random.below(packet.len());
            match random.below(8) {
                0 => packet.truncate(place),
                1 => packet[place] = random.next() as u8,
                2 => packet[place] ^= 1 << random.below(8),
                3 => {
                    let end = packet.len().min(place + 4);
                    packet[place..end].fill(0xFF);
                }
                4 => packet.extend_from_slice(&random.next().to_le_bytes()),
                5 => {
                    let more = packet[place..].to_vec();
                    packet.truncate(4096);
                    packet.extend_from_slice(&more);
                }
                // Where the header has the command.
                6 if packet.len() > 13 => packet[12] = random.below(20) as u8,
                _ => packet[place] = EDGES[random.below(EDGES.len())],
            }
        }
    }

    #[test]
    fn nothing_that_is_sent_makes_the_codec_panic() {
        let seed = std::env::var("HOLDFAST_SMB_SEED").ok().and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or(0x5EED_0000_0001);
        println!("HOLDFAST_SMB_SEED={seed}");
        let mut random = Random(seed);
        let originals = crate::wire::tests::all_requests();
        assert!(originals.iter().all(|packet| decode_any(packet)));
        let began = Instant::now();
        let (mut packets, mut understood) = (0, 0u64);
        while packets < PACKETS_MAX && began.elapsed() < SECONDS {
            for original in &originals {
                let mut packet = original.to_vec();
                mutate(&mut packet, &mut random);
                understood += u64::from(decode_any(&packet));
                packets += 1;
            }
        }
        // Neither all nor none: the mutations reach behind the first check.
        assert!(understood > packets / 20 && understood < packets, "{understood} of {packets}");
    }
}
