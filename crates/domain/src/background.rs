//! Background work that belongs to no service: recording the time, removing what was deleted,
//! collecting the bytes that a crash left without a row. Each function does a bounded piece of
//! work; the server decides how often.

use holdfast_store::{Fault, KeyRange, Order};

use crate::domain::Domain;
use crate::failure::Failure;
use crate::rows::condemned_id;
use crate::{blob, content, share, table};

/// Rows of extents read at a time.
const EXTENT_ROWS_PER_SCAN: usize = 4096;

impl Domain {
    /// Due every few seconds, see [`crate::recorded_time`].
    pub async fn keep_time(&self) -> Result<(), Failure<()>> {
        Ok(self.record_time().await?)
    }

    /// Removes what deleted containers, tables, shares and snapshots held, and contents without
    /// references. Returns whether there is more to do.
    pub async fn collect_garbage(&self) -> Result<bool, Failure<()>> {
        let snapshot = self.engine.snapshot().await?;
        let first = async |prefix| {
            let found = snapshot.scan(&KeyRange::prefix(prefix), Order::Ascending, 1).await?;
            Ok::<_, Fault>(found.into_iter().next().map(|row| row.key))
        };
        let container = first(blob::rows::condemned_containers()).await?;
        let map = first(content::rows::condemned_maps()).await?;
        let upload = first(blob::rows::condemned_uploads()).await?;
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
            content::remove_condemned_map(self, condemned_id(&key)?).await?;
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
                // Its content is being written; the rest can be filled later.
                Ok(()) | Err(Failure::Busy) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(more)
    }

    /// Frees what earlier runs wrote into extents without committing a row that names it. Called
    /// once, after opening.
    pub async fn collect_orphaned_extents(&self) -> Result<(), Fault> {
        for segment in self.extents.inherited_segments() {
            let snapshot = self.engine.snapshot().await?;
            let mut range = KeyRange::prefix(content::rows::extents_of_segment(segment));
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
