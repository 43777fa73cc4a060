//! Rows of one range, read ahead: for listings that merge several ranges.

use std::collections::VecDeque;

use holdfast_store::{Fault, KeyRange, Order, Row, Snapshot};

use crate::yield_budget::{ROWS_IN_TURN, YieldBudget};

/// Rows read at a time.
const ROWS_AHEAD: usize = ROWS_IN_TURN;

pub(crate) struct Cursor {
    range: KeyRange,
    taken: VecDeque<Row>,
    more: bool,
    yield_budget: YieldBudget,
}

impl Cursor {
    /// Yields no rows if they are not wanted.
    pub fn new(range: KeyRange, wanted: bool) -> Self {
        Self {
            more: wanted && !range.is_empty(),
            range,
            taken: VecDeque::new(),
            yield_budget: YieldBudget::default(),
        }
    }

    pub async fn peek(&mut self, snapshot: &dyn Snapshot) -> Result<Option<&Row>, Fault> {
        if self.taken.is_empty() && self.more {
            let found = snapshot.scan(&self.range, Order::Ascending, ROWS_AHEAD).await?;
            self.more = found.len() == ROWS_AHEAD;
            if let Some(last) = found.last() {
                self.range = self.range.clone().after(last.key.clone());
            }
            self.yield_budget.passed(found.len()).await;
            self.taken = found.into();
        }
        Ok(self.taken.front())
    }

    /// The row that was seen last by [`Cursor::peek`].
    pub fn take(&mut self) -> Option<Row> {
        self.taken.pop_front()
    }
}
