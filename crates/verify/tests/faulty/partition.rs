//! A partition in memory, optionally with a bug.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_verify::etag::ETag;
use holdfast_verify::partition::{Answer, Change, List, PartitionWorkload, Request, Row};
use holdfast_verify::record::Target;
use tokio::time::sleep;

use super::{Faulty, travel};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    None,
    /// A transaction is applied one change after another.
    TornBatch,
    /// A query reads one row after another.
    TornQuery,
    /// The changes before the one that is refused stay for a while.
    DirtyRead,
    /// The changes before the one that is refused stay.
    HalfBatchKept,
    /// ETags are compared, and the changes made later.
    LostUpdate,
    /// A query does not find recently inserted rows.
    Phantom,
    /// A query is sometimes answered from an old copy.
    StaleQuery,
    /// A transaction is sometimes acknowledged and dropped.
    LostBatch,
}

type Rows = BTreeMap<Row, (List, ETag)>;

#[derive(Default)]
pub struct Server {
    rows: Rows,
    old: Rows,
    etags: u64,
}

pub type FaultyPartition = Faulty<Server, Bug>;

impl Target<PartitionWorkload> for FaultyPartition {
    async fn call(&mut self, request: &Request) -> Option<Answer> {
        travel(&mut self.random).await;
        let unlucky = self.random.percent(15);
        let answer = match request {
            Request::Query { rows } => {
                let mut found = Rows::new();
                for row in rows.clone() {
                    if self.bug == Bug::TornQuery {
                        sleep(Duration::from_millis(1)).await;
                    }
                    let server = self.lock();
                    let is_new = server.rows.get(&row).is_some_and(|(list, _)| list.len() == 1);
                    let is_stale = unlucky && self.bug == Bug::StaleQuery;
                    let source = if is_stale { &server.old } else { &server.rows };
                    match source.get(&row) {
                        Some(_) if is_new && unlucky && self.bug == Bug::Phantom => {}
                        Some(read) => drop(found.insert(row, read.clone())),
                        None => {}
                    }
                }
                Answer::Rows(found)
            }
            Request::Batch { changes, .. } => self.batch(changes, unlucky).await,
        };
        travel(&mut self.random).await;
        Some(answer)
    }
}

impl FaultyPartition {
    async fn batch(&self, changes: &[Change], unlucky: bool) -> Answer {
        let refusal = {
            let server = self.lock();
            changes.iter().position(|change| !server.is_met(change))
        };
        let pause = || sleep(Duration::from_millis(2));
        match (self.bug, refusal) {
            (Bug::DirtyRead, Some(index)) => {
                let before = self.lock().rows.clone();
                self.lock().apply(&changes[..index]);
                pause().await;
                self.lock().rows = before;
            }
            (Bug::HalfBatchKept, Some(index)) => self.lock().apply(&changes[..index]),
            (Bug::LostUpdate, None) => {
                pause().await;
                self.lock().apply(changes);
            }
            (Bug::TornBatch, None) => {
                for change in changes {
                    self.lock().apply(std::slice::from_ref(change));
                    pause().await;
                }
            }
            (Bug::LostBatch, None) if unlucky => {}
            (_, None) => self.lock().apply(changes),
            (_, Some(_)) => {}
        }
        match refusal {
            None => Answer::Committed,
            Some(_) => {
                let code = "UpdateConditionNotSatisfied".to_owned();
                Answer::Refused { status: 412, code }
            }
        }
    }
}

impl Server {
    fn is_met(&self, change: &Change) -> bool {
        self.rows.get(&change.row).map(|(_, etag)| etag) == change.etag.as_ref()
    }

    fn apply(&mut self, changes: &[Change]) {
        self.old = self.rows.clone();
        for Change { row, before, element, .. } in changes {
            self.etags += 1;
            let list = before.iter().copied().chain([*element]).collect();
            self.rows.insert(*row, (list, ETag::new(&format!("\"{}\"", self.etags))));
        }
    }
}
