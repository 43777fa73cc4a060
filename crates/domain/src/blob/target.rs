//! The place that a blob's name stands for: what is there, and the ways in which it is replaced.

use bytes::Bytes;
use holdfast_store::{Fault, Snapshot};

use super::container::find_container;
use super::model::{Blob, Container, Deletion, Encryption, Past, Role, ScopePolicy, Upload, Which};
use super::{BlobPath, BlobRefusal};
use crate::account::ServiceKind;
use crate::content;
use crate::domain::{Domain, Stamp, read};
use crate::due::Due;
use crate::failure::Failure;
use crate::names::AccountName;
use crate::rows::{self, Stored};
use crate::time::Timestamp;
use crate::transact::Transaction;

/// What a transaction has read of a name.
pub(super) struct Target {
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
pub(super) struct Keeping {
    pub versions: bool,
    pub deleted_days: Option<u32>,
    pub permanent_delete: bool,
}

impl Domain {
    pub(super) async fn keeping(&self, account: &AccountName) -> Result<Keeping, Fault> {
        let properties = self.service_properties(account, ServiceKind::Blob).await?;
        let retention = properties.delete_retention;
        Ok(Keeping {
            versions: self.features.versioning,
            deleted_days: retention.days,
            permanent_delete: retention.allow_permanent_delete,
        })
    }
}

impl Target {
    pub async fn read(
        transaction: &mut Transaction,
        path: &BlobPath,
    ) -> Result<Self, Failure<BlobRefusal>> {
        let container: Option<Container> = read(transaction, &path.container.key()).await?;
        let container = container.ok_or(Failure::Refused(BlobRefusal::ContainerNotFound))?;
        let name = path.blob.as_str().to_owned();
        let current = read(transaction, &rows::blob(container.id, &name)).await?;
        Ok(Self { container: container.id, scope: container.scope, name, current })
    }

    /// Whose key a new blob here is encrypted with, if `chosen` is asked for.
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

    pub fn key(&self) -> Bytes {
        rows::blob(self.container, &self.name)
    }

    pub fn past_key(&self, moment: Timestamp) -> Bytes {
        rows::past_blob(self.container, &self.name, moment)
    }

    pub fn upload_key(&self) -> Bytes {
        rows::upload(self.container, &self.name)
    }

