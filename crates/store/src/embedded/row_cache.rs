//! Rows that are read again and again, such as the container or the table of every request. Finding
//! one here costs a fraction of a search in the tree, with its memtables and many tables. Each
//! thread also keeps the few that it needs most, see `thread_row_cache`.
//!
//! An entry is the newest state of its row and answers every snapshot from the one on that has read
//! it. Placing a batch drops the entries of the rows that it writes before any snapshot sees the
//! batch. A slow reader must not put an outdated row back, so the newest batch that wrote each row
//! is kept by the hash of the row.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use bytes::Bytes;
use holdfast_sync::Mutex;

use super::thread_row_cache::ThreadRowCache;

/// So many that threads seldom wait for each other.
const SHARDS: usize = 16;
/// Longer rows are seldom read again and would evict many others.
const ROW_BYTES_MAX: usize = 8 * 1024;
/// How many keys a shard remembers that were asked for and are not in it.
const ASKED_MAX: usize = 512;

pub(super) struct RowCache {
    thread_cache: ThreadRowCache,
    shards: [Mutex<Shard>; SHARDS],
    /// What a shard keeps of each generation.
    generation_bytes_max: usize,
}

struct Shard {
    /// What was read recently. When it is full it becomes the older generation; the previous older
    /// generation is dropped, except for what was read again meanwhile.
    newer: Generation,
    older: Generation,
    newer_bytes: usize,
    /// Hashes of keys read once. Only rows that are read twice are kept: most never are.
    asked: Box<[u64; ASKED_MAX]>,
}

/// Of two keys with one hash the later one is kept.
type Generation = ByHash<Entry>;
/// What is found by the hash of a key.
type ByHash<T> = HashMap<u64, T, BuildHasherDefault<AsItIs>>;

struct Entry {
    key: Bytes,
    value: Bytes,
    /// The first snapshot that is known to see it.
    since: u64,
}

impl RowCache {
    pub fn new(bytes_max: usize) -> Self {
        Self {
            thread_cache: ThreadRowCache::new(),
            shards: std::array::from_fn(|_| Mutex::new(Shard::new())),
            generation_bytes_max: bytes_max / SHARDS / 2,
        }
    }

    /// The row as the snapshot `before` sees it, if it is known.
    pub fn get(&self, hash: u64, key: &[u8], before: u64) -> Option<Bytes> {
        if let Some(value) = self.thread_cache.get(hash, key, before) {
            return Some(value);
        }
        let value = self.shard(hash).lock().get(hash, key, before, self.generation_bytes_max)?;
        self.thread_cache.offer(hash, key, &value, before);
        Some(value)
    }

    /// Keeps what the snapshot `before` has read, if it is worth it and still true.
    pub fn offer(&self, hash: u64, key: &[u8], value: &Bytes, before: u64) {
        if key.len() + value.len() > ROW_BYTES_MAX {
            return;
        }
        let mut shard = self.shard(hash).lock();
        // Under the lock: a batch that is not noted here yet drops the row again.
        if self.thread_cache.newest_batch(hash) >= before || !shard.is_asked_again(hash) {
            return;
        }
        // Copies, since the originals would keep whole blocks of tables or groups of the log in
        // memory.
        let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
        shard.keep(hash, Entry { key, value, since: before }, self.generation_bytes_max);
    }

    /// A batch is writing the row. To be called before any snapshot can see the batch.
    pub fn forget(&self, hash: u64, sequence: u64) {
        self.thread_cache.forget(hash, sequence);
        let mut shard = self.shard(hash).lock();
        if let Some(entry) = shard.newer.remove(&hash) {
            shard.newer_bytes -= entry.bytes();
        }
        shard.older.remove(&hash);
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        // The low bits choose the place in the maps of the shard.
        &self.shards[(hash >> 32) as usize % SHARDS]
    }
}

impl Shard {
    fn new() -> Self {
        Self {
            newer: Generation::default(),
            older: Generation::default(),
            newer_bytes: 0,
            asked: Box::new([0; ASKED_MAX]),
        }
    }

    fn get(&mut self, hash: u64, key: &[u8], before: u64, bytes_max: usize) -> Option<Bytes> {
        if let Some(entry) = self.newer.get(&hash) {
            return entry.seen_by(key, before);
        }
        let entry = self.older.remove(&hash)?;
        let value = entry.seen_by(key, before);
        self.keep(hash, entry, bytes_max);
        value
    }

    /// Whether the key was asked for before, as far as is remembered.
    fn is_asked_again(&mut self, hash: u64) -> bool {
        let asked = &mut self.asked[hash as usize % ASKED_MAX];
        std::mem::replace(asked, hash) == hash
    }

