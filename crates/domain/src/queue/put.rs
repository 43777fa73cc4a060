//! Put Message.

use std::time::Duration;

use super::message::{Answer, put_rows, put_text, queue_for};
use super::model::{Message, MessageState, Place, QueuePath};
use crate::domain::Domain;
use crate::time::Timestamp;

/// For a message whose sender gives none.
pub const TIME_TO_LIVE_DEFAULT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

pub struct PutMessage {
    pub path: QueuePath,
    pub text: String,
    /// How long it is invisible at first.
    pub delay: Duration,
    /// `None` if it never expires.
    pub time_to_live: Option<Duration>,
}

impl Domain {
    pub async fn put_message(&self, command: PutMessage) -> Answer<MessageState> {
        let (state, underway) = self
            .transact(&[], async |mut transaction| {
                let queue = queue_for(&mut transaction, &command.path).await?.id;
                let mut underway = self.live_queues.of(queue).begin().await;
                let (now, sequence) = (transaction.now, self.fresh_id());
                let place = Place { visible: now.plus(command.delay), sequence };
                let message = Message {
                    inserted: now,
                    expires: command.time_to_live.map_or(Timestamp::MAX, |time| now.plus(time)),
                    dequeue_count: 0,
                    change: sequence,
                    text: put_text(&mut transaction, queue, sequence, &command.text),
                };
                underway.will_add(place);
                put_rows(&mut transaction, queue, place, &message);
                Ok(((MessageState::of(queue, place, &message), underway), transaction))
            })
            .await?;
        underway.committed();
        Ok(state)
    }
}
