//! What the operations on messages share: their refusals, and the rows of a message.

use holdfast_store::{Fault, Snapshot};

use super::model::{Expiry, Message, Place, Queue, QueuePath, Text};
use super::rows;
use crate::domain::read;
use crate::failure::Failure;
use crate::rows::Stored;
use crate::time::Timestamp;
use crate::transact::Transaction;

/// A longer text has its own row, which is not written again at each change of the message.
const TEXT_BYTES_IN_ROW_MAX: usize = 4 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRefusal {
    QueueNotFound,
    /// There is no such message, or the receipt is not the current one of it.
    NotFound,
    /// The receipt belongs to another message.
    ReceiptOfOther,
    /// It would become visible only after it has expired. It can be invisible for so many seconds.
    InvisiblePastExpiry {
        seconds_max: u64,
    },
}

pub(super) type Answer<T> = Result<T, Failure<MessageRefusal>>;

/// The queue, which must be unchanged when the change commits.
pub(super) async fn queue_for(transaction: &mut Transaction, path: &QueuePath) -> Answer<Queue> {
    let queue = read(transaction, &path.key()).await?;
    queue.ok_or(Failure::Refused(MessageRefusal::QueueNotFound))
}

pub(super) fn put_rows(transaction: &mut Transaction, queue: u64, place: Place, message: &Message) {
    transaction.put(rows::message(queue, place), message.encode());
    if message.expires < Timestamp::MAX {
        let expiry = Expiry { visible: place.visible, text_is_apart: message.text.is_apart() };
        let key = rows::expiry(message.expires, queue, place.sequence);
        transaction.put(key, expiry.encode());
    }
}

/// The message leaves its place for another one.
pub(super) fn leave_place(transaction: &mut Transaction, queue: u64, place: Place) {
    transaction.delete(rows::message(queue, place));
}

pub(super) fn remove_rows(
    transaction: &mut Transaction,
    queue: u64,
    place: Place,
    message: &Message,
) {
    leave_place(transaction, queue, place);
    if message.expires < Timestamp::MAX {
        transaction.delete(rows::expiry(message.expires, queue, place.sequence));
    }
    if message.text.is_apart() {
        transaction.delete(rows::message_text(queue, place.sequence));
    }
}

/// Stores a text and returns where.
pub(super) fn put_text(
    transaction: &mut Transaction,
    queue: u64,
    sequence: u64,
    text: &str,
) -> Text {
    if text.len() <= TEXT_BYTES_IN_ROW_MAX {
        return Text::Here(text.to_owned());
    }
    transaction.put(rows::message_text(queue, sequence), text.as_bytes().to_vec());
    Text::Apart
}

/// A text changes only together with the row of its message, from the same snapshot.
pub(super) async fn read_text(
    snapshot: &dyn Snapshot,
    queue: u64,
    sequence: u64,
    text: &Text,
) -> Result<String, Fault> {
    match text {
        Text::Here(text) => Ok(text.clone()),
        Text::Apart => {
            let row = snapshot.get(&rows::message_text(queue, sequence)).await?;
            let row = row.ok_or_else(|| Fault::new("the text of a message is missing"))?;
            String::from_utf8(row.into())
                .map_err(|why| Fault::because("the text of a message is corrupt", why))
        }
    }
}
