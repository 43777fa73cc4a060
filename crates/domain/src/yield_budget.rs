//! Yields while many rows are read: other requests of the thread run in between, and the request
//! itself can be moved to threads that are meant for long ones.

use holdfast_sync::yield_now;

/// Reading, decoding and writing out so many rows takes a few hundred microseconds.
pub(crate) const ROWS_IN_TURN: usize = 100;
/// The cost of finding the first row of a range, in rows.
const SEEK_ROWS: usize = 10;

/// Counts work, since there is no clock here.
#[derive(Debug)]
pub(crate) struct YieldBudget {
    left: usize,
}

impl Default for YieldBudget {
    fn default() -> Self {
        Self { left: ROWS_IN_TURN }
    }
}

impl YieldBudget {
    /// After so many rows.
    pub async fn passed(&mut self, rows: usize) {
        match self.left.checked_sub(rows) {
            Some(left) => self.left = left,
            None => {
                yield_now().await;
                self.left = ROWS_IN_TURN;
            }
        }
    }

    /// After looking up a single row, or seeking to a range.
    pub async fn sought(&mut self) {
        self.passed(SEEK_ROWS).await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn a_turn_is_given_up_after_so_many_rows() {
        let mut yield_budget = YieldBudget::default();
        let mut gives_way = |rows| {
            let mut passed = pin!(yield_budget.passed(rows));
            let mut context = Context::from_waker(Waker::noop());
            let is_pending = passed.as_mut().poll(&mut context).is_pending();
            is_pending && passed.poll(&mut context).is_ready()
        };
        assert_eq!([60, 40, 1, 100, 1].map(&mut gives_way), [false, false, true, false, true]);
    }
}
