//! Sends answers: chained, signed or encrypted, and written completely one after the other.

use std::io::{self, ErrorKind, IoSlice};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt as _;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use super::answer_memory::{ConnectionAnswerMemory, Taken};
use super::{framing, incoming};
use crate::answer::Answer;
use crate::commands::room_bytes_max;
use crate::crypto::PreauthHash;
use crate::crypto::signing::Origin;
use crate::dialect::TRANSFER_BYTES_MAX;
use crate::session::Session;
use crate::status::Status;
use crate::wire::header::{SIGNATURE_RANGE, TreeOrAsync, UNSOLICITED_MESSAGE_ID};
use crate::wire::oplock_break::Notification;
use crate::wire::transform::{AUTHENTICATED_RANGE, SIGNATURE_RANGE as TAG_RANGE};
use crate::wire::transform::{TRANSFORM_BYTES, Transform};
use crate::wire::{Command, Flags, HEADER_BYTES, Header};

/// The most bytes of answers in one message, so that its length fits the prefix.
pub const ANSWERS_BYTES_MAX: usize = framing::MESSAGE_BYTES_MAX - TRANSFORM_BYTES;
/// How long a client may take to read an answer while others wait for its memory, and how much longer
/// per MiB: a client that reads very slowly is as harmful as one that does not read.
const READ_TIME_IF_SHORT: Duration = Duration::from_secs(5);
const READ_TIME_PER_MIB: Duration = Duration::from_secs(1);

pub struct Outgoing {
    stream: tokio::sync::Mutex<OwnedWriteHalf>,
    stall_timeout: Duration,
    pub room: Arc<ConnectionAnswerMemory>,
    /// Closed when nothing can be written any more.
    open: Semaphore,
    broken: Notify,
}

/// One answer with its header.
pub struct Reply {
    pub header: Header,
    pub answer: Answer,
    /// The session that signs it.
    pub signer: Option<Arc<Session>>,
    pub preauth: Option<Arc<Mutex<PreauthHash>>>,
    /// Its memory, if that is counted.
    pub room: Option<Taken>,
}

impl Reply {
    /// The length with padding for the next.
    pub fn length(&self) -> usize {
        self.answer.length().next_multiple_of(8)
    }
}

/// Whether one message can hold these replies and so many more bytes.
pub fn has_room(replies: &[Reply], bytes: usize) -> bool {
    let so_far: usize = replies.iter().map(Reply::length).sum();
    so_far + bytes <= ANSWERS_BYTES_MAX
}

/// Whether the bytes are requests. Checks that the longest possible answers never make a message
/// too long.
pub fn answers_of(bytes: &[u8]) -> bool {
    static ZEROS: [u8; TRANSFER_BYTES_MAX as usize] = [0; TRANSFER_BYTES_MAX as usize];
    let Ok(places) = incoming::split(bytes) else { return false };
    let message = Bytes::copy_from_slice(bytes);
    let check = |replies: Vec<Reply>| {
        let length: usize = chain(replies).iter().map(Bytes::len).sum();
        assert!(framing::prefix(TRANSFORM_BYTES + length).is_some(), "a message of {length} bytes");
    };
    let mut replies = Vec::new();
    for (header, range) in places {
        let Some(command) = header.known_command() else { continue };
        let asked = room_bytes_max(command, &message.slice(range));
        let answer = Answer::empty().with_payload(vec![Bytes::from_static(&ZEROS[..asked])]);
        let header = header.answer(Status::SUCCESS, 1);
        let reply = Reply { header, answer, signer: None, preauth: None, room: None };
        if !has_room(&replies, reply.length()) {
            check(std::mem::take(&mut replies));
        }
        replies.push(reply);
    }
    check(replies);
    true
}

impl Outgoing {
    pub fn new(
        stream: OwnedWriteHalf,
        stall_timeout: Duration,
        room: Arc<ConnectionAnswerMemory>,
    ) -> Self {
        Self {
            stream: tokio::sync::Mutex::new(stream),
            stall_timeout,
            room,
            open: Semaphore::new(0),
            broken: Notify::new(),
        }
    }

    /// Waits until nothing can be written any more.
    pub async fn broken(&self) {
        loop {
            let broken = self.broken.notified();
            if self.open.is_closed() {
                return;
            }
            broken.await;
        }
    }

    /// Gives up writing, so that the connection can end.
    pub fn give_up(&self) {
        self.open.close();
        self.broken.notify_waiters();
    }

    pub async fn close(&self) {
        let _ = self.stream.lock().await.shutdown().await;
    }

