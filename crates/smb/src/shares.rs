//! The shares of an account, read from the domain.

use std::sync::Arc;

use holdfast_domain::Domain;
use holdfast_domain::failure::Fault;
use holdfast_domain::names::{AccountName, ShareName};
use holdfast_domain::share::opens::ConnectedShare;
use holdfast_domain::share::{ListShares, Protocol, SharePath};

use crate::status::Status;

/// The most shares that are listed.
const LISTED_MAX: usize = 10_000;

/// A share that a tree is connected to.
#[derive(Clone, Debug)]
pub struct Share {
    pub path: SharePath,
    pub connected: Arc<ConnectedShare>,
}

/// The names of the shares that SMB serves.
pub async fn list(domain: &Domain, account: &str) -> Result<Vec<String>, Status> {
    let Ok(account) = AccountName::new(account) else { return Ok(Vec::new()) };
    let command = ListShares {
        account,
        prefix: String::new(),
        marker: None,
        limit: LISTED_MAX,
        snapshots: false,
        deleted: false,
    };
    let mut listing = domain.list_shares(command).await.map_err(broken)?;
    let mut names = Vec::new();
    loop {
        let batch = listing.next().await.map_err(broken)?;
        if batch.is_empty() {
            return Ok(names);
        }
        let served = batch.into_iter().filter(|listed| listed.share.protocol == Protocol::Smb);
        names.extend(served.map(|listed| listed.name));
    }
}

/// Names of shares are in lower case; clients may send any case.
pub async fn find(domain: &Domain, account: &str, name: &str) -> Result<Option<Share>, Status> {
    let name = ShareName::new(name.to_ascii_lowercase());
    let (Ok(account), Ok(share)) = (AccountName::new(account), name) else { return Ok(None) };
    let path = SharePath { account, share };
    let found = domain.connect_share(&path).await.map_err(broken)?;
    let served = found.filter(|(share, _)| share.protocol == Protocol::Smb);
    Ok(served.map(|(_, connected)| Share { path, connected }))
}

fn broken(fault: Fault) -> Status {
    tracing::error!(?fault, "shares could not be read");
    Status::INTERNAL_ERROR
}
