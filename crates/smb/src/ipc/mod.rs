//! `IPC$`: its only named pipe, over which clients list the shares of an account.

mod ndr;
mod rpc;
mod srvsvc;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::call::Call;
use crate::shares;
use crate::status::Status;
use rpc::Received;

pub const IPC_SHARE: &str = "IPC$";
/// The maximum of a call with all its fragments; supported calls take a few hundred bytes.
const CALL_BYTES_MAX: usize = 64 * 1024;
/// The most bytes of calls and unread answers that the pipes of a connection may hold before another
/// call is accepted. The longest possible answer is half of it.
const HELD_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What the pipes of one connection share.
#[derive(Default)]
pub struct Pipes {
    /// Calls are answered one at a time: each needs a list of all shares.
    turn: tokio::sync::Mutex<()>,
    held: Arc<AtomicUsize>,
}

/// One client's end of a pipe.
#[derive(Default)]
pub struct Pipe {
    /// The part of a fragment received so far.
    incoming: Vec<u8>,
    connection: rpc::Association,
    /// Fragments of answers; each is a message of the pipe.
    outgoing: VecDeque<Vec<u8>>,
    held: Held,
}

/// The bytes that a pipe holds, counted with those of the others.
#[derive(Default)]
struct Held {
    bytes: usize,
    of_all: Arc<AtomicUsize>,
}

impl Held {
    fn set(&mut self, bytes: usize) {
        self.of_all.fetch_add(bytes, Ordering::Relaxed);
        self.of_all.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }

    fn has_room(&self) -> bool {
        self.of_all.load(Ordering::Relaxed) < HELD_BYTES_MAX
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl Pipe {
    pub fn open(name: &str, pipes: &Pipes) -> Option<Self> {
        let name = name.trim_start_matches('\\');
        let held = Held { bytes: 0, of_all: Arc::clone(&pipes.held) };
        name.eq_ignore_ascii_case("srvsvc").then(|| Self { held, ..Self::default() })
    }

    /// At most `length` bytes of the next message, and whether that is all of it.
    pub fn read(&mut self, length: usize) -> (Vec<u8>, bool) {
        let Some(mut message) = self.outgoing.pop_front() else { return (Vec::new(), true) };
        let is_all = message.len() <= length;
        if !is_all {
            let rest = message.split_off(length);
            self.outgoing.push_front(rest);
        }
        self.held.set(self.held.bytes - message.len());
        (message, is_all)
    }

    fn count(&mut self) {
        let answers: usize = self.outgoing.iter().map(Vec::len).sum();
        self.held.set(self.incoming.len() + self.connection.partial_bytes() + answers);
    }

    /// The calls that are complete with `data`.
    fn receive(&mut self, data: &[u8]) -> Result<Vec<rpc::Request>, Status> {
        if self.incoming.len() + data.len() > CALL_BYTES_MAX || !self.held.has_room() {
            return Err(Status::INSUFFICIENT_RESOURCES);
        }
        self.incoming.extend_from_slice(data);
        let received = self.take_in();
        self.count();
        received
    }

    fn take_in(&mut self) -> Result<Vec<rpc::Request>, Status> {
        let mut requests = Vec::new();
        while let Some(length) = rpc::fragment_length(&self.incoming)? {
            let rest = self.incoming.split_off(length);
            let fragment = std::mem::replace(&mut self.incoming, rest);
            match self.connection.receive(&fragment, CALL_BYTES_MAX)? {
                Received::Part => {}
                Received::Answered(answer) => self.outgoing.push_back(answer),
                Received::Request(request) => requests.push(request),
            }
        }
        Ok(requests)
    }

    /// Answers a call, if the answers before it are being read.
    fn answer(&mut self, request: &rpc::Request, shares: &[String]) -> Result<(), Status> {
        if !self.held.has_room() {
            return Err(Status::INSUFFICIENT_RESOURCES);
        }
        let outcome = srvsvc::call(request.operation, &request.arguments, shares);
        let answer = self.connection.answer(request, outcome);
        let bytes: usize = answer.iter().map(Vec::len).sum();
        self.outgoing.extend(answer);
        self.held.set(self.held.bytes + bytes);
        Ok(())
    }
}

/// Whether the bytes have the form of calls.
pub fn can_be_received(bytes: &[u8]) -> bool {
    let mut pipe = Pipe::default();
    let requests = pipe.receive(bytes).unwrap_or_default();
    let _ = requests.iter().try_for_each(|request| pipe.answer(request, &[]));
    !requests.is_empty() || !pipe.outgoing.is_empty()
}

/// Receives what a client writes, and prepares the answers for it to read.
pub async fn write(call: &Call, pipe: &Mutex<Pipe>, data: &[u8]) -> Result<(), Status> {
    let _turn = call.connection.pipes.turn.lock().await;
    let requests = pipe.lock().receive(data)?;
    if requests.is_empty() {
        return Ok(());
    }
    // Once for all calls: one write may contain thousands.
    let shares = shares::list(&call.connection.frontend.domain, call.account()?).await?;
    requests.iter().try_for_each(|request| pipe.lock().answer(request, &shares))
}

#[cfg(test)]
mod tests;
