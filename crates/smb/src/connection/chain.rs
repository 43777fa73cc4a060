//! Runs the requests of one message, one after the other, and sends their answers.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::answer_memory::{SHORT_ANSWER_BYTES, Taken};
use super::breaks;
use super::incoming::{Batch, Message, Signature};
use super::outgoing::{Reply, has_room};
use super::{Connection, Ticket};
use crate::answer::Answer;
use crate::call::{Call, Chain};
use crate::commands;
use crate::frontend::Answered;
use crate::session::Session;
use crate::status::Status;
use crate::tree::Tree;
use crate::wire::header::TreeOrAsync;
use crate::wire::{Command, Flags, Header};

/// After this time the client gets STATUS_PENDING.
const PENDING_AFTER: Duration = Duration::from_secs(5);

/// A batch whose requests can be cancelled from now on.
pub struct Begun {
    batch: Batch,
    tickets: Vec<Arc<Ticket>>,
}

pub fn begin(connection: &Connection, batch: Batch) -> Begun {
    let tickets = batch.messages.iter().map(|message| {
        connection.requests.begin(message.header.message_id, message.header.session_id)
    });
    Begun { tickets: tickets.collect(), batch }
}

pub async fn work(connection: Arc<Connection>, batch: Batch) -> ControlFlow<()> {
    if let [message] = &batch.messages[..]
        && message.is_cancel()
    {
        cancel(&connection, message);
        return ControlFlow::Continue(());
    }
    let begun = begin(&connection, batch);
    work_on(connection, begun).await
}

/// Returns `Break` if the connection must end.
pub async fn work_on(connection: Arc<Connection>, begun: Begun) -> ControlFlow<()> {
    let Begun { batch, tickets } = begun;
    let encrypted_by = batch.encrypted_by.clone();
    // Boxed, so that it is freed when the answers are ready: it takes several times the memory of a
    // short answer, which may wait long for its client to read.
    let (replies, flow) = Box::pin(answers(&connection, batch, &tickets)).await;
    tickets.iter().for_each(|ticket| connection.requests.end(ticket));
    drop(tickets);
    // Breaks of the client's own caches by its requests are sent before their answers.
    breaks::tell(&connection).await;
    connection.outgoing.send(replies, encrypted_by.as_deref()).await;
    flow
}

/// Returns the answers that were not sent already.
async fn answers(
    connection: &Arc<Connection>,
    batch: Batch,
    tickets: &[Arc<Ticket>],
) -> (Vec<Reply>, ControlFlow<()>) {
    let Batch { messages, encrypted_by } = batch;
    let mut chain = Chain::default();
    let mut replies = Vec::with_capacity(messages.len());
    for (index, (message, ticket)) in messages.into_iter().zip(tickets).enumerate() {
        let worker = Worker {
            connection,
            encrypted_by: encrypted_by.as_ref(),
            ticket,
            is_first: index == 0,
        };
        if worker.work(message, &mut chain, &mut replies).await.is_break() {
            return (replies, ControlFlow::Break(()));
        }
    }
    (replies, ControlFlow::Continue(()))
}

/// The memory for an answer.
enum Room {
    /// The answer is counted with the request.
    Short,
    Taken(Taken),
    /// The client has cancelled the request, or is gone.
    Cancelled,
}

/// One request of a batch.
struct Worker<'a> {
    connection: &'a Arc<Connection>,
    encrypted_by: Option<&'a Arc<Session>>,
    ticket: &'a Arc<Ticket>,
    is_first: bool,
}

