//! Creating what a seed lists.

use std::future::Future;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::{Blob, Container, Queue, Seed, Share, ShareFile, Table};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeded {
    Created,
    /// Existed, and was left unchanged.
    AlreadyThere,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot seed {entry}: {why}")]
pub struct NotSeeded {
    entry: String,
    why: String,
}

/// What a seed is applied to. Failures are texts, to which [`apply`] adds the entry.
pub trait SeedTarget: Sync {
    fn create_container(
        &self,
        account: &str,
        container: &Container,
    ) -> impl Future<Output = Result<Seeded, String>> + Send;

    fn put_blob(
        &self,
        account: &str,
        container: &str,
        blob: &Blob,
        content: Bytes,
    ) -> impl Future<Output = Result<Seeded, String>> + Send;

    fn create_queue(
        &self,
        account: &str,
        queue: &Queue,
    ) -> impl Future<Output = Result<Seeded, String>> + Send;

    fn put_message(
        &self,
        account: &str,
        queue: &str,
        message: &str,
    ) -> impl Future<Output = Result<(), String>> + Send;

    fn create_table(
        &self,
        account: &str,
        table: &Table,
    ) -> impl Future<Output = Result<Seeded, String>> + Send;

    fn insert_entity(
        &self,
        account: &str,
        table: &str,
        entity: &Map<String, Value>,
    ) -> impl Future<Output = Result<Seeded, String>> + Send;

    fn create_share(
        &self,
        account: &str,
        share: &Share,
    ) -> impl Future<Output = Result<Seeded, String>> + Send;

    /// With the directories above it.
    fn create_directory(
        &self,
        account: &str,
        share: &str,
        path: &str,
    ) -> impl Future<Output = Result<Seeded, String>> + Send;

    /// With the directories above it.
    fn put_file(
        &self,
        account: &str,
        share: &str,
        file: &ShareFile,
        content: Bytes,
    ) -> impl Future<Output = Result<Seeded, String>> + Send;
}

/// Creates what is missing; entries without an account go to `default_account`. Returns how many
/// were created.
pub async fn apply(
    seed: &Seed,
    default_account: &str,
    target: &impl SeedTarget,
) -> Result<usize, NotSeeded> {
    let account = |named: &Option<String>| named.as_deref().unwrap_or(default_account).to_owned();
    let mut count = Count::default();
    for container in &seed.containers {
        seed_container(&account(&container.account), container, target, &mut count).await?;
    }
    for queue in &seed.queues {
        seed_queue(&account(&queue.account), queue, target, &mut count).await?;
    }
    for table in &seed.tables {
        seed_table(&account(&table.account), table, target, &mut count).await?;
    }
    for share in &seed.shares {
        seed_share(&account(&share.account), share, target, &mut count).await?;
    }
    Ok(count.created)
}

#[derive(Default)]
struct Count {
    created: usize,
}

impl Count {
    fn add(
        &mut self,
        seeded: Result<Seeded, String>,
        entry: impl FnOnce() -> String,
    ) -> Result<Seeded, NotSeeded> {
        let seeded = seeded.map_err(|why| NotSeeded { entry: entry(), why })?;
        self.created += usize::from(seeded == Seeded::Created);
        Ok(seeded)
    }
}

async fn seed_container(
    account: &str,
    container: &Container,
    target: &impl SeedTarget,
    count: &mut Count,
) -> Result<(), NotSeeded> {
    let name = &container.name;
    let created = target.create_container(account, container).await;
    count.add(created, || format!("container {name:?}"))?;
    for blob in &container.blobs {
        let stored = match blob.content().read() {
            Ok(content) => target.put_blob(account, name, blob, content).await,
            Err(why) => Err(why),
        };
        count.add(stored, || format!("blob {:?} of container {name:?}", blob.name))?;
    }
    Ok(())
}

async fn seed_queue(
    account: &str,
    queue: &Queue,
    target: &impl SeedTarget,
    count: &mut Count,
) -> Result<(), NotSeeded> {
    let created = target.create_queue(account, queue).await;
    let seeded = count.add(created, || format!("queue {:?}", queue.name))?;
    // Messages have no names: put again at every start, they would accumulate.
    if seeded == Seeded::AlreadyThere {
        return Ok(());
    }
    for (index, message) in queue.messages.iter().enumerate() {
        let put = target.put_message(account, &queue.name, message).await;
        let put = put.map(|()| Seeded::Created);
        count.add(put, || format!("message {} of queue {:?}", index + 1, queue.name))?;
    }
    Ok(())
}

async fn seed_table(
    account: &str,
    table: &Table,
    target: &impl SeedTarget,
    count: &mut Count,
) -> Result<(), NotSeeded> {
    let created = target.create_table(account, table).await;
    count.add(created, || format!("table {:?}", table.name))?;
    for (index, entity) in table.entities.iter().enumerate() {
        let inserted = target.insert_entity(account, &table.name, entity).await;
        count.add(inserted, || format!("entity {} of table {:?}", index + 1, table.name))?;
    }
    Ok(())
}

async fn seed_share(
    account: &str,
    share: &Share,
    target: &impl SeedTarget,
    count: &mut Count,
) -> Result<(), NotSeeded> {
    let name = &share.name;
    let created = target.create_share(account, share).await;
    count.add(created, || format!("share {name:?}"))?;
    for directory in &share.directories {
        let created = target.create_directory(account, name, directory).await;
        count.add(created, || format!("directory {directory:?} of share {name:?}"))?;
    }
    for file in &share.files {
        let stored = match file.content().read() {
            Ok(content) => target.put_file(account, name, file, content).await,
            Err(why) => Err(why),
        };
        count.add(stored, || format!("file {:?} of share {name:?}", file.path))?;
    }
    Ok(())
}
