//! Background work of queues: removing messages that have expired, and those of queues that
//! were deleted or cleared.

use std::collections::BTreeMap;

use bytes::Bytes;
use holdfast_store::{KeyRange, Order};

use super::live_queue::PendingChange;
use super::message::remove_rows;
use super::model::{Expiry, Message, Place};
use super::rows;
use crate::domain::Domain;
use crate::failure::Failure;
use crate::rows::Stored;
use crate::time::Timestamp;

/// Messages removed in one commit: enough to share a sync, few enough not to delay other commits.
const MESSAGES_PER_COMMIT: usize = 256;

/// A message may be moved by a commit that was decided before it expired. None takes this long, ten
/// seconds; otherwise the next run would find its row.
const COMMIT_TICKS_MAX: u64 = 10 * 10_000_000;

/// Where the removal of expired messages continues, so that removed rows are not scanned again.
#[derive(Default)]
pub(super) struct Upkeep {
    expired_until: Timestamp,
}

impl Domain {
    /// Does a piece of the work; returns whether there is more to do.
    pub async fn tend_queues(&self) -> Result<bool, Failure<()>> {
        let expired = self.remove_expired_messages().await?;
        let condemned = self.empty_condemned_queue().await?;
        Ok(expired || condemned)
    }

    async fn remove_expired_messages(&self) -> Result<bool, Failure<()>> {
        let now = self.now();
        let from = self.live_queues.upkeep.lock().expired_until;
        let range = rows::expiries(from, now);
        let (last, underway) = self
            .transact(&[], async |mut transaction| {
                let snapshot = transaction.snapshot();
                let found = snapshot.scan(&range, Order::Ascending, MESSAGES_PER_COMMIT).await?;
                let is_full = found.len() == MESSAGES_PER_COMMIT;
                let last = found.last().filter(|_| is_full).map(|row| row.key.clone());
                let mut places: BTreeMap<u64, Vec<Place>> = BTreeMap::new();
                for row in found {
                    let (queue, sequence) = rows::expiring(&row.key)?;
                    let Expiry { visible, text_is_apart } = Expiry::decode(&row.value)?;
                    let place = Place { visible, sequence };
                    // The row of the message is never changed without this one.
                    transaction.expect(row.key.clone());
                    transaction.delete(row.key);
                    transaction.delete(rows::message(queue, place));
                    if text_is_apart {
                        transaction.delete(rows::message_text(queue, sequence));
                    }
                    places.entry(queue).or_default().push(place);
                }
                let mut underway = Vec::with_capacity(places.len());
                for (queue, places) in places {
                    let mut removal = self.live_queues.of(queue).begin().await;
                    places.into_iter().for_each(|place| removal.will_remove(place));
                    underway.push(removal);
                }
                Ok(((last, underway), transaction))
            })
            .await?;
        underway.into_iter().for_each(PendingChange::committed);
        let until = match &last {
            Some(last) => rows::expiry_time(last)?,
            None => Timestamp::from_ticks(now.ticks().saturating_sub(COMMIT_TICKS_MAX)),
        };
        self.live_queues.upkeep.lock().expired_until = until;
        Ok(last.is_some())
    }

    /// Removes some messages of a queue that was deleted or cleared, and with the last ones the
    /// row that condemns it.
    async fn empty_condemned_queue(&self) -> Result<bool, Failure<()>> {
        let condemned = KeyRange::prefix(rows::condemned_queues());
        let snapshot = self.engine.snapshot().await?;
        let first = snapshot.scan(&condemned, Order::Ascending, 1).await?.into_iter().next();
        drop(snapshot);
        let Some(condemned_key) = first.map(|row| row.key) else { return Ok(false) };
        let queue = crate::rows::condemned_id(&condemned_key)?;
        let messages = rows::messages(queue);
        let rest = self.removal_progress.rest(&messages);
        let removed = self
            .transact(&[], async |mut transaction| {
                // Nothing else is written there: every change expects a queue with this number.
                let snapshot = transaction.snapshot();
                let found = snapshot.scan(&rest, Order::Ascending, MESSAGES_PER_COMMIT).await?;
                if found.len() < MESSAGES_PER_COMMIT {
                    transaction.delete(Bytes::clone(&condemned_key));
                }
                let mut removed = Vec::with_capacity(found.len());
                for row in found {
                    let place = rows::place(&row.key)?;
                    remove_rows(&mut transaction, queue, place, &Message::decode(&row.value)?);
                    removed.push(row.key);
                }
                Ok((removed, transaction))
            })
            .await?;
        self.removal_progress.removed(&[messages], &removed, removed.len() == MESSAGES_PER_COMMIT);
        Ok(true)
    }
}
