//! Byte-range locks of one file. They belong to opens: two handles of one client
//! exclude each other like those of two clients.

/// Names an open.
pub type OpenId = u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub offset: u64,
    pub length: u64,
}

impl Range {
    /// `None` if it goes past the last byte that can be addressed.
    pub fn new(offset: u64, length: u64) -> Option<Self> {
        let fits = length == 0 || offset.checked_add(length - 1).is_some();
        fits.then_some(Self { offset, length })
    }

    fn end(self) -> u128 {
        u128::from(self.offset) + u128::from(self.length)
    }

    /// An empty range is a point between two bytes: it overlaps a range that has bytes on both
    /// sides of it, and no other point.
    pub fn overlaps(self, other: Self) -> bool {
        u128::from(self.offset) < other.end() && u128::from(other.offset) < self.end()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    Shared,
    Exclusive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeLock {
    pub owner: OpenId,
    pub range: Range,
    pub kind: LockKind,
}

/// A lock of another open conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockConflict;

/// There is no lock of exactly that range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeNotLocked;

#[derive(Clone, Debug, Default)]
pub struct RangeLocks(Vec<RangeLock>);

impl RangeLocks {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &RangeLock> {
        self.0.iter()
    }

    pub fn held_by(&self, owner: OpenId) -> impl Iterator<Item = &RangeLock> {
        self.0.iter().filter(move |lock| lock.owner == owner)
    }

    /// Shared locks are compatible with each other, and with an exclusive one of the same open.
    fn blocks(held: RangeLock, wanted: RangeLock) -> bool {
        let stacks = match (held.kind, wanted.kind) {
            (LockKind::Shared, LockKind::Shared) => true,
            (LockKind::Exclusive, LockKind::Shared) => held.owner == wanted.owner,
            (LockKind::Shared | LockKind::Exclusive, LockKind::Exclusive) => false,
        };
        !stacks && held.range.overlaps(wanted.range)
    }

    /// Takes all locks or none.
    pub fn lock(&mut self, wanted: &[RangeLock]) -> Result<(), LockConflict> {
        let before = self.0.len();
        for lock in wanted {
            if self.0.iter().any(|held| Self::blocks(*held, *lock)) {
                self.0.truncate(before);
                return Err(LockConflict);
            }
            self.0.push(*lock);
        }
        Ok(())
    }

    /// Gives back one lock of exactly this range, an exclusive one first.
    pub fn unlock(&mut self, owner: OpenId, range: Range) -> Result<(), RangeNotLocked> {
        let matching = |lock: &RangeLock, kind: LockKind| {
            lock.owner == owner && lock.range == range && lock.kind == kind
        };
        let exclusive = self.0.iter().position(|lock| matching(lock, LockKind::Exclusive));
        let shared = || self.0.iter().position(|lock| matching(lock, LockKind::Shared));
        let index = exclusive.or_else(shared).ok_or(RangeNotLocked)?;
        self.0.remove(index);
        Ok(())
    }

    /// A write over REST needs the whole file.
    pub fn check_rest_write(&self) -> Result<(), LockConflict> {
        if self.is_empty() { Ok(()) } else { Err(LockConflict) }
    }

    /// Releases all locks of an open, and returns whether it had any.
    pub fn release(&mut self, owner: OpenId) -> bool {
        let before = self.0.len();
        self.0.retain(|lock| lock.owner != owner);
        self.0.len() != before
    }

    /// `reader` is `None` for a reader that cannot hold locks.
    pub fn check_read(&self, reader: Option<OpenId>, range: Range) -> Result<(), LockConflict> {
        let conflict = range.length > 0
            && self.0.iter().any(|lock| {
                lock.kind == LockKind::Exclusive
                    && Some(lock.owner) != reader
                    && lock.range.overlaps(range)
            });
        if conflict { Err(LockConflict) } else { Ok(()) }
    }

    /// A shared lock prevents even its own open from writing.
    pub fn check_write(&self, writer: Option<OpenId>, range: Range) -> Result<(), LockConflict> {
        let conflict = range.length > 0
            && self.0.iter().any(|lock| {
                let own = lock.kind == LockKind::Exclusive && Some(lock.owner) == writer;
                !own && lock.range.overlaps(range)
            });
        if conflict { Err(LockConflict) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::LockKind::{Exclusive, Shared};
    use super::*;

    fn lock(owner: OpenId, offset: u64, length: u64, kind: LockKind) -> RangeLock {
        RangeLock { owner, range: Range::new(offset, length).expect("a range"), kind }
    }

    fn range(offset: u64, length: u64) -> Range {
        Range::new(offset, length).expect("a range")
    }

    #[test]
    fn a_range_ends_at_the_last_byte_that_has_a_number() {
        assert!(Range::new(u64::MAX, 1).is_some());
        assert!(Range::new(u64::MAX, 0).is_some());
        assert!(Range::new(u64::MAX, 2).is_none());
        assert!(Range::new(u64::MAX, u64::MAX).is_none());
        assert!(Range::new(0, u64::MAX).is_some());
    }

    #[test]
    fn ranges_overlap_where_they_share_a_byte_or_a_point_lies_inside() {
        for (one, other, overlap) in [
            ((0, 10), (9, 1), true),
            ((0, 10), (10, 1), false),
            ((5, 10), (10, 0), true),
            ((10, 10), (10, 0), false),
            ((0, 10), (10, 0), false),
            ((10, 0), (10, 0), false),
            ((u64::MAX, 1), (u64::MAX, 1), true),
            ((u64::MAX - 1, 1), (u64::MAX, 1), false),
        ] {
            let (one, other) = (range(one.0, one.1), range(other.0, other.1));
            assert_eq!(one.overlaps(other), overlap, "{one:?} {other:?}");
            assert_eq!(other.overlaps(one), overlap, "{other:?} {one:?}");
        }
    }

    #[test]
    fn locks_stack_as_windows_stacks_them() {
        for (held, wanted, granted) in [
            (lock(1, 0, 10, Shared), lock(1, 0, 10, Shared), true),
            (lock(1, 0, 10, Shared), lock(2, 5, 10, Shared), true),
            (lock(1, 0, 10, Exclusive), lock(1, 0, 10, Shared), true),
            (lock(1, 0, 10, Exclusive), lock(2, 0, 10, Shared), false),
            (lock(1, 0, 10, Shared), lock(1, 0, 10, Exclusive), false),
            (lock(1, 0, 10, Exclusive), lock(1, 0, 10, Exclusive), false),
            (lock(1, 0, 10, Exclusive), lock(2, 10, 10, Exclusive), true),
            (lock(1, 10, 0, Exclusive), lock(2, 5, 10, Shared), false),
        ] {
            let mut locks = RangeLocks::default();
            locks.lock(&[held]).expect("nobody holds anything");
            assert_eq!(locks.lock(&[wanted]).is_ok(), granted, "{held:?} then {wanted:?}");
        }
    }

    #[test]
    fn several_locks_are_taken_together_or_not_at_all() {
        let mut locks = RangeLocks::default();
        locks.lock(&[lock(1, 10, 10, Exclusive)]).expect("free");
        let both = [lock(2, 0, 10, Exclusive), lock(2, 10, 10, Exclusive)];
        assert_eq!(locks.lock(&both), Err(LockConflict));
        assert_eq!(locks.held_by(2).count(), 0);
    }

    #[test]
    fn an_exclusive_lock_is_given_back_before_a_shared_one_and_only_by_its_exact_range() {
        let mut locks = RangeLocks::default();
        locks.lock(&[lock(1, 0, 10, Exclusive), lock(1, 0, 10, Shared)]).expect("free");
        assert_eq!(locks.unlock(1, range(0, 5)), Err(RangeNotLocked));
        assert_eq!(locks.unlock(2, range(0, 10)), Err(RangeNotLocked));
        assert_eq!(locks.unlock(1, range(0, 10)), Ok(()));
        assert!(locks.lock(&[lock(2, 0, 10, Shared)]).is_ok(), "only the shared one is left");
        assert_eq!(locks.unlock(1, range(0, 10)), Ok(()));
        assert_eq!(locks.unlock(1, range(0, 10)), Err(RangeNotLocked));
        assert!(locks.release(2) && locks.is_empty() && !locks.release(2));
    }

    #[test]
    fn reads_and_writes_heed_the_locks_of_others_and_writes_also_shared_ones_of_their_own() {
        for (kind, by, reads, writes) in [
            (Shared, Some(1), true, false),
            (Shared, Some(2), true, false),
            (Exclusive, Some(1), true, true),
            (Exclusive, Some(2), false, false),
            (Shared, None, true, false),
            (Exclusive, None, false, false),
        ] {
            let mut locks = RangeLocks::default();
            locks.lock(&[lock(1, 10, 10, kind)]).expect("free");
            assert_eq!(locks.check_read(by, range(15, 10)).is_ok(), reads, "{kind:?} {by:?}");
            assert_eq!(locks.check_write(by, range(15, 10)).is_ok(), writes, "{kind:?} {by:?}");
            assert!(locks.check_read(by, range(15, 0)).is_ok(), "no byte is read");
            assert!(locks.check_write(by, range(20, 10)).is_ok(), "beside the lock");
        }
    }

    #[test]
    fn a_lock_anywhere_keeps_rest_writes_out() {
        for (offset, length) in [(0, 1), (1 << 40, 1), (u64::MAX, 1), (5, 0)] {
            for kind in [Shared, Exclusive] {
                let mut locks = RangeLocks::default();
                assert_eq!(locks.check_rest_write(), Ok(()));
                locks.lock(&[lock(1, offset, length, kind)]).expect("free");
                let outcome = locks.check_rest_write();
                assert_eq!(outcome, Err(LockConflict), "6.5 byte-range lock / {offset} {kind:?}");
            }
        }
    }
}
