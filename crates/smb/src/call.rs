//! One request for its command: the caller, the message, and results of earlier requests in its
//! compound.

use std::sync::Arc;

use bytes::Bytes;
use holdfast_domain::share::opens::{ClientId, Opener};
use parking_lot::Mutex;

use crate::connection::{Connection, Ticket};
use crate::crypto::PreauthHash;
use crate::dialect::{Dialect, Negotiated};
use crate::opens::{Open, OpenKind, Outstanding};
use crate::session::{Established, Session};
use crate::shares::Share;
use crate::status::Status;
use crate::tree::Tree;
use crate::wire::{Command, FileId, Flags, Header};

pub struct Call {
    pub connection: Arc<Connection>,
    pub header: Header,
    /// From its header to its end.
    pub message: Bytes,
    pub session: Option<Arc<Session>>,
    pub tree: Option<Arc<Tree>>,
    pub ticket: Arc<Ticket>,
    /// Whether it has a valid signature.
    pub is_signed: bool,
    pub is_encrypted: bool,
    pub chain: Chain,
    /// The preauthentication hash, if the answer as sent must be added to it.
    pub preauth: Option<Arc<Mutex<PreauthHash>>>,
    /// Whether the answer is signed even if the request is not.
    pub must_sign: bool,
    /// Whether the connection ends without an answer.
    pub disconnects: bool,
    /// The count of its open.
    pub outstanding: Option<Outstanding>,
}

/// What a related request uses from earlier ones in its compound.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chain {
    pub session_id: u64,
    pub tree_id: u32,
    pub file_id: Option<FileId>,
    /// Why there is no file for related requests.
    pub failure: Option<Status>,
    /// The first request was marked as related, so that all are refused.
    pub is_broken: bool,
}

impl Call {
    pub fn session(&self) -> Result<&Arc<Session>, Status> {
        self.session.as_ref().ok_or(Status::USER_SESSION_DELETED)
    }

    pub fn established(&self) -> Result<&Established, Status> {
        self.session()?.established().ok_or(Status::USER_SESSION_DELETED)
    }

    pub fn account(&self) -> Result<&Arc<str>, Status> {
        Ok(&self.established()?.user.account)
    }

    pub fn tree(&self) -> Result<&Arc<Tree>, Status> {
        self.tree.as_ref().ok_or(Status::NETWORK_NAME_DELETED)
    }

    /// The share that the request is for, which `IPC$` is not.
    pub fn share(&self) -> Result<&Share, Status> {
        self.tree()?.share().ok_or(Status::INVALID_DEVICE_REQUEST)
    }

    pub fn negotiated(&self) -> Result<&Negotiated, Status> {
        self.connection.negotiated().ok_or(Status::INVALID_PARAMETER)
    }

    pub fn dialect(&self) -> Result<Dialect, Status> {
        Ok(self.negotiated()?.dialect)
    }

    /// The connection, session and tree of the client.
    pub fn opener(&self) -> Result<Opener, Status> {
        Ok(Opener {
            connection: self.connection.id,
            session: self.session()?.id,
            tree: self.tree()?.id.into(),
            client: ClientId(u128::from_le_bytes(self.negotiated()?.client_guid)),
            address: self.connection.peer,
            client_name: Arc::clone(&self.established()?.user.client_name),
            user: Arc::clone(self.account()?),
            events: self.connection.breaks.sender(),
        })
    }

    /// Whether the client marks the request as sent before.
    pub fn is_replay(&self) -> bool {
        self.header.flags.contains(Flags::REPLAY)
    }

    pub fn is_related(&self) -> bool {
        self.header.flags.contains(Flags::RELATED)
    }

    /// The id that a request uses: its own, or that of the request before.
    pub fn resolve(&mut self, id: FileId) -> Result<FileId, Status> {
        let id = match (id, self.is_related()) {
            (FileId::RELATED, true) => match (self.chain.file_id, self.chain.failure) {
                (Some(id), _) => id,
                (None, Some(failure)) => return Err(failure),
                (None, None) => return Err(Status::FILE_CLOSED),
            },
            (id, _) => id,
        };
        self.chain.file_id = Some(id);
        Ok(id)
    }

    /// The open that a request uses, in the tree of the request.
    pub fn open(&mut self, id: FileId) -> Result<Arc<Open>, Status> {
        let id = self.resolve(id)?;
        let open = self.session()?.opens.get(id).ok_or(Status::FILE_CLOSED)?;
        if open.tree_id != self.tree()?.id {
            return Err(Status::FILE_CLOSED);
        }
        self.use_open(&open)?;
        Ok(open)
    }

    /// Refuses requests that came too late; after using an open the client does not replay its
    /// CREATE.
    pub fn use_open(&mut self, open: &Arc<Open>) -> Result<(), Status> {
        if let OpenKind::File(file) = &open.kind {
            self.connection.frontend.domain.use_handle(&file.handle);
        }
        if self.dialect()? < Dialect::Smb3_0 {
            return Ok(());
        }
        self.outstanding = open.begin(self.header.channel_sequence(), self.is_replay());
        let changes = matches!(
            self.header.known_command(),
            Some(Command::Write | Command::SetInfo | Command::Ioctl)
        );
        if changes && self.outstanding.is_none() {
            return Err(Status::FILE_NOT_AVAILABLE);
        }
        Ok(())
    }
}
