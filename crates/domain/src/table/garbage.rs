//! Removal of the entities of deleted tables.

use bytes::Bytes;
use holdfast_store::Order;

use super::rows;
use crate::domain::Domain;
use crate::failure::Failure;

/// Rows removed in one commit: enough to share a sync, few enough not to delay other commits.
const ROWS_PER_COMMIT: usize = 256;

impl Domain {
    /// Removes some of the entities of a deleted table, and with the last ones the row that condemns it.
    pub(crate) async fn empty_condemned_table(
        &self,
        condemned_key: &Bytes,
    ) -> Result<(), Failure<()>> {
        let entities = rows::entities(rows::table_of(condemned_key)?);
        let rest = self.removal_progress.rest(&entities);
        let removed = self
            .transact(&[], async |mut transaction| {
                // Nothing is added to them: a change reads the row of the table first.
                let snapshot = transaction.snapshot();
                let found = snapshot.scan(&rest, Order::Ascending, ROWS_PER_COMMIT).await?;
                let found: Vec<_> = found.into_iter().map(|row| row.key).collect();
                if found.len() < ROWS_PER_COMMIT {
                    transaction.delete(condemned_key.clone());
                }
                for key in &found {
                    transaction.delete(key.clone());
                }
                Ok((found, transaction))
            })
            .await?;
        self.removal_progress.removed(&[entities], &removed, removed.len() == ROWS_PER_COMMIT);
        Ok(())
    }
}
