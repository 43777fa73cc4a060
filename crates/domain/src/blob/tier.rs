//! Set Blob Tier. Changing the tier does not modify the blob otherwise.

use std::time::Duration;

use super::entry::{BlobEntry, Found};
use super::{
    AccessTier, Blob, BlobPath, BlobRefusal, Kind, RehydratePriority, Rehydration, Which,
    check_not_copied_onto,
};
use crate::condition::{self, Conditions, WriteKind};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::lease::{Access, LeaseId};
use crate::time::Timestamp;

const GIB: u64 = 1024 * 1024 * 1024;

pub struct SetBlobTier {
    pub path: BlobPath,
    pub which: Which,
    pub tier: AccessTier,
    /// How soon a blob is to be rehydrated.
    pub priority: Option<RehydratePriority>,
    pub conditions: Conditions,
    pub lease_id: Option<LeaseId>,
}

/// The outcome of a request for a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TierOutcome {
    Changed,
    /// The blob is being rehydrated.
    Rehydrating,
}

impl Domain {
    pub async fn set_blob_tier(
        &self,
        command: SetBlobTier,
    ) -> Result<TierOutcome, Failure<BlobRefusal>> {
        self.transact(&[command.path.latch()], async |mut transaction| {
            let entry = BlobEntry::read(&mut transaction, &command.path).await?;
            let found = entry.find(&mut transaction, command.which).await?;
            let blob = found.as_ref().map(Found::blob);
            let (tiered, outcome) =
                decide_tier(blob, &command, self.features.rehydration, transaction.now)
                    .map_err(Failure::Refused)?;
            match found {
                None => {}
                Some(Found::Current(_)) => entry.put(&mut transaction, &tiered),
                Some(Found::PastBlob(moment, mut past)) => {
                    past.blob = tiered;
                    entry.put_past(&mut transaction, moment, &past);
                }
            }
            Ok((outcome, transaction))
        })
        .await
    }
}

/// Every rule of Set Blob Tier; returns the changed blob.
fn decide_tier(
    blob: Option<&Blob>,
    command: &SetBlobTier,
    rehydration: Duration,
    now: Timestamp,
) -> Result<(Blob, TierOutcome), BlobRefusal> {
    let subject = blob.map(Blob::subject);
    condition::check_write(&command.conditions, WriteKind::InPlace, subject.as_ref())?;
    let mut blob = blob.ok_or(BlobRefusal::NotFound)?.clone();
    check_not_copied_onto(&blob)?;
    let access = match blob.kind {
        Kind::Page { .. } => Access::WriteBeside,
        Kind::Block | Kind::Append { .. } => Access::Read,
    };
    blob.lease_after(access, command.lease_id, now)?;
    check_tier(blob.kind, blob.length, command.tier)?;
    let place = Place { tier: blob.tier, rehydrating_to: blob.rehydration.map(|on| on.to) };
    let transition = transition(place, command.tier)?;
    let priority = command.priority.unwrap_or(RehydratePriority::Standard);
    let outcome = match transition {
        Transition::Change => {
            blob.tier = Some(command.tier);
            blob.tier_changed = Some(now);
            TierOutcome::Changed
        }
        Transition::Rehydrate if matches!(command.which, Which::Snapshot(_)) => {
            return Err(BlobRefusal::SnapshotStaysArchived);
        }
        Transition::Rehydrate => {
            let until = now.plus(rehydration);
            blob.rehydration = Some(Rehydration { to: command.tier, priority, until });
            TierOutcome::Rehydrating
        }
        Transition::Hasten => {
            // It can be made more urgent, never less.
            blob.rehydration = blob
                .rehydration
                .map(|on| Rehydration { priority: on.priority.max(priority), ..on });
            TierOutcome::Rehydrating
        }
    };
    Ok((blob.at(now), outcome))
}

/// Where a blob is kept.
#[derive(Clone, Copy)]
struct Place {
    tier: Option<AccessTier>,
    rehydrating_to: Option<AccessTier>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transition {
    Change,
    Rehydrate,
    /// The same rehydration, possibly with another priority.
    Hasten,
}

/// How a blob gets from where it is to a tier that is for its kind.
fn transition(place: Place, requested: AccessTier) -> Result<Transition, BlobRefusal> {
    match place {
        Place { rehydrating_to: Some(to), .. } if to == requested => Ok(Transition::Hasten),
        Place { rehydrating_to: Some(_), .. } => Err(BlobRefusal::BeingRehydrated),
        Place { tier: Some(AccessTier::Archive), .. } if requested != AccessTier::Archive => {
            Ok(Transition::Rehydrate)
        }
        Place { tier: Some(tier), .. }
            if requested.page_bytes_max().is_some() && requested < tier =>
        {
            Err(BlobRefusal::LowerTier)
        }
        Place { .. } => Ok(Transition::Change),
    }
}

/// Whether a blob of this kind and length may be in this tier.
pub(super) fn check_tier(kind: Kind, length: u64, tier: AccessTier) -> Result<(), BlobRefusal> {
    match (kind, tier.page_bytes_max()) {
        (Kind::Block, None) => Ok(()),
        (Kind::Page { .. }, Some(bytes_max)) if length <= bytes_max => Ok(()),
        (Kind::Page { .. }, Some(_)) => Err(BlobRefusal::TierTooSmall),
        (Kind::Block, Some(_)) | (Kind::Page { .. }, None) | (Kind::Append { .. }, _) => {
            Err(BlobRefusal::TierOfOtherKind)
        }
    }
}

/// Whether a page blob in this tier may become so long.
pub(super) fn check_length(tier: Option<AccessTier>, length: u64) -> Result<(), BlobRefusal> {
    let bytes_max = tier.and_then(AccessTier::page_bytes_max);
    match bytes_max.is_some_and(|bytes_max| length > bytes_max) {
        true => Err(BlobRefusal::LengthOverTier),
        false => Ok(()),
    }
}

impl AccessTier {
    /// Whether it is a tier of page blobs in premium accounts.
    pub(super) fn is_premium(self) -> bool {
        self.page_bytes_max().is_some()
    }

