//! Reads inside one open transaction.

use std::ops::Bound;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::try_join;

use super::schema::BEGIN_SNAPSHOT;
use super::sessions::LentSession;
use crate::engine::{Fault, KEY_BYTES_MAX, KeyRange, Moment, Order, Row, Snapshot};

pub struct PostgresSnapshot {
    session: LentSession,
    moment: Moment,
}

impl PostgresSnapshot {
    pub async fn begin(session: LentSession) -> Result<Self, Fault> {
        session.set_in_transaction(true);
        let client = session.client();
        let begin = client.batch_execute(BEGIN_SNAPSHOT);
        let moment = client.query_one(&session.statements().moment, &[]);
        let ((), row) = session.wait(try_join(begin, moment)).await?;
        let text: &str = row.try_get(0).map_err(unreadable)?;
        let moment = Moment { sequence: 0, text: Some(Arc::from(text)) };
        Ok(Self { session, moment })
    }
}

#[async_trait]
impl Snapshot for PostgresSnapshot {
    fn moment(&self) -> Moment {
        self.moment.clone()
    }

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        let statements = self.session.statements();
        let client = self.session.client();
        let found = self.session.wait(client.query_opt(&statements.get, &[&key])).await?;
        found.map(|row| bytes_of(&row, 0)).transpose()
    }

    async fn scan(&self, range: &KeyRange, order: Order, limit: usize) -> Result<Vec<Row>, Fault> {
        if range.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let statements = self.session.statements();
        let statement = match order {
            Order::Ascending => &statements.scan_ascending,
            Order::Descending => &statements.scan_descending,
        };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let (first, past) = (first_of(range), past_of(range));
        let (first, past) = (first.as_ref(), past.as_ref());
        let client = self.session.client();
        let rows = self.session.wait(client.query(statement, &[&first, &past, &limit])).await?;
        rows.iter()
            .map(|row| Ok(Row { key: bytes_of(row, 0)?, value: bytes_of(row, 1)? }))
            .collect()
    }
}

/// The smallest key that may lie in the range. In ordinal order nothing lies between a key and the
/// same key with a zero byte after it, so that every bound can be stated one way.
pub fn first_of(range: &KeyRange) -> Bytes {
    match &range.start {
        Bound::Included(start) => start.clone(),
        Bound::Excluded(start) => with_zero(start),
        Bound::Unbounded => Bytes::new(),
    }
}

/// The smallest key past the range.
pub fn past_of(range: &KeyRange) -> Bytes {
    match &range.end {
        Bound::Included(end) => with_zero(end),
        Bound::Excluded(end) => end.clone(),
        Bound::Unbounded => Bytes::from_static(&PAST_EVERY_KEY),
    }
}

static PAST_EVERY_KEY: [u8; KEY_BYTES_MAX + 1] = [0xFF; KEY_BYTES_MAX + 1];

fn with_zero(key: &[u8]) -> Bytes {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next.into()
}

fn bytes_of(row: &tokio_postgres::Row, column: usize) -> Result<Bytes, Fault> {
    row.try_get(column).map(Bytes::copy_from_slice).map_err(unreadable)
}

fn unreadable(error: tokio_postgres::Error) -> Fault {
    Fault::because("PostgreSQL answered with another type than asked for", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_open_bounds_hold_the_same_keys_as_the_range() {
        let keys: Vec<Vec<u8>> = (0..4u8)
            .flat_map(|first| {
                [vec![first], vec![first, 0], vec![first, 0, 0], vec![first, 0xFF], vec![]]
            })
            .chain([vec![0xFF; KEY_BYTES_MAX]])
            .collect();
        let bounds = |key: &[u8]| {
            let key = Bytes::copy_from_slice(key);
            [Bound::Included(key.clone()), Bound::Excluded(key), Bound::Unbounded]
        };
        for (start, end) in keys.iter().flat_map(|a| keys.iter().map(move |b| (a, b))) {
            for range in bounds(start).into_iter().flat_map(|start| {
                bounds(end).into_iter().map(move |end| KeyRange { start: start.clone(), end })
            }) {
                let (first, past) = (first_of(&range), past_of(&range));
                for key in &keys {
                    let inside = key.as_slice() >= first.as_ref() && key.as_slice() < past.as_ref();
                    assert_eq!(inside, range.contains(key), "{key:?} in {range:?}");
                }
            }
        }
    }
}
