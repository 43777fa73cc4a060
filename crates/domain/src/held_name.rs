//! Names of deleted resources that cannot be reused for a while. The operator chooses how long; by
//! default a name is free at once.

use std::time::Duration;

use bytes::Bytes;
use holdfast_store::Fault;
use serde::{Deserialize, Serialize};

use crate::domain::{Stamp, read};
use crate::due_task::DueTask;
use crate::rows::Stored;
use crate::time::Timestamp;
use crate::transact::Transaction;

/// Until when the name is not free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct HeldName(Timestamp);

impl Stored for HeldName {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "a held name";
}

/// Holds the name whose row has this key, if names are held at all.
pub(crate) fn hold(transaction: &mut Transaction, key: Bytes, hold: Duration, stamp: Stamp) {
    if hold.is_zero() {
        return;
    }
    let until = stamp.now.plus(hold);
    transaction.put(key.clone(), HeldName(until).encode());
    DueTask::FreeName(key).plan(transaction, until, stamp.etag.ticks());
}

/// Whether the name, which nothing has now, is still held.
pub(crate) async fn is_held(
    transaction: &mut Transaction,
    key: &Bytes,
    now: Timestamp,
) -> Result<bool, Fault> {
    let held: Option<HeldName> = read(transaction, key).await?;
    Ok(held.is_some_and(|HeldName(until)| until > now))
}

/// Ends the hold, unless something of that name was deleted since.
pub(crate) async fn free(
    transaction: &mut Transaction,
    key: &Bytes,
    now: Timestamp,
) -> Result<(), Fault> {
    let held: Option<HeldName> = read(transaction, key).await?;
    if held.is_some_and(|HeldName(until)| until <= now) {
        transaction.delete(key.clone());
    }
    Ok(())
}
