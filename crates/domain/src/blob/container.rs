//! Containers: create, read, change, lease, delete, list.

use holdfast_store::{Fault, Snapshot};

use super::model::ContainerPlace;
use super::rows;
use super::{Container, ScopePolicy};
use crate::access::{PublicAccess, StoredPolicy};
use crate::condition::DateConditions;
use crate::domain::{Domain, Stamp, read};
use crate::failure::Failure;
use crate::held_name::is_held;
use crate::lease::{
    self, Access, AccessRefusal, LeaseAction, LeaseId, LeaseKind, LeaseOutcome, LeaseRefusal,
};
use crate::metadata::Metadata;
use crate::names::{AccountName, ContainerName};
use crate::rows::Stored;
use crate::time::Timestamp;
use crate::transact::Transaction;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerRefusal {
    NotFound,
    AlreadyExists,
    /// A container of this name was deleted recently, and the name is not free yet.
    BeingDeleted,
    /// What is to be restored was never deleted, is not retained any more, or was restored already.
    DeletedNotFound,
    ConditionNotMet,
    LeaseAccess(AccessRefusal),
    LeaseAction(LeaseRefusal),
}

impl From<AccessRefusal> for ContainerRefusal {
    fn from(refusal: AccessRefusal) -> Self {
        Self::LeaseAccess(refusal)
    }
}

#[derive(Clone, Debug)]
pub struct ContainerPath {
    pub account: AccountName,
    pub container: ContainerName,
}

impl ContainerPath {
    pub(crate) fn key(&self) -> bytes::Bytes {
        rows::container(self.account.as_str(), self.container.as_str())
    }

    /// Records that the container with this number is found here.
    pub(super) fn note(&self, transaction: &mut Transaction, id: u64) {
        let (account, name) = (self.account.to_string(), self.container.to_string());
        transaction.put(rows::container_place(id), ContainerPlace { account, name }.encode());
    }
}

pub struct CreateContainer {
    pub path: ContainerPath,
    pub metadata: Metadata,
    pub public_access: PublicAccess,
    pub scope: ScopePolicy,
}

pub struct SetContainerMetadata {
    pub path: ContainerPath,
    pub metadata: Metadata,
    pub conditions: DateConditions,
    pub lease_id: Option<LeaseId>,
}

pub struct SetContainerAcl {
    pub path: ContainerPath,
    pub public_access: PublicAccess,
    pub policies: Vec<StoredPolicy>,
    pub conditions: DateConditions,
    pub lease_id: Option<LeaseId>,
}

pub struct DeleteContainer {
    pub path: ContainerPath,
    pub conditions: DateConditions,
    pub lease_id: Option<LeaseId>,
}

pub struct RenameContainer {
    /// The new name.
    pub path: ContainerPath,
    pub source: ContainerName,
    pub source_lease_id: Option<LeaseId>,
}

pub struct LeaseContainer {
    pub path: ContainerPath,
    pub action: LeaseAction,
    /// The id of the lease, if this acquires one without proposing an id.
    pub fresh_id: LeaseId,
    pub conditions: DateConditions,
}

pub(super) type Answer<T> = Result<T, Failure<ContainerRefusal>>;

impl Domain {
    pub async fn create_container(&self, command: CreateContainer) -> Answer<Container> {
        let key = command.path.key();
        self.transact(std::slice::from_ref(&key), async |mut transaction| {
            let stamp = self.stamp();
            let existing: Option<Container> = read(&mut transaction, &key).await?;
            let held = is_held(&mut transaction, &command.path.hold_key(), stamp.now).await?;
            let container = decide_create(existing.as_ref(), held, &command, stamp)
                .map_err(Failure::Refused)?;
            transaction.put(key.clone(), container.encode());
            command.path.note(&mut transaction, container.id);
            Ok((container, transaction))
        })
        .await
    }

    /// The container, its current lease, and the time of both.
    pub async fn get_container(
        &self,
        path: &ContainerPath,
        lease_id: Option<LeaseId>,
    ) -> Answer<(Container, Timestamp)> {
        let now = self.now();
        let snapshot = self.engine.snapshot().await?;
        let container = find_container(&*snapshot, path).await?;
        let container = container.ok_or(Failure::Refused(ContainerRefusal::NotFound))?;
        check_lease(&container, Access::Read, lease_id, now).map_err(Failure::Refused)?;
        Ok((container, now))
    }

    pub async fn set_container_metadata(&self, command: SetContainerMetadata) -> Answer<Container> {
        self.change_container(&command.path, &command.conditions, command.lease_id, |container| {
            container.metadata = command.metadata.clone()
        })
        .await
    }

    pub async fn set_container_acl(&self, command: SetContainerAcl) -> Answer<Container> {
        self.change_container(&command.path, &command.conditions, command.lease_id, |container| {
            container.public_access = command.public_access;
            container.policies = command.policies.clone();
        })
        .await
    }

