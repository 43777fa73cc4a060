//! Tables: create, read, list, change, delete.

use holdfast_store::{Fault, KeyRange, Order, Snapshot};
use holdfast_sync::yield_now;

use super::model::{Table, TableId, TablePath, TableRefusal};
use super::rows;
use crate::access::StoredPolicy;
use crate::domain::{Domain, read};
use crate::failure::Failure;
use crate::held_name;
use crate::names::AccountName;
use crate::rows::{NOTHING, Stored};

/// Rows read at a time.
const ROWS_PER_SCAN: usize = 250;

type Answer<T> = Result<T, Failure<TableRefusal>>;

pub struct ListTables {
    pub account: AccountName,
    /// The name of the first table, from the page before.
    pub from: Option<String>,
    pub limit: usize,
}

/// Tables in the order of their names, without regard to case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePage {
    pub names: Vec<String>,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
}

impl Domain {
    pub async fn create_table(&self, path: &TablePath) -> Answer<()> {
        let key = path.key();
        self.transact(std::slice::from_ref(&key), async |mut transaction| {
            let stamp = self.stamp();
            let existing: Option<Table> = read(&mut transaction, &key).await?;
            let held = held_name::is_held(&mut transaction, &path.hold_key(), stamp.now).await?;
            check_name_is_free(existing.as_ref(), held).map_err(Failure::Refused)?;
            let table = Table {
                id: stamp.etag.ticks(),
                name: path.table.to_string(),
                policies: Vec::new(),
            };
            transaction.put(key.clone(), table.encode());
            Ok(((), transaction))
        })
        .await
    }

    pub async fn get_table(&self, path: &TablePath) -> Answer<Table> {
        let snapshot = self.engine.snapshot().await?;
        let row = snapshot.get(&path.key()).await?;
        let table = row.map(|row| Table::decode(&row)).transpose()?;
        table.ok_or(Failure::Refused(TableRefusal::NotFound))
    }

    pub async fn set_table_policies(
        &self,
        path: &TablePath,
        policies: &[StoredPolicy],
    ) -> Answer<()> {
        let key = path.key();
        self.transact(std::slice::from_ref(&key), async |mut transaction| {
            let existing: Option<Table> = read(&mut transaction, &key).await?;
            let table = existing.ok_or(Failure::Refused(TableRefusal::NotFound))?;
            let table = Table { policies: policies.to_vec(), ..table };
            transaction.put(key.clone(), table.encode());
            Ok(((), transaction))
        })
        .await
    }

    /// Its entities are removed in the background, see [`crate::background`].
    pub async fn delete_table(&self, path: &TablePath) -> Answer<()> {
        let key = path.key();
        self.transact(std::slice::from_ref(&key), async |mut transaction| {
            let stamp = self.stamp();
            let existing: Option<Table> = read(&mut transaction, &key).await?;
            let table = existing.ok_or(Failure::Refused(TableRefusal::NotFound))?;
            transaction.delete(key.clone());
            transaction.put(rows::condemned_table(table.id), NOTHING);
            let hold = self.features.table_name_hold;
            held_name::hold(&mut transaction, path.hold_key(), hold, stamp);
            Ok(((), transaction))
        })
        .await
    }

    /// The tables whose names `keep` is true for.
    pub async fn list_tables(
        &self,
        command: ListTables,
        keep: impl Fn(&str) -> bool,
    ) -> Result<TablePage, Fault> {
        let snapshot = self.engine.snapshot().await?;
        let account = command.account.as_str();
        let mut range = KeyRange::prefix(rows::tables(account));
        if let Some(from) = &command.from {
            range = range.starting_at(rows::table(account, from));
        }
        let mut names = Vec::new();
        while !range.is_empty() {
            let found = snapshot.scan(&range, Order::Ascending, ROWS_PER_SCAN).await?;
            for row in &found {
                let Table { name, .. } = Table::decode(&row.value)?;
                if !keep(&name) {
                    continue;
                }
                if names.len() == command.limit {
                    return Ok(TablePage { names, next: Some(name) });
                }
                names.push(name);
            }
            match found.last() {
                Some(last) if found.len() == ROWS_PER_SCAN => {
                    range = range.after(last.key.clone());
                }
                Some(_) | None => break,
            }
            yield_now().await;
        }
        Ok(TablePage { names, next: None })
    }
}

pub(super) async fn find_table(
    snapshot: &dyn Snapshot,
    path: &TablePath,
) -> Result<Option<TableId>, Fault> {
    snapshot.get(&path.key()).await?.map(|row| TableId::decode(&row)).transpose()
}

fn check_name_is_free(existing: Option<&Table>, held: bool) -> Result<(), TableRefusal> {
    match (existing, held) {
        (Some(_), _) => Err(TableRefusal::AlreadyExists),
        (None, true) => Err(TableRefusal::BeingDeleted),
        (None, false) => Ok(()),
    }
}
