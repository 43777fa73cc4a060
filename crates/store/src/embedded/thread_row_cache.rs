//! The few small rows that a thread reads again and again, such as the table of every request, kept by
//! the thread itself. A hit writes nothing that other threads read: a shared lock or reference count,
//! changed by every request, would make all processors contend for its cache line.
//!
//! A thread cannot drop rows kept by others. Instead each hit is compared with the newest batch that
//! wrote a row of its hash, and counts only if it was read after that batch.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

/// How many hashes are distinguished: collisions only make rows be read again too often.
const HASHES: usize = 4096;
const ROWS_OF_A_THREAD: usize = 16;
/// Of a row and its key.
const BYTES_MAX: usize = 512;

/// What a store tells all threads about the rows they keep of it.
pub(super) struct ThreadRowCache {
    /// Tells the stores of this process apart.
    store: u64,
    /// By their hashes, the newest batch that wrote rows.
    written: Box<[AtomicU64]>,
}

struct Place {
    kept: Kept,
    /// The hash of another row that was asked for since this one was. Asked for once more, it takes
    /// the place.
    next: u64,
}

struct Kept {
    store: u64,
    hash: u64,
    key: Bytes,
    value: Bytes,
    /// The first snapshot that is known to see it.
    since: u64,
}

thread_local! {
    static PLACES: RefCell<[Place; ROWS_OF_A_THREAD]> =
        const { RefCell::new([const { Place::empty() }; ROWS_OF_A_THREAD]) };
}

impl ThreadRowCache {
    pub fn new() -> Self {
        static STORES: AtomicU64 = AtomicU64::new(1);
        Self {
            store: STORES.fetch_add(1, Ordering::Relaxed),
            written: (0..HASHES).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The row as the snapshot `before` sees it, if this thread keeps it.
    pub fn get(&self, hash: u64, key: &[u8], before: u64) -> Option<Bytes> {
        // Every write that the snapshot sees was noted before it was published.
        let written = self.newest_batch(hash);
        with_place(hash, |Place { kept, next }| {
            let found = self.holds(kept, hash, key) && written < kept.since && kept.since <= before;
            found.then(|| {
                *next = 0;
                kept.value.clone()
            })
        })
    }

    /// Keeps what the snapshot `before` has read, if that is worth it.
    pub fn offer(&self, hash: u64, key: &[u8], value: &[u8], before: u64) {
        if key.len() + value.len() > BYTES_MAX {
            return;
        }
        with_place(hash, |Place { kept, next }| {
            if !self.holds(kept, hash, key) && std::mem::replace(next, hash) != hash {
                return;
            }
            // Copies: all threads share the reference counts of the originals.
            let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
            *kept = Kept { store: self.store, hash, key, value, since: before };
        });
    }

    /// A batch is writing the row. To be called before any snapshot can see the batch.
    pub fn forget(&self, hash: u64, sequence: u64) {
        self.written(hash).fetch_max(sequence, Ordering::Relaxed);
    }

    /// The newest batch that wrote a row of this hash, or of a hash that shares its slot.
    pub fn newest_batch(&self, hash: u64) -> u64 {
        self.written(hash).load(Ordering::Relaxed)
    }

    fn written(&self, hash: u64) -> &AtomicU64 {
        &self.written[hash as usize % HASHES]
    }

    fn holds(&self, kept: &Kept, hash: u64, key: &[u8]) -> bool {
        kept.store == self.store && kept.hash == hash && kept.key == key
    }
}

fn with_place<T>(hash: u64, look: impl FnOnce(&mut Place) -> T) -> T {
    PLACES.with_borrow_mut(|places| look(&mut places[(hash >> 32) as usize % ROWS_OF_A_THREAD]))
}

impl Place {
    const fn empty() -> Self {
        let kept = Kept { store: 0, hash: 0, key: Bytes::new(), value: Bytes::new(), since: 0 };
        Self { kept, next: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: u64 = 7;
    /// Another hash with the same place.
    const OTHER: u64 = HASH + 1;

    fn keep(rows: &ThreadRowCache, hash: u64, key: &str, value: &str, before: u64) {
        for _ in 0..2 {
            rows.offer(hash, key.as_bytes(), value.as_bytes(), before);
        }
    }

    fn get(rows: &ThreadRowCache, hash: u64, key: &str, before: u64) -> Option<String> {
        let value = rows.get(hash, key.as_bytes(), before);
        value.map(|value| String::from_utf8_lossy(&value).into_owned())
    }

    #[test]
    fn a_row_is_told_from_its_reader_on_until_it_is_written() {
        let rows = ThreadRowCache::new();
        keep(&rows, HASH, "a", "1", 5);
        assert_eq!(get(&rows, HASH, "a", 4), None);
        assert_eq!(get(&rows, HASH, "a", 5).as_deref(), Some("1"));
        assert_eq!(get(&rows, HASH, "a", 9).as_deref(), Some("1"));
        rows.forget(HASH, 9);
        assert_eq!(get(&rows, HASH, "a", 9), None, "somebody is writing it");
        assert_eq!(get(&rows, HASH, "a", 10), None);
        rows.offer(HASH, b"a", b"2", 10);
        assert_eq!(get(&rows, HASH, "a", 10).as_deref(), Some("2"));
    }

    #[test]
    fn a_reader_that_was_overtaken_keeps_nothing_that_others_see() {
        let rows = ThreadRowCache::new();
        rows.forget(HASH, 5);
        keep(&rows, HASH, "a", "before the batch", 5);
        assert_eq!(get(&rows, HASH, "a", 5), None);
        assert_eq!(get(&rows, HASH, "a", 6), None);
    }

    #[test]
    fn a_row_is_not_taken_for_another_one() {
        let (rows, others) = (ThreadRowCache::new(), ThreadRowCache::new());
        keep(&rows, HASH, "a", "1", 5);
        assert_eq!(get(&rows, HASH, "b", 5), None, "of the same hash");
        assert_eq!(get(&rows, OTHER, "a", 5), None, "of the same place");
        assert_eq!(get(&others, HASH, "a", 5), None, "of another store");
        let elsewhere = std::thread::scope(|scope| {
            scope.spawn(|| get(&rows, HASH, "a", 5)).join().expect("no panic")
        });
        assert_eq!(elsewhere, None, "of another thread");
    }

    #[test]
    fn what_is_asked_for_all_the_time_keeps_its_place() {
        let rows = ThreadRowCache::new();
        keep(&rows, HASH, "table", "1", 5);
        for _ in 0..10 {
            rows.offer(OTHER, b"entity", b"2", 5);
            assert_eq!(get(&rows, OTHER, "entity", 5), None);
            assert_eq!(get(&rows, HASH, "table", 5).as_deref(), Some("1"));
        }
        keep(&rows, OTHER, "entity", "2", 5);
        assert_eq!(get(&rows, OTHER, "entity", 5).as_deref(), Some("2"));
        assert_eq!(get(&rows, HASH, "table", 5), None, "nobody asked for it in between");
    }

    #[test]
    fn long_rows_are_not_kept() {
        let rows = ThreadRowCache::new();
        keep(&rows, HASH, "a", &"x".repeat(BYTES_MAX), 5);
        assert_eq!(get(&rows, HASH, "a", 5), None);
    }
}
