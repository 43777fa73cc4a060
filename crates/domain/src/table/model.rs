//! What is stored about a table.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::rows;
use crate::access::StoredPolicy;
use crate::names::{AccountName, TableName};
use crate::rows::Stored;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Part of the keys of its entities: a table created again under the same name has another. It
    /// comes first, for [`TableId`].
    pub(crate) id: u64,
    /// With the case in which it was given.
    pub name: String,
    pub policies: Vec<StoredPolicy>,
}

impl Stored for Table {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "a table";
}

/// The beginning of the row of a table: access to entities needs only this, and does not decode the
/// rest.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct TableId(pub u64);

impl Stored for TableId {
    const FORMAT: u8 = Table::FORMAT;
    const WHAT: &'static str = Table::WHAT;
}

#[derive(Clone, Debug)]
pub struct TablePath {
    pub account: AccountName,
    pub table: TableName,
}

impl TablePath {
    pub(super) fn key(&self) -> Bytes {
        rows::table(self.account.as_str(), self.table.as_str())
    }

    pub(super) fn hold_key(&self) -> Bytes {
        rows::held_table_name(self.account.as_str(), self.table.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableRefusal {
    NotFound,
    AlreadyExists,
    /// A table of this name was deleted recently, and the name is not free yet.
    BeingDeleted,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_of_a_table_begins_with_its_id() {
        let table = Table { id: u64::MAX / 3, name: "People".to_owned(), policies: Vec::new() };
        let TableId(id) = TableId::decode(&table.encode()).expect("a table");
        assert_eq!(id, table.id);
    }
}
