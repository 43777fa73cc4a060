//! The state under a blob's name, and the ways in which it is replaced.

use std::time::Duration;

use bytes::Bytes;
use holdfast_store::{Fault, KeyRange, Row, Snapshot};

use super::container::find_container;
use super::model::{
    Blob, Container, Deletion, Encryption, Kind, PastBlob, Role, ScopePolicy, Upload, Which,
};
use super::rows::{self, PastBlobGroup};
use super::{BlobPath, BlobRefusal};
use crate::account::ServiceKind;
use crate::content;
use crate::domain::{Domain, Stamp, read};
use crate::due_task::DueTask;
use crate::failure::Failure;
use crate::names::AccountName;
use crate::rows::{NOTHING, Stored};
use crate::tags::TagSet;
use crate::time::Timestamp;
use crate::transact::Transaction;

/// After how long an expired blob that is held is checked again.
const HELD_BLOB_WAIT: Duration = Duration::from_secs(60 * 60);

/// What a transaction has read of a name.
pub(super) struct BlobEntry {
    account: String,
    container: u64,
    scope: ScopePolicy,
    name: String,
    pub current: Option<Blob>,
}

/// What happens to the state that a change replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A whole new blob: Put Blob, Put Block List, Copy Blob.
    Overwrite,
    /// Set Blob Metadata.
    Metadata,
    /// Anything else: no earlier state is kept.
    InPlace,
}

/// What an account keeps of replaced and deleted blobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Retention {
    pub versions: bool,
    pub deleted_days: Option<u32>,
    pub permanent_delete: bool,
    /// Whether there may be deleted blobs that can be restored.
    pub has_deleted: bool,
}

impl Domain {
    pub(super) async fn retention(&self, account: &AccountName) -> Result<Retention, Fault> {
        let properties = self.service_properties(account, ServiceKind::Blob).await?;
        let retention = properties.delete_retention;
        Ok(Retention {
            versions: self.features.versioning,
            deleted_days: retention.days,
            permanent_delete: retention.allow_permanent_delete,
            has_deleted: properties.has_retained,
        })
    }
}

impl BlobEntry {
    pub async fn read(
        transaction: &mut Transaction,
        path: &BlobPath,
    ) -> Result<Self, Failure<BlobRefusal>> {
        let container: Option<Container> = read(transaction, &path.container.key()).await?;
        let container = container.ok_or(Failure::Refused(BlobRefusal::ContainerNotFound))?;
        let account = path.container.account.as_str().to_owned();
        let Container { id, scope, .. } = container;
        Ok(Self::read_in(transaction, account, id, scope, path.blob.as_str()).await?)
    }

    /// As [`BlobEntry::read`], for a container that is known by its number.
    pub async fn read_in(
        transaction: &mut Transaction,
        account: String,
        container: u64,
        scope: ScopePolicy,
        name: &str,
    ) -> Result<Self, Fault> {
        let name = name.to_owned();
        let current: Option<Blob> = read(transaction, &rows::blob(container, &name)).await?;
        let now = transaction.now;
        let current = current.map(|blob| blob.at(now));
        let mut entry = Self { account, container, scope, name, current };
        if let Some(expired) = entry.current.take_if(|blob| blob.is_expired(now)) {
            entry.forget(transaction, &expired);
        }
        Ok(entry)
    }

    /// Removes the current blob without keeping anything.
    fn forget(&self, transaction: &mut Transaction, blob: &Blob) {
        content::release(transaction, &blob.content);
        self.index(transaction, &blob.tags, &TagSet::default(), None);
        transaction.delete(self.key());
    }

    /// How a new blob here is encrypted if `chosen` is asked for.
    pub fn encryption(&self, chosen: &Encryption) -> Result<Encryption, BlobRefusal> {
        match (chosen, &self.scope) {
            (Encryption::Account, ScopePolicy { default: Some(scope), .. }) => {
                Ok(Encryption::Scope(scope.clone()))
            }
            (Encryption::Scope(scope), ScopePolicy { default, fixed: true })
                if Some(scope) != default.as_ref() =>
            {
                Err(BlobRefusal::ScopeNotAllowed)
            }
            (Encryption::Account | Encryption::CustomerKey { .. } | Encryption::Scope(_), _) => {
                Ok(chosen.clone())
            }
        }
    }