    fn keep(&mut self, hash: u64, entry: Entry, bytes_max: usize) {
        self.newer_bytes += entry.bytes();
        if let Some(replaced) = self.newer.insert(hash, entry) {
            self.newer_bytes -= replaced.bytes();
        }
        self.older.remove(&hash);
        if self.newer_bytes > bytes_max {
            self.older = std::mem::take(&mut self.newer);
            self.newer_bytes = 0;
        }
    }
}

impl Entry {
    fn seen_by(&self, key: &[u8], before: u64) -> Option<Bytes> {
        (self.since <= before && self.key == key).then(|| self.value.clone())
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.key.len() + self.value.len()
    }
}

/// For keys that are hashes already.
#[derive(Default)]
pub(super) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only whole hashes are hashed");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::hash_of;
    use super::*;

    fn cache() -> RowCache {
        RowCache::new(1024 * 1024)
    }

    /// Twice, since the first time is only remembered.
    fn offer(cache: &RowCache, key: &str, value: &str, before: u64) {
        for _ in 0..2 {
            cache.offer(
                hash_of(key.as_bytes()),
                key.as_bytes(),
                &Bytes::copy_from_slice(value.as_bytes()),
                before,
            );
        }
    }

    fn get(cache: &RowCache, key: &str, before: u64) -> Option<String> {
        let value = cache.get(hash_of(key.as_bytes()), key.as_bytes(), before);
        value.map(|value| String::from_utf8_lossy(&value).into_owned())
    }

    #[test]
    fn a_row_that_is_asked_for_twice_is_kept() {
        let cache = cache();
        cache.offer(hash_of(b"a"), b"a", &Bytes::from_static(b"1"), 5);
        assert_eq!(get(&cache, "a", 5), None);
        cache.offer(hash_of(b"a"), b"a", &Bytes::from_static(b"1"), 5);
        assert_eq!(get(&cache, "a", 5).as_deref(), Some("1"));
    }

    #[test]
    fn a_row_is_not_told_to_snapshots_older_than_its_reader() {
        let cache = cache();
        offer(&cache, "a", "1", 5);
        assert_eq!(get(&cache, "a", 4), None);
        assert_eq!(get(&cache, "a", 6).as_deref(), Some("1"));
    }

    #[test]
    fn a_row_that_is_written_is_dropped_from_both_generations() {
        let cache = cache();
        offer(&cache, "a", "1", 5);
        cache.forget(hash_of(b"a"), 5);
        assert_eq!(get(&cache, "a", 6), None);

        offer(&cache, "a", "2", 6);
        let shard = cache.shard(hash_of(b"a"));
        let newer = std::mem::take(&mut shard.lock().newer);
        shard.lock().older = newer;
        shard.lock().newer_bytes = 0;
        cache.forget(hash_of(b"a"), 6);
        assert_eq!(get(&cache, "a", 7), None);
    }

    #[test]
    fn a_reader_that_was_overtaken_brings_nothing_back() {
        let cache = cache();
        cache.forget(hash_of(b"a"), 5);
        offer(&cache, "a", "before the batch", 5);
        assert_eq!(get(&cache, "a", 5), None);
        assert_eq!(get(&cache, "a", 6), None);
        offer(&cache, "a", "after it", 6);
        assert_eq!(get(&cache, "a", 6).as_deref(), Some("after it"));
    }

    #[test]
    fn no_more_is_kept_than_was_allowed() {
        let cache = RowCache::new(64 * 1024);
        let value = "x".repeat(100);
        for number in 0..10_000 {
            offer(&cache, &number.to_string(), &value, 1);
        }
        let kept = |shard: &Mutex<Shard>| {
            let shard = shard.lock();
            shard.newer.values().chain(shard.older.values()).map(Entry::bytes).sum::<usize>()
        };
        let kept: usize = cache.shards.iter().map(kept).sum();
        assert!((16 * 1024..=64 * 1024 + SHARDS * 256).contains(&kept), "{kept}");
        let long = "x".repeat(ROW_BYTES_MAX);
        offer(&cache, "long", &long, 1);
        assert_eq!(get(&cache, "long", 1), None);
    }

    #[test]
    fn what_is_asked_for_stays_while_others_come_and_go() {
        let cache = RowCache::new(64 * 1024);
        // Too long for the cache of a thread.
        let value = "x".repeat(600);
        offer(&cache, "container", &value, 1);
        for number in 0..10_000 {
            offer(&cache, &number.to_string(), "x", 1);
            assert_eq!(get(&cache, "container", 1).as_ref(), Some(&value), "after {number}");
        }
    }
}
