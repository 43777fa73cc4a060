//! The entities that a shared access signature covers.

use std::cmp::Ordering;
use std::ops::Bound;

use holdfast_store::KeyRange as RowRange;

use super::rows;
use super::value::compare_ordinal;

/// From a pair of keys to another, both ends included. Without a RowKey a bound is that of the
/// whole partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    pub start_partition: Option<String>,
    pub start_row: Option<String>,
    pub end_partition: Option<String>,
    pub end_row: Option<String>,
}

impl KeyRange {
    pub fn contains(&self, partition_key: &str, row_key: &str) -> bool {
        let compare = |partition: &String, row: &Option<String>| {
            compare_ordinal(partition_key, partition).then_with(|| match row {
                Some(row) => compare_ordinal(row_key, row),
                None => Ordering::Equal,
            })
        };
        let after_start = match &self.start_partition {
            Some(start) => compare(start, &self.start_row).is_ge(),
            None => true,
        };
        let before_end = match &self.end_partition {
            Some(end) => compare(end, &self.end_row).is_le(),
            None => true,
        };
        after_start && before_end
    }

    /// The rows of the entities in the range; the same for which [`KeyRange::contains`] is true.
    pub fn of_rows(&self, table: u64) -> RowRange {
        let mut range = RowRange::prefix(rows::entities(table));
        if let Some(partition) = &self.start_partition {
            let row = self.start_row.as_deref().unwrap_or_default();
            range.start = Bound::Included(rows::entity(table, partition, row));
        }
        if let Some(partition) = &self.end_partition {
            range.end = match &self.end_row {
                Some(row) => Bound::Included(rows::entity(table, partition, row)),
                None => Bound::Excluded(rows::after_partition(table, partition)),
            };
        }
        range
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_range_holds_what_it_says_in_rows_too() {
        let keys = ["", "a", "b", "bb", "c", "\u{1F600}", "\u{FB00}"];
        let ends = [None, Some(("b", None)), Some(("b", Some("b"))), Some(("\u{FB00}", Some("a")))];
        let owned = |end: Option<(&str, Option<&str>)>| match end {
            None => (None, None),
            Some((partition, row)) => (Some(partition.to_owned()), row.map(str::to_owned)),
        };
        for start in ends {
            for end in ends {
                let (start_partition, start_row) = owned(start);
                let (end_partition, end_row) = owned(end);
                let range = KeyRange { start_partition, start_row, end_partition, end_row };
                let rows = range.of_rows(7);
                for partition in keys {
                    for row in keys {
                        let expected = match start {
                            None => true,
                            Some((from, None)) => compare_ordinal(partition, from).is_ge(),
                            Some((from, Some(first))) => {
                                compare_ordinal(partition, from).is_gt()
                                    || (partition == from && compare_ordinal(row, first).is_ge())
                            }
                        } && match end {
                            None => true,
                            Some((to, None)) => compare_ordinal(partition, to).is_le(),
                            Some((to, Some(last))) => {
                                compare_ordinal(partition, to).is_lt()
                                    || (partition == to && compare_ordinal(row, last).is_le())
                            }
                        };
                        let case = format!("4.7 {range:?}: {partition:?} {row:?}");
                        assert_eq!(range.contains(partition, row), expected, "{case}");
                        let key = rows::entity(7, partition, row);
                        assert_eq!(rows.contains(&key), expected, "{case}");
                    }
                }
                assert!(!rows.contains(&rows::entity(8, "b", "b")), "another table");
                assert!(!rows.contains(&rows::entity(6, "b", "b")), "another table");
            }
        }
    }
}