    /// Whether a request on `blob` has its key or names its scope.
    pub fn check_encryption(&self, blob: &Blob, chosen: &Encryption) -> Result<(), BlobRefusal> {
        match (&blob.encryption, self.encryption(chosen)?) {
            (Encryption::CustomerKey { sha256 }, Encryption::CustomerKey { sha256: given })
                if *sha256 == given =>
            {
                Ok(())
            }
            (Encryption::Scope(scope), Encryption::Scope(named)) if *scope == named => Ok(()),
            (Encryption::Account, Encryption::Account | Encryption::Scope(_)) => Ok(()),
            (Encryption::Account | Encryption::CustomerKey { .. } | Encryption::Scope(_), _) => {
                Err(BlobRefusal::OtherKey)
            }
        }
    }

    pub fn key(&self) -> Bytes {
        rows::blob(self.container, &self.name)
    }

    fn past_key(&self, group: PastBlobGroup, moment: Timestamp) -> Bytes {
        rows::past_blob(self.container, group, &self.name, moment)
    }

    pub fn upload_key(&self) -> Bytes {
        rows::upload(self.container, &self.name)
    }

    /// The state that is asked for and where it is kept, if it is there and not deleted.
    pub async fn find(
        &self,
        transaction: &mut Transaction,
        which: Which,
    ) -> Result<Option<Found>, Fault> {
        match which {
            Which::Current => Ok(self.current.clone().map(Found::Current)),
            Which::Version(id) if self.is_current_version(id) => {
                Ok(self.current.clone().map(Found::Current))
            }
            Which::Version(moment) => {
                let past = self.past(transaction, PastBlobGroup::Versions, moment).await?;
                Ok(past.map(|past| Found::PastBlob(moment, past)))
            }
            Which::Snapshot(moment) => {
                let past = self.past(transaction, PastBlobGroup::Snapshots, moment).await?;
                Ok(past.map(|past| Found::PastBlob(moment, past)))
            }
        }
    }

    pub async fn past(
        &self,
        transaction: &mut Transaction,
        group: PastBlobGroup,
        moment: Timestamp,
    ) -> Result<Option<PastBlob>, Fault> {
        let past: Option<PastBlob> = read(transaction, &self.past_key(group, moment)).await?;
        Ok(past.map(|past| past.at(transaction.now)))
    }

    /// The earlier states of a group, oldest first.
    pub async fn past_blobs(
        &self,
        transaction: &mut Transaction,
        group: PastBlobGroup,
    ) -> Result<Vec<(Timestamp, PastBlob)>, Fault> {
        let range = KeyRange::prefix(rows::past_states_of_blob(self.container, group, &self.name));
        let found = transaction.scan(&range, usize::MAX).await?;
        let now = transaction.now;
        let past = |row: &Row| {
            Ok((rows::past_blob_name(&row.key)?.1, PastBlob::decode(&row.value)?.at(now)))
        };
        found.iter().map(past).collect()
    }

    pub async fn has_past_blobs(
        &self,
        transaction: &mut Transaction,
        group: PastBlobGroup,
    ) -> Result<bool, Fault> {
        let range = KeyRange::prefix(rows::past_states_of_blob(self.container, group, &self.name));
        Ok(!transaction.scan(&range, 1).await?.is_empty())
    }

    pub fn is_current_version(&self, id: Timestamp) -> bool {
        self.current.as_ref().is_some_and(|blob| blob.version == Some(id))
    }

    /// Writes the row of the current blob, and the rows that follow from it.
    pub fn put(&self, transaction: &mut Transaction, blob: &Blob) {
        let none = TagSet::default();
        let before = self.current.as_ref().map_or(&none, |current| &current.tags);
        self.index(transaction, before, &blob.tags, None);
        transaction.put(self.key(), blob.encode());
    }

