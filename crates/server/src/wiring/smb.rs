//! The SMB front end, with the accounts, limits and counters that it shares with REST.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_domain::Domain;
use holdfast_rest::metrics::{Metrics, OpenConnection};
use holdfast_rest::service::Service;
use holdfast_smb::auth::Accounts;
use holdfast_smb::frontend::{Answered, Frontend, Observer};
use holdfast_smb::settings::{Limits, Settings as SmbSettings};
use holdfast_smb::wire::Command;

use crate::settings::{Settings, Storage};

pub fn frontend(settings: &Settings, domain: &Arc<Domain>, metrics: &Arc<Metrics>) -> Frontend {
    let mut accounts = Accounts::default();
    for account in settings.accounts.iter().filter(|account| !account.disabled) {
        // The password is the key as its text.
        let keys: Vec<String> =
            account.keys.iter().map(|key| STANDARD.encode(key.bytes())).collect();
        accounts.insert(&account.name, keys.iter().map(String::as_str));
    }
    let smb = SmbSettings {
        accounts,
        encryption: settings.smb_encryption,
        signing: settings.smb_signing,
        persistent_handles: match settings.storage {
            Storage::Folder { .. } => true,
            Storage::Memory => false,
        },
        limits: Limits { stall_timeout: settings.limits.body_timeout, ..Limits::default() },
    };
    Frontend::new(Arc::clone(domain), smb, Arc::new(Counted(Arc::clone(metrics))))
}

/// Counts as the REST front end does. The statuses of the two protocols differ: success is counted
/// as 200, a refusal as 400 and a fault as 500, with the SMB status as code.
struct Counted(Arc<Metrics>);

impl Observer for Counted {
    fn connection_opened(&self) -> Box<dyn Send + '_> {
        let open: OpenConnection<'_> = self.0.connection_opened(Service::File);
        Box::new(open)
    }

    fn answered(&self, answered: Answered) {
        let Answered { command, status, duration, bytes_in, bytes_out } = answered;
        let name = operation(command);
        let (code, error) = if status.is_fault() {
            (500, Some(status.name()))
        } else if status.is_error() {
            (400, Some(status.name()))
        } else {
            (200, None)
        };
        self.0.record(Service::File, name, code, duration, bytes_in, bytes_out, error);
    }
}

fn operation(command: Command) -> &'static str {
    match command {
        Command::Negotiate => "SmbNegotiate",
        Command::SessionSetup => "SmbSessionSetup",
        Command::Logoff => "SmbLogoff",
        Command::TreeConnect => "SmbTreeConnect",
        Command::TreeDisconnect => "SmbTreeDisconnect",
        Command::Create => "SmbCreate",
        Command::Close => "SmbClose",
        Command::Flush => "SmbFlush",
        Command::Read => "SmbRead",
        Command::Write => "SmbWrite",
        Command::Lock => "SmbLock",
        Command::Ioctl => "SmbIoctl",
        Command::Cancel => "SmbCancel",
        Command::Echo => "SmbEcho",
        Command::QueryDirectory => "SmbQueryDirectory",
        Command::ChangeNotify => "SmbChangeNotify",
        Command::QueryInfo => "SmbQueryInfo",
        Command::SetInfo => "SmbSetInfo",
        Command::OplockBreak => "SmbOplockBreak",
    }
}