impl Worker<'_> {
    async fn work(
        &self,
        message: Message,
        chain: &mut Chain,
        replies: &mut Vec<Reply>,
    ) -> ControlFlow<()> {
        let started = Instant::now();
        let (header, bytes_in) = (message.header, message.bytes.len() as u64);
        let Some(command) = header.known_command() else {
            let answer = Answer::refusal(Status::INVALID_PARAMETER);
            replies.push(self.reply(&header, answer, None, false));
            return ControlFlow::Continue(());
        };
        if command == Command::Cancel {
            cancel(self.connection, &message);
            return ControlFlow::Continue(());
        }
        let mut room = Room::Short;
        let (answer, was_pending, call) = match self.prepare(message, command, chain) {
            Err(status) => {
                chain.is_broken |= status == Status::USER_SESSION_DELETED;
                (Answer::refusal(status), false, None)
            }
            Ok(call) if call.disconnects => return ControlFlow::Break(()),
            Ok(mut call) => {
                let asked = commands::room_bytes_max(command, &call.message);
                room = self.room(asked, replies).await;
                let (answer, was_pending) = match room {
                    Room::Cancelled => (Answer::refusal(Status::CANCELLED), false),
                    Room::Short | Room::Taken(_) => self.answer(&mut call, command, replies).await,
                };
                (answer, was_pending, Some(call))
            }
        };
        if let Some(call) = &call {
            if call.disconnects {
                return ControlFlow::Break(());
            }
            *chain = call.chain;
        }
        if command == Command::Create && answer.status.is_error() {
            chain.failure = Some(answer.status);
            chain.file_id = None;
        }
        tracing::trace!(?command, message = header.message_id, status = ?answer.status, "SMB");
        self.connection.frontend.observer().answered(Answered {
            command,
            status: answer.status,
            duration: started.elapsed(),
            bytes_in,
            bytes_out: answer.length() as u64,
        });
        let reply = self.reply(&header, answer, call, was_pending);
        self.keep(reply, room, replies).await;
        ControlFlow::Continue(())
    }

    /// Room for an answer of so many bytes. Earlier answers are sent before waiting, and when one
    /// message would get too long.
    async fn room(&self, asked: usize, replies: &mut Vec<Reply>) -> Room {
        let bytes = asked + SHORT_ANSWER_BYTES;
        if !has_room(replies, bytes) {
            self.send(replies).await;
        }
        if asked <= SHORT_ANSWER_BYTES {
            return Room::Short;
        }
        let room = &self.connection.outgoing.room;
        if let Some(taken) = room.try_take(bytes) {
            return Room::Taken(taken);
        }
        self.send(replies).await;
        tokio::select! {
            biased;
            taken = room.take(bytes) => Room::Taken(taken),
            () = self.ticket.cancelled() => Room::Cancelled,
            () = self.connection.outgoing.broken() => Room::Cancelled,
        }
    }

    /// Adds a reply to those that are sent together.
    async fn keep(&self, mut reply: Reply, room: Room, replies: &mut Vec<Reply>) {
        let length = reply.length();
        if !has_room(replies, length) {
            self.send(replies).await;
        }
        reply.room = match room {
            Room::Taken(mut taken) => {
                taken.shrink_to(length);
                Some(taken)
            }
            // The changes in a directory are known only when they happen.
            Room::Short | Room::Cancelled if length > 2 * SHORT_ANSWER_BYTES => {
                match self.room(length, replies).await {
                    Room::Taken(taken) => Some(taken),
                    Room::Short | Room::Cancelled => None,
                }
            }
            Room::Short | Room::Cancelled => None,
        };
        replies.push(reply);
    }

    /// Sends the answers so far.
    async fn send(&self, replies: &mut Vec<Reply>) {
        if !replies.is_empty() {
            breaks::tell(self.connection).await;
            let so_far = std::mem::take(replies);
            self.connection.outgoing.send(so_far, self.encrypted_by.map(|it| &**it)).await;
        }
    }

    /// Runs the command. If it takes long, or announces that it will, the answers so far are sent,
    /// and then STATUS_PENDING.
    async fn answer(
        &self,
        call: &mut Call,
        command: Command,
        replies: &mut Vec<Reply>,
    ) -> (Answer, bool) {
        let header = call.header;
        let answer = {
            let mut handling = std::pin::pin!(commands::handle(call, command));
            let can_wait = !matches!(command, Command::Negotiate | Command::SessionSetup);
            tokio::select! {
                biased;
                answer = &mut handling => return (answer, false),
                () = self.ticket.told_pending() => {}
                () = tokio::time::sleep(PENDING_AFTER), if can_wait => {}
            }
            // In a separate message, as smbd does: Linux (receive_encrypted_standard) drops the
            // answers that come in one encrypted message with it, and clients that wait for them hang.
            self.send(replies).await;
            let interim = vec![self.interim(&header)];
            self.connection.outgoing.send(interim, self.encrypted_by.map(|it| &**it)).await;
            handling.await
        };
        (answer, true)
    }

    /// Not signed: a signature by GMAC may be made once for a message, and the answer needs it.
    fn interim(&self, header: &Header) -> Reply {
        let credits = self.connection.grant(header.credits);
        let mut header = header.answer(Status::PENDING, credits);
        header.flags = header.flags.union(Flags::ASYNC);
        header.tree_or_async = TreeOrAsync::Async(self.ticket.async_id);
        let answer = Answer::refusal(Status::PENDING);
        Reply { header, answer, signer: None, preauth: None, room: None }
    }

    fn reply(
        &self,
        request: &Header,
        answer: Answer,
        call: Option<Call>,
        was_pending: bool,
    ) -> Reply {
        let credits = if was_pending { 0 } else { self.connection.grant(request.credits) };
        let mut header = request.answer(answer.status, credits);
        if was_pending {
            header.flags = header.flags.union(Flags::ASYNC);
            header.tree_or_async = TreeOrAsync::Async(self.ticket.async_id);
        }
        let (mut signer, mut preauth) = (None, None);
        if let Some(call) = call {
            if let Some(session) = &call.session {
                header.session_id = session.id;
            }
            if let (TreeOrAsync::Tree(id), Some(tree)) = (&mut header.tree_or_async, &call.tree) {
                *id = tree.id;
            }
            if (call.is_signed || call.must_sign) && !call.is_encrypted {
                signer = call.session;
            }
            preauth = call.preauth;
        }
        Reply { header, answer, signer, preauth, room: None }
    }

    /// Finds session and tree, and refuses requests that are not signed or encrypted as required.
    fn prepare(
        &self,
        message: Message,
        command: Command,
        chain: &mut Chain,
    ) -> Result<Call, Status> {
        let Message { header, bytes, signature } = message;
        let is_related = header.flags.contains(Flags::RELATED);
        if is_related && (self.is_first || chain.is_broken) {
            chain.is_broken = true;
            return Err(Status::INVALID_PARAMETER);
        }
        if !is_related {
            *chain = Chain {
                session_id: header.session_id,
                tree_id: header.tree_id(),
                ..Chain::default()
            };
        }
        let mut call = Call {
            connection: Arc::clone(self.connection),
            header,
            message: bytes,
            session: None,
            tree: None,
            ticket: Arc::clone(self.ticket),
            is_signed: signature == Signature::Fits,
            is_encrypted: self.encrypted_by.is_some(),
            chain: *chain,
            preauth: None,
            must_sign: false,
            disconnects: false,
            outstanding: None,
        };
        if command == Command::Negotiate {
            return Ok(call);
        }
        if self.connection.negotiated().is_none() {
            call.disconnects = true;
            return Ok(call);
        }
        if signature == Signature::Wrong {
            return Err(Status::ACCESS_DENIED);
        }
        if command == Command::SessionSetup {
            return Ok(call);
        }
        call.session = self.session(chain.session_id)?;
        if call.session.is_none() && command != Command::Echo {
            let nothing_to_relate_to = Status::INVALID_PARAMETER;
            return Err(if is_related {
                nothing_to_relate_to
            } else {
                Status::USER_SESSION_DELETED
            });
        }
        if let Some(established) = call.session.as_ref().and_then(|it| it.established()) {
            let is_protected = call.is_encrypted || call.is_signed;
            if established.encryption_required && !call.is_encrypted
                || established.signing_required && !is_protected
            {
                return Err(Status::ACCESS_DENIED);
            }
        }
        if needs_tree(command) {
            call.tree = Some(find_tree(&call, chain.tree_id)?);
        }
        check_charge(self.connection, &call, command)?;
        Ok(call)
    }

    /// An encrypted message is valid only for the session whose key has encrypted it.
    fn session(&self, id: u64) -> Result<Option<Arc<Session>>, Status> {
        if self.encrypted_by.is_some_and(|session| session.id != id) {
            return Err(Status::ACCESS_DENIED);
        }
        let session = self.connection.session(id);
        Ok(session.filter(|session| session.established().is_some()))
    }
}

