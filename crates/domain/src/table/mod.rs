//! Tables and their entities.

mod encoding;
mod entity;
pub mod filter;
mod garbage;
mod key;
mod key_range;
mod model;
mod properties;
mod query;
pub(crate) mod rows;
mod scan;
mod tables;
mod value;
mod write;

pub use entity::{EntityView, PARTITION_KEY, ROW_KEY, StoredEntity, TIMESTAMP};
pub use key::{EntityKey, KeyRefusal};
pub use key_range::KeyRange;
pub use model::{Table, TablePath, TableRefusal};
pub use properties::{NAME_UNITS_MAX, PROPERTIES_MAX, Properties, PropertyRefusal};
pub use query::{EntityPage, PAGE_ENTITIES_MAX, Position, QueryEntities};
pub use tables::{ListTables, TablePage};
pub use value::{Value, ValueRef, compare_ordinal};
pub use write::{Change, EntityChange, EntityRefusal, RefusedChange};