    /// As [`BlobEntry::put`], for a state that is not the current one.
    pub fn put_past(&self, transaction: &mut Transaction, moment: Timestamp, past: &PastBlob) {
        self.index_past(transaction, moment, past);
        transaction.put(self.past_key(past.group(), moment), past.encode());
    }

    /// Removes the row of an earlier state; the caller keeps or releases its content.
    pub fn take_past(&self, transaction: &mut Transaction, moment: Timestamp, past: &PastBlob) {
        self.unindex_past(transaction, moment, past);
        transaction.delete(self.past_key(past.group(), moment));
    }

    /// Removes an earlier state permanently.
    pub fn purge_past_blob(
        &self,
        transaction: &mut Transaction,
        moment: Timestamp,
        past: &PastBlob,
    ) {
        self.unindex_past(transaction, moment, past);
        purge_row(transaction, self.past_key(past.group(), moment), past);
    }

    /// Deletes an earlier state; it is kept for the account's retention, if there is one.
    pub fn delete_past(
        &self,
        transaction: &mut Transaction,
        moment: Timestamp,
        past: PastBlob,
        deletion: Option<Deletion>,
    ) {
        let Some(deletion) = deletion else {
            return self.purge_past_blob(transaction, moment, &past);
        };
        self.take_past(transaction, moment, &past);
        self.put_deleted(
            transaction,
            moment,
            PastBlob { deleted: Some(deletion), ..past },
            deletion,
        );
    }

    /// Keeps a deleted state until its retention ends.
    fn put_deleted(
        &self,
        transaction: &mut Transaction,
        moment: Timestamp,
        past: PastBlob,
        deletion: Deletion,
    ) {
        self.put_past(transaction, moment, &past);
        let purge = DueTask::PurgePastBlob(self.past_key(past.group(), moment));
        purge.plan(transaction, deletion.until, moment.ticks());
    }

    /// As [`BlobEntry::put_past`], where the tags have changed.
    pub fn put_past_tags(
        &self,
        transaction: &mut Transaction,
        moment: Timestamp,
        past: PastBlob,
        tags: &TagSet,
    ) {
        self.index(transaction, &past.blob.tags, &TagSet::default(), Some(moment));
        let blob = Blob { tags: tags.clone(), ..past.blob };
        self.put_past(transaction, moment, &PastBlob { blob, ..past });
    }

    /// Versions are found by their tags, as long as they are not deleted.
    fn index_past(&self, transaction: &mut Transaction, moment: Timestamp, past: &PastBlob) {
        if past.group() == PastBlobGroup::Versions {
            self.index(transaction, &TagSet::default(), &past.blob.tags, Some(moment));
        }
    }

    fn unindex_past(&self, transaction: &mut Transaction, moment: Timestamp, past: &PastBlob) {
        if past.group() == PastBlobGroup::Versions {
            self.index(transaction, &past.blob.tags, &TagSet::default(), Some(moment));
        }
    }

    /// Writes the rows by which the blob, or its version of `moment`, is found.
    fn index(
        &self,
        transaction: &mut Transaction,
        before: &TagSet,
        after: &TagSet,
        moment: Option<Timestamp>,
    ) {
        let key = |tag| rows::tag(&self.account, tag, self.container, &self.name, moment);
        for (name, value) in before.iter().filter(|(name, value)| after.get(name) != Some(*value)) {
            transaction.delete(key((name, value)));
        }
        for (name, value) in after.iter().filter(|(name, value)| before.get(name) != Some(*value)) {
            transaction.put(key((name, value)), NOTHING);
        }
    }

    /// Replaces what is there by `blob`, and keeps of it what the account retains.
    pub async fn replace(
        &self,
        transaction: &mut Transaction,
        mut blob: Blob,
        change: Change,
        retention: Retention,
        stamp: Stamp,
    ) -> Result<Blob, Fault> {
        if change == Change::Overwrite {
            self.drop_upload(transaction).await?;
        }
        if self.current.is_none() && retention.has_deleted {
            self.purge_other_kinds(transaction, blob.kind).await?;
        }
        blob.version = match change {
            Change::InPlace => blob.version,
            Change::Overwrite | Change::Metadata => {
                retention.versions.then(|| Timestamp::from_ticks(stamp.etag.ticks()))
            }
        };
        if let Some(current) = &self.current {
            match change {
                Change::InPlace => {}
                Change::Metadata if keeps_version(current, retention) => {
                    let id = stamp.etag.ticks();
                    blob.content = content::share(transaction, &current.content, id).await?;
                    self.keep(transaction, current, retention, stamp);
                }
                Change::Metadata => {}
                Change::Overwrite => self.keep(transaction, current, retention, stamp),
            }
        }
        self.put(transaction, &blob);
        Ok(blob)
    }