fn find_tree(call: &Call, id: u32) -> Result<Arc<Tree>, Status> {
    let session = call.session()?;
    let tree = session.tree(id).ok_or(Status::NETWORK_NAME_DELETED)?;
    if tree.share().is_some_and(|share| share.connected.is_deleted()) {
        // Its opens are closed already.
        session.remove_tree(id);
        session.opens.remove_of_tree(id);
        return Err(Status::NETWORK_NAME_DELETED);
    }
    Ok(tree)
}

fn needs_tree(command: Command) -> bool {
    match command {
        Command::Negotiate
        | Command::SessionSetup
        | Command::Logoff
        | Command::TreeConnect
        | Command::Cancel
        | Command::Echo
        // A lease does not belong to one tree.
        | Command::OplockBreak => false,
        Command::TreeDisconnect
        | Command::Create
        | Command::Close
        | Command::Flush
        | Command::Read
        | Command::Write
        | Command::Lock
        | Command::Ioctl
        | Command::QueryDirectory
        | Command::ChangeNotify
        | Command::QueryInfo
        | Command::SetInfo => true,
    }
}

/// A long request or answer costs more credits, [MS-SMB2] 3.3.5.2.5.
fn check_charge(connection: &Connection, call: &Call, command: Command) -> Result<(), Status> {
    let Some(negotiated) = connection.negotiated() else { return Ok(()) };
    if !negotiated.dialect.has_large_requests() {
        return Ok(());
    }
    let moved = commands::bytes_moved(command, &call.message);
    let charge = moved.saturating_sub(1) / 65536 + 1;
    if u64::from(call.header.credit_charge.max(1)) >= charge {
        Ok(())
    } else {
        Err(Status::INVALID_PARAMETER)
    }
}

