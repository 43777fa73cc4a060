//! Policies and legal holds that prevent changes of a blob. Setting them does not modify the blob
//! otherwise.

use super::entry::{BlobEntry, Found};
use super::{Blob, BlobPath, BlobRefusal, Immutability, Which};
use crate::condition::DateConditions;
use crate::domain::Domain;
use crate::failure::Failure;
use crate::time::Timestamp;

pub struct SetImmutabilityPolicy {
    pub path: BlobPath,
    pub which: Which,
    pub policy: Immutability,
    pub if_unmodified_since: Option<Timestamp>,
}

pub struct DeleteImmutabilityPolicy {
    pub path: BlobPath,
    pub which: Which,
}

pub struct SetLegalHold {
    pub path: BlobPath,
    pub which: Which,
    pub hold: bool,
}

type Answer<T> = Result<T, Failure<BlobRefusal>>;

impl Domain {
    pub async fn set_immutability_policy(&self, command: SetImmutabilityPolicy) -> Answer<()> {
        let if_unmodified_since = command.if_unmodified_since;
        let conditions = DateConditions { if_modified_since: None, if_unmodified_since };
        self.hold_blob(&command.path, command.which, |blob, now| {
            conditions.check(blob.last_modified).map_err(|_| BlobRefusal::ConditionNotMet)?;
            check_policy(blob.immutability, command.policy, now)?;
            Ok(Blob { immutability: Some(command.policy), ..blob.clone() })
        })
        .await
    }

    pub async fn delete_immutability_policy(
        &self,
        command: DeleteImmutabilityPolicy,
    ) -> Answer<()> {
        self.hold_blob(&command.path, command.which, |blob, _| {
            if blob.immutability.is_some_and(|policy| policy.locked) {
                return Err(BlobRefusal::Immutable);
            }
            Ok(Blob { immutability: None, ..blob.clone() })
        })
        .await
    }

    pub async fn set_legal_hold(&self, command: SetLegalHold) -> Answer<()> {
        self.hold_blob(&command.path, command.which, |blob, _| {
            Ok(Blob { legal_hold: command.hold, ..blob.clone() })
        })
        .await
    }

    async fn hold_blob(
        &self,
        path: &BlobPath,
        which: Which,
        decide: impl Fn(&Blob, Timestamp) -> Result<Blob, BlobRefusal>,
    ) -> Answer<()> {
        self.transact(&[path.latch()], async |mut transaction| {
            let entry = BlobEntry::read(&mut transaction, path).await?;
            let found = entry.find(&mut transaction, which).await?;
            let found = found.ok_or(Failure::Refused(BlobRefusal::NotFound))?;
            let held = decide(found.blob(), transaction.now).map_err(Failure::Refused)?;
            match found {
                Found::Current(_) => entry.put(&mut transaction, &held),
                Found::PastBlob(moment, mut past) => {
                    past.blob = held;
                    entry.put_past(&mut transaction, moment, &past);
                }
            }
            Ok(((), transaction))
        })
        .await
    }
}

/// Whether `requested` may replace the existing policy. A locked one can only be extended.
pub(super) fn check_policy(
    existing: Option<Immutability>,
    requested: Immutability,
    now: Timestamp,
) -> Result<(), BlobRefusal> {
    if requested.until <= now {
        return Err(BlobRefusal::DateNotInFuture);
    }
    match existing {
        Some(existing)
            if existing.locked && (!requested.locked || requested.until < existing.until) =>
        {
            Err(BlobRefusal::Immutable)
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlocked_policy_moves_both_ways_and_a_locked_one_only_later() {
        let policy = |locked, ticks| Immutability { until: Timestamp::from_ticks(ticks), locked };
        let (unlocked, locked) = (Some(policy(false, 50)), Some(policy(true, 50)));
        let cases = [
            ("3.11 none / unlocked", None, policy(false, 50), Ok(())),
            ("3.11 none / locked", None, policy(true, 50), Ok(())),
            ("3.11 none / now", None, policy(false, 10), Err(BlobRefusal::DateNotInFuture)),
            ("3.11 unlocked / later", unlocked, policy(false, 60), Ok(())),
            ("3.11 unlocked / earlier", unlocked, policy(false, 40), Ok(())),
            ("3.11 unlocked / locked", unlocked, policy(true, 40), Ok(())),
            ("3.11 unlocked / past", unlocked, policy(false, 9), Err(BlobRefusal::DateNotInFuture)),
            ("3.11 locked / later", locked, policy(true, 60), Ok(())),
            ("3.11 locked / same", locked, policy(true, 50), Ok(())),
            ("3.11 locked / earlier", locked, policy(true, 49), Err(BlobRefusal::Immutable)),
            ("3.11 locked / unlocked", locked, policy(false, 60), Err(BlobRefusal::Immutable)),
        ];
        for (cell, existing, requested, expected) in cases {
            let now = Timestamp::from_ticks(10);
            assert_eq!(check_policy(existing, requested, now), expected, "{cell}");
        }
    }
}