    /// Sends answers of one compound, no more than [`ANSWERS_BYTES_MAX`], encrypted if `encrypted_by`
    /// says with whose key.
    pub async fn send(&self, mut replies: Vec<Reply>, encrypted_by: Option<&Session>) {
        if replies.is_empty() {
            return;
        }
        // Released when they are written, or cannot be any more.
        let _rooms: Vec<Taken> = replies.iter_mut().filter_map(|reply| reply.room.take()).collect();
        // Wait for the stream before signing or encrypting, not after: bytes that are sent at once are
        // still in the processor's cache, which halves the cost of sending.
        let mut stream = self.stream.lock().await;
        if self.open.is_closed() {
            return;
        }
        let parts = chain(replies);
        let ciphers = encrypted_by
            .and_then(|session| Some((session.id, session.established()?.ciphers.as_ref()?)));
        match ciphers {
            Some((session_id, ciphers)) => {
                let (key, nonce) = ciphers.to_client();
                let length: usize = parts.iter().map(Bytes::len).sum();
                let mut packet = Vec::with_capacity(TRANSFORM_BYTES + length);
                let mut transform = Transform {
                    signature: [0; 16],
                    nonce,
                    message_bytes: length as u32,
                    session_id,
                };
                transform.encode(&mut packet);
                parts.into_iter().for_each(|part| packet.extend_from_slice(&part));
                let (head, message) = packet.split_at_mut(TRANSFORM_BYTES);
                transform.signature = key.seal(&nonce, &head[AUTHENTICATED_RANGE], message);
                head[TAG_RANGE].copy_from_slice(&transform.signature);
                self.write(&mut stream, &[packet.into()]).await;
            }
            None => self.write(&mut stream, &parts).await,
        }
    }

    pub async fn send_notification(&self, session: &Arc<Session>, notification: &Notification) {
        let header = header_of_notification();
        let answer = Answer::success(|out| notification.encode(out));
        let reply = Reply { header, answer, signer: None, preauth: None, room: None };
        let encrypts = session.established().is_some_and(|it| it.encryption_required);
        self.send(vec![reply], encrypts.then_some(session)).await;
    }

    /// Ends the connection if the client does not read for too long.
    async fn write(&self, stream: &mut OwnedWriteHalf, parts: &[Bytes]) {
        let written = match framing::prefix(parts.iter().map(Bytes::len).sum()) {
            Some(prefix) => self.write_all(stream, &prefix, parts).await,
            // It is better to close the connection than to send misleading bytes.
            None => Err(io::Error::new(ErrorKind::InvalidData, "an answer of more than 16 MiB")),
        };
        if let Err(error) = written {
            tracing::debug!(%error, "an SMB answer could not be sent");
            self.give_up();
        }
    }

    async fn write_all(
        &self,
        stream: &mut OwnedWriteHalf,
        prefix: &[u8],
        parts: &[Bytes],
    ) -> io::Result<()> {
        let mut slices: Vec<IoSlice<'_>> = Vec::with_capacity(parts.len() + 1);
        slices.push(IoSlice::new(prefix));
        slices.extend(parts.iter().map(|part| IoSlice::new(part)));
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        let late_if_short =
            Instant::now() + READ_TIME_IF_SHORT + READ_TIME_PER_MIB * (bytes >> 20) as u32;
        let mut rest = &mut slices[..];
        while !rest.is_empty() {
            let written = tokio::select! {
                biased;
                () = self.broken() => return Err(ErrorKind::ConnectionAborted.into()),
                written = stream.write_vectored(rest) => written?,
                () = self.stalled(late_if_short) => return Err(ErrorKind::TimedOut.into()),
            };
            match written {
                0 => return Err(ErrorKind::WriteZero.into()),
                count => IoSlice::advance_slices(&mut rest, count),
            }
        }
        Ok(())
    }

    /// Waits for the longest time without any reading, or until `late_if_short` if others wait for
    /// the memory.
    async fn stalled(&self, late_if_short: Instant) {
        let until = Instant::now() + self.stall_timeout;
        let mut next = late_if_short.max(Instant::now());
        while next < until {
            tokio::time::sleep_until(next).await;
            if self.room.process().is_short() {
                return;
            }
            next += Duration::from_secs(1);
        }
        tokio::time::sleep_until(until).await;
    }
}

fn header_of_notification() -> Header {
    Header {
        credit_charge: 0,
        status: 0,
        command: Command::OplockBreak as u16,
        credits: 0,
        flags: Flags::RESPONSE,
        next_command: 0,
        message_id: UNSOLICITED_MESSAGE_ID,
        tree_or_async: TreeOrAsync::Tree(0),
        session_id: 0,
        signature: [0; 16],
    }
}