    async fn change_container(
        &self,
        path: &ContainerPath,
        conditions: &DateConditions,
        lease_id: Option<LeaseId>,
        change: impl Fn(&mut Container),
    ) -> Answer<Container> {
        let key = path.key();
        self.transact(std::slice::from_ref(&key), async |mut transaction| {
            let stamp = self.stamp();
            let existing: Option<Container> = read(&mut transaction, &key).await?;
            let mut container =
                decide_change(existing, conditions, Access::Write, lease_id, stamp.now)
                    .map_err(Failure::Refused)?;
            change(&mut container);
            container.etag = stamp.etag;
            container.last_modified = stamp.now;
            transaction.put(key.clone(), container.encode());
            Ok((container, transaction))
        })
        .await
    }

    /// Everything in it is kept, including its lease; it is the same container under another name.
    pub async fn rename_container(&self, command: RenameContainer) -> Answer<Container> {
        let source =
            ContainerPath { account: command.path.account.clone(), container: command.source };
        let (from, to) = (source.key(), command.path.key());
        let renamed = self
            .transact(&[from.clone(), to.clone()], async |mut transaction| {
                let stamp = self.stamp();
                let existing: Option<Container> = read(&mut transaction, &to).await?;
                let found: Option<Container> = read(&mut transaction, &from).await?;
                let held = is_held(&mut transaction, &command.path.hold_key(), stamp.now).await?;
                check_name_is_free(existing.as_ref(), held).map_err(Failure::Refused)?;
                let dates = DateConditions::default();
                let lease_id = command.source_lease_id;
                let mut container =
                    decide_change(found, &dates, Access::Delete, lease_id, stamp.now)
                        .map_err(Failure::Refused)?;
                container.etag = stamp.etag;
                container.last_modified = stamp.now;
                transaction.delete(from.clone());
                transaction.put(to.clone(), container.encode());
                command.path.note(&mut transaction, container.id);
                Ok((container, transaction))
            })
            .await?;
        self.live_leases.forget(&from);
        self.live_leases.note(to, &renamed.lease, self.now());
        Ok(renamed)
    }

    pub async fn lease_container(
        &self,
        command: LeaseContainer,
    ) -> Answer<(Container, LeaseOutcome)> {
        let key = command.path.key();
        let (container, outcome) = self
            .transact(std::slice::from_ref(&key), async |mut transaction| {
                let existing: Option<Container> = read(&mut transaction, &key).await?;
                let decided =
                    decide_lease(existing, &command, self.now()).map_err(Failure::Refused)?;
                transaction.put(key.clone(), decided.0.encode());
                Ok((decided, transaction))
            })
            .await?;
        self.live_leases.note(key, &container.lease, self.now());
        Ok((container, outcome))
    }
}

pub(super) async fn find_container(
    snapshot: &dyn Snapshot,
    path: &ContainerPath,
) -> Result<Option<Container>, Fault> {
    snapshot.get(&path.key()).await?.map(|row| Container::decode(&row)).transpose()
}

fn decide_create(
    existing: Option<&Container>,
    held: bool,
    command: &CreateContainer,
    stamp: Stamp,
) -> Result<Container, ContainerRefusal> {
    check_name_is_free(existing, held)?;
    Ok(Container {
        id: stamp.etag.ticks(),
        etag: stamp.etag,
        last_modified: stamp.now,
        metadata: command.metadata.clone(),
        public_access: command.public_access,
        policies: Vec::new(),
        lease: lease::Lease::default(),
        scope: command.scope.clone(),
    })
}

fn check_name_is_free(existing: Option<&Container>, held: bool) -> Result<(), ContainerRefusal> {
    match (existing, held) {
        (Some(_), _) => Err(ContainerRefusal::AlreadyExists),
        (None, true) => Err(ContainerRefusal::BeingDeleted),
        (None, false) => Ok(()),
    }
}

/// Every rule of a change or deletion; the container that it applies to.
pub(super) fn decide_change(
    existing: Option<Container>,
    conditions: &DateConditions,
    access: Access,
    lease_id: Option<LeaseId>,
    now: Timestamp,
) -> Result<Container, ContainerRefusal> {
    let container = existing.ok_or(ContainerRefusal::NotFound)?;
    check_dates(&container, conditions)?;
    check_lease(&container, access, lease_id, now)?;
    Ok(container)
}

fn decide_lease(
    existing: Option<Container>,
    command: &LeaseContainer,
    now: Timestamp,
) -> Result<(Container, LeaseOutcome), ContainerRefusal> {
    let mut container = existing.ok_or(ContainerRefusal::NotFound)?;
    check_dates(&container, &command.conditions)?;
    let decided = lease::decide(
        &container.lease,
        command.action,
        LeaseKind::Container,
        command.fresh_id,
        now,
    )
    .map_err(ContainerRefusal::LeaseAction)?;
    container.lease = decided.lease;
    Ok((container, decided.outcome))
}

fn check_dates(container: &Container, conditions: &DateConditions) -> Result<(), ContainerRefusal> {
    conditions.check(container.last_modified).map_err(|_| ContainerRefusal::ConditionNotMet)
}

fn check_lease(
    container: &Container,
    access: Access,
    lease_id: Option<LeaseId>,
    now: Timestamp,
) -> Result<(), ContainerRefusal> {
    lease::check_access(&container.lease, access, lease_id, LeaseKind::Container, now)?;
    Ok(())
}
