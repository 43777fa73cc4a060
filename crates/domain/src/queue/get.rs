//! Get Messages and Peek Messages. Both read only the head of the queue.

use std::time::Duration;

use holdfast_store::Snapshot;

use super::live_queue::PendingChange;
use super::message::{Answer, MessageRefusal, leave_place, put_rows, queue_for, read_text};
use super::model::{Message, MessageState, Place, QueuePath, TextMessage};
use super::rows;
use crate::domain::Domain;
use crate::failure::{Failure, Fault};
use crate::rows::Stored;
use crate::time::Timestamp;
use crate::transact::Transaction;

pub struct GetMessages {
    pub path: QueuePath,
    pub count: usize,
    /// How long the messages are invisible to others.
    pub visibility_timeout: Duration,
}

pub struct PeekMessages {
    pub path: QueuePath,
    pub count: usize,
}

impl Domain {
    /// Returns visible messages and makes them invisible to others for a time.
    pub async fn get_messages(&self, command: GetMessages) -> Answer<Vec<TextMessage>> {
        let (messages, underway) = self
            .transact(&[], async |transaction| self.hand_out(&command, transaction).await)
            .await?;
        underway.committed();
        Ok(messages)
    }

    async fn hand_out(
        &self,
        command: &GetMessages,
        mut transaction: Transaction,
    ) -> Answer<((Vec<TextMessage>, PendingChange), Transaction)> {
        let mut queue = queue_for(&mut transaction, &command.path).await?.id;
        let mut underway = self.live_queues.of(queue).begin().await;
        loop {
            let places = underway.take(&*self.engine, command.count, self.clock()).await?;
            let places = places.to_vec();
            transaction = transaction.at(self.now());
            let found = read_places(transaction.snapshot(), queue, &places, transaction.now);
            let mut found = found.await?;
            if found.messages.is_empty() || !found.gone.is_empty() {
                // Only a snapshot taken after the places shows which of them are empty. What the
                // older one has read is unchanged if the commit succeeds.
                transaction = Transaction::begin(&*self.engine).await?.at(self.now());
                let current = queue_for(&mut transaction, &command.path).await?.id;
                if current != queue {
                    // The queue was cleared, or deleted and created again.
                    queue = current;
                    underway = self.live_queues.of(queue).begin().await;
                    continue;
                }
                let now = transaction.now;
                found = read_places(transaction.snapshot(), queue, &places, now).await?;
            }
            let Found { messages, gone } = found;
            if gone.is_empty() {
                let handed = self.move_all(command, &mut transaction, queue, messages);
                for (from, to) in places.iter().zip(&handed) {
                    transaction.expect(rows::message(queue, *from));
                    underway.will_put(to.state.receipt.place);
                }
                return Ok(((handed, underway), transaction));
            }
            underway.let_go(&gone);
        }
    }

    fn move_all(
        &self,
        command: &GetMessages,
        transaction: &mut Transaction,
        queue: u64,
        messages: Vec<(Place, Message, String)>,
    ) -> Vec<TextMessage> {
        let mut handed = Vec::with_capacity(messages.len());
        for (from, message, text) in messages {
            let (now, change) = (transaction.now, self.fresh_id());
            let (to, message) = decide_get(from, message, command.visibility_timeout, now, change);
            leave_place(transaction, queue, from);
            put_rows(transaction, queue, to, &message);
            handed.push(TextMessage { state: MessageState::of(queue, to, &message), text });
        }
        handed
    }

    /// The messages that Get Messages would return, unchanged.
    pub async fn peek_messages(&self, command: PeekMessages) -> Answer<Vec<TextMessage>> {
        loop {
            let queue = self.queue_number(&command.path).await?;
            let known = self.live_queues.of(queue);
            let places = known.peek(&*self.engine, command.count, self.clock()).await?;
            let (snapshot, now) = (self.engine.snapshot().await?, self.now());
            let Found { messages, gone } = read_places(&*snapshot, queue, &places, now).await?;
            if gone.is_empty() {
                let message = |(place, message, text)| TextMessage {
                    state: MessageState::of(queue, place, &message),
                    text,
                };
                return Ok(messages.into_iter().map(message).collect());
            }
            known.removed(&gone);
        }
    }

    async fn queue_number(&self, path: &QueuePath) -> Answer<u64> {
        let queue = self.find_queue(path).await?;
        Ok(queue.ok_or(Failure::Refused(MessageRefusal::QueueNotFound))?.id)
    }
}

#[derive(Default)]
struct Found {
    messages: Vec<(Place, Message, String)>,
    /// Places without a message to return.
    gone: Vec<Place>,
}

async fn read_places(
    snapshot: &dyn Snapshot,
    queue: u64,
    places: &[Place],
    now: Timestamp,
) -> Result<Found, Fault> {
    let mut found = Found::default();
    for place in places {
        let row = snapshot.get(&rows::message(queue, *place)).await?;
        match row.map(|row| Message::decode(&row)).transpose()? {
            Some(message) if !message.has_expired(now) => {
                let text = read_text(snapshot, queue, place.sequence, &message.text).await?;
                found.messages.push((*place, message, text));
            }
            Some(_) | None => found.gone.push(*place),
        }
    }
    Ok(found)
}

/// The new place of a message that is returned, and its state there.
fn decide_get(
    from: Place,
    mut message: Message,
    visibility_timeout: Duration,
    now: Timestamp,
    change: u64,
) -> (Place, Message) {
    message.dequeue_count = message.dequeue_count.saturating_add(1);
    message.change = change;
    (Place { visible: now.plus(visibility_timeout), sequence: from.sequence }, message)
}
