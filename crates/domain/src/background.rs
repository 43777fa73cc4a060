//! What goes on behind the requests: recording the time, removing what was deleted,
//! collecting the bytes that a crash left without a row. Each function does a bounded piece of
//! work; the server decides how often.

use bytes::Bytes;
use holdfast_store::{Fault, KeyRange, Order, Row};

use crate::blob::{Blob, Block, ContainerPlace, Past, Upload};
use crate::content;
use crate::domain::{Domain, read};
use crate::failure::Failure;
use crate::rows::{self, Stored};
use crate::transact::Transaction;
use crate::{share, table};

/// Rows removed in one commit: enough to share a sync, few enough not to delay other commits.
const ROWS_PER_COMMIT: usize = 256;
/// Rows of extents read at a time.
const EXTENT_ROWS_PER_SCAN: usize = 4096;

impl Domain {
    /// Due every few seconds, see [`crate::recorded_time`].
    pub async fn keep_time(&self) -> Result<(), Failure<()>> {
        Ok(self.record_time().await?)
    }

    /// Removes what deleted containers, tables, shares and snapshots held and contents that nothing has
    /// any more; whether there is more to do.
    pub async fn collect_garbage(&self) -> Result<bool, Failure<()>> {
        let snapshot = self.engine.snapshot().await?;
        let first = async |prefix| {
            let found = snapshot.scan(&KeyRange::prefix(prefix), Order::Ascending, 1).await?;
            Ok::<_, Fault>(found.into_iter().next().map(|row| row.key))
        };
        let container = first(rows::condemned_containers()).await?;
        let map = first(rows::condemned_maps()).await?;
        let upload = first(rows::condemned_uploads()).await?;
        let table = first(table::rows::condemned_tables()).await?;
        let share = first(share::condemned_shares()).await?;
        let share_snapshot = first(share::condemned_snapshots()).await?;
        let layered_map = content::first_layered_map(&*snapshot).await?;
        drop(snapshot);
        let more = container.is_some() || map.is_some() || upload.is_some() || table.is_some();
        let more = more || share.is_some() || share_snapshot.is_some() || layered_map.is_some();
        if let Some(key) = container {
            self.empty_condemned_container(&key).await?;
        }
        if let Some(key) = map {
            content::remove_condemned_map(self, rows::condemned_id(&key)?).await?;
        }
        if let Some(key) = upload {
            self.remove_condemned_upload(&key).await?;
        }
        if let Some(key) = table {
            self.empty_condemned_table(&key).await?;
        }
        if let Some(key) = share {
            self.empty_condemned_share(&key).await?;
        }
        if let Some(key) = share_snapshot {
            self.prune_past_nodes(&key).await?;
        }
        if let Some(map) = layered_map {
            match content::fill_layered_map(self, map).await {
                // Its content is written all the time; what is not filled now can wait.
                Ok(()) | Err(Failure::Busy) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(more)
    }

    /// Removes some of what a deleted container held, and with the last of it the row that condemns it.
    async fn empty_condemned_container(&self, condemned_key: &Bytes) -> Result<(), Failure<()>> {
        let container = rows::condemned_id(condemned_key)?;
        let place = rows::container_place(container);
        let kinds: [(Bytes, Release); 3] = [
            (rows::blobs(container, ""), release_blob),
            (rows::pasts(container), release_past),
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
                    let rest = self.emptying.rest(prefix);
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
        self.emptying.removed(
            &kinds.map(|(prefix, _)| prefix),
            &removed,
            removed.len() == ROWS_PER_COMMIT,
        );
        for key in &removed {
            self.live_leases.forget(key);
        }
        Ok(())
    }

    /// Removes some of the blocks of an upload that was given up, and with the last ones the
    /// row that condemns it.
    async fn remove_condemned_upload(&self, condemned_key: &Bytes) -> Result<(), Failure<()>> {
        let blocks = rows::blocks(rows::condemned_id(condemned_key)?);
        let rest = self.emptying.rest(&blocks);
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
                Ok((keys(found), transaction))
            })
            .await?;
        self.emptying.removed(&[blocks], &removed, removed.len() == ROWS_PER_COMMIT);
        Ok(())
    }

    /// Removes some of the entities of a deleted table, and with the last ones the row that condemns it.
    async fn empty_condemned_table(&self, condemned_key: &Bytes) -> Result<(), Failure<()>> {
        let entities = table::rows::entities(table::rows::table_of(condemned_key)?);
        let rest = self.emptying.rest(&entities);
        let removed = self
            .transact(&[], async |mut transaction| {
                // Nobody adds to them: whoever did would have to read the row of the table.
                let snapshot = transaction.snapshot();
                let found = keys(snapshot.scan(&rest, Order::Ascending, ROWS_PER_COMMIT).await?);
                if found.len() < ROWS_PER_COMMIT {
                    transaction.delete(condemned_key.clone());
                }
                for key in &found {
                    transaction.delete(key.clone());
                }
                Ok((found, transaction))
            })
            .await?;
        self.emptying.removed(&[entities], &removed, removed.len() == ROWS_PER_COMMIT);
        Ok(())
    }

    /// Frees what earlier runs wrote into extents without ever committing a row that names it.
    /// Once, after opening.
    pub async fn collect_orphaned_extents(&self) -> Result<(), Fault> {
        for segment in self.extents.inherited_segments() {
            let snapshot = self.engine.snapshot().await?;
            let mut range = KeyRange::prefix(rows::extents_of_segment(segment));
            let mut live = Vec::new();
            loop {
                let found = snapshot.scan(&range, Order::Ascending, EXTENT_ROWS_PER_SCAN).await?;
                for row in &found {
                    live.push(content::named_extent(&row.key, &row.value)?);
                }
                match found.last() {
                    Some(last) if found.len() == EXTENT_ROWS_PER_SCAN => {
                        range = range.after(last.key.clone());
                    }
                    Some(_) | None => break,
                }
            }
            self.extents.keep_only(segment, &live);
        }
        Ok(())
    }
}

fn keys(rows: Vec<Row>) -> Vec<Bytes> {
    rows.into_iter().map(|row| row.key).collect()
}

/// Lets go of what a row in a container of this account refers to, and of what refers to the row.
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
    let blob = Past::decode(&row.value)?.blob;
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
    transaction.put(rows::condemned_upload(upload.id), rows::NOTHING);
    Ok(())
}
