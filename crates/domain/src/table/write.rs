//! Entities: get one, change one, change many at once.

use std::collections::HashSet;

use bytes::{BufMut, Bytes, BytesMut};
use holdfast_store::Row;

use super::entity::{self, EntityView, StoredEntity};
use super::key::EntityKey;
use super::model::{TableId, TablePath};
use super::properties::{Properties, PropertyRefusal};
use super::rows;
use super::tables::find_table;
use crate::condition::{self, EntityCondition, EntityWrite, check_entity};
use crate::domain::{Domain, read};
use crate::etag::EntityETag;
use crate::failure::Failure;
use crate::time::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntityRefusal {
    TableNotFound,
    NotFound,
    AlreadyExists,
    /// The entity is not in the state that was to be changed.
    ConditionNotMet,
    /// The result would not be a valid entity.
    Property(PropertyRefusal),
    /// The changes of a transaction are not all in one partition.
    OtherPartition,
    /// Two changes of a transaction are to the same entity.
    ChangedTwice,
}

impl From<condition::EntityRefusal> for EntityRefusal {
    fn from(refusal: condition::EntityRefusal) -> Self {
        match refusal {
            condition::EntityRefusal::AlreadyExists => Self::AlreadyExists,
            condition::EntityRefusal::NotFound => Self::NotFound,
            condition::EntityRefusal::NotSatisfied => Self::ConditionNotMet,
        }
    }
}

impl From<PropertyRefusal> for EntityRefusal {
    fn from(refusal: PropertyRefusal) -> Self {
        Self::Property(refusal)
    }
}

/// The change of a transaction that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedChange {
    pub index: usize,
    pub refusal: EntityRefusal,
}

#[derive(Clone, Debug)]
pub enum Change {
    Insert(Properties),
    /// Update Entity with a condition, Insert Or Replace Entity without.
    Replace(Properties, Option<EntityCondition>),
    /// Merge Entity with a condition, Insert Or Merge Entity without.
    Merge(Properties, Option<EntityCondition>),
    Delete(EntityCondition),
}

#[derive(Clone, Debug)]
pub struct EntityChange {
    pub key: EntityKey,
    pub change: Change,
}

impl Domain {
    pub async fn get_entity(
        &self,
        path: &TablePath,
        key: &EntityKey,
    ) -> Result<StoredEntity, Failure<EntityRefusal>> {
        let snapshot = self.engine.snapshot().await?;
        let table = find_table(&*snapshot, path).await?;
        let TableId(table) = table.ok_or(Failure::Refused(EntityRefusal::TableNotFound))?;
        let key = rows::entity(table, key.partition_key(), key.row_key());
        match snapshot.get(&key).await? {
            Some(value) => Ok(StoredEntity(Row { key, value })),
            None => Err(Failure::Refused(EntityRefusal::NotFound)),
        }
    }

    /// Returns the new ETag of the entity; for a deletion, the one that it would have got.
    pub async fn change_entity(
        &self,
        path: &TablePath,
        change: &EntityChange,
    ) -> Result<EntityETag, Failure<EntityRefusal>> {
        let done = self.change_entities(path, std::slice::from_ref(change)).await;
        let etags = done.map_err(|failure| failure.map(|RefusedChange { refusal, .. }| refusal))?;
        etags.first().copied().ok_or(Failure::Busy)
    }

    /// All of the changes, or none. No reader sees some of them without the others.
    pub async fn change_entities(
        &self,
        path: &TablePath,
        changes: &[EntityChange],
    ) -> Result<Vec<EntityETag>, Failure<RefusedChange>> {
        check_together(changes).map_err(Failure::Refused)?;
        let table_key = path.key();
        if let [first, _, ..] = changes {
            // One queue per partition: with a queue for each of a hundred entities, unrelated
            // transactions would wait for each other.
            let partition = [partition_latch_key(&table_key, &first.key)];
            match self.change_latched(&partition, &table_key, changes).await {
                // Writers of single entities were always faster, so now block them, too.
                Err(Failure::Busy) => {}
                changed => return changed,
            }
        }
        let each: Vec<Bytes> =
            changes.iter().map(|change| latch_key(&table_key, &change.key)).collect();
        self.change_latched(&each, &table_key, changes).await
    }