/// The bytes of the answers, each but the last padded, with its header and signature in place.
fn chain(replies: Vec<Reply>) -> Vec<Bytes> {
    let count = replies.len();
    let mut parts = Vec::with_capacity(count);
    for (index, reply) in replies.into_iter().enumerate() {
        let Reply { mut header, answer, signer, preauth, room: _ } = reply;
        let Answer { mut head, mut payload, .. } = answer;
        if index + 1 < count {
            let length = head.len() + payload.iter().map(Bytes::len).sum::<usize>();
            let padding = length.next_multiple_of(8) - length;
            if payload.is_empty() {
                head.resize(length + padding, 0);
            } else if padding > 0 {
                payload.push(Bytes::from_static(&[0; 8]).slice(..padding));
            }
            header.next_command = (length + padding) as u32;
        }
        let established = signer.as_ref().and_then(|session| session.established());
        if established.is_some() {
            header.flags = header.flags.union(Flags::SIGNED);
        }
        let mut encoded = Vec::with_capacity(HEADER_BYTES);
        header.encode(&mut encoded);
        head[..HEADER_BYTES].copy_from_slice(&encoded);
        if let Some(established) = established {
            let origin =
                Origin { message_id: header.message_id, is_from_server: true, is_cancel: false };
            let mut signed: Vec<&[u8]> = vec![&head];
            signed.extend(payload.iter().map(|part| &part[..]));
            let signature = established.signer.sign(&signed, origin);
            head[SIGNATURE_RANGE].copy_from_slice(&signature);
        }
        if let Some(preauth) = preauth {
            preauth.lock().add(&head);
        }
        parts.push(head.into());
        parts.append(&mut payload);
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::io::AsyncReadExt as _;
    use tokio::net::{TcpListener, TcpSocket, TcpStream};

    use super::super::answer_memory::ProcessAnswerMemory;
    use super::*;

    const ANSWER_BYTES: usize = 8 * 1024 * 1024;

    /// A server's side with short buffers, and its client.
    async fn connection(process: &Arc<ProcessAnswerMemory>) -> (Outgoing, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(64 * 1024).expect("set");
        let to = listener.local_addr().expect("an address");
        let (client, accepted) = tokio::join!(socket.connect(to), listener.accept());
        let (_, to_client) = accepted.expect("accepted").0.into_split();
        let room = ConnectionAnswerMemory::new(process);
        (Outgoing::new(to_client, Duration::from_secs(30), room), client.expect("connected"))
    }

    fn reply(outgoing: &Outgoing) -> Reply {
        let header = header_of_notification();
        let answer = Answer::empty().with_payload(vec![Bytes::from(vec![0; ANSWER_BYTES])]);
        let room = outgoing.room.try_take(ANSWER_BYTES);
        Reply { header, answer, signer: None, preauth: None, room }
    }

    /// Reads slowly: it would take two minutes for the answer, less what the kernel buffers.
    async fn trickle(client: &mut TcpStream, ends: &AtomicBool) {
        let mut some = vec![0; ANSWER_BYTES / 64];
        while !ends.load(Ordering::Relaxed) {
            client.read_exact(&mut some).await.expect("there is more");
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_little_is_given_up_only_while_others_wait_for_room() {
        for others_wait in [false, true] {
            let process = Arc::new(ProcessAnswerMemory::of(ANSWER_BYTES));
            let (outgoing, mut client) = connection(&process).await;
            let reply = reply(&outgoing);
            let other = ConnectionAnswerMemory::new(&process);
            let ends = AtomicBool::new(false);
            let sending = async {
                let sent =
                    tokio::time::timeout(Duration::from_secs(18), outgoing.send(vec![reply], None));
                let is_sent = sent.await.is_ok();
                ends.store(true, Ordering::Relaxed);
                is_sent
            };
            let waiting = async {
                if others_wait {
                    drop(other.take(1024).await);
                }
            };
            let (ended, (), ()) = tokio::join!(sending, trickle(&mut client, &ends), waiting);
            assert_eq!(ended, others_wait, "it ends");
            assert_eq!(outgoing.open.is_closed(), others_wait);
        }
    }

    #[tokio::test]
    async fn who_is_given_up_is_not_written_to_any_longer() {
        let process = Arc::new(ProcessAnswerMemory::default());
        let (outgoing, _client) = connection(&process).await;
        let reply = reply(&outgoing);
        let giving_up = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            outgoing.give_up();
        };
        let both = async { tokio::join!(outgoing.send(vec![reply], None), giving_up) };
        tokio::time::timeout(Duration::from_secs(10), both).await.expect("at once");
    }
}
