//! Tables and their entities.

mod value;

pub use value::{Entity, EntityKey, Value};
