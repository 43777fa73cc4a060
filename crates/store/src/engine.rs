//! The contract of a row store: snapshots to read from, and batches that commit only if what the
//! decision was based on has not changed since its snapshot.
//!
//! A batch names the rows and ranges it relied on; the engine refuses it with
//! [`CommitError::Conflict`] when any of them was written after the batch's [`Moment`]. That is all
//! a caller needs for serializable decisions, and it is cheap everywhere: the embedded engine
//! answers it from memory, a SQL engine by the transaction that last wrote each row.

use std::cmp;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_sync::oneshot;

/// Longest key a caller may use; every engine must take it.
pub const KEY_BYTES_MAX: usize = 8 * 1024;
/// Longest value a caller may use; every engine must take it.
pub const VALUE_BYTES_MAX: usize = 4 * 1024 * 1024;

#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// The newest committed state. It stays still for as long as it is held.
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, Fault>;

    /// Applies all writes of the batch or none. `Ok` means durable, to the degree the engine was
    /// opened with.
    async fn commit(&self, batch: Batch) -> Result<(), CommitError>;

    /// Gives the batch its place in the order of commits: `Ok` means that it will be committed there
    /// unless the engine fails, and that [`Engine::placed_snapshot`] sees it. No client may be told
    /// before [`Placed::durable`] has returned.
    async fn place(&self, batch: Batch) -> Result<Placed, CommitError> {
        self.commit(batch).await.map(|()| Placed::durable_already())
    }

    /// The newest state, including batches that are placed and not durable yet. Decisions may be made on
    /// it; an answer based on it must wait for [`Engine::settled`].
    async fn placed_snapshot(&self) -> Result<Box<dyn Snapshot>, Fault> {
        self.snapshot().await
    }

    /// Waits until all that a snapshot of this moment sees is durable.
    async fn settled(&self, _moment: &Moment) -> Result<(), Fault> {
        Ok(())
    }

    /// Why the engine no longer accepts commits, once a write or sync has failed.
    fn poisoned(&self) -> Option<Fault>;

    /// Why only some batches are accepted now, if so: on a full disk those that free space, without
    /// free descriptors those that need no new file.
    fn short_of_room(&self) -> Option<Fault> {
        None
    }

    fn statistics(&self) -> EngineStatistics;
}

#[async_trait]
pub trait Snapshot: Send + Sync {
    /// The moment of this snapshot, for a batch that is decided on it.
    fn moment(&self) -> Moment;

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fault>;

    /// At most `limit` rows of `range`, in the given order.
    async fn scan(&self, range: &KeyRange, order: Order, limit: usize) -> Result<Vec<Row>, Fault>;
}

/// A point in the history of an engine, opaque to callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    pub(crate) sequence: u64,
    /// Engines whose history is not one sequence keep their own text here.
    pub(crate) text: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub key: Bytes,
    pub value: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Ascending,
    Descending,
}

/// Keys from `start` to `end`, each bound inclusive, exclusive or absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    pub start: Bound<Bytes>,
    pub end: Bound<Bytes>,
}

impl KeyRange {
    pub fn all() -> Self {
        Self { start: Bound::Unbounded, end: Bound::Unbounded }
    }

    /// Every key that begins with `prefix`.
    pub fn prefix(prefix: impl Into<Bytes>) -> Self {
        let prefix = prefix.into();
        let end = match successor_of_prefix(&prefix) {
            Some(end) => Bound::Excluded(end),
            None => Bound::Unbounded,
        };
        Self { start: Bound::Included(prefix), end }
    }

    /// The same range without the keys up to and including `key`.
    #[must_use]
    pub fn after(mut self, key: impl Into<Bytes>) -> Self {
        self.start = Bound::Excluded(key.into());
        self
    }

    /// The same range without the keys before `key`.
    #[must_use]
    pub fn starting_at(mut self, key: impl Into<Bytes>) -> Self {
        self.start = Bound::Included(key.into());
        self
    }

