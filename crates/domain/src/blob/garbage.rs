//! Removal of what deleted containers held, and of abandoned blocks.

use bytes::Bytes;
use holdfast_store::{Fault, Row};

use super::model::{Blob, Block, ContainerPlace, PastBlob, Upload};
use super::rows;
use crate::content;
use crate::domain::{Domain, read};
use crate::failure::Failure;
use crate::rows::{NOTHING, Stored, condemned_id};
use crate::transact::Transaction;

/// Rows removed in one commit: enough to share a sync, few enough not to delay other commits.
const ROWS_PER_COMMIT: usize = 256;

impl Domain {
    /// Removes some of what a deleted container held, and with the last of it the row that condemns it.
    pub(crate) async fn empty_condemned_container(
        &self,
        condemned_key: &Bytes,
    ) -> Result<(), Failure<()>> {
        let container = condemned_id(condemned_key)?;
        let place = rows::container_place(container);
        let kinds: [(Bytes, Release); 3] = [
            (rows::blobs(container, ""), release_blob),
            (rows::all_past_blobs(container), release_past),
            (rows::uploads(container, ""), release_upload),
        ];
        let removed = self
            .transact(&[], async |mut transaction| {
                let account = read(&mut transaction, &place).await?;
                let account = account.map(|ContainerPlace { account, .. }| account);
                let account = account.unwrap_or_default();
                let mut removed = Vec::new();
                for (prefix, release) in &kinds {
                    let room = ROWS_PER_COMMIT - removed.len();
                    let rest = self.removal_progress.rest(prefix);
                    for row in transaction.scan(&rest, room).await? {
                        release(&mut transaction, &account, &row)?;
                        transaction.delete(row.key.clone());
                        removed.push(row.key);
                    }
                }
                if removed.len() < ROWS_PER_COMMIT {
                    transaction.delete(condemned_key.clone());
                    transaction.delete(place.clone());
                }
                Ok((removed, transaction))
            })
            .await?;
        self.removal_progress.removed(
            &kinds.map(|(prefix, _)| prefix),
            &removed,
            removed.len() == ROWS_PER_COMMIT,
        );
        for key in &removed {
            self.live_leases.forget(key);
        }
        Ok(())
    }

    /// Removes some of the blocks of an abandoned upload, and with the last ones the row that
    /// condemns it.
    pub(crate) async fn remove_condemned_upload(
        &self,
        condemned_key: &Bytes,
    ) -> Result<(), Failure<()>> {
        let blocks = rows::blocks(condemned_id(condemned_key)?);
        let rest = self.removal_progress.rest(&blocks);
        let removed = self
            .transact(&[], async |mut transaction| {
                let found = transaction.scan(&rest, ROWS_PER_COMMIT).await?;
                if found.len() < ROWS_PER_COMMIT {
                    transaction.delete(condemned_key.clone());
                }
                for row in &found {
                    content::release_part(&mut transaction, &Block::decode(&row.value)?.part);
                    transaction.delete(row.key.clone());
                }
                let removed = found.into_iter().map(|row| row.key).collect::<Vec<_>>();
                Ok((removed, transaction))
            })
            .await?;
        self.removal_progress.removed(&[blocks], &removed, removed.len() == ROWS_PER_COMMIT);
        Ok(())
    }
}

/// Releases what a row in a container of this account refers to, and what refers to the row.
type Release = fn(&mut Transaction, &str, &Row) -> Result<(), Fault>;

fn release_blob(transaction: &mut Transaction, account: &str, row: &Row) -> Result<(), Fault> {
    let blob = Blob::decode(&row.value)?;
    let container = rows::container_of(&row.key)?;
    for tag in blob.tags.iter() {
        let name = rows::blob_name(&row.key)?;
        transaction.delete(rows::tag(account, tag, container, name, None));
    }
    content::release(transaction, &blob.content);
    Ok(())
}

fn release_past(transaction: &mut Transaction, account: &str, row: &Row) -> Result<(), Fault> {
    let blob = PastBlob::decode(&row.value)?.blob;
    let container = rows::container_of(&row.key)?;
    for tag in blob.tags.iter() {
        let (name, moment) = rows::past_blob_name(&row.key)?;
        transaction.delete(rows::tag(account, tag, container, name, Some(moment)));
    }
    content::release(transaction, &blob.content);
    Ok(())
}

fn release_upload(transaction: &mut Transaction, _: &str, row: &Row) -> Result<(), Fault> {
    let upload = Upload::decode(&row.value)?;
    transaction.put(rows::condemned_upload(upload.id), NOTHING);
    Ok(())
}
