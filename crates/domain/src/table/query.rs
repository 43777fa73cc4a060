//! Query Entities: a page of the entities that a filter matches, all of one state of the table.

use std::time::Duration;

use holdfast_store::{Fault, Row};

use super::entity::{EntityView, StoredEntity};
use super::filter::{Filter, KeySpan};
use super::key_range::KeyRange;
use super::model::{TableId, TablePath};
use super::scan::EntityRows;
use super::tables::find_table;
use super::write::EntityRefusal;
use crate::domain::Domain;
use crate::failure::Failure;

pub const PAGE_ENTITIES_MAX: usize = 1000;
/// The most bytes of rows in a page: it is held in memory, because the continuation token precedes
/// it in the answer. A thousand entities of 4 KiB fit.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The longest that a page is searched. What was found by then is the page, even if it is empty.
const PAGE_TIME_MAX: Duration = Duration::from_secs(5);
/// The most rows that a page reads: more than an engine reads in that time on most machines; a
/// limit in case the clock stands still.
const PAGE_ROWS_MAX: usize = 2_000_000;

/// Rows are read in batches, with a yield between them. The first is small, because the size of the
/// rows is not known yet.
const BATCH_ROWS_FIRST: usize = 32;
const BATCH_ROWS_MAX: usize = 256;
const BATCH_BYTES: usize = 256 * 1024;
/// A comparison searches the properties of its entity, so many of them take long.
const BATCH_COMPARISONS_MAX: usize = 5_000;

pub struct QueryEntities {
    pub table: TablePath,
    pub filter: Filter,
    /// Where the page begins, from the page before.
    pub from: Option<Position>,
    /// The entities that the caller may see; all if absent.
    pub range: Option<KeyRange>,
    /// Not zero.
    pub limit: usize,
}

/// A place to continue from: the next entity is the first one at or after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub partition_key: String,
    /// Absent for the beginning of the partition.
    pub row_key: Option<String>,
}

#[derive(Debug)]
pub struct EntityPage {
    pub entities: Vec<StoredEntity>,
    /// Where the next page begins, if there may be one.
    pub next: Option<Position>,
}

impl Domain {
    pub async fn query_entities(
        &self,
        query: &QueryEntities,
    ) -> Result<EntityPage, Failure<EntityRefusal>> {
        let snapshot = self.engine.snapshot().await?;
        let table = find_table(&*snapshot, &query.table).await?;
        let TableId(table) = table.ok_or(Failure::Refused(EntityRefusal::TableNotFound))?;
        let allowed = query.range.as_ref().map_or(KeySpan::ALL, KeySpan::from);
        let from = query.from.as_ref().map_or(KeySpan::ALL, |from| {
            KeySpan::starting_at(&from.partition_key, from.row_key.as_deref())
        });
        let spans = query.filter.key_spans();
        let spans = spans.into_iter().map(|span| span.within(allowed).within(from));
        let mut rows = EntityRows::new(&*snapshot, table, spans);
        let deadline = self.now().plus(PAGE_TIME_MAX);
        let late = || self.now() >= deadline;
        Ok(Gathered::new(&query.filter, query.limit).page(&mut rows, late).await?)
    }
}

/// A page that is being collected.
struct Gathered<'a> {
    filter: &'a Filter,
    limit: usize,
    matching: Vec<Row>,
    matching_bytes: usize,
    rows_seen: usize,
    bytes_seen: usize,
}

impl<'a> Gathered<'a> {
    fn new(filter: &'a Filter, limit: usize) -> Self {
        let limit = limit.min(PAGE_ENTITIES_MAX);
        Self { filter, limit, matching: Vec::new(), matching_bytes: 0, rows_seen: 0, bytes_seen: 0 }
    }

    async fn page(
        mut self,
        rows: &mut EntityRows<'_>,
        late: impl Fn() -> bool,
    ) -> Result<EntityPage, Fault> {
        let mut batch_rows = BATCH_ROWS_FIRST.min(self.limit + 1);
        loop {
            let batch = rows.next(batch_rows).await?;
            if batch.is_empty() {
                return Ok(self.ending(None));
            }
            if let Some(next) = self.take(batch)? {
                return Ok(self.ending(Some(next)));
            }
            let full = self.matching.len() == self.limit;
            if full || self.rows_seen >= PAGE_ROWS_MAX || late() {
                // Reading one more row avoids a continuation token for an empty page.
                let next = rows.next(1).await?;
                let next = next.first().map(position).transpose()?;
                return Ok(self.ending(next));
            }
            batch_rows = (batch_rows * 2).min(self.batch_rows_max());
            tokio::task::yield_now().await;
        }
    }

    /// Keeps what matches. Returns where the rest begins if it does not fit the page.
    fn take(&mut self, batch: Vec<Row>) -> Result<Option<Position>, Fault> {
        self.rows_seen += batch.len();
        for row in batch {
            let bytes = row.key.len() + row.value.len();
            self.bytes_seen += bytes;
            if !self.filter.matches(&EntityView::of(&row)?) {
                continue;
            }
            if self.matching.len() == self.limit || self.matching_bytes + bytes > PAGE_BYTES_MAX {
                return position(&row).map(Some);
            }
            self.matching_bytes += bytes;
            self.matching.push(row);
        }
        Ok(None)
    }

    /// The size of the next batch, from the average size of the rows so far.
    fn batch_rows_max(&self) -> usize {
        let by_bytes = BATCH_BYTES.saturating_mul(self.rows_seen) / self.bytes_seen.max(1);
        let by_comparisons = BATCH_COMPARISONS_MAX / self.filter.comparisons().max(1);
        by_bytes.min(by_comparisons).clamp(1, BATCH_ROWS_MAX)
    }

    fn ending(self, next: Option<Position>) -> EntityPage {
        EntityPage { entities: self.matching.into_iter().map(StoredEntity).collect(), next }
    }
}

fn position(row: &Row) -> Result<Position, Fault> {
    let (partition_key, row_key) = super::rows::entity_keys(&row.key)?;
    Ok(Position { partition_key: partition_key.into_owned(), row_key: Some(row_key.into_owned()) })
}
