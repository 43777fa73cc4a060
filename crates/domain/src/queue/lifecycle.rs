//! Queues themselves: create, read, change, clear, delete.

use bytes::Bytes;
use holdfast_store::Fault;

use super::model::{Queue, QueuePath};
use super::rows;
use crate::access::StoredPolicy;
use crate::domain::{Domain, Stamp, read};
use crate::failure::Failure;
use crate::held_name;
use crate::metadata::Metadata;
use crate::rows::{NOTHING, Stored};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueRefusal {
    NotFound,
    /// It exists with other metadata.
    AlreadyExists,
    /// A queue of this name was deleted recently, and the name is not free yet.
    BeingDeleted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    New,
    /// It existed already, with the same metadata.
    AlreadyThere,
}

pub struct CreateQueue {
    pub path: QueuePath,
    pub metadata: Metadata,
}

pub struct SetQueueMetadata {
    pub path: QueuePath,
    pub metadata: Metadata,
}

pub struct SetQueueAcl {
    pub path: QueuePath,
    pub policies: Vec<StoredPolicy>,
}

type Answer<T> = Result<T, Failure<QueueRefusal>>;

impl Domain {
    pub async fn create_queue(&self, command: CreateQueue) -> Answer<Created> {
        let key = command.path.key();
        self.transact(std::slice::from_ref(&key), async |mut transaction| {
            let stamp = self.stamp();
            let existing: Option<Queue> = read(&mut transaction, &key).await?;
            let hold = command.path.hold_key();
            let held = held_name::is_held(&mut transaction, &hold, stamp.now).await?;
            let created = decide_create(existing.as_ref(), held, &command, stamp)
                .map_err(Failure::Refused)?;
            let Some(queue) = created else { return Ok((Created::AlreadyThere, transaction)) };
            self.live_queues.start_empty(queue.id);
            transaction.put(key.clone(), queue.encode());
            Ok((Created::New, transaction))
        })
        .await
    }

    pub async fn get_queue(&self, path: &QueuePath) -> Answer<Queue> {
        self.find_queue(path).await?.ok_or(Failure::Refused(QueueRefusal::NotFound))
    }

    /// The queue and its number of messages: never too low, and too high only while some are being
    /// removed.
    pub async fn get_queue_and_count(&self, path: &QueuePath) -> Answer<(Queue, u64)> {
        let queue = self.get_queue(path).await?;
        let count = self.live_queues.of(queue.id).count(self.engine()).await?;
        Ok((queue, count))
    }

    pub async fn set_queue_metadata(&self, command: SetQueueMetadata) -> Answer<()> {
        self.change_queue(&command.path, |queue| queue.metadata = command.metadata.clone()).await
    }

    pub async fn set_queue_acl(&self, command: SetQueueAcl) -> Answer<()> {
        self.change_queue(&command.path, |queue| queue.policies = command.policies.clone()).await
    }

    /// However many messages there are, it is one change: the queue gets a new number, and the rows
    /// of the old one are removed in the background.
    pub async fn clear_messages(&self, path: &QueuePath) -> Answer<()> {
        let key = path.key();
        let cleared = self
            .transact(std::slice::from_ref(&key), async |mut transaction| {
                let mut queue = existing(read(&mut transaction, &key).await?)?;
                let old = std::mem::replace(&mut queue.id, self.fresh_id());
                self.live_queues.start_empty(queue.id);
                transaction.put(key.clone(), queue.encode());
                transaction.put(rows::condemned_queue(old), NOTHING);
                transaction.even_without_room();
                Ok((old, transaction))
            })
            .await?;
        self.live_queues.forget(cleared);
        Ok(())
    }

    /// Its messages are removed in the background.
    pub async fn delete_queue(&self, path: &QueuePath) -> Answer<()> {
        let key = path.key();
        let deleted = self
            .transact(std::slice::from_ref(&key), async |mut transaction| {
                let stamp = self.stamp();
                let queue = existing(read(&mut transaction, &key).await?)?;
                transaction.delete(key.clone());
                transaction.put(rows::condemned_queue(queue.id), NOTHING);
                let hold = self.features.queue_name_hold;
                held_name::hold(&mut transaction, path.hold_key(), hold, stamp);
                Ok((queue.id, transaction))
            })
            .await?;
        self.live_queues.forget(deleted);
        Ok(())
    }

    async fn change_queue(&self, path: &QueuePath, change: impl Fn(&mut Queue)) -> Answer<()> {
        let key: Bytes = path.key();
        self.transact(std::slice::from_ref(&key), async |mut transaction| {
            let mut queue = existing(read(&mut transaction, &key).await?)?;
            change(&mut queue);
            transaction.put(key.clone(), queue.encode());
            Ok(((), transaction))
        })
        .await
    }

    /// The queue as it is now.
    pub(super) async fn find_queue(&self, path: &QueuePath) -> Result<Option<Queue>, Fault> {
        let row = self.engine.snapshot().await?.get(&path.key()).await?;
        row.map(|row| Queue::decode(&row)).transpose()
    }
}

fn existing(queue: Option<Queue>) -> Answer<Queue> {
    queue.ok_or(Failure::Refused(QueueRefusal::NotFound))
}

/// The queue to be stored; none if it is there already.
fn decide_create(
    existing: Option<&Queue>,
    held: bool,
    command: &CreateQueue,
    stamp: Stamp,
) -> Result<Option<Queue>, QueueRefusal> {
    match existing {
        Some(queue) if queue.metadata.is_equivalent(&command.metadata) => Ok(None),
        Some(_) => Err(QueueRefusal::AlreadyExists),
        None if held => Err(QueueRefusal::BeingDeleted),
        None => Ok(Some(Queue {
            id: stamp.etag.ticks(),
            metadata: command.metadata.clone(),
            policies: Vec::new(),
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etag::ETag;
    use crate::names::{AccountName, QueueName};
    use crate::time::Timestamp;

    fn metadata(value: &str) -> Metadata {
        Metadata::new([("name".to_owned(), value.to_owned())]).expect("valid")
    }

    #[test]
    fn a_queue_is_created_once_and_again_only_with_equal_metadata() {
        let command = CreateQueue {
            path: QueuePath {
                account: AccountName::new("account1").expect("a name"),
                queue: QueueName::new("jobs").expect("a name"),
            },
            metadata: metadata("1"),
        };
        let existing = |value| Queue { id: 5, metadata: metadata(value), policies: Vec::new() };
        let stamp = Stamp { now: Timestamp::from_ticks(9), etag: ETag::from_ticks(9) };
        for (cell, existing, held, expected) in [
            ("5 Create Queue", None, false, Ok(Some(9))),
            ("5 exists with equal metadata", Some(existing("1")), false, Ok(None)),
            (
                "5 exists with other metadata",
                Some(existing("2")),
                false,
                Err(QueueRefusal::AlreadyExists),
            ),
            ("5 being deleted", None, true, Err(QueueRefusal::BeingDeleted)),
        ] {
            let decided = decide_create(existing.as_ref(), held, &command, stamp);
            assert_eq!(decided.map(|queue| queue.map(|queue| queue.id)), expected, "{cell}");
        }
    }
}
