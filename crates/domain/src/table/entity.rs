//! Stored entities, read in place: only what is asked for is copied out of a row.

use std::borrow::Cow;

use bytes::Bytes;
use holdfast_store::{Fault, Row};

use super::encoding::RawProperties;
use super::key::EntityKey;
use super::properties::Properties;
use super::rows;
use super::value::ValueRef;
use crate::etag::EntityETag;
use crate::rows::corrupt;
use crate::time::Timestamp;

pub const PARTITION_KEY: &str = "PartitionKey";
pub const ROW_KEY: &str = "RowKey";
pub const TIMESTAMP: &str = "Timestamp";

const FORMAT: u8 = 1;
/// The length of the format and the timestamp, before the properties.
const FRONT_BYTES: usize = 9;

/// The row of an entity.
pub(super) fn encode(timestamp: Timestamp, properties: &Properties) -> Bytes {
    let own = properties.encoded();
    let mut value = Vec::with_capacity(FRONT_BYTES + own.len());
    value.push(FORMAT);
    value.extend_from_slice(&timestamp.ticks().to_be_bytes());
    value.extend_from_slice(own);
    value.into()
}

/// An entity in the bytes of its row, which were checked when it was made.
#[derive(Clone, Debug)]
pub struct EntityView<'a> {
    partition_key: Cow<'a, str>,
    row_key: Cow<'a, str>,
    timestamp: Timestamp,
    own: &'a [u8],
}

impl<'a> EntityView<'a> {
    pub fn of(row: &'a Row) -> Result<Self, Fault> {
        Self::read(&row.key, &row.value)
    }

    pub fn read(key: &'a [u8], value: &'a [u8]) -> Result<Self, Fault> {
        let (partition_key, row_key) = rows::entity_keys(key)?;
        let (front, own) =
            value.split_first_chunk::<FRONT_BYTES>().ok_or_else(|| corrupt("an entity's row"))?;
        let [format, ticks @ ..] = *front;
        if format != FORMAT {
            return Err(Fault::new(format!("the row of an entity has unknown format {format}")));
        }
        let mut properties = RawProperties { rest: own };
        if !properties.all(|property| property.is_readable()) || !properties.rest.is_empty() {
            return Err(corrupt("an entity's row"));
        }
        let timestamp = Timestamp::from_ticks(u64::from_be_bytes(ticks));
        Ok(Self { partition_key, row_key, timestamp, own })
    }

    /// An entity as it was just written.
    pub fn written(key: &'a EntityKey, timestamp: Timestamp, properties: &'a Properties) -> Self {
        Self {
            partition_key: Cow::Borrowed(key.partition_key()),
            row_key: Cow::Borrowed(key.row_key()),
            timestamp,
            own: properties.encoded(),
        }
    }

    pub fn partition_key(&self) -> &str {
        &self.partition_key
    }

    pub fn row_key(&self) -> &str {
        &self.row_key
    }

    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    pub fn etag(&self) -> EntityETag {
        EntityETag::new(self.timestamp)
    }

    /// The property of this name, including the keys and the timestamp.
    pub fn property(&self, name: &str) -> Option<ValueRef<'_>> {
        match name {
            PARTITION_KEY => Some(ValueRef::String(&self.partition_key)),
            ROW_KEY => Some(ValueRef::String(&self.row_key)),
            TIMESTAMP => Some(ValueRef::DateTime(self.timestamp)),
            _ => {
                let found = self.raw().find(|property| property.name == name.as_bytes())?;
                Some(found.read().1)
            }
        }
    }

    /// The properties set by clients, in the order in which they were first written.
    pub fn own_properties(&self) -> impl Iterator<Item = (&'a str, ValueRef<'a>)> {
        self.raw().map(|property| property.read())
    }

    pub(super) fn raw(&self) -> RawProperties<'a> {
        RawProperties { rest: self.own }
    }

    pub(super) fn own_bytes(&self) -> usize {
        self.own.len()
    }
}

/// The row of an entity, to be looked at by [`StoredEntity::view`].
#[derive(Clone, Debug)]
pub struct StoredEntity(pub(super) Row);

impl StoredEntity {
    pub fn view(&self) -> Result<EntityView<'_>, Fault> {
        EntityView::of(&self.0)
    }

    /// The approximate size of the entity.
    pub fn length(&self) -> usize {
        self.0.key.len() + self.0.value.len()
    }
}
