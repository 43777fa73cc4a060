//! Update Message and Delete Message: what the holder of a receipt can do.

use std::time::Duration;

use super::message::{
    Answer, MessageRefusal, leave_place, put_rows, put_text, queue_for, remove_rows,
};
use super::model::{Message, MessageId, MessageState, Place, PopReceipt, QueuePath};
use super::rows;
use crate::domain::{Domain, read};
use crate::failure::Failure;
use crate::time::Timestamp;

pub struct UpdateMessage {
    pub path: QueuePath,
    /// `None` for a text that never was an id.
    pub id: Option<MessageId>,
    pub receipt: PopReceipt,
    pub visibility_timeout: Duration,
    /// The new text; without one it stays.
    pub text: Option<String>,
}

pub struct DeleteMessage {
    pub path: QueuePath,
    /// `None` for a text that never was an id.
    pub id: Option<MessageId>,
    pub receipt: PopReceipt,
}

impl Domain {
    /// The receipt becomes invalid; the returned state has the next one.
    pub async fn update_message(&self, command: UpdateMessage) -> Answer<MessageState> {
        let from = command.receipt.place;
        let (state, underway) = self
            .transact(&[], async |mut transaction| {
                let queue = queue_for(&mut transaction, &command.path).await?.id;
                let mut underway = self.live_queues.of(queue).begin().await;
                check_named(command.id, queue, command.receipt).map_err(Failure::Refused)?;
                let found = read(&mut transaction, &rows::message(queue, from)).await?;
                let (now, change) = (transaction.now, self.fresh_id());
                let message = decide_change(found, command.receipt, now);
                let message = message.map_err(Failure::Refused)?;
                let (to, mut message) =
                    decide_update(from, message, command.visibility_timeout, now, change)
                        .map_err(Failure::Refused)?;
                if let Some(text) = &command.text {
                    if message.text.is_apart() {
                        transaction.delete(rows::message_text(queue, from.sequence));
                    }
                    message.text = put_text(&mut transaction, queue, from.sequence, text);
                }
                leave_place(&mut transaction, queue, from);
                put_rows(&mut transaction, queue, to, &message);
                underway.will_leave(from);
                underway.will_put(to);
                Ok(((MessageState::of(queue, to, &message), underway), transaction))
            })
            .await?;
        underway.committed();
        Ok(state)
    }

    pub async fn delete_message(&self, command: DeleteMessage) -> Answer<()> {
        let place = command.receipt.place;
        let underway = self
            .transact(&[], async |mut transaction| {
                let queue = queue_for(&mut transaction, &command.path).await?.id;
                let mut underway = self.live_queues.of(queue).begin().await;
                check_named(command.id, queue, command.receipt).map_err(Failure::Refused)?;
                let found = read(&mut transaction, &rows::message(queue, place)).await?;
                let message = decide_change(found, command.receipt, transaction.now)
                    .map_err(Failure::Refused)?;
                remove_rows(&mut transaction, queue, place, &message);
                underway.will_remove(place);
                Ok((underway, transaction))
            })
            .await?;
        underway.committed();
        Ok(())
    }
}

/// Whether the id belongs to the current queue, and the receipt to that message.
fn check_named(
    id: Option<MessageId>,
    queue: u64,
    receipt: PopReceipt,
) -> Result<(), MessageRefusal> {
    match id {
        Some(id) if id.queue == queue && id.sequence == receipt.place.sequence => Ok(()),
        Some(id) if id.queue == queue => Err(MessageRefusal::ReceiptOfOther),
        Some(_) | None => Err(MessageRefusal::NotFound),
    }
}

/// The message, if `found` at the place of the receipt is the one that the receipt was given for.
fn decide_change(
    found: Option<Message>,
    receipt: PopReceipt,
    now: Timestamp,
) -> Result<Message, MessageRefusal> {
    let current = |message: &Message| message.change == receipt.change && !message.has_expired(now);
    found.filter(current).ok_or(MessageRefusal::NotFound)
}

/// The new place of an updated message, and its state without the text.
fn decide_update(
    from: Place,
    mut message: Message,
    visibility_timeout: Duration,
    now: Timestamp,
    change: u64,
) -> Result<(Place, Message), MessageRefusal> {
    let visible = now.plus(visibility_timeout);
    if visible > message.expires {
        let seconds_max = message.expires.since(now).as_secs();
        return Err(MessageRefusal::InvisiblePastExpiry { seconds_max });
    }
    message.change = change;
    Ok((Place { visible, sequence: from.sequence }, message))
}

#[cfg(test)]
mod tests {
    use super::super::model::Text;
    use super::*;

    const NOW: Timestamp = Timestamp::from_ticks(1_000_000_000);
    const FROM: Place = Place { visible: Timestamp::from_ticks(5), sequence: 3 };
    const RECEIPT: PopReceipt = PopReceipt { place: FROM, change: 9 };

    fn message(change: u64, expires: Timestamp) -> Message {
        let text = Text::Here("text".to_owned());
        Message { inserted: NOW, expires, dequeue_count: 1, change, text }
    }

    #[test]
    fn a_receipt_is_for_one_message_of_the_queue_as_it_is() {
        use MessageRefusal::{NotFound, ReceiptOfOther};
        let id = |queue, sequence| Some(MessageId { sequence, queue });
        for (cell, id, expected) in [
            ("5 the message's own receipt", id(7, 3), Ok(())),
            ("5 receipt of another message", id(7, 4), Err(ReceiptOfOther)),
            ("5 message of the queue before it was cleared", id(6, 3), Err(NotFound)),
            ("5 no id at all", None, Err(NotFound)),
        ] {
            assert_eq!(check_named(id, 7, RECEIPT), expected, "{cell}");
        }
    }

    #[test]
    fn a_receipt_ends_with_the_next_change_and_with_the_message() {
        let later = NOW.plus(Duration::from_secs(60));
        for (cell, found, valid) in [
            ("5 current", Some(message(9, later)), true),
            ("5 never expires", Some(message(9, Timestamp::MAX)), true),
            ("5 dequeued again, or updated", None, false),
            ("5 at the same place again", Some(message(10, later)), false),
            ("5 expires", Some(message(9, NOW)), false),
        ] {
            assert_eq!(decide_change(found, RECEIPT, NOW).is_ok(), valid, "{cell}");
        }
    }

    #[test]
    fn an_update_does_not_hide_a_message_beyond_its_expiry() {
        let expires = NOW.plus(Duration::from_secs(60));
        let update = |seconds| {
            let time = Duration::from_secs(seconds);
            decide_update(FROM, message(9, expires), time, NOW, 10)
        };
        let (place, updated) = update(60).expect("up to its expiry");
        assert_eq!((place.visible, place.sequence), (expires, FROM.sequence));
        assert_eq!((updated.change, updated.dequeue_count), (10, 1));
        assert_eq!(update(0).expect("visible at once").0.visible, NOW);
        let refused = MessageRefusal::InvisiblePastExpiry { seconds_max: 60 };
        assert_eq!(update(61), Err(refused));
    }
}