    /// The same range without `key` and the keys after it.
    #[must_use]
    pub fn ending_before(mut self, key: impl Into<Bytes>) -> Self {
        self.end = Bound::Excluded(key.into());
        self
    }

    /// The keys that lie in both ranges.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        // A later start and an earlier end is the one with the greater and the lesser of these.
        fn of_start(start: &Bound<Bytes>) -> Option<(&Bytes, bool)> {
            match start {
                Bound::Unbounded => None,
                Bound::Included(key) => Some((key, false)),
                Bound::Excluded(key) => Some((key, true)),
            }
        }
        fn of_end(end: &Bound<Bytes>) -> (bool, Option<(&Bytes, bool)>) {
            match end {
                Bound::Unbounded => (true, None),
                Bound::Included(key) => (false, Some((key, true))),
                Bound::Excluded(key) => (false, Some((key, false))),
            }
        }
        let start = cmp::max_by_key(&self.start, &other.start, |start| of_start(start));
        let end = cmp::min_by_key(&self.end, &other.end, |end| of_end(end));
        Self { start: start.clone(), end: end.clone() }
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        let after_start = match &self.start {
            Bound::Included(start) => key >= start.as_ref(),
            Bound::Excluded(start) => key > start.as_ref(),
            Bound::Unbounded => true,
        };
        let before_end = match &self.end {
            Bound::Included(end) => key <= end.as_ref(),
            Bound::Excluded(end) => key < end.as_ref(),
            Bound::Unbounded => true,
        };
        after_start && before_end
    }

    /// Whether no key at all can lie in the range, so that an engine need not be asked (and
    /// `BTreeMap::range` would panic).
    pub fn is_empty(&self) -> bool {
        match (&self.start, &self.end) {
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end))
            | (Bound::Excluded(start), Bound::Included(end)) => start >= end,
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        }
    }
}

/// The smallest key greater than every key with this prefix; none if the prefix is all `0xFF`.
pub fn successor_of_prefix(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|byte| *byte != 0xFF)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end.into())
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    Put { key: Bytes, value: Bytes },
    Delete { key: Bytes },
}

impl Write {
    pub fn key(&self) -> &Bytes {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }
}

/// Writes, and the rows and ranges that must be as they were at a moment for them to be applied.
/// Of several writes to one key the last counts.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub(crate) since: Option<Moment>,
    pub(crate) expected_rows: Vec<Bytes>,
    pub(crate) expected_ranges: Vec<KeyRange>,
    pub(crate) writes: Vec<Write>,
    pub(crate) without_room: bool,
}

/// How much a batch that deletes rows may write and still count as freeing space.
const REPLACED_BYTES_MAX: usize = 4 * 1024;

impl Batch {
    /// A batch that relies on nothing it has read.
    pub fn blind() -> Self {
        Self::default()
    }

    /// A batch decided on what was read at `moment`.
    pub fn since(moment: Moment) -> Self {
        Self { since: Some(moment), ..Self::default() }
    }

    /// Commit only if this row, present or absent, is as it was at the moment.
    ///
    /// # Panics
    /// On a blind batch: it has no moment to compare with.
    pub fn expect_row(&mut self, key: impl Into<Bytes>) -> &mut Self {
        assert!(self.since.is_some(), "an expectation needs a moment");
        self.expected_rows.push(key.into());
        self
    }

    /// Commit only if no row of this range was added, changed or removed since the moment.
    ///
    /// # Panics
    /// On a blind batch: it has no moment to compare with.
    pub fn expect_range(&mut self, range: KeyRange) -> &mut Self {
        assert!(self.since.is_some(), "an expectation needs a moment");
        self.expected_ranges.push(range);
        self
    }

