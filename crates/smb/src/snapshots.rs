//! The snapshots of a share, which SMB clients name by the second.

use holdfast_domain::Domain;
use holdfast_domain::share::{ListShares, ListedState, SharePath};
use holdfast_domain::time::Timestamp;

use crate::refusals;
use crate::status::Status;

const LISTED_MAX: usize = 1000;

/// Oldest first.
pub async fn list(domain: &Domain, share: &SharePath) -> Result<Vec<Timestamp>, Status> {
    let command = ListShares {
        account: share.account.clone(),
        prefix: share.share.as_str().to_owned(),
        marker: None,
        limit: LISTED_MAX,
        snapshots: true,
        deleted: false,
    };
    let broken = |fault| refusals::of_fault(&fault);
    let mut listing = domain.list_shares(command).await.map_err(broken)?;
    let mut moments = Vec::new();
    loop {
        let batch = listing.next().await.map_err(broken)?;
        // Longer names come after it.
        let is_past = batch.iter().any(|listed| listed.name != share.share.as_str());
        let own = batch.iter().filter(|listed| listed.name == share.share.as_str());
        moments.extend(own.filter_map(|listed| match listed.state {
            ListedState::Snapshot(moment) => Some(moment),
            ListedState::Live | ListedState::Deleted { .. } => None,
        }));
        if batch.is_empty() || is_past {
            return Ok(moments);
        }
    }
}

/// The last snapshot of a second.
pub async fn find(
    domain: &Domain,
    share: &SharePath,
    moment: Timestamp,
) -> Result<Timestamp, Status> {
    let second = moment.whole_seconds();
    let moments = list(domain, share).await?;
    let found = moments.into_iter().rfind(|moment| moment.whole_seconds() == second);
    found.ok_or(Status::OBJECT_NAME_NOT_FOUND)
}
