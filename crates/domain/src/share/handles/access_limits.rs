//! The maximum access of clients to nodes, where the access lists of files are enforced.

use super::Answer;
use super::command::OpenNode;
use super::open_rules::right_to_add;
use super::refusal::HandleRefusal;
use crate::domain::Domain;
use crate::failure::Failure;
use crate::features::AccessLists;
use crate::share::opens::{AccessMask, Handle};
use crate::share::security::{Token, permitted};
use crate::share::{Node, SharePath};

impl Domain {
    /// The maximum access of a client to a node in this directory.
    pub(super) async fn allowed(
        &self,
        command: &OpenNode,
        node: &Node,
        directory: Option<&Node>,
    ) -> Answer<AccessMask> {
        let listed = self.listed_access(&command.share, node, directory).await?;
        Ok(command.allowed.intersection(listed))
    }

    /// Whether the node of a handle may be moved into a directory.
    pub(super) async fn check_addition(&self, handle: &Handle, directory: &Node) -> Answer<()> {
        let access = self.listed_access(&handle.share, directory, None).await?;
        check(access.contains(right_to_add(handle.is_directory)))
    }

    /// Whether a node may be replaced by that of a handle.
    pub(super) async fn check_replacement(
        &self,
        handle: &Handle,
        node: &Node,
        directory: Option<&Node>,
    ) -> Answer<()> {
        check(self.listed_access(&handle.share, node, directory).await?.deletes())
    }

    async fn listed_access(
        &self,
        share: &SharePath,
        node: &Node,
        directory: Option<&Node>,
    ) -> Answer<AccessMask> {
        match self.features.access_lists {
            AccessLists::Ignored => Ok(AccessMask::ALL),
            AccessLists::Enforced => {
                let own = self.rights(share, node).await?;
                let of_directory = match directory {
                    Some(directory) => self.rights(share, directory).await?,
                    None => AccessMask::empty(),
                };
                Ok(with_rights_of_directory(own, of_directory))
            }
        }
    }

    async fn rights(&self, share: &SharePath, node: &Node) -> Answer<AccessMask> {
        let descriptor = self.descriptor(share, node.permission).await;
        let descriptor =
            descriptor.map_err(|failure| failure.map(|_| HandleRefusal::InvalidDescriptor))?;
        Ok(AccessMask::from_bits_retain(permitted(&descriptor, &Token::of_account())))
    }
}

fn check(allowed: bool) -> Answer<()> {
    if allowed { Ok(()) } else { Err(Failure::Refused(HandleRefusal::AccessDenied)) }
}

/// Some rights to a directory are rights to what is in it, [MS-FSA] 2.1.5.1.2.1.
fn with_rights_of_directory(own: AccessMask, of_directory: AccessMask) -> AccessMask {
    let mut access = own;
    for (right, brings) in [
        (AccessMask::DELETE_CHILD, AccessMask::DELETE),
        (AccessMask::READ_DATA, AccessMask::READ_ATTRIBUTES),
    ] {
        if of_directory.contains(right) {
            access = access.union(brings);
        }
    }
    access
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_lets_what_is_in_it_be_deleted_and_seen() {
        let [own, delete, see] =
            [AccessMask::READ_DATA, AccessMask::DELETE, AccessMask::READ_ATTRIBUTES];
        for (of_directory, access) in [
            (AccessMask::empty(), own),
            (AccessMask::DELETE, own),
            (AccessMask::WRITE_DATA, own),
            (AccessMask::DELETE_CHILD, own.union(delete)),
            (AccessMask::READ_DATA, own.union(see)),
            (AccessMask::ALL, own.union(delete).union(see)),
        ] {
            assert_eq!(with_rights_of_directory(own, of_directory), access, "{of_directory:?}");
        }
    }
}
