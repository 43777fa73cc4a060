//! Where the removal of many rows goes on: behind those that it has removed already. A store passes
//! over removed rows one by one for as long as it has not got rid of them, so a removal that looked
//! for what is left from the front each time would take longer with every step.
//!
//! It is known to this run only. The next one passes over what is gone once, and then knows.

use std::collections::HashMap;

use bytes::Bytes;
use holdfast_store::KeyRange;
use holdfast_sync::Mutex;

/// For ranges of rows that nobody adds to any more.
#[derive(Default)]
pub(crate) struct RemovalProgress {
    /// The last row that was removed of those with a prefix.
    removed_until: Mutex<HashMap<Bytes, Bytes>>,
}

impl RemovalProgress {
    /// What is left of the rows with this prefix.
    pub fn rest(&self, prefix: &Bytes) -> KeyRange {
        let all = KeyRange::prefix(prefix.clone());
        match self.removed_until.lock().get(prefix) {
            Some(last) => all.after(last.clone()),
            None => all,
        }
    }

    /// A step of the removal is committed: it has removed rows with these keys, those of each prefix in
    /// their order. Unless there is `more`, nobody asks again.
    pub fn removed(&self, prefixes: &[Bytes], keys: &[Bytes], more: bool) {
        let mut removed_until = self.removed_until.lock();
        for prefix in prefixes {
            if !more {
                removed_until.remove(prefix);
            } else if let Some(last) = keys.iter().rfind(|key| key.starts_with(prefix)) {
                removed_until.insert(prefix.clone(), last.clone());
            }
        }
    }
}