/// CANCEL has no answer in any case.
fn cancel(connection: &Connection, message: &Message) {
    if message.signature == Signature::Wrong {
        return;
    }
    match message.header.tree_or_async {
        TreeOrAsync::Async(async_id) => connection.requests.cancel_async(async_id),
        TreeOrAsync::Tree(_) => connection.requests.cancel_message(message.header.message_id),
    }
}

/// Answers a client that begins with SMB 1.
pub async fn answer_smb1(connection: &Arc<Connection>, message: &[u8]) -> ControlFlow<()> {
    let is_first = connection.window.lock().take(0, 1).is_ok();
    let Some(answer) = commands::negotiate::answer_smb1(connection, message) else {
        return ControlFlow::Break(());
    };
    if !is_first {
        return ControlFlow::Break(());
    }
    let header = Header {
        credit_charge: 0,
        status: 0,
        command: Command::Negotiate as u16,
        credits: connection.grant(1),
        flags: Flags::RESPONSE,
        next_command: 0,
        message_id: 0,
        tree_or_async: TreeOrAsync::Tree(0),
        session_id: 0,
        signature: [0; 16],
    };
    let reply = Reply { header, answer, signer: None, preauth: None, room: None };
    connection.outgoing.send(vec![reply], None).await;
    ControlFlow::Continue(())
}
