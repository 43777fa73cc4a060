//! Lease File.

use super::copy::check_no_copy_pending;
use super::node::Wanted;
use super::tree::{Answer, Located};
use super::{FileRefusal, Node, NodeAddress};
use crate::domain::Domain;
use crate::lease::{self, LeaseAction, LeaseId, LeaseKind, LeaseOutcome};
use crate::time::Timestamp;

pub struct LeaseFile {
    pub address: NodeAddress,
    pub action: LeaseAction,
    /// The id of the lease, if this acquires one without proposing an id.
    pub fresh_id: LeaseId,
}

impl Domain {
    pub(super) async fn lease_file(&self, command: &LeaseFile) -> Answer<(Located, LeaseOutcome)> {
        let changed = self
            .change_node(&command.address, |node, stamp| decide_lease(node, command, stamp.now));
        let (located, outcome) = changed.await?;
        if let Some(file) = located.node.file() {
            self.live_leases.note(located.place.key(), &file.lease, located.now);
        }
        Ok((located, outcome))
    }
}

fn decide_lease(
    node: &mut Node,
    command: &LeaseFile,
    now: Timestamp,
) -> Result<LeaseOutcome, FileRefusal> {
    Wanted::File.check(node)?;
    let file = node.file_mut().ok_or(FileRefusal::WrongKind)?;
    check_no_copy_pending(file)?;
    let decided =
        lease::decide(&file.lease, command.action, LeaseKind::File, command.fresh_id, now)?;
    file.lease = decided.lease;
    Ok(decided.outcome)
}
