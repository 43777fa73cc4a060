//! List Queues. A page costs a seek and as many rows as it has entries, and is one state of the
//! store.

use holdfast_store::{Fault, KeyRange, Order, Snapshot};

use super::model::Queue;
use super::rows;
use crate::domain::Domain;
use crate::names::AccountName;
use crate::rows::Stored;
use crate::yield_budget::ROWS_IN_TURN;

/// Entries returned at a time.
const BATCH_ENTRIES: usize = ROWS_IN_TURN;

pub struct ListQueues {
    pub account: AccountName,
    pub prefix: String,
    /// The name of the first queue, from the page before.
    pub marker: Option<String>,
    pub limit: usize,
}

#[derive(Clone, Debug)]
pub struct ListedQueue {
    pub name: String,
    pub queue: Queue,
}

/// A page of queues, by name.
pub struct QueueListing {
    snapshot: Box<dyn Snapshot>,
    account: AccountName,
    range: KeyRange,
    /// Entries that the page still has room for.
    room: usize,
    next_marker: Option<String>,
}

impl Domain {
    pub async fn list_queues(&self, command: ListQueues) -> Result<QueueListing, Fault> {
        let account = command.account.as_str();
        let mut range = KeyRange::prefix(rows::queues(account, &command.prefix));
        if let Some(marker) = command.marker.filter(|marker| *marker >= command.prefix) {
            range = range.starting_at(rows::queue(account, &marker));
        }
        let snapshot = self.engine.snapshot().await?;
        let (account, room) = (command.account, command.limit);
        Ok(QueueListing { snapshot, account, range, room, next_marker: None })
    }
}

impl QueueListing {
    /// The next queues of the page; none at its end.
    pub async fn next(&mut self) -> Result<Vec<ListedQueue>, Fault> {
        let limit = BATCH_ENTRIES.min(self.room);
        // One more, to know whether there is another page.
        let mut found = self.snapshot.scan(&self.range, Order::Ascending, limit + 1).await?;
        let behind = if found.len() > limit { found.pop() } else { None };
        let mut queues = Vec::with_capacity(found.len());
        for row in &found {
            let name = rows::queue_name(self.account.as_str(), &row.key)?.to_owned();
            queues.push(ListedQueue { name, queue: Queue::decode(&row.value)? });
        }
        if let Some(last) = found.last() {
            self.range = self.range.clone().after(last.key.clone());
        }
        self.room -= queues.len();
        if self.room == 0
            && let Some(behind) = behind
        {
            let name = rows::queue_name(self.account.as_str(), &behind.key)?;
            self.next_marker = Some(name.to_owned());
        }
        Ok(queues)
    }

    /// Where the next page begins, if there is one; known at the end of this one.
    pub fn next_marker(&self) -> Option<&str> {
        self.next_marker.as_deref()
    }
}
