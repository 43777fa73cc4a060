//! Copies onto files whose bytes are still to come from elsewhere, as those onto blobs.

use bytes::Bytes;

use super::change_events;
use super::properties::{Touch, touch};
use super::tree::{Answer, Tree, release_content};
use super::{At, FileRefusal, Node, NodeAddress, NodeKind};
use crate::content::Content;
use crate::copy::{CopyEnd, CopyFailure, CopyState, CopyStatus};
use crate::domain::{Domain, Stamp, read};
use crate::failure::{Failure, Fault};
use crate::lease::{self, Access, LeaseId, LeaseKind};
use crate::rows::{self, Stored};
use crate::transact::Transaction;

pub struct AbortFileCopy {
    pub address: NodeAddress,
    pub copy_id: String,
    pub lease_id: Option<LeaseId>,
}

impl Domain {
    /// Records how much of a pending copy has arrived; returns whether it is still wanted. Neither bytes
    /// nor times of the file change, so it needs no entry among the opens.
    pub async fn note_file_copy_progress(
        &self,
        address: &NodeAddress,
        copy_id: &str,
        bytes_copied: u64,
    ) -> Answer<bool> {
        let noted = self.change_node(address, |node, _| {
            pending(node, copy_id)?.bytes_copied = bytes_copied;
            Ok(())
        });
        match noted.await {
            Ok(_) => Ok(true),
            Err(Failure::Refused(_)) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Ends a pending copy. Refused if it has been ended otherwise.
    pub async fn end_file_copy(
        &self,
        address: &NodeAddress,
        copy_id: &str,
        end: CopyEnd,
    ) -> Answer<()> {
        let _entered = self.enter_copy_end(address).await?;
        let ended = self
            .change_copy(address, copy_id, |transaction, node, stamp| {
                match &end {
                    CopyEnd::Fetched(received) => {
                        release_content(transaction, node);
                        let content = received.claim_map(transaction, stamp.etag.ticks());
                        set_content(node, content, received.length());
                        stop(node, CopyStatus::Success, None, stamp);
                    }
                    CopyEnd::Failed(why) => {
                        release_content(transaction, node);
                        set_content(node, Content::Empty, 0);
                        stop(node, CopyStatus::Failed, Some(why.clone()), stamp);
                    }
                }
                Ok(())
            })
            .await;
        let share = match end {
            CopyEnd::Fetched(received) => received.conclude(ended),
            CopyEnd::Failed(_) => ended,
        }?;
        if let At::Path(path) = &address.at {
            self.tell(share, &[change_events::written(path)]);
        }
        Ok(())
    }

    pub(super) async fn abort_file_copy(&self, command: &AbortFileCopy) -> Answer<()> {
        let AbortFileCopy { address, copy_id, lease_id } = command;
        self.change_copy(address, copy_id, |transaction, node, stamp| {
            if let NodeKind::File(file) = &mut node.kind {
                let (access, kind) = (Access::AbortCopy, LeaseKind::File);
                let after = lease::check_access(&file.lease, access, *lease_id, kind, stamp.now)?;
                file.lease = after.apply(&file.lease);
            }
            release_content(transaction, node);
            set_content(node, Content::Empty, 0);
            stop(node, CopyStatus::Aborted, None, stamp);
            Ok(())
        })
        .await?;
        Ok(())
    }

    /// The number of the share that it was in.
    async fn change_copy(
        &self,
        address: &NodeAddress,
        copy_id: &str,
        change: impl Fn(&mut Transaction, &mut Node, Stamp) -> Result<(), FileRefusal>,
    ) -> Answer<u64> {
        self.transact(&[address.latch()], async |mut transaction| {
            let stamp = self.stamp();
            let tree = Tree::open(&mut transaction, &address.share).await?;
            let found = tree.find(&mut transaction, address).await?;
            let node = found.node.ok_or(Failure::Refused(FileRefusal::NotFound))?;
            let mut node = tree.begin_change(&mut transaction, &found.place, &node).await?;
            pending(&mut node, copy_id).map_err(Failure::Refused)?;
            let before = node.length();
            change(&mut transaction, &mut node, stamp).map_err(Failure::Refused)?;
            self.make_room(&mut transaction, &tree, before, node.length()).await?;
            transaction.delete(rows::pending_copy(&tree.key_of(&found.place, &node)));
            tree.put(&mut transaction, &found.place, &node);
            Ok((tree.share.id, transaction))
        })
        .await
    }
}

/// The state of the copy that a file is waiting for, if it still is.
fn pending<'node>(
    node: &'node mut Node,
    copy_id: &str,
) -> Result<&'node mut CopyState, FileRefusal> {
    let file = node.file_mut().ok_or(FileRefusal::WrongKind)?;
    match &mut file.copy {
        Some(copy) if copy.status != CopyStatus::Pending => Err(FileRefusal::NoCopyPending),
        Some(copy) if copy.id != copy_id => Err(FileRefusal::CopyIdMismatch),
        Some(copy) => Ok(copy),
        None => Err(FileRefusal::NoCopyPending),
    }
}

fn set_content(node: &mut Node, content: Content, length: u64) {
    if let NodeKind::File(file) = &mut node.kind {
        file.content = content;
        file.length = length;
    }
}

fn stop(node: &mut Node, status: CopyStatus, failure: Option<CopyFailure>, stamp: Stamp) {
    let written = node.times.written;
    touch(node, Touch::Properties, stamp);
    // As given to the copy, possibly that of its source.
    node.times.written = written;
    let length = node.length();
    if let NodeKind::File(file) = &mut node.kind
        && let Some(copy) = &mut file.copy
    {
        copy.status = status;
        copy.completed = Some(stamp.now);
        copy.failure = failure;
        if status == CopyStatus::Success {
            copy.bytes_copied = length;
            copy.bytes_total = length;
        }
    }
}

/// Fails the copy onto the file with this key, which an earlier run left pending. A snapshot taken
/// since sees the failure, too.
pub async fn fail_interrupted(
    transaction: &mut Transaction,
    key: Bytes,
    stamp: Stamp,
) -> Result<(), Fault> {
    let node: Option<Node> = read(transaction, &key).await?;
    if let Some(mut node) = node.filter(Node::is_copy_pending) {
        release_content(transaction, &node);
        set_content(&mut node, Content::Empty, 0);
        stop(&mut node, CopyStatus::Failed, Some(CopyFailure::Interrupted), stamp);
        transaction.put(key, node.encode());
    }
    Ok(())
}
