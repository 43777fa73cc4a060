//! Which of the conditions an operation takes at all.

use super::Conditions;

/// The conditions that one operation takes; any other is refused, not ignored, so that no client
/// believes itself guarded by a condition that nobody looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    etags: bool,
    if_modified_since: bool,
    if_unmodified_since: bool,
    tags: bool,
}

/// `ConditionHeadersNotSupported`
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operation does not take this condition")]
pub struct ConditionNotSupported;

impl Accepted {
    /// Put Block, Undelete Blob, Abort Copy Blob, Set Blob Expiry, searches and listings; Create
    /// Container and the reads of containers; queues, files; dfs append and recursive calls. Put
    /// Block From URL takes only conditions on its source.
    pub const NONE: Self =
        Self { etags: false, if_modified_since: false, if_unmodified_since: false, tags: false };
    /// Both ETag and both date headers: Append Blob Seal, and dfs paths.
    pub const ALL_FOUR: Self =
        Self { etags: true, if_modified_since: true, if_unmodified_since: true, tags: false };
    /// Every other operation on a blob that reads, writes, copies, deletes, snapshots or leases it.
    pub const ALL_FOUR_AND_TAGS: Self = Self { tags: true, ..Self::ALL_FOUR };
    /// Get Block List, Set Blob Tier, Get and Set Blob Tags.
    pub const TAGS: Self = Self { tags: true, ..Self::NONE };
    /// Delete Container, Set Container ACL, Lease Container, dfs file systems.
    pub const DATES: Self =
        Self { if_modified_since: true, if_unmodified_since: true, ..Self::NONE };
    /// Set Container Metadata.
    pub const IF_MODIFIED_SINCE: Self = Self { if_modified_since: true, ..Self::NONE };
    /// Set Blob Immutability Policy.
    pub const IF_UNMODIFIED_SINCE: Self = Self { if_unmodified_since: true, ..Self::NONE };

    pub fn admit(&self, conditions: &Conditions) -> Result<(), ConditionNotSupported> {
        let etags = conditions.if_match.is_some() || conditions.if_none_match.is_some();
        let refused = (etags && !self.etags)
            || (conditions.if_modified_since.is_some() && !self.if_modified_since)
            || (conditions.if_unmodified_since.is_some() && !self.if_unmodified_since)
            || (conditions.if_tags.is_some() && !self.tags);
        if refused { Err(ConditionNotSupported) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ETagList;
    use super::*;
    use crate::tags::TagPredicate;
    use crate::time::Timestamp;

    #[test]
    fn each_group_of_operations_takes_its_conditions_and_no_other() {
        let date = Some(Timestamp::from_ticks(1));
        let sent = [
            Conditions { if_match: Some(ETagList::Any), ..Default::default() },
            Conditions { if_none_match: Some(ETagList::Any), ..Default::default() },
            Conditions { if_modified_since: date, ..Default::default() },
            Conditions { if_unmodified_since: date, ..Default::default() },
            Conditions { if_tags: TagPredicate::parse("a = 'b'").ok(), ..Default::default() },
        ];
        for (cell, accepted, expected) in [
            ("1.6 Put Block, Create Container", Accepted::NONE, [false; 5]),
            ("1.6 Append Blob Seal, dfs Path", Accepted::ALL_FOUR, [true, true, true, true, false]),
            ("1.6 Get Blob, Put Blob, Lease Blob", Accepted::ALL_FOUR_AND_TAGS, [true; 5]),
            ("1.6 Get Block List", Accepted::TAGS, [false, false, false, false, true]),
            ("1.6 Delete Container", Accepted::DATES, [false, false, true, true, false]),
            (
                "1.6 Set Container Metadata",
                Accepted::IF_MODIFIED_SINCE,
                [false, false, true, false, false],
            ),
            (
                "1.6 Set Blob Immutability Policy",
                Accepted::IF_UNMODIFIED_SINCE,
                [false, false, false, true, false],
            ),
        ] {
            assert_eq!(accepted.admit(&Conditions::default()), Ok(()), "{cell}: none sent");
            for (conditions, admitted) in sent.iter().zip(expected) {
                let expected = if admitted { Ok(()) } else { Err(ConditionNotSupported) };
                assert_eq!(accepted.admit(conditions), expected, "{cell}: {conditions:?}");
            }
        }
    }
}
