//! The keys of the rows of the Queue service.
//!
//! The messages of a queue are in the order in which they become visible, so that getting some is a
//! seek and a short scan that ends at the present: invisible ones come after it. A second row for
//! each message that expires is ordered by that time, over all queues.

use bytes::{BufMut, Bytes};
use holdfast_store::{Fault, KeyRange};

use super::model::Place;
use crate::rows::{corrupt, named, number_at, numbered, text};
use crate::time::Timestamp;

const QUEUE: u8 = b'Q';
const HELD_QUEUE_NAME: u8 = b'H';
const CONDEMNED_QUEUE: u8 = b'D';
const MESSAGE: u8 = b'M';
const MESSAGE_TEXT: u8 = b'B';
const EXPIRY: u8 = b'X';

/// All queues of an account whose names begin with `prefix`.
pub fn queues(account: &str, prefix: &str) -> Bytes {
    let mut key = named(QUEUE, account);
    key.put_slice(prefix.as_bytes());
    key.freeze()
}

pub fn queue(account: &str, name: &str) -> Bytes {
    queues(account, name)
}

/// The name in a key made by [`queue`].
pub fn queue_name<'key>(account: &str, key: &'key [u8]) -> Result<&'key str, Fault> {
    text(key.get(account.len() + 2..))
}

pub fn held_queue_name(account: &str, name: &str) -> Bytes {
    let mut key = named(HELD_QUEUE_NAME, account);
    key.put_slice(name.as_bytes());
    key.freeze()
}

pub fn condemned_queues() -> Bytes {
    Bytes::from_static(&[CONDEMNED_QUEUE])
}

/// Marks the messages of this queue number for removal.
pub fn condemned_queue(queue: u64) -> Bytes {
    numbered(CONDEMNED_QUEUE, queue).freeze()
}

pub fn messages(queue: u64) -> Bytes {
    numbered(MESSAGE, queue).freeze()
}

pub fn message(queue: u64, place: Place) -> Bytes {
    let mut key = numbered(MESSAGE, queue);
    key.put_u64(place.visible.ticks());
    key.put_u64(place.sequence);
    key.freeze()
}

/// The messages after `after` that are visible at `now`.
pub fn messages_visible(queue: u64, after: Place, now: Timestamp) -> KeyRange {
    let first_invisible = Place { visible: now.next(), sequence: 0 };
    KeyRange::prefix(messages(queue))
        .after(message(queue, after))
        .ending_before(message(queue, first_invisible))
}

/// The place in a key made by [`message`].
pub fn place(key: &[u8]) -> Result<Place, Fault> {
    match (number_at(key, 9), number_at(key, 17)) {
        (Some(ticks), Some(sequence)) => {
            Ok(Place { visible: Timestamp::from_ticks(ticks), sequence })
        }
        (_, _) => Err(corrupt("a message's key")),
    }
}

/// The text of a message that is too long for its own row.
pub fn message_text(queue: u64, sequence: u64) -> Bytes {
    let mut key = numbered(MESSAGE_TEXT, queue);
    key.put_u64(sequence);
    key.freeze()
}

/// The messages that expire from `from` on and no later than `until`.
pub fn expiries(from: Timestamp, until: Timestamp) -> KeyRange {
    KeyRange::prefix(Bytes::from_static(&[EXPIRY]))
        .starting_at(numbered(EXPIRY, from.ticks()).freeze())
        .ending_before(numbered(EXPIRY, until.next().ticks()).freeze())
}

pub fn expiry(expires: Timestamp, queue: u64, sequence: u64) -> Bytes {
    let mut key = numbered(EXPIRY, expires.ticks());
    key.put_u64(queue);
    key.put_u64(sequence);
    key.freeze()
}

/// The number of the queue and of the message in a key made by [`expiry`].
pub fn expiring(key: &[u8]) -> Result<(u64, u64), Fault> {
    match (number_at(key, 9), number_at(key, 17)) {
        (Some(queue), Some(sequence)) => Ok((queue, sequence)),
        (_, _) => Err(corrupt("the key of an expiry")),
    }
}

/// The time in a key made by [`expiry`].
pub fn expiry_time(key: &[u8]) -> Result<Timestamp, Fault> {
    let ticks = number_at(key, 1).ok_or_else(|| corrupt("the key of an expiry"))?;
    Ok(Timestamp::from_ticks(ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ticks: u64, sequence: u64) -> Place {
        Place { visible: Timestamp::from_ticks(ticks), sequence }
    }

    #[test]
    fn what_a_key_was_made_of_comes_back_out_of_it() {
        assert_eq!(queue_name("account", &queue("account", "jobs")).expect("a name"), "jobs");
        assert_eq!(place(&message(7, at(5, 3))).expect("a place"), at(5, 3));
        let key = expiry(Timestamp::from_ticks(9), 7, 3);
        assert_eq!(expiring(&key).expect("an expiry"), (7, 3));
        assert_eq!(expiry_time(&key).expect("a time"), Timestamp::from_ticks(9));
        assert!(place(&messages(7)).is_err());
        assert!(expiring(&key[..20]).is_err());
    }

    #[test]
    fn messages_sort_by_when_they_become_visible_and_then_by_when_they_were_put() {
        let keys = [at(1, 9), at(2, 1), at(2, 2), at(300, 0)].map(|place| message(1, place));
        assert!(keys.is_sorted());
        assert!(keys[3] < message(2, at(0, 0)), "another queue");
    }

    #[test]
    fn the_visible_ones_are_those_up_to_now() {
        let range = messages_visible(1, at(2, 5), Timestamp::from_ticks(10));
        for (place, inside) in
            [(at(2, 5), false), (at(2, 6), true), (at(10, u64::MAX), true), (at(11, 0), false)]
        {
            assert_eq!(range.contains(&message(1, place)), inside, "{place:?}");
        }
        assert!(!range.contains(&message(2, at(5, 0))));
    }

    #[test]
    fn expiries_of_one_tick_are_whole() {
        let until = Timestamp::from_ticks(10);
        let range = expiries(Timestamp::from_ticks(3), until);
        assert!(range.contains(&expiry(until, u64::MAX, u64::MAX)));
        assert!(range.contains(&expiry(Timestamp::from_ticks(3), 0, 0)));
        assert!(!range.contains(&expiry(until.next(), 0, 0)));
        assert!(!range.contains(&expiry(Timestamp::from_ticks(2), 9, 9)));
    }
}
