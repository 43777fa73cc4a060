//! Deletion of a container, and what follows: its name may be held for a while, and it can be
//! restored as long as it is retained.

use bytes::Bytes;
use holdfast_store::Fault;
use serde::{Deserialize, Serialize};

use super::container::{Answer, ContainerPath, ContainerRefusal, decide_change};
use super::rows;
use super::{Container, DeleteContainer};
use crate::domain::{Domain, Stamp, read};
use crate::due_task::DueTask;
use crate::failure::Failure;
use crate::features::Features;
use crate::held_name;
use crate::lease::{Access, Lease};
use crate::names::{ContainerName, DeletedVersion};
use crate::rows::{NOTHING, Stored};
use crate::time::Timestamp;
use crate::transact::Transaction;

/// A container that was deleted and can be restored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeletedContainer {
    pub container: Container,
    pub at: Timestamp,
    pub until: Timestamp,
}

impl Stored for DeletedContainer {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "a deleted container";
}

pub struct RestoreContainer {
    /// Its name from now on.
    pub path: ContainerPath,
    pub deleted_name: ContainerName,
    /// `None` for a text that never was a version.
    pub deleted_version: Option<DeletedVersion>,
}

impl Domain {
    /// Its contents are removed in the background, see [`crate::background`], at once or at the end
    /// of the retention.
    pub async fn delete_container(&self, command: DeleteContainer) -> Answer<()> {
        let key = command.path.key();
        self.transact(std::slice::from_ref(&key), async |mut transaction| {
            let stamp = self.stamp();
            let existing: Option<Container> = read(&mut transaction, &key).await?;
            let container = decide_change(
                existing,
                &command.conditions,
                Access::Delete,
                command.lease_id,
                stamp.now,
            )
            .map_err(Failure::Refused)?;
            transaction.delete(key.clone());
            retain_or_condemn(&mut transaction, &command.path, container, &self.features, stamp);
            let (hold_key, hold) = (command.path.hold_key(), self.features.container_name_hold);
            held_name::hold(&mut transaction, hold_key, hold, stamp);
            Ok(((), transaction))
        })
        .await?;
        self.live_leases.forget(&key);
        Ok(())
    }

    /// The container is as it was when it was deleted, without its lease.
    pub async fn restore_container(&self, command: RestoreContainer) -> Answer<Container> {
        let (key, hold) = (command.path.key(), command.path.hold_key());
        self.transact(std::slice::from_ref(&key), async |mut transaction| {
            let now = self.now();
            let existing: Option<Container> = read(&mut transaction, &key).await?;
            let deleted_key = command.deleted_version.map(|version| {
                let (account, name) = (command.path.account.as_str(), &command.deleted_name);
                rows::deleted_container(account, name.as_str(), version.0)
            });
            let deleted: Option<DeletedContainer> = match &deleted_key {
                Some(deleted_key) => read(&mut transaction, deleted_key).await?,
                None => None,
            };
            let container =
                decide_restore(existing.as_ref(), deleted, now).map_err(Failure::Refused)?;
            transaction.put(key.clone(), container.encode());
            transaction.delete(hold.clone());
            command.path.note(&mut transaction, container.id);
            deleted_key.into_iter().for_each(|deleted_key| transaction.delete(deleted_key));
            Ok((container, transaction))
        })
        .await
    }
}

impl ContainerPath {
    pub(super) fn hold_key(&self) -> Bytes {
        rows::held_container_name(self.account.as_str(), self.container.as_str())
    }
}

fn retain_or_condemn(
    transaction: &mut Transaction,
    path: &ContainerPath,
    mut container: Container,
    features: &Features,
    stamp: Stamp,
) {
    let Some(retention) = features.container_retention else {
        transaction.put(rows::condemned_container(container.id), NOTHING);
        return;
    };
    let version = stamp.etag.ticks();
    let key = rows::deleted_container(path.account.as_str(), path.container.as_str(), version);
    let until = stamp.now.plus(retention);
    container.lease = Lease::default();
    let deleted = DeletedContainer { container, at: stamp.now, until };
    transaction.put(key.clone(), deleted.encode());
    DueTask::PurgeContainer(key).plan(transaction, until, version);
}

fn decide_restore(
    existing: Option<&Container>,
    deleted: Option<DeletedContainer>,
    now: Timestamp,
) -> Result<Container, ContainerRefusal> {
    if existing.is_some() {
        return Err(ContainerRefusal::AlreadyExists);
    }
    match deleted.filter(|deleted| deleted.until > now) {
        Some(deleted) => Ok(deleted.container),
        None => Err(ContainerRefusal::DeletedNotFound),
    }
}

/// The retention of the deleted container with this key ends, unless it was restored.
pub(crate) async fn purge_container(
    transaction: &mut Transaction,
    key: &Bytes,
    now: Timestamp,
) -> Result<(), Fault> {
    let deleted: Option<DeletedContainer> = read(transaction, key).await?;
    if let Some(deleted) = deleted.filter(|deleted| deleted.until <= now) {
        transaction.delete(key.clone());
        transaction.put(rows::condemned_container(deleted.container.id), NOTHING);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container() -> Container {
        Container {
            id: 1,
            etag: crate::etag::ETag::from_ticks(1),
            last_modified: Timestamp::from_ticks(1),
            metadata: Default::default(),
            public_access: crate::access::PublicAccess::None,
            policies: Vec::new(),
            lease: Lease::default(),
            scope: Default::default(),
        }
    }

    #[test]
    fn a_container_is_restored_while_it_is_retained_and_its_name_is_free() {
        let at = Timestamp::from_ticks;
        let deleted = || DeletedContainer { container: container(), at: at(10), until: at(20) };
        let existing = container();
        for (cell, existing, deleted, now, expected) in [
            ("3.16 Restore", None, Some(deleted()), 19, None),
            ("3.16 source gone", None, None, 19, Some(ContainerRefusal::DeletedNotFound)),
            (
                "3.16 retention over",
                None,
                Some(deleted()),
                20,
                Some(ContainerRefusal::DeletedNotFound),
            ),
            (
                "3.16 target exists",
                Some(&existing),
                Some(deleted()),
                19,
                Some(ContainerRefusal::AlreadyExists),
            ),
        ] {
            assert_eq!(decide_restore(existing, deleted, at(now)).err(), expected, "{cell}");
        }
    }
}
