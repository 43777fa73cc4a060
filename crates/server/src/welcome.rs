//! What somebody who starts the server in a terminal needs to know. Programs read the ready line.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use holdfast_rest::service::Endpoint;

use crate::account::{Account, WELL_KNOWN_KEY};
use crate::announce::Served;
use crate::settings::{Announcement, Durability, Settings, Storage};

pub fn print(
    settings: &Settings,
    served: &[Served],
    smb: Option<SocketAddr>,
    admin: Option<SocketAddr>,
) {
    let is_for_people = match settings.announcement {
        Announcement::Ready => std::io::stderr().is_terminal(),
        Announcement::Azurite { .. } => false,
    };
    if is_for_people {
        let storage = &settings.storage;
        eprint!("{}", text(storage, &settings.accounts, served, smb, admin));
    }
}

fn text(
    storage: &Storage,
    accounts: &[Account],
    served: &[Served],
    smb: Option<SocketAddr>,
    admin: Option<SocketAddr>,
) -> String {
    let mut text = format!("\nHoldfast {}\n\n", env!("CARGO_PKG_VERSION"));
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<15}{value}");
    };
    match storage {
        Storage::Memory => row("Data", "in memory only: gone when the server stops"),
        Storage::Folder { path, durability } => {
            let promise = match durability {
                Durability::Fsync => "an acknowledged write survives power loss",
                Durability::Relaxed => "a power loss may take the newest writes",
            };
            row("Data", &format!("{} ({promise})", path.display()));
        }
    }
    let names: Vec<&str> = accounts.iter().map(|account| account.name.as_str()).collect();
    row(if names.len() == 1 { "Account" } else { "Accounts" }, &names.join(", "));
    if let Some(smb) = smb {
        row("SMB", &format!("smb://{}", reachable(smb)));
    }
    for website in served.iter().filter(|served| served.endpoint == Endpoint::Website) {
        row("Websites", &url(website));
    }
    if let Some(admin) = admin {
        let pages = "/healthz, /readyz, /metrics, /background";
        row("Administration", &format!("http://{} ({pages})", reachable(admin)));
    }
    if let Some(account) = accounts.first() {
        let connection = connection_string(account, served);
        let _ = write!(
            text,
            "\nConnection string for SDKs and az (AZURE_STORAGE_CONNECTION_STRING):\n\n{connection}\n"
        );
    }
    text.push_str("\nCtrl+C stops the server.\n\n");
    text
}

/// With the key only if everybody knows it: terminals are recorded, and looked at by others.
fn connection_string(account: &Account, served: &[Served]) -> String {
    let name = &account.name;
    let is_tls = served.iter().any(|served| served.tls);
    let protocol = if is_tls { "https" } else { "http" };
    let key = if account.has_well_known_key() { WELL_KNOWN_KEY } else { "THE-KEY-OF-THE-ACCOUNT" };
    let mut text =
        format!("DefaultEndpointsProtocol={protocol};AccountName={name};AccountKey={key};");
    for served in served {
        let service = match served.endpoint {
            Endpoint::Service(service) => service,
            Endpoint::Website => continue,
        };
        let _ = write!(text, "{}Endpoint={}/{name};", service.title(), url(served));
    }
    text
}

fn url(served: &Served) -> String {
    Served { bound: reachable(served.bound), ..served.clone() }.url()
}

/// An address that a client on this machine can use.
fn reachable(bound: SocketAddr) -> SocketAddr {
    let mut address = bound;
    if bound.ip().is_unspecified() {
        address.set_ip(match bound {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use holdfast_rest::service::Service;

    use super::*;

    fn served(service: Service, bound: &str) -> Served {
        let bound: SocketAddr = bound.parse().expect("an address");
        let (endpoint, host) = (Endpoint::Service(service), bound.ip().to_string());
        Served { endpoint, host, requested_port: bound.port(), bound, tls: false }
    }

    #[test]
    fn everything_that_a_person_needs_is_there() {
        let storage = Storage::Folder { path: "./data".into(), durability: Durability::Fsync };
        let all = [served(Service::Blob, "0.0.0.0:10000"), served(Service::Queue, "[::]:10001")];
        let text = text(
            &storage,
            &[Account::development()],
            &all,
            "127.0.0.1:10445".parse().ok(),
            "127.0.0.1:10099".parse().ok(),
        );
        let endpoints = "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;\
                         QueueEndpoint=http://[::1]:10001/devstoreaccount1;\n";
        for part in [
            concat!("Holdfast ", env!("CARGO_PKG_VERSION")),
            "./data (an acknowledged write survives power loss)",
            "devstoreaccount1\n",
            "smb://127.0.0.1:10445\n",
            "http://127.0.0.1:10099 (/healthz",
            "AccountName=devstoreaccount1;AccountKey=Eby8",
            endpoints,
            "Ctrl+C",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn a_key_that_is_a_secret_is_not_shown() {
        let account = Account::parse("mine:c2VjcmV0").expect("an account");
        let text = connection_string(&account, &[]);
        assert!(text.contains("AccountName=mine;AccountKey=THE-KEY"), "{text}");
        assert!(!text.contains("c2VjcmV0"), "{text}");
    }
}