    /// The state that is asked for, where it is kept, if it is there and not deleted.
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
            Which::Version(moment) | Which::Snapshot(moment) => {
                let past: Option<Past> = read(transaction, &self.past_key(moment)).await?;
                Ok(past.filter(|past| past.answers(which)).map(|past| Found::Past(moment, past)))
            }
        }
    }

    fn is_current_version(&self, id: Timestamp) -> bool {
        self.current.as_ref().is_some_and(|blob| blob.version == Some(id))
    }

    /// Writes the row of the current blob, and the rows that follow from it.
    pub fn put(&self, transaction: &mut Transaction, blob: &Blob) {
        transaction.put(self.key(), blob.encode());
    }

    /// As [`Target::put`], for a state that is not the current one.
    pub fn put_past(&self, transaction: &mut Transaction, moment: Timestamp, past: &Past) {
        transaction.put(self.past_key(moment), past.encode());
    }

    /// Puts `blob` in the place of what is there, of which so much is kept as the account keeps.
    pub async fn replace(
        &self,
        transaction: &mut Transaction,
        mut blob: Blob,
        change: Change,
        keeping: Keeping,
        stamp: Stamp,
    ) -> Result<Blob, Fault> {
        if change == Change::Overwrite {
            self.drop_upload(transaction).await?;
        }
        blob.version = match change {
            Change::InPlace => blob.version,
            Change::Overwrite | Change::Metadata => {
                keeping.versions.then(|| Timestamp::from_ticks(stamp.etag.ticks()))
            }
        };
        if let Some(current) = &self.current {
            match change {
                Change::InPlace => {}
                Change::Metadata if keeps_version(current, keeping) => {
                    let id = stamp.etag.ticks();
                    blob.content = content::share(transaction, &current.content, id).await?;
                    self.keep(transaction, current, keeping, stamp);
                }
                Change::Metadata => {}
                Change::Overwrite => self.keep(transaction, current, keeping, stamp),
            }
        }
        self.put(transaction, &blob);
        Ok(blob)
    }

    /// Takes the current blob away, of which so much is kept as the account keeps.
    pub fn remove(&self, transaction: &mut Transaction, keeping: Keeping, stamp: Stamp) {
        if let Some(current) = &self.current {
            self.keep(transaction, current, keeping, stamp);
        }
        transaction.delete(self.key());
    }

    /// Keeps `current`, which is about to go, as a version or for its retention, or lets it go.
    fn keep(&self, transaction: &mut Transaction, current: &Blob, keeping: Keeping, stamp: Stamp) {
        let blob = Blob { lease: Default::default(), ..current.clone() };
        if keeps_version(current, keeping) {
            let past = Past { blob, role: Role::Version, deleted: None };
            self.put_past(transaction, current.version_id(), &past);
        } else if let Some(deletion) = deletion(keeping, stamp.now) {
            let moment = Timestamp::from_ticks(stamp.etag.ticks());
            let past = Past { blob, role: Role::Replaced, deleted: Some(deletion) };
            self.put_past(transaction, moment, &past);
            self.purge_when_due(transaction, moment, deletion);
        } else {
            content::release(transaction, &current.content);
        }
    }

    /// Plans that the state at `moment` goes for good when its retention ends.
    pub fn purge_when_due(
        &self,
        transaction: &mut Transaction,
        moment: Timestamp,
        deletion: Deletion,
    ) {
        Due::PurgePast(self.past_key(moment)).plan(transaction, deletion.until, moment.ticks());
    }

    /// Drops the blocks that are not committed.
    pub async fn drop_upload(&self, transaction: &mut Transaction) -> Result<(), Fault> {
        let key = self.upload_key();
        if let Some(upload) = read::<Upload>(transaction, &key).await? {
            transaction.delete(key);
            transaction.put(rows::condemned_upload(upload.id), rows::NOTHING);
        }
        Ok(())
    }
}

/// A state of a blob and where it is kept.
pub(super) enum Found {
    Current(Blob),
    Past(Timestamp, Past),
}

impl Past {
    /// Whether this is what was asked for.
    pub(super) fn answers(&self, which: Which) -> bool {
        let role = match which {
            Which::Current => false,
            Which::Snapshot(_) => self.role == Role::Snapshot,
            Which::Version(_) => self.role == Role::Version,
        };
        role && self.deleted.is_none()
    }
}

/// Whether what `current` is stays as a version when it is replaced. A blob that became a version
/// while versions were kept stays one.
fn keeps_version(current: &Blob, keeping: Keeping) -> bool {
    keeping.versions || current.version.is_some()
}

/// How what is deleted now can be restored, if it can.
pub(super) fn deletion(keeping: Keeping, now: Timestamp) -> Option<Deletion> {
    let days = keeping.deleted_days?;
    let until = now.plus(std::time::Duration::from_secs(u64::from(days) * 24 * 60 * 60));
    Some(Deletion { at: now, until })
}

/// The state of a blob that a read asks for, and whether it is the current one.
pub(super) async fn find_blob(
    snapshot: &dyn Snapshot,
    path: &BlobPath,
    which: Which,
) -> Result<Option<(Blob, bool)>, Failure<BlobRefusal>> {
    let container = find_container(snapshot, &path.container).await?;
    let container = container.ok_or(Failure::Refused(BlobRefusal::ContainerNotFound))?.id;
    let name = path.blob.as_str();
    let current = async || -> Result<Option<Blob>, Fault> {
        let row = snapshot.get(&rows::blob(container, name)).await?;
        row.map(|row| Blob::decode(&row)).transpose()
    };
    let moment = match which {
        Which::Current => return Ok(current().await?.map(|blob| (blob, true))),
        Which::Version(id) => {
            if let Some(blob) = current().await?
                && blob.version == Some(id)
            {
                return Ok(Some((blob, true)));
            }
            id
        }
        Which::Snapshot(moment) => moment,
    };
    let row = snapshot.get(&rows::past_blob(container, name, moment)).await?;
    let past = row.map(|row| Past::decode(&row)).transpose()?;
    Ok(past.filter(|past| past.answers(which)).map(|past| (past.blob, false)))
}
