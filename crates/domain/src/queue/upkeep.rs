//! What goes on behind the requests: removing messages that have expired, and those of queues that
//! were deleted or cleared.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use holdfast_store::{KeyRange, Order};

use super::known::Underway;
use super::message::remove_rows;
use super::model::{Expiry, Message, Place};
use super::rows;
use crate::domain::Domain;
use crate::failure::Failure;
use crate::rows::Stored;
use crate::time::Timestamp;

/// Messages removed in one commit: enough to share a sync, few enough not to delay other commits.
const MESSAGES_PER_COMMIT: usize = 256;

/// Removal goes on from where it was, and so does not pass the removed ones again. A message is
/// moved by a commit that was decided before it expired; none takes this long.
const COMMIT_TIME_MAX: Duration = Duration::from_secs(10);

impl Domain {
    /// Does a piece of that; whether there is more to do.
    pub async fn tend_queues(&self) -> Result<bool, Failure<()>> {
        let expired = self.remove_expired_messages().await?;
        let condemned = self.empty_condemned_queue().await?;
        Ok(expired || condemned)
    }

    async fn remove_expired_messages(&self) -> Result<bool, Failure<()>> {
        let now = self.now();
        let range = rows::expiries(*self.known_queues.expired_until.lock(), now);
        let (removed, underway) = self
            .transact(&[], async |mut transaction| {
                let snapshot = transaction.snapshot();
                let found = snapshot.scan(&range, Order::Ascending, MESSAGES_PER_COMMIT).await?;
                let removed = found.len();
                let mut underway: BTreeMap<u64, Underway> = BTreeMap::new();
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
                    if !underway.contains_key(&queue) {
                        underway.insert(queue, self.known_queues.of(queue).begin().await);
                    }
                    if let Some(underway) = underway.get_mut(&queue) {
                        underway.will_remove(place);
                    }
                }
                Ok(((removed, underway), transaction))
            })
            .await?;
        underway.into_values().for_each(Underway::committed);
        let more = removed == MESSAGES_PER_COMMIT;
        if !more {
            let margin = now.ticks().saturating_sub(ticks(COMMIT_TIME_MAX));
            *self.known_queues.expired_until.lock() = Timestamp::from_ticks(margin);
        }
        Ok(more)
    }

    /// Removes some messages of a queue that was deleted or cleared, and with the last ones its
    /// sentence.
    async fn empty_condemned_queue(&self) -> Result<bool, Failure<()>> {
        let condemned = KeyRange::prefix(rows::condemned_queues());
        let snapshot = self.engine.snapshot().await?;
        let first = snapshot.scan(&condemned, Order::Ascending, 1).await?.into_iter().next();
        drop(snapshot);
        let Some(sentence) = first.map(|row| row.key) else { return Ok(false) };
        let queue = crate::rows::condemned_id(&sentence)?;
        let messages = KeyRange::prefix(rows::messages(queue));
        self.transact(&[], async |mut transaction| {
            // Nobody else writes there: every change expects the row of a queue with this number.
            let snapshot = transaction.snapshot();
            let found = snapshot.scan(&messages, Order::Ascending, MESSAGES_PER_COMMIT).await?;
            if found.len() < MESSAGES_PER_COMMIT {
                transaction.delete(Bytes::clone(&sentence));
            }
            for row in found {
                let place = rows::place(&row.key)?;
                remove_rows(&mut transaction, queue, place, &Message::decode(&row.value)?);
            }
            Ok(((), transaction))
        })
        .await?;
        Ok(true)
    }
}

const fn ticks(duration: Duration) -> u64 {
    duration.as_secs() * 10_000_000
}
