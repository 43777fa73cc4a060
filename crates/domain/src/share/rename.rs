//! Files and directories get other names, in their directory or in another of the share.

use super::NodeAddress;
use super::node::Wanted;
use super::properties::NodeProperties;
use super::tree::{Answer, Located};
use crate::domain::Domain;
use crate::failure::{Failure, Fault};
use crate::lease::LeaseId;
use crate::metadata::Metadata;

pub struct RenameNode {
    pub source: NodeAddress,
    /// A path of the same share.
    pub destination: NodeAddress,
    pub wanted: Wanted,
    /// Whether a file that is there goes. A directory is never replaced.
    pub replace: bool,
    /// Whether it goes even if it is read-only.
    pub ignore_read_only: bool,
    /// Through an open that was granted: neither the source's lease nor its attributes are asked.
    pub by_handle: bool,
    pub source_lease_id: Option<LeaseId>,
    pub destination_lease_id: Option<LeaseId>,
    /// What is given is set; the rest stays.
    pub properties: NodeProperties,
    pub metadata: Option<Metadata>,
    pub content_type: Option<String>,
}

pub struct Renamed {
    pub located: Located,
    /// The number of the file that was replaced.
    pub replaced: Option<u64>,
}

impl Domain {
    pub async fn rename_node(&self, command: &RenameNode) -> Answer<Renamed> {
        let _ = command;
        Err(Failure::Fault(Fault::new("not built yet")))
    }
}