    /// Removes the current blob, and keeps of it what the account retains.
    pub fn remove(&self, transaction: &mut Transaction, retention: Retention, stamp: Stamp) {
        if let Some(current) = &self.current {
            self.keep(transaction, current, retention, stamp);
            self.index(transaction, &current.tags, &TagSet::default(), None);
        }
        transaction.delete(self.key());
    }

    /// Keeps `current`, which is about to be removed, as a version or for its retention, or
    /// releases it.
    pub fn keep(
        &self,
        transaction: &mut Transaction,
        current: &Blob,
        retention: Retention,
        stamp: Stamp,
    ) {
        let blob = Blob { lease: Default::default(), expires: None, ..current.clone() };
        if keeps_version(current, retention) {
            let id = current.version_id();
            let blob = Blob { version: Some(id), ..blob };
            self.put_past(transaction, id, &PastBlob { blob, role: Role::Version, deleted: None });
        } else if let Some(deletion) = deletion(retention, stamp.now) {
            let moment = Timestamp::from_ticks(stamp.etag.ticks());
            let past = PastBlob { blob, role: Role::Replaced, deleted: Some(deletion) };
            self.put_deleted(transaction, moment, past, deletion);
        } else {
            content::release(transaction, &current.content);
        }
    }

    /// A deleted blob cannot be restored any more once there is one of another kind.
    async fn purge_other_kinds(
        &self,
        transaction: &mut Transaction,
        kind: Kind,
    ) -> Result<(), Fault> {
        let replaced = self.past_blobs(transaction, PastBlobGroup::Replaced).await?;
        if replaced.iter().all(|(_, past)| past.blob.kind.is_alike(kind)) {
            return Ok(());
        }
        let snapshots = self.past_blobs(transaction, PastBlobGroup::DeletedSnapshots).await?;
        for (moment, past) in replaced.iter().chain(&snapshots) {
            if !past.blob.kind.is_alike(kind) {
                self.purge_past_blob(transaction, *moment, past);
            }
        }
        Ok(())
    }

    /// Plans the removal of the current blob when it has expired. `id` is unused by anything else.
    pub fn remove_when_expired(&self, transaction: &mut Transaction, at: Timestamp, id: u64) {
        let (account, container, name) = (self.account.clone(), self.container, self.name.clone());
        DueTask::ExpireBlob { account, container, name }.plan(transaction, at, id);
    }

    /// Drops the uncommitted blocks.
    pub async fn drop_upload(&self, transaction: &mut Transaction) -> Result<(), Fault> {
        let key = self.upload_key();
        if let Some(upload) = read::<Upload>(transaction, &key).await? {
            transaction.delete(key);
            transaction.put(rows::condemned_upload(upload.id), NOTHING);
        }
        Ok(())
    }
}

/// Removes the row of an earlier state and its content.
fn purge_row(transaction: &mut Transaction, key: Bytes, past: &PastBlob) {
    content::release(transaction, &past.blob.content);
    transaction.delete(key);
}

/// Called when the retention of an earlier state, the row with this key, may have ended.
pub(crate) async fn purge_retained(
    transaction: &mut Transaction,
    key: &Bytes,
    now: Timestamp,
) -> Result<(), Fault> {
    let past: Option<PastBlob> = read(transaction, key).await?;
    if let Some(past) = past
        && past.deleted.is_some_and(|deleted| deleted.until <= now)
    {
        // It is deleted already, so there are no rows of tags.
        purge_row(transaction, key.clone(), &past);
    }
    Ok(())
}

