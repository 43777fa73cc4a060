//! Reads the rows of a table's entities, span by span.

use std::collections::VecDeque;
use std::ops::Bound;

use bytes::{BufMut, Bytes, BytesMut};
use holdfast_store::{Fault, KeyRange, Order, Row, Snapshot};

use super::filter::{Cut, Key, KeyCut, KeySpan, Side};
use super::rows;

/// The entities still to be read, in order.
pub(super) struct EntityRows<'a> {
    snapshot: &'a dyn Snapshot,
    stretches: VecDeque<Stretch>,
}

enum Stretch {
    One(Bytes),
    Range(KeyRange),
}

impl<'a> EntityRows<'a> {
    /// `spans` are in order and disjoint.
    pub(super) fn new(
        snapshot: &'a dyn Snapshot,
        table: u64,
        spans: impl IntoIterator<Item = KeySpan<'a>>,
    ) -> Self {
        let spans = spans.into_iter().filter(|span| !span.is_empty());
        let stretches = spans.map(|span| match span.single() {
            Some((partition, row)) => Stretch::One(rows::entity(table, partition, row)),
            None => Stretch::Range(range(table, span)),
        });
        Self { snapshot, stretches: stretches.collect() }
    }

    /// The next rows, at most so many; none at the end.
    pub(super) async fn next(&mut self, limit: usize) -> Result<Vec<Row>, Fault> {
        let mut found: Vec<Row> = Vec::new();
        while found.len() < limit {
            match self.stretches.pop_front() {
                None => break,
                Some(Stretch::One(key)) => {
                    let value = self.snapshot.get(&key).await?;
                    found.extend(value.map(|value| Row { key, value }));
                }
                Some(Stretch::Range(range)) => {
                    let room = limit - found.len();
                    let part = self.snapshot.scan(&range, Order::Ascending, room).await?;
                    if let Some(last) = part.last()
                        && part.len() == room
                    {
                        let rest = range.after(last.key.clone());
                        self.stretches.push_front(Stretch::Range(rest));
                    }
                    if found.is_empty() {
                        found = part;
                    } else {
                        found.extend(part);
                    }
                }
            }
        }
        Ok(found)
    }
}

fn range(table: u64, span: KeySpan<'_>) -> KeyRange {
    let all = KeyRange::prefix(rows::entities(table));
    KeyRange {
        start: key_behind(table, span.start).map_or(all.start, Bound::Included),
        end: key_behind(table, span.end).map_or(all.end, Bound::Excluded),
    }
}

/// The first key that an entity after the place could have; `None` at the ends of the table.
fn key_behind(table: u64, place: KeyCut<'_>) -> Option<Bytes> {
    match place {
        KeyCut::First | KeyCut::Last => None,
        KeyCut::At(Key(partition), Cut::First) => Some(rows::partition(table, partition)),
        KeyCut::At(Key(partition), Cut::At(Key(row), side)) => {
            let key = rows::entity(table, partition, row);
            match side {
                Side::Before => Some(key),
                Side::After => {
                    let mut behind = BytesMut::from(key);
                    behind.put_u8(0);
                    Some(behind.freeze())
                }
            }
        }
        KeyCut::At(Key(partition), Cut::Last) => Some(rows::after_partition(table, partition)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::filter::Filter;
    use crate::table::{EntityView, compare_ordinal};

    const KEYS: [&str; 7] = ["", " ", "a", "a ", "aa", "\u{10000}", "\u{FB00}"];

    /// Spans and ranges of row keys contain the same entities.
    #[test]
    fn a_range_of_rows_holds_what_its_span_does() {
        let places = |text| [Cut::First, Cut::before(text), Cut::after(text), Cut::Last];
        let mut cuts = vec![KeyCut::First, KeyCut::Last];
        for partition in KEYS {
            cuts.extend(
                KEYS.iter().flat_map(|row| places(row)).map(|row| KeyCut::At(Key(partition), row)),
            );
        }
        for start in &cuts {
            for end in &cuts {
                let span = KeySpan { start: *start, end: *end };
                if span.is_empty() {
                    continue;
                }
                let range = range(7, span);
                for partition in KEYS {
                    for row in KEYS {
                        let at = |side| KeyCut::At(Key(partition), Cut::At(Key(row), side));
                        let inside = *start <= at(Side::Before) && at(Side::After) <= *end;
                        let key = rows::entity(7, partition, row);
                        assert_eq!(range.contains(&key), inside, "{span:?} {partition:?}/{row:?}");
                    }
                }
                for other in [6, 8] {
                    assert!(!range.contains(&rows::entity(other, "a", "a")), "another table");
                }
            }
        }
    }

    /// Rows that are read by the spans of a filter come in order, each once.
    #[tokio::test]
    async fn rows_come_in_order_each_once_however_few_are_taken() {
        use holdfast_store::memory::MemoryEngine;
        use holdfast_store::{Batch, Engine as _};

        let engine = MemoryEngine::default();
        let mut batch = Batch::blind();
        for partition in KEYS {
            for row in KEYS {
                let value = [&[1][..], &[0; 8]].concat();
                batch.put(rows::entity(7, partition, row), value);
            }
        }
        batch.put(rows::entity(6, "a", "a"), "another");
        batch.put(rows::entity(8, "a", "a"), "another");
        engine.commit(batch).await.expect("committed");
        let snapshot = engine.snapshot().await.expect("a snapshot");
        for filter in [
            "",
            "PartitionKey eq 'a'",
            "PartitionKey eq 'a' and RowKey eq 'aa'",
            "PartitionKey eq 'a' and RowKey eq 'missing'",
            "PartitionKey ne 'a'",
            "PartitionKey gt 'a' or PartitionKey eq '' and (RowKey eq ' ' or RowKey eq 'a')",
            "PartitionKey ge 'a' and PartitionKey le 'aa' and RowKey gt 'a'",
            "PartitionKey eq '\u{10000}' or PartitionKey eq '\u{FB00}' and RowKey gt '\u{10000}'",
            "false",
        ] {
            let filter = Filter::parse(filter).expect("a filter");
            let expected = KEYS.iter().flat_map(|one| KEYS.iter().map(move |two| (*one, *two)));
            let mut expected: Vec<_> = expected
                .filter(|(partition, row)| {
                    let at = |side| KeyCut::At(Key(partition), Cut::At(Key(row), side));
                    filter
                        .key_spans()
                        .iter()
                        .any(|span| span.start <= at(Side::Before) && at(Side::After) <= span.end)
                })
                .collect();
            expected.sort_by(|one, two| {
                compare_ordinal(one.0, two.0).then_with(|| compare_ordinal(one.1, two.1))
            });
            for limit in [1, 2, 5, 100] {
                let mut entities = EntityRows::new(&*snapshot, 7, filter.key_spans());
                let mut found = Vec::new();
                loop {
                    let part = entities.next(limit).await.expect("rows");
                    assert!(part.len() <= limit);
                    if part.is_empty() {
                        break;
                    }
                    for row in part {
                        let view = EntityView::of(&row).expect("an entity");
                        found.push((view.partition_key().to_owned(), view.row_key().to_owned()));
                    }
                }
                let found: Vec<_> =
                    found.iter().map(|(one, two)| (one.as_str(), two.as_str())).collect();
                assert_eq!(found, expected, "{filter:?}");
            }
        }
    }
}