    /// The longest page blob of the tier; `None` for the tiers of block blobs.
    fn page_bytes_max(self) -> Option<u64> {
        let gib = match self {
            Self::Hot | Self::Cool | Self::Cold | Self::Archive | Self::Smart => return None,
            Self::P4 => 32,
            Self::P6 => 64,
            Self::P10 => 128,
            Self::P15 => 256,
            Self::P20 => 512,
            Self::P30 => 1024,
            Self::P40 => 2 * 1024,
            Self::P50 => 4 * 1024,
            Self::P60 => 8 * 1024,
            Self::P70 => 16 * 1024,
            Self::P80 => 32 * 1024,
        };
        Some(gib * GIB)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::SequenceNumber;
    use AccessTier::{Archive, Cold, Cool, Hot, P4, P6, P10, P30, P80, Smart};
    use BlobRefusal::{BeingRehydrated, LowerTier, TierOfOtherKind, TierTooSmall};
    use Transition::{Change, Hasten, Rehydrate};

    #[test]
    fn block_blobs_move_between_tiers_as_the_table_says() {
        let at = |tier| Place { tier: Some(tier), rehydrating_to: None };
        let to = |tier| Place { tier: Some(Archive), rehydrating_to: Some(tier) };
        let default = Place { tier: None, rehydrating_to: None };
        let cases = [
            ("3.10 default / Hot", default, Hot, Ok(Change)),
            ("3.10 default / Archive", default, Archive, Ok(Change)),
            ("3.10 Hot / Hot", at(Hot), Hot, Ok(Change)),
            ("3.10 Hot / Cool", at(Hot), Cool, Ok(Change)),
            ("3.10 Hot / Cold", at(Hot), Cold, Ok(Change)),
            ("3.10 Hot / Smart", at(Hot), Smart, Ok(Change)),
            ("3.10 Hot / Archive", at(Hot), Archive, Ok(Change)),
            ("3.10 Cool / Hot", at(Cool), Hot, Ok(Change)),
            ("3.10 Cool / Cool", at(Cool), Cool, Ok(Change)),
            ("3.10 Cool / Archive", at(Cool), Archive, Ok(Change)),
            ("3.10 Cold / Hot", at(Cold), Hot, Ok(Change)),
            ("3.10 Archive / Hot", at(Archive), Hot, Ok(Rehydrate)),
            ("3.10 Archive / Cool", at(Archive), Cool, Ok(Rehydrate)),
            ("3.10 Archive / Cold", at(Archive), Cold, Ok(Rehydrate)),
            ("3.10 Archive / Smart", at(Archive), Smart, Ok(Rehydrate)),
            ("3.10 Archive / Archive", at(Archive), Archive, Ok(Change)),
            ("3.10 to hot / Hot", to(Hot), Hot, Ok(Hasten)),
            ("3.10 to hot / Cool", to(Hot), Cool, Err(BeingRehydrated)),
            ("3.10 to hot / Archive", to(Hot), Archive, Err(BeingRehydrated)),
            ("3.10 to cool / Hot", to(Cool), Hot, Err(BeingRehydrated)),
            ("3.10 to cool / Cool", to(Cool), Cool, Ok(Hasten)),
            ("3.10 to cool / Archive", to(Cool), Archive, Err(BeingRehydrated)),
            ("3.10 to cold / Cold", to(Cold), Cold, Ok(Hasten)),
            ("3.10 page, default / P4", default, P4, Ok(Change)),
            ("3.10 page, P6 / P6", at(P6), P6, Ok(Change)),
            ("3.10 page, P6 / P10", at(P6), P10, Ok(Change)),
            ("3.10 page, P10 / P6", at(P10), P6, Err(LowerTier)),
            ("3.10 page, P80 / P4", at(P80), P4, Err(LowerTier)),
        ];
        for (cell, place, requested, expected) in cases {
            assert_eq!(transition(place, requested), expected, "{cell}");
        }
    }

    #[test]
    fn each_kind_has_tiers_of_its_own() {
        let sequence_number = SequenceNumber::default();
        let page = Kind::Page { sequence_number, lineage: 1 };
        let append = Kind::Append { blocks: 0, sealed: false };
        let cases = [
            ("3.10 block tiers", Kind::Block, u64::MAX, Cool, Ok(())),
            ("3.10 block blob in a page tier", Kind::Block, 0, P4, Err(TierOfOtherKind)),
            ("3.10 page blob in a block tier", page, 0, Hot, Err(TierOfOtherKind)),
            ("3.10 append blob", append, 0, Cool, Err(TierOfOtherKind)),
            ("3.10 as large as the tier", page, 32 * GIB, P4, Ok(())),
            ("3.10 too small", page, 32 * GIB + 512, P4, Err(TierTooSmall)),
            ("3.10 large enough", page, 1024 * GIB, P30, Ok(())),
        ];
        for (cell, kind, length, tier, expected) in cases {
            assert_eq!(check_tier(kind, length, tier), expected, "{cell}");
        }
        assert_eq!(check_length(Some(P4), 32 * GIB), Ok(()), "as large as its tier");
        let over = check_length(Some(P4), 32 * GIB + 512);
        assert_eq!(over, Err(BlobRefusal::LengthOverTier), "larger than its tier");
        assert_eq!(check_length(None, 8192 * GIB), Ok(()), "without a tier");
    }
}