    pub fn put(&mut self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> &mut Self {
        self.writes.push(Write::Put { key: key.into(), value: value.into() });
        self
    }

    pub fn delete(&mut self, key: impl Into<Bytes>) -> &mut Self {
        self.writes.push(Write::Delete { key: key.into() });
        self
    }

    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// Commits it even on a full disk: it is short, and refusing it would do more harm.
    pub fn even_without_room(&mut self) -> &mut Self {
        self.without_room = true;
        self
    }

    /// Whether it is committed even on a full disk: it deletes rows and writes little.
    pub fn gives_room(&self) -> bool {
        let put_bytes = |write: &Write| match write {
            Write::Put { key, value } => key.len() + value.len(),
            Write::Delete { .. } => 0,
        };
        let deletes = self.writes.iter().any(|write| matches!(write, Write::Delete { .. }));
        let put = self.writes.iter().map(put_bytes).sum::<usize>();
        self.without_room || (deletes && put <= REPLACED_BYTES_MAX)
    }
}

/// Why a batch is not known to be committed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitError {
    /// Something the batch relied on has changed, or its moment is too old to tell. Nothing was
    /// applied.
    #[error("the rows this batch was decided on have changed")]
    Conflict,
    /// The batch may or may not be committed, now or after a restart.
    #[error("it is not known whether the batch was committed")]
    OutcomeUnknown(#[source] Fault),
    /// Nothing was applied.
    #[error("the batch was not committed")]
    Fault(#[source] Fault),
}

/// A batch that has its place among the commits.
#[must_use = "it is not durable yet"]
pub struct Placed(Option<oneshot::Receiver<Result<(), CommitError>>>);

impl Placed {
    pub fn durable_already() -> Self {
        Self(None)
    }

    /// Its outcome is sent through `outcome`.
    pub fn awaiting(outcome: oneshot::Receiver<Result<(), CommitError>>) -> Self {
        Self(Some(outcome))
    }

    pub async fn durable(self) -> Result<(), CommitError> {
        let Some(outcome) = self.0 else { return Ok(()) };
        outcome.await.unwrap_or_else(|_| {
            Err(CommitError::OutcomeUnknown(Fault::new("the committing thread has ended")))
        })
    }
}

/// A failure of the store itself: I/O, corruption, or a store that has been poisoned by one.
#[derive(Clone)]
pub struct Fault {
    what: Arc<str>,
    why: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Fault {
    pub fn new(what: impl Into<Arc<str>>) -> Self {
        Self { what: what.into(), why: None }
    }

    pub fn because(
        what: impl Into<Arc<str>>,
        why: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self { what: what.into(), why: Some(Arc::new(why)) }
    }

    /// Whether the process or the system had no descriptor left to open a file with. Then nothing was
    /// written, and it can be tried again.
    pub fn is_no_descriptors(&self) -> bool {
        let mut cause = std::error::Error::source(self);
        while let Some(why) = cause {
            if why.downcast_ref::<std::io::Error>().is_some_and(is_no_descriptors) {
                return true;
            }
            cause = why.source();
        }
        false
    }

    /// Whether there was no room on the disk. Then nothing was written, and it can be tried again.
    pub fn is_no_room(&self) -> bool {
        let mut cause = std::error::Error::source(self);
        while let Some(why) = cause {
            if let Some(why) = why.downcast_ref::<std::io::Error>() {
                use std::io::ErrorKind::{QuotaExceeded, StorageFull};
                return matches!(why.kind(), StorageFull | QuotaExceeded);
            }
            cause = why.source();
        }
        false
    }
}

/// `tempfile` wraps the error of the system so that nothing but its text tells which one it was.
pub(crate) fn is_no_descriptors(why: &std::io::Error) -> bool {
    let codes = [libc::EMFILE, libc::ENFILE];
    match why.raw_os_error() {
        Some(code) => codes.contains(&code),
        None => {
            let text = why.to_string();
            codes
                .into_iter()
                .any(|code| text.starts_with(&std::io::Error::from_raw_os_error(code).to_string()))
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Some(why) => write!(formatter, "{}: {why}", self.what),
            None => formatter.write_str(&self.what),
        }
    }
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.why.as_deref().map(|why| why as &(dyn std::error::Error + 'static))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStatistics {
    pub commits: u64,
    pub conflicts: u64,
    pub syncs: u64,
    /// Approximate: a log-structured engine does not know exactly without reading everything.
    pub rows: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successor_of_prefix_skips_bytes_that_cannot_grow() {
        assert_eq!(successor_of_prefix(b"a").as_deref(), Some(b"b".as_slice()));
        assert_eq!(successor_of_prefix(b"a\xFF").as_deref(), Some(b"b".as_slice()));
        assert_eq!(successor_of_prefix(b"\xFF\xFF"), None);
    }

    #[test]
    fn prefix_range_holds_every_longer_key_and_no_other() {
        let range = KeyRange::prefix("ab");
        for (key, inside) in [("ab", true), ("abc", true), ("aa", false), ("ac", false)] {
            assert_eq!(range.contains(key.as_bytes()), inside, "{key}");
        }
    }

    #[test]
    fn only_what_deletes_and_puts_little_gives_room() {
        let (mut deletes, mut puts, mut both) = (Batch::blind(), Batch::blind(), Batch::blind());
        deletes.delete("a").put("mark", "");
        puts.put("a", "1");
        both.delete("a").put("b", vec![0; REPLACED_BYTES_MAX]);
        assert!(deletes.gives_room());
        assert!(!puts.gives_room());
        assert!(!both.gives_room());
        assert!(puts.even_without_room().gives_room());
    }

    #[test]
    fn a_full_disk_is_known_at_the_end_of_the_chain() {
        let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
        let chain = Fault::because("outer", Fault::because("inner", full()));
        assert!(chain.is_no_room());
        let other = std::io::Error::from(std::io::ErrorKind::NotFound);
        assert!(!Fault::because("outer", other).is_no_room());
        assert!(!Fault::new("no space").is_no_room());
    }

    #[test]
    fn lack_of_descriptors_is_found_however_it_is_wrapped() {
        for code in [libc::EMFILE, libc::ENFILE] {
            let lack = || std::io::Error::from_raw_os_error(code);
            let told = |why| Fault::because("outer", Fault::because("inner", why));
            assert!(told(lack()).is_no_descriptors());
            let wrapped = std::io::Error::new(lack().kind(), format!("{} at path x", lack()));
            assert!(told(wrapped).is_no_descriptors());
            assert!(!told(lack()).is_no_room());
        }
        let other = std::io::Error::from_raw_os_error(libc::ENOENT);
        assert!(!Fault::because("outer", other).is_no_descriptors());
    }

    #[test]
    fn intersection_has_the_keys_of_both() {
        let bounds = |make: fn(Bytes) -> Bound<Bytes>| ["b", "d"].map(|key| make(key.into()));
        let (included, excluded) = (bounds(Bound::Included), bounds(Bound::Excluded));
        let all = [included, excluded].concat();
        let all: Vec<_> = all.into_iter().chain([Bound::Unbounded]).collect();
        let ranges = || {
            let with_start = |start: &Bound<Bytes>| {
                let start = start.clone();
                all.iter().map(move |end| KeyRange { start: start.clone(), end: end.clone() })
            };
            all.iter().flat_map(with_start)
        };
        for (left, right) in ranges().flat_map(|left| ranges().map(move |it| (left.clone(), it))) {
            let both = left.intersection(&right);
            for key in ["a", "b", "c", "d", "e"].map(str::as_bytes) {
                let expected = left.contains(key) && right.contains(key);
                assert_eq!(both.contains(key), expected, "{left:?} and {right:?}");
            }
        }
    }

    #[test]
    fn crossed_bounds_are_empty() {
        assert!(KeyRange::prefix("a").after("b").is_empty());
        assert!(!KeyRange::prefix("a").after("a").is_empty());
        assert!(!KeyRange::all().is_empty());
    }
}
