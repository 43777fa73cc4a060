//! Entities and the values of their properties.

use bytes::Bytes;
use uuid::Uuid;

use crate::time::Timestamp;

/// One of the eight types that a property can have.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Binary(Bytes),
    Boolean(bool),
    DateTime(Timestamp),
    Double(f64),
    Guid(Uuid),
    Int32(i32),
    Int64(i64),
    String(String),
}

/// What an entity is found by, within its table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityKey {
    pub partition_key: String,
    pub row_key: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Entity {
    pub key: EntityKey,
    /// When it was last changed; its ETag says the same.
    pub timestamp: Timestamp,
    /// In the order in which they were first written, each name once, without the keys and the
    /// timestamp.
    pub properties: Vec<(String, Value)>,
}
