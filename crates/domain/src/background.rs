//! What goes on behind the requests: recording the time, removing the blobs of deleted containers,
//! collecting the bytes that a crash left without a row. Each function does a bounded piece of
//! work; the server decides how often.

use holdfast_store::{Fault, KeyRange, Order};

use crate::blob::Blob;
use crate::content::{self, Released};
use crate::domain::{Domain, read};
use crate::failure::Failure;
use crate::rows;

/// Blobs removed in one commit: enough to share a sync, few enough not to delay other commits.
const BLOBS_PER_COMMIT: usize = 256;
/// Rows of extents read at a time.
const EXTENT_ROWS_PER_SCAN: usize = 4096;

impl Domain {
    /// Due every few seconds, see [`crate::recorded_time`].
    pub async fn keep_time(&self) -> Result<(), Failure<()>> {
        Ok(self.record_time().await?)
    }

    /// Removes blobs of deleted containers; whether there is more to do.
    pub async fn collect_deleted_containers(&self) -> Result<bool, Failure<()>> {
        let snapshot = self.engine.snapshot().await?;
        let condemned = KeyRange::prefix(rows::condemned_containers());
        let Some(row) = snapshot.scan(&condemned, Order::Ascending, 1).await?.pop() else {
            return Ok(false);
        };
        drop(snapshot);
        let container = rows::condemned_container_id(&row.key)?;
        let blobs = KeyRange::prefix(rows::blobs(container, ""));
        let (removed, released) = self
            .transact(&[], async |mut transaction| {
                let (mut removed, mut released) = (Vec::new(), Released::default());
                let found = transaction.scan(&blobs, BLOBS_PER_COMMIT).await?;
                if found.is_empty() {
                    transaction.delete(row.key.clone());
                }
                for blob_row in found {
                    let blob: Option<Blob> = read(&mut transaction, &blob_row.key).await?;
                    if let Some(blob) = blob {
                        released.extend(content::release(&mut transaction, &blob.content).await?);
                    }
                    transaction.delete(blob_row.key.clone());
                    removed.push(blob_row.key);
                }
                Ok(((removed, released), transaction))
            })
            .await?;
        for key in &removed {
            self.live_leases.forget(key);
        }
        released.free(&*self.extents);
        Ok(true)
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