/// Called when a blob may have expired.
pub(crate) async fn remove_expired(
    transaction: &mut Transaction,
    account: &str,
    container: u64,
    name: &str,
) -> Result<(), Fault> {
    let scope = ScopePolicy::default();
    // Reading an expired blob removes it, unless it is held.
    let entry = BlobEntry::read_in(transaction, account.to_owned(), container, scope, name).await?;
    if let Some(held) = &entry.current
        && held.expires.is_some_and(|expires| expires <= transaction.now)
    {
        let later = transaction.now.plus(HELD_BLOB_WAIT);
        entry.remove_when_expired(transaction, later, held.etag.ticks());
    }
    Ok(())
}

/// A state of a blob and where it is kept.
pub(super) enum Found {
    Current(Blob),
    PastBlob(Timestamp, PastBlob),
}

impl Found {
    pub fn blob(&self) -> &Blob {
        match self {
            Self::Current(blob) => blob,
            Self::PastBlob(_, past) => &past.blob,
        }
    }
}

impl PastBlob {
    fn group(&self) -> PastBlobGroup {
        match (self.role, self.deleted) {
            (Role::Snapshot, None) => PastBlobGroup::Snapshots,
            (Role::Snapshot, Some(_)) => PastBlobGroup::DeletedSnapshots,
            (Role::Version, None) => PastBlobGroup::Versions,
            (Role::Version, Some(_)) => PastBlobGroup::DeletedVersions,
            (Role::Replaced, _) => PastBlobGroup::Replaced,
        }
    }

    /// As [`Blob::at`].
    pub(super) fn at(self, now: Timestamp) -> Self {
        Self { blob: self.blob.at(now), ..self }
    }
}

/// Whether `current` stays as a version when it is replaced. A blob that became a version while
/// versions were kept stays one.
pub(super) fn keeps_version(current: &Blob, retention: Retention) -> bool {
    retention.versions || current.version.is_some()
}

/// How a state that is deleted now can be restored, if it can.
pub(super) fn deletion(retention: Retention, now: Timestamp) -> Option<Deletion> {
    let days = retention.deleted_days?;
    let until = now.plus(std::time::Duration::from_secs(u64::from(days) * 24 * 60 * 60));
    Some(Deletion { at: now, until })
}

/// The state of a blob that a read asks for, and whether it is the current one. It is boxed since it
/// is large and passed through many calls.
pub(super) async fn find_blob(
    snapshot: &dyn Snapshot,
    path: &BlobPath,
    which: Which,
    now: Timestamp,
) -> Result<Option<(Box<Blob>, bool)>, Failure<BlobRefusal>> {
    let container = find_container(snapshot, &path.container).await?;
    let container = container.ok_or(Failure::Refused(BlobRefusal::ContainerNotFound))?.id;
    Ok(find_in(snapshot, container, path.blob.as_str(), which, now).await?)
}

/// As [`find_blob`], in a container that is known by its number.
pub(super) async fn find_in(
    snapshot: &dyn Snapshot,
    container: u64,
    name: &str,
    which: Which,
    now: Timestamp,
) -> Result<Option<(Box<Blob>, bool)>, Fault> {
    let current = async || -> Result<Option<Box<Blob>>, Fault> {
        let row = snapshot.get(&rows::blob(container, name)).await?;
        let Some(row) = row else { return Ok(None) };
        let mut blob = Box::new(Blob::decode(&row)?);
        if blob.is_expired(now) {
            return Ok(None);
        }
        blob.advance(now);
        Ok(Some(blob))
    };
    let (group, moment) = match which {
        Which::Current => return Ok(current().await?.map(|blob| (blob, true))),
        Which::Version(id) => {
            if let Some(blob) = current().await?
                && blob.version == Some(id)
            {
                return Ok(Some((blob, true)));
            }
            (PastBlobGroup::Versions, id)
        }
        Which::Snapshot(moment) => (PastBlobGroup::Snapshots, moment),
    };
    let row = snapshot.get(&rows::past_blob(container, group, name, moment)).await?;
    let past = row.map(|row| PastBlob::decode(&row)).transpose()?;
    Ok(past.map(|past| (Box::new(past.blob.at(now)), false)))
}