    async fn change_latched(
        &self,
        latched: &[Bytes],
        table_key: &Bytes,
        changes: &[EntityChange],
    ) -> Result<Vec<EntityETag>, Failure<RefusedChange>> {
        self.transact_pipelined(latched, async |mut transaction| {
            let table: Option<TableId> = read(&mut transaction, table_key).await?;
            let Some(TableId(table)) = table else {
                return Err(refused(0)(EntityRefusal::TableNotFound));
            };
            let mut etags = Vec::with_capacity(changes.len());
            for (index, EntityChange { key, change }) in changes.iter().enumerate() {
                let row_key = rows::entity(table, key.partition_key(), key.row_key());
                // The old state is not needed: reading it would only cause conflicts.
                let value = match change {
                    Change::Replace(_, None) => None,
                    Change::Insert(_)
                    | Change::Replace(_, Some(_))
                    | Change::Merge(..)
                    | Change::Delete(_) => transaction.get(&row_key).await?,
                };
                let existing = match &value {
                    Some(value) => Some(EntityView::read(&row_key, value)?),
                    None => None,
                };
                let timestamp = Timestamp::from_ticks(self.stamp().etag.ticks());
                match decide(existing.as_ref(), key, change, timestamp).map_err(refused(index))? {
                    Some(row) => transaction.put(row_key, row),
                    None => transaction.delete(row_key),
                }
                etags.push(EntityETag::new(timestamp));
            }
            Ok((etags, transaction))
        })
        .await
    }
}

fn refused(index: usize) -> impl Fn(EntityRefusal) -> Failure<RefusedChange> {
    move |refusal| Failure::Refused(RefusedChange { index, refusal })
}

/// The latch of transactions in one partition.
fn partition_latch_key(table: &Bytes, key: &EntityKey) -> Bytes {
    [table.as_ref(), key.partition_key().as_bytes()].join(&0).into()
}

/// The latch of writers to one entity.
fn latch_key(table: &Bytes, key: &EntityKey) -> Bytes {
    let length = table.len() + key.partition_key().len() + key.row_key().len() + 2;
    let mut latch = BytesMut::with_capacity(length);
    for part in [table.as_ref(), key.partition_key().as_bytes(), key.row_key().as_bytes()] {
        latch.put_slice(part);
        latch.put_u8(0);
    }
    latch.freeze()
}

/// The rules for the changes of a transaction that do not depend on what is stored.
fn check_together(changes: &[EntityChange]) -> Result<(), RefusedChange> {
    let Some((first, others)) = changes.split_first() else { return Ok(()) };
    if others.is_empty() {
        return Ok(());
    }
    let mut row_keys = HashSet::with_capacity(changes.len());
    row_keys.insert(first.key.row_key());
    for (index, change) in others.iter().enumerate() {
        let refused = |refusal| Err(RefusedChange { index: index + 1, refusal });
        if change.key.partition_key() != first.key.partition_key() {
            return refused(EntityRefusal::OtherPartition);
        }
        if !row_keys.insert(change.key.row_key()) {
            return refused(EntityRefusal::ChangedTwice);
        }
    }
    Ok(())
}

/// The new row of the entity; `None` if it is deleted.
fn decide(
    existing: Option<&EntityView<'_>>,
    key: &EntityKey,
    change: &Change,
    timestamp: Timestamp,
) -> Result<Option<Bytes>, EntityRefusal> {
    let (write, condition) = match change {
        Change::Insert(_) => (EntityWrite::Insert, None),
        Change::Replace(_, condition) | Change::Merge(_, condition) => {
            (EntityWrite::Change, *condition)
        }
        Change::Delete(condition) => (EntityWrite::Delete, Some(*condition)),
    };
    check_entity(write, condition, existing.map(EntityView::etag))?;
    let row = |properties: &Properties| {
        properties.check_size(key)?;
        Ok(Some(entity::encode(timestamp, properties)))
    };
    match (change, existing) {
        (Change::Merge(properties, _), Some(existing)) => row(&properties.merged_over(existing)?),
        (
            Change::Insert(properties)
            | Change::Replace(properties, _)
            | Change::Merge(properties, _),
            _,
        ) => row(properties),
        (Change::Delete(_), _) => Ok(None),
    }
}
