//! What is stored of a queue and of its messages, and how clients name a message.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::access::StoredPolicy;
use crate::metadata::Metadata;
use crate::names::{AccountName, QueueName};
use crate::rows::Stored;
use crate::time::Timestamp;

use super::rows;

#[derive(Clone, Debug)]
pub struct QueuePath {
    pub account: AccountName,
    pub queue: QueueName,
}

impl QueuePath {
    pub(super) fn key(&self) -> bytes::Bytes {
        rows::queue(self.account.as_str(), self.queue.as_str())
    }

    pub(super) fn hold_key(&self) -> bytes::Bytes {
        rows::held_queue_name(self.account.as_str(), self.queue.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Part of the keys of its messages. A queue that is cleared gets a new one, and so is empty.
    pub(super) id: u64,
    pub metadata: Metadata,
    pub policies: Vec<StoredPolicy>,
}

impl Stored for Queue {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "a queue";
}

/// The place of a message in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// When it becomes visible.
    pub visible: Timestamp,
    /// Its number, which never changes; messages of one instant are in the order in which they were
    /// put.
    pub sequence: u64,
}

impl Place {
    /// Before every message.
    pub const START: Self = Self { visible: Timestamp::from_ticks(0), sequence: 0 };

    /// The last place that is visible at `now`.
    pub const fn last_at(now: Timestamp) -> Self {
        Self { visible: now, sequence: u64::MAX }
    }

    /// The greatest place before this one.
    pub const fn before(self) -> Self {
        match (self.sequence.checked_sub(1), self.visible.ticks().checked_sub(1)) {
            (Some(sequence), _) => Self { visible: self.visible, sequence },
            (None, Some(ticks)) => Self::last_at(Timestamp::from_ticks(ticks)),
            (None, None) => Self::START,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Message {
    pub inserted: Timestamp,
    /// [`Timestamp::MAX`] if it never does.
    pub expires: Timestamp,
    pub dequeue_count: u32,
    /// The number of the change that put it there: the current receipt has it, earlier ones do not.
    pub change: u64,
    pub text: Text,
}

impl Stored for Message {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "a message";
}

impl Message {
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires <= now
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Text {
    Here(String),
    /// In its own row, so that getting a long message does not write the text again.
    Apart,
}

impl Text {
    pub const fn is_apart(&self) -> bool {
        matches!(self, Self::Apart)
    }
}

/// The value of a row that is found by the time of its expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Expiry {
    pub visible: Timestamp,
    pub text_is_apart: bool,
}

impl Stored for Expiry {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "the expiry of a message";
}

/// Unique over the messages of all queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageId {
    pub(super) sequence: u64,
    pub(super) queue: u64,
}

impl MessageId {
    /// `None` for a text that never was an id.
    pub fn parse(text: &str) -> Option<Self> {
        let (sequence, queue) = Uuid::try_parse(text).ok()?.as_u64_pair();
        Some(Self { sequence, queue })
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Uuid::from_u64_pair(self.sequence, self.queue).fmt(formatter)
    }
}

/// Returned by a change of a message and required by the next one: it names the place of the
/// message, so that a receipt that is not current finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PopReceipt {
    pub(super) place: Place,
    pub(super) change: u64,
}

impl PopReceipt {
    pub const BYTES: usize = 24;

    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let numbers = [self.place.visible.ticks(), self.place.sequence, self.change];
        for (chunk, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            chunk.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let number = |at: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&bytes[at..at + 8]);
            u64::from_be_bytes(eight)
        };
        let place = Place { visible: Timestamp::from_ticks(number(0)), sequence: number(8) };
        Self { place, change: number(16) }
    }
}

/// What clients are told of a message, without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageState {
    pub id: MessageId,
    pub inserted: Timestamp,
    pub expires: Timestamp,
    pub next_visible: Timestamp,
    pub receipt: PopReceipt,
    pub dequeue_count: u32,
}

impl MessageState {
    pub(super) fn of(queue: u64, place: Place, message: &Message) -> Self {
        Self {
            id: MessageId { sequence: place.sequence, queue },
            inserted: message.inserted,
            expires: message.expires,
            next_visible: place.visible,
            receipt: PopReceipt { place, change: message.change },
            dequeue_count: message.dequeue_count,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextMessage {
    pub state: MessageState,
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(ticks: u64, sequence: u64) -> Place {
        Place { visible: Timestamp::from_ticks(ticks), sequence }
    }

    #[test]
    fn ids_and_receipts_come_back_as_they_were_given_out() {
        let id = MessageId { sequence: 0x08DE_0123_4567_89AB, queue: 7 };
        assert_eq!(id.to_string(), "08de0123-4567-89ab-0000-000000000007");
        assert_eq!(MessageId::parse(&id.to_string()), Some(id));
        assert_eq!(MessageId::parse("message"), None);
        let receipt = PopReceipt { place: place(5, 3), change: 9 };
        assert_eq!(PopReceipt::from_bytes(receipt.to_bytes()), receipt);
    }

    #[test]
    fn the_place_before_is_the_greatest_smaller_one() {
        for (of, before) in [
            (place(5, 3), place(5, 2)),
            (place(5, 0), place(4, u64::MAX)),
            (Place::START, Place::START),
        ] {
            assert_eq!(of.before(), before);
            assert!(before <= of);
        }
    }
}
