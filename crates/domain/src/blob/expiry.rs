//! Set Blob Expiry, and the expiry that a new blob is put with. From that time on the blob does not exist for
//! any reader; its space is freed in the background.

use std::time::Duration;

use super::entry::BlobEntry;
use super::{Blob, BlobPath, BlobRefusal, check_changeable};
use crate::domain::{Domain, Stamp};
use crate::failure::Failure;
use crate::time::Timestamp;

pub struct SetBlobExpiry {
    pub path: BlobPath,
    pub expiry: Expiry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    Never,
    AfterCreation(Duration),
    AfterNow(Duration),
    At(Timestamp),
}

impl Domain {
    pub async fn set_blob_expiry(
        &self,
        command: SetBlobExpiry,
    ) -> Result<Blob, Failure<BlobRefusal>> {
        self.transact(&[command.path.latch()], async |mut transaction| {
            let stamp = self.stamp();
            let entry = BlobEntry::read(&mut transaction, &command.path).await?;
            let blob = decide_expiry(entry.current.as_ref(), command.expiry, stamp)
                .map_err(Failure::Refused)?;
            entry.put(&mut transaction, &blob);
            if let Some(expires) = blob.expires {
                entry.remove_when_expired(&mut transaction, expires, stamp.etag.ticks());
            }
            Ok((blob, transaction))
        })
        .await
    }
}

fn decide_expiry(blob: Option<&Blob>, expiry: Expiry, stamp: Stamp) -> Result<Blob, BlobRefusal> {
    let blob = blob.ok_or(BlobRefusal::NotFound)?;
    check_changeable(blob, stamp.now)?;
    if blob.is_archived() {
        return Err(BlobRefusal::Archived);
    }
    let expires = expiry.decide(blob.created, stamp.now)?;
    Ok(Blob { expires, etag: stamp.etag, last_modified: stamp.now, ..blob.clone() })
}

impl Expiry {
    /// When a blob created at that time expires, which must be later than now.
    pub(super) fn decide(
        self,
        created: Timestamp,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, BlobRefusal> {
        let expires = self.time(created, now);
        if expires.is_some_and(|expires| expires <= now) {
            return Err(BlobRefusal::DateNotInFuture);
        }
        Ok(expires)
    }

    fn time(self, created: Timestamp, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Never => None,
            Self::AfterCreation(duration) => Some(created.plus(duration)),
            Self::AfterNow(duration) => Some(now.plus(duration)),
            Self::At(time) => Some(time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_counts_from_its_own_beginning() {
        let second = |number: u64| Timestamp::from_ticks(number * 10_000_000);
        let (created, now) = (second(100), second(200));
        let long = Duration::from_secs(150);
        let cases = [
            ("NeverExpire", Expiry::Never, None),
            ("RelativeToCreation", Expiry::AfterCreation(long), Some(second(250))),
            ("RelativeToNow", Expiry::AfterNow(long), Some(second(350))),
            ("Absolute", Expiry::At(second(300)), Some(second(300))),
            ("for ever", Expiry::AfterNow(Duration::MAX), Some(Timestamp::MAX)),
        ];
        for (option, expiry, expected) in cases {
            assert_eq!(expiry.time(created, now), expected, "{option}");
        }
        let past = Expiry::AfterCreation(Duration::from_secs(100)).decide(created, now);
        assert_eq!(past, Err(BlobRefusal::DateNotInFuture), "not later than now");
    }
}
