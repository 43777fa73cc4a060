//! `IPC$`: the one named pipe there is, on which clients ask what shares an account has.

mod ndr;
mod rpc;
mod srvsvc;

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::call::Call;
use crate::shares;
use crate::status::Status;
use rpc::Received;

pub const IPC_SHARE: &str = "IPC$";
/// A call with all its fragments; those that are served take a few hundred bytes.
const CALL_BYTES_MAX: usize = 64 * 1024;
/// Answers that a client has not read yet.
const ANSWERS_MAX: usize = 4096;

/// One client's end of a pipe.
#[derive(Default)]
pub struct Pipe {
    /// What has come of a fragment.
    incoming: Vec<u8>,
    connection: rpc::Association,
    /// Fragments of answers; each is a message of the pipe.
    outgoing: VecDeque<Vec<u8>>,
}

impl Pipe {
    pub fn open(name: &str) -> Option<Self> {
        let name = name.trim_start_matches('\\');
        name.eq_ignore_ascii_case("srvsvc").then(Self::default)
    }

    /// At most `length` bytes of the next message, and whether that is all of it.
    pub fn read(&mut self, length: usize) -> (Vec<u8>, bool) {
        let Some(mut message) = self.outgoing.pop_front() else { return (Vec::new(), true) };
        if message.len() <= length {
            return (message, true);
        }
        let rest = message.split_off(length);
        self.outgoing.push_front(rest);
        (message, false)
    }

    /// The calls that are complete with `data`.
    fn receive(&mut self, data: &[u8]) -> Result<Vec<rpc::Request>, Status> {
        if self.incoming.len() + data.len() > CALL_BYTES_MAX || self.outgoing.len() > ANSWERS_MAX {
            return Err(Status::INSUFFICIENT_RESOURCES);
        }
        self.incoming.extend_from_slice(data);
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

    fn answer(&mut self, request: &rpc::Request, outcome: Result<Vec<u8>, rpc::Fault>) {
        self.outgoing.extend(self.connection.answer(request, outcome));
    }
}

/// Whether bytes have the form of calls, whatever they say.
pub fn can_be_received(bytes: &[u8]) -> bool {
    let mut pipe = Pipe::default();
    let requests = pipe.receive(bytes).unwrap_or_default();
    for request in &requests {
        let outcome = srvsvc::call(request.operation, &request.arguments, &[]);
        pipe.answer(request, outcome);
    }
    !requests.is_empty() || !pipe.outgoing.is_empty()
}

/// Takes what a client writes, and has the answers ready for it to read.
pub async fn write(call: &Call, pipe: &Mutex<Pipe>, data: &[u8]) -> Result<(), Status> {
    let requests = pipe.lock().receive(data)?;
    for request in requests {
        let shares = shares::list(&call.connection.frontend.domain, call.account()?).await?;
        let outcome = srvsvc::call(request.operation, &request.arguments, &shares);
        pipe.lock().answer(&request, outcome);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
