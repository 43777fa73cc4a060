//! Symbolic and hard links, in shares of NFS. They are kept and told; nothing follows them.

use super::properties::NodeProperties;
use super::tree::{Answer, Located};
use super::{LinkTarget, NodeAddress};
use crate::domain::Domain;
use crate::failure::{Failure, Fault};
use crate::lease::LeaseId;
use crate::metadata::Metadata;

pub struct CreateSymbolicLink {
    pub address: NodeAddress,
    pub target: LinkTarget,
    pub metadata: Metadata,
    pub properties: NodeProperties,
    pub lease_id: Option<LeaseId>,
}

pub struct CreateHardLink {
    /// The new name.
    pub address: NodeAddress,
    /// The file that gets it.
    pub target: NodeAddress,
    pub lease_id: Option<LeaseId>,
}

impl Domain {
    pub async fn create_symbolic_link(&self, command: &CreateSymbolicLink) -> Answer<Located> {
        let _ = command;
        Err(Failure::Fault(Fault::new("not built yet")))
    }

    pub async fn create_hard_link(&self, command: &CreateHardLink) -> Answer<Located> {
        let _ = command;
        Err(Failure::Fault(Fault::new("not built yet")))
    }
}
