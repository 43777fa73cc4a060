//! Where the removal of many rows continues: after those already removed. Until a merge drops
//! removed rows, a scan skips them one by one, so a removal that began at the front each time would
//! take longer with every step.
//!
//! It is kept in memory only. The next run skips the removed rows once, and then knows.

use std::collections::HashMap;

use bytes::Bytes;
use holdfast_store::KeyRange;
use holdfast_sync::Mutex;

/// For ranges to which no rows are added any more.
#[derive(Default)]
pub(crate) struct RemovalProgress {
    /// The last removed row of each prefix.
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
    /// order. Without `more` the removal is finished.
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
