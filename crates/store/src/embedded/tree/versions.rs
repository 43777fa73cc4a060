//! Which versions of rows are kept when tables are written.

use lsm_tree::{InternalValue, SeqNo, UserKey};

/// What is to be done with a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Keep { is_new_key: bool },
    Drop,
}

/// Judges versions in the order of their keys, the newest of a key first.
///
/// Every snapshot that is held or will be taken sees what is below some bound, `oldest` or a higher one.
/// So of the versions below `oldest` only the newest can be seen.
pub(super) struct KeptVersions {
    oldest: SeqNo,
    key: Option<UserKey>,
    /// For this key a version was kept; a version below `oldest` was met.
    kept_one: bool,
    met_below: bool,
}

impl KeptVersions {
    pub fn new(oldest: SeqNo) -> Self {
        Self { oldest, key: None, kept_one: false, met_below: false }
    }

    /// `hides_nothing`: no older version of this key is anywhere else, so no tombstone is needed.
    pub fn judge(
        &mut self,
        version: &InternalValue,
        hides_nothing: impl FnOnce(&[u8]) -> bool,
    ) -> Verdict {
        let key = &version.key.user_key;
        if self.key.as_ref() != Some(key) {
            self.key = Some(key.clone());
            self.kept_one = false;
            self.met_below = false;
        }
        if version.key.seqno < self.oldest {
            if self.met_below {
                return Verdict::Drop;
            }
            self.met_below = true;
            if version.is_tombstone() && hides_nothing(key) {
                return Verdict::Drop;
            }
        }
        let is_new_key = !self.kept_one;
        self.kept_one = true;
        Verdict::Keep { is_new_key }
    }
}

#[cfg(test)]
mod tests {
    use lsm_tree::ValueType::{Tombstone, Value};

    use super::*;

    /// Which versions of a row are kept; they are given newest first, and negative ones are
    /// deletions.
    fn kept(oldest: SeqNo, versions: &[i64], hides_nothing: bool) -> Vec<i64> {
        let mut rule = KeptVersions::new(oldest);
        let is_kept = |version: &&i64| {
            let kind = if **version < 0 { Tombstone } else { Value };
            let version = InternalValue::from_components("key", "", version.unsigned_abs(), kind);
            rule.judge(&version, |_| hides_nothing) != Verdict::Drop
        };
        versions.iter().filter(is_kept).copied().collect()
    }

    #[test]
    fn every_snapshot_from_the_oldest_on_sees_what_it_saw() {
        // A snapshot of the bound 5 sees 4, and not 5.
        for (oldest, versions, expected) in [
            (5, vec![7, 5, 4, 3, 1], vec![7, 5, 4]),
            (5, vec![7, 5], vec![7, 5]),
            (5, vec![4], vec![4]),
            (5, vec![7, -4, 3], vec![7, -4]),
            (5, vec![-7, 3, 2], vec![-7, 3]),
            (9, vec![7, 5, 4], vec![7]),
            (1, vec![7, -5, 4], vec![7, -5, 4]),
        ] {
            assert_eq!(kept(oldest, &versions, false), expected, "{oldest} {versions:?}");
        }
    }

    #[test]
    fn a_deletion_goes_when_all_see_it_and_it_hides_nothing() {
        for (oldest, versions, expected) in [
            (5, vec![-4, 3], vec![]),
            (5, vec![-4], vec![]),
            (5, vec![7, -4, 3], vec![7]),
            (5, vec![-5, 4, 3], vec![-5, 4]),
            (5, vec![-7, -4], vec![-7]),
        ] {
            assert_eq!(kept(oldest, &versions, true), expected, "{oldest} {versions:?}");
        }
    }

    #[test]
    fn the_first_version_that_is_kept_of_a_row_begins_it() {
        let mut rule = KeptVersions::new(5);
        let mut judge = |key: &str, sequence, kind| {
            rule.judge(&InternalValue::from_components(key, "", sequence, kind), |_| true)
        };
        assert_eq!(judge("a", 9, Value), Verdict::Keep { is_new_key: true });
        assert_eq!(judge("a", 3, Value), Verdict::Keep { is_new_key: false });
        assert_eq!(judge("b", 3, Tombstone), Verdict::Drop);
        assert_eq!(judge("b", 2, Value), Verdict::Drop);
        assert_eq!(judge("c", 2, Value), Verdict::Keep { is_new_key: true });
    }
}
