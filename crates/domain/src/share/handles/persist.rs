//! Opens that outlive the process: when their rows are written and removed. Opens without the
//! persistent flag have none, and cost only a check of a counter here.

use std::time::Duration;

use bytes::Bytes;
use holdfast_store::{Fault, KeyRange, Order, Row};

use super::Answer;
use super::refusal::{HandleRefusal, refused};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::rows::Stored;
use crate::share::opens::kept_open::{KeptOpen, OpenRow, row_key};
use crate::share::opens::{ClientId, Handle, LeaseKey, NodeKey};
use crate::share::tree::Tree;
use crate::share::{FileRefusal, Located, NodeAddress, ShareState, rows};
use crate::transact::Transaction;

/// Rows read, or removed, at a time.
const ROWS_AT_ONCE: usize = 256;

/// How often rows that a rename has written are read again.
const LOOKS_MAX: u32 = 8;

/// The first wait for a rename to tell where the node is now; each further one is twice as long.
const MOVE_PAUSE: Duration = Duration::from_millis(1);

impl Domain {
    /// Stores changes of the persistent opens of a node. To be called before the change is answered.
    pub(in crate::share) async fn keep_opens(&self, key: NodeKey) -> Answer<()> {
        if !self.opens.has_persistent_at(key) {
            return Ok(());
        }
        // So that the last stored state is the last one that was read.
        let _turn = self.turn(&[turn_of(key)]).await;
        for look in 0..LOOKS_MAX {
            let changed = self.opens.changed_rows(key);
            let Some(first) = changed.first() else { return Ok(()) };
            let share = &first.handle.share;
            let ahead = self
                .transact(&[], async |mut transaction| {
                    // Nothing is added to a share that is being deleted.
                    let tree = Tree::open(&mut transaction, share).await;
                    let tree = tree.map_err(|failure| failure.map(refused))?;
                    if tree.share.id != key.share {
                        return Err(Failure::Refused(HandleRefusal::ShareNotFound));
                    }
                    let ahead = put_rows(&mut transaction, &changed).await?;
                    Ok((ahead, transaction))
                })
                .await?;
            if ahead.is_empty() {
                self.opens.note_kept(changed);
                return Ok(());
            }
            // A rename has written them, and will report the new place of the node in a moment.
            self.opens.note_kept(ahead);
            tokio::time::sleep(MOVE_PAUSE * (1 << look)).await;
        }
        Err(Failure::Busy)
    }

    /// As [`Domain::keep_opens`], after REST has moved a node.
    pub(in crate::share) async fn keep_moved(
        &self,
        moved: &Located,
    ) -> Result<(), Failure<FileRefusal>> {
        let key = NodeKey { share: moved.place.share(), node: moved.node.id };
        // A deletion of the share meanwhile wins.
        let gone = |_| FileRefusal::ShareNotFound;
        self.keep_opens(key).await.map_err(|failure| failure.map(gone))
    }

    /// As [`Domain::keep_opens`], after a client has given up an oplock.
    pub async fn keep_oplock(&self, handle: &Handle) -> Answer<()> {
        self.keep_opens(handle.key).await
    }

    /// As [`Domain::keep_opens`], after a client has given up a lease.
    pub async fn keep_lease(&self, client: ClientId, key: LeaseKey) -> Answer<()> {
        match self.opens.leased(client, key) {
            Some(node) => self.keep_opens(node).await,
            None => Ok(()),
        }
    }

    /// Removes the rows of closed opens. To be called before an operation that they blocked is
    /// answered: they must not come back after that.
    pub(in crate::share) async fn remove_rows_of_closed<R>(&self) -> Result<(), Failure<R>> {
        if !self.opens.has_closed_with_rows() {
            return Ok(());
        }
        let _alone = self.opens.removing_rows.lock().await;
        for closed in self.opens.closed_with_rows().chunks(ROWS_AT_ONCE) {
            let turns: Vec<Bytes> = closed.iter().map(|handle| turn_of(handle.key)).collect();
            let _turns = self.turn(&turns).await;
            self.transact(&[], async |mut transaction| {
                for handle in closed {
                    transaction.delete(row_key(handle));
                }
                Ok(((), transaction))
            })
            .await?;
            self.opens.note_rows_gone(closed);
        }
        Ok(())
    }

    /// Restores the persistent opens of the run before. Called once, before any request.
    pub async fn restore_opens(&self) -> Result<(), Failure<()>> {
        let snapshot = self.engine.snapshot().await?;
        let mut range = KeyRange::prefix(rows::all_opens());
        loop {
            let found = snapshot.scan(&range, Order::Ascending, ROWS_AT_ONCE).await?;
            let Some(last) = found.last() else { return Ok(()) };
            range = range.after(last.key.clone());
            for row in &found {
                self.restore_open(row).await?;
            }
        }
    }

    async fn restore_open(&self, row: &Row) -> Result<(), Failure<()>> {
        let (share, id) = rows::open_of(&row.key)?;
        let kept = KeptOpen::decode(&row.value)?;
        let address = NodeAddress::place(kept.share.clone(), kept.place(share), kept.node);
        match self.find_node(&address, ShareState::Current).await {
            Ok(_) => {
                self.opens.restore(id, share, &kept);
                Ok(())
            }
            // The node of the open was deleted.
            Err(Failure::Refused(_)) => {
                self.transact(&[], async |mut transaction| {
                    transaction.delete(row.key.clone());
                    Ok(((), transaction))
                })
                .await
            }
            Err(failure) => Err(failure.map(|_| ())),
        }
    }
}

/// Writes the rows, unless some of them were written by others: then returns those as they are.
async fn put_rows(
    transaction: &mut Transaction,
    changed: &[OpenRow],
) -> Result<Vec<OpenRow>, Fault> {
    let mut ahead = Vec::new();
    for row in changed {
        let stored = transaction.get(&row.key()).await?;
        if let Some(value) = stored.filter(|value| Some(value) != row.before.as_ref()) {
            ahead.push(OpenRow { value, ..row.clone() });
        }
    }
    if ahead.is_empty() {
        for row in changed {
            transaction.put(row.key(), row.value.clone());
        }
    }
    Ok(ahead)
}

/// The key of the latch for storing and removing rows of the opens of a node.
fn turn_of(key: NodeKey) -> Bytes {
    rows::open(key.share, key.node)
}
