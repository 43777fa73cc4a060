//! Shares themselves: create, read, change, lease.

use std::sync::Arc;

use holdfast_store::Fault;

use super::model::{
    AccessTier, Attributes, Directory, FileTimes, Node, NodeKind, PosixProperties, Protocol,
    RootSquash, Share, SharePath, TierChange,
};
use super::opens::ConnectedShare;
use super::permission::{self, PermissionRefusal};
use super::{rows, security};
use crate::access::StoredPolicy;
use crate::domain::{Domain, Stamp, read};
use crate::failure::Failure;
use crate::held_name::is_held;
use crate::lease::{
    self, Access, AccessRefusal, Lease, LeaseAction, LeaseId, LeaseKind, LeaseOutcome, LeaseRefusal,
};
use crate::metadata::Metadata;
use crate::rows::Stored;
use crate::time::Timestamp;
use crate::transact::Transaction;

/// The default quota of a share.
pub const QUOTA_GIB_DEFAULT: u32 = 5 * 1024;
/// The maximum quota.
pub const QUOTA_GIB_MAX: u32 = 256 * 1024;

/// The mode of the root of a new NFS share.
const ROOT_MODE: u16 = 0o755;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShareRefusal {
    NotFound,
    SnapshotNotFound,
    AlreadyExists,
    /// A share of this name was deleted recently, and the name is not free yet.
    BeingDeleted,
    /// What is to be restored was never deleted, is not retained any more, or was restored already.
    DeletedNotFound,
    /// It has snapshots, which the deletion does not mention.
    HasSnapshots,
    /// One of the snapshots to be deleted with it is leased.
    SnapshotLeased,
    TooManySnapshots,
    /// Only NFS shares have this setting.
    NotOfNfs,
    Permission(PermissionRefusal),
    LeaseAccess(AccessRefusal),
    LeaseAction(LeaseRefusal),
}

impl From<AccessRefusal> for ShareRefusal {
    fn from(refusal: AccessRefusal) -> Self {
        Self::LeaseAccess(refusal)
    }
}

/// The settings of a share, at creation and later; absent ones stay unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShareSettings {
    pub quota_gib: Option<u32>,
    pub tier: Option<AccessTier>,
    pub root_squash: Option<RootSquash>,
    pub snapshots_shown: Option<bool>,
    pub directory_leases: Option<bool>,
    pub provisioned_iops: Option<u64>,
    pub provisioned_bandwidth_mibps: Option<u64>,
    pub bursting: Option<bool>,
    pub bursting_iops_max: Option<u64>,
    pub bursting_bandwidth_mibps_max: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct CreateShare {
    pub path: SharePath,
    pub metadata: Metadata,
    pub protocol: Protocol,
    pub settings: ShareSettings,
}

pub struct SetShareProperties {
    pub path: SharePath,
    pub settings: ShareSettings,
    pub lease_id: Option<LeaseId>,
}

pub struct SetShareMetadata {
    pub path: SharePath,
    pub metadata: Metadata,
    pub lease_id: Option<LeaseId>,
}

pub struct SetShareAcl {
    pub path: SharePath,
    pub policies: Vec<StoredPolicy>,
    pub lease_id: Option<LeaseId>,
}

pub struct LeaseShare {
    pub path: SharePath,
    /// Of the snapshot of this moment, or of the share itself.
    pub snapshot: Option<Timestamp>,
    pub action: LeaseAction,
    /// The id of the lease, if this acquires one without proposing an id.
    pub fresh_id: LeaseId,
}

pub(super) type Answer<T> = Result<T, Failure<ShareRefusal>>;

impl Domain {
    pub async fn create_share(&self, command: CreateShare) -> Answer<Share> {
        let key = command.path.key();
        let created = self
            .transact(std::slice::from_ref(&key), async |mut transaction| {
                let stamp = self.stamp();
                let existing: Option<Share> = read(&mut transaction, &key).await?;
                let held = is_held(&mut transaction, &command.path.hold_key(), stamp.now).await?;
                let share = decide_create(existing.as_ref(), held, &command, stamp)
                    .map_err(Failure::Refused)?;
                transaction.put(key.clone(), share.encode());
                put_root(&mut transaction, &share, stamp).await?;
                Ok((share, transaction))
            })
            .await?;
        self.live_shares.start_empty(created.id);
        Ok(created)
    }

    /// The share, its current lease, and the time of both; or its state in a snapshot.
    pub async fn get_share(
        &self,
        path: &SharePath,
        snapshot: Option<Timestamp>,
        lease_id: Option<LeaseId>,
    ) -> Answer<(Share, Timestamp)> {
        let now = self.now();
        let share = self.find_share(path).await?;
        let mut share = share.ok_or(Failure::Refused(ShareRefusal::NotFound))?;
        if let Some(moment) = snapshot {
            let row = self.engine.snapshot().await?.get(&rows::snapshot(share.id, moment)).await?;
            let then = row.map(|row| Share::decode(&row)).transpose()?;
            share = then.ok_or(Failure::Refused(ShareRefusal::SnapshotNotFound))?;
        }
        check_lease(&share, Access::Read, lease_id, now).map_err(Failure::Refused)?;
        Ok((share, now))
    }

    /// The share as it is now.
    pub async fn find_share(&self, path: &SharePath) -> Result<Option<Share>, Fault> {
        let row = self.engine.snapshot().await?.get(&path.key()).await?;
        row.map(|row| Share::decode(&row)).transpose()
    }

    /// The share as it is now, for a client that connects to it.
    pub async fn connect_share(
        &self,
        path: &SharePath,
    ) -> Result<Option<(Share, Arc<ConnectedShare>)>, Fault> {
        loop {
            let Some(share) = self.find_share(path).await? else { return Ok(None) };
            let connected = self.opens.connect(share.id);
            // It may have been deleted between the lookup and the connection.
            let now = self.find_share(path).await?;
            if now.is_some_and(|now| now.id == connected.number) {
                return Ok(Some((share, connected)));
            }
        }
    }

    pub async fn set_share_properties(&self, command: SetShareProperties) -> Answer<Share> {
        let SetShareProperties { path, settings, lease_id } = command;
        self.change_share(&path, lease_id, |share, now| apply(settings, share, now)).await
    }

    pub async fn set_share_metadata(&self, command: SetShareMetadata) -> Answer<Share> {
        let SetShareMetadata { path, metadata, lease_id } = command;
        self.change_share(&path, lease_id, |share, _| {
            share.metadata = metadata.clone();
            Ok(())
        })
        .await
    }

    pub async fn set_share_acl(&self, command: SetShareAcl) -> Answer<Share> {
        let SetShareAcl { path, policies, lease_id } = command;
        self.change_share(&path, lease_id, |share, _| {
            share.policies = policies.clone();
            Ok(())
        })
        .await
    }

    async fn change_share(
        &self,
        path: &SharePath,
        lease_id: Option<LeaseId>,
        change: impl Fn(&mut Share, Timestamp) -> Result<(), ShareRefusal>,
    ) -> Answer<Share> {
        let key = path.key();
        self.transact(std::slice::from_ref(&key), async |mut transaction| {
            let stamp = self.stamp();
            let mut share = existing(read(&mut transaction, &key).await?)?;
            check_lease(&share, Access::Write, lease_id, stamp.now).map_err(Failure::Refused)?;
            change(&mut share, stamp.now).map_err(Failure::Refused)?;
            share.etag = stamp.etag;
            share.last_modified = stamp.now;
            transaction.put(key.clone(), share.encode());
            Ok((share, transaction))
        })
        .await
    }

    pub async fn lease_share(&self, command: LeaseShare) -> Answer<(Share, LeaseOutcome)> {
        let share_key = command.path.key();
        let (key, share, outcome) = self
            .transact(std::slice::from_ref(&share_key), async |mut transaction| {
                let mut key = share_key.clone();
                let mut share = existing(read(&mut transaction, &key).await?)?;
                if let Some(moment) = command.snapshot {
                    key = rows::snapshot(share.id, moment);
                    let then: Option<Share> = read(&mut transaction, &key).await?;
                    share = then.ok_or(Failure::Refused(ShareRefusal::SnapshotNotFound))?;
                }
                let outcome =
                    decide_lease(&mut share, &command, self.now()).map_err(Failure::Refused)?;
                transaction.put(key.clone(), share.encode());
                Ok(((key, share, outcome), transaction))
            })
            .await?;
        self.live_leases.note(key, &share.lease, self.now());
        Ok((share, outcome))
    }
}

/// Reads the share in a transaction, which expects it to stay unchanged.
pub(crate) async fn read_share(transaction: &mut Transaction, path: &SharePath) -> Answer<Share> {
    existing(read(transaction, &path.key()).await?)
}

pub(super) fn existing(share: Option<Share>) -> Answer<Share> {
    share.ok_or(Failure::Refused(ShareRefusal::NotFound))
}

fn decide_create(
    existing: Option<&Share>,
    held: bool,
    command: &CreateShare,
    stamp: Stamp,
) -> Result<Share, ShareRefusal> {
    match (existing, held) {
        (Some(_), _) => return Err(ShareRefusal::AlreadyExists),
        (None, true) => return Err(ShareRefusal::BeingDeleted),
        (None, false) => {}
    }
    let mut share = Share {
        id: stamp.etag.ticks(),
        etag: stamp.etag,
        last_modified: stamp.now,
        metadata: command.metadata.clone(),
        quota_gib: QUOTA_GIB_DEFAULT,
        tier: AccessTier::default(),
        tier_changed: None,
        protocol: command.protocol,
        root_squash: RootSquash::default(),
        snapshots_shown: command.protocol == Protocol::Nfs,
        directory_leases: true,
        provisioned: Default::default(),
        bursting: Default::default(),
        policies: Vec::new(),
        lease: Lease::default(),
        generation: 0,
        newest_snapshot: 0,
    };
    apply(command.settings, &mut share, stamp.now)?;
    // A new share is not moved from another tier.
    share.tier_changed = share.tier_changed.map(|change| TierChange { from: None, ..change });
    Ok(share)
}

fn apply(settings: ShareSettings, share: &mut Share, now: Timestamp) -> Result<(), ShareRefusal> {
    fn set<T>(stored: &mut T, said: Option<T>) {
        if let Some(said) = said {
            *stored = said;
        }
    }
    let of_nfs = settings.root_squash.is_some() || settings.snapshots_shown.is_some();
    if of_nfs && share.protocol != Protocol::Nfs {
        return Err(ShareRefusal::NotOfNfs);
    }
    set(&mut share.quota_gib, settings.quota_gib);
    set(&mut share.root_squash, settings.root_squash);
    set(&mut share.snapshots_shown, settings.snapshots_shown);
    set(&mut share.directory_leases, settings.directory_leases);
    if let Some(tier) = settings.tier {
        let from = Some(share.tier).filter(|before| *before != tier);
        share.tier = tier;
        share.tier_changed = Some(TierChange { at: now, from });
    }
    let (provisioned, bursting) = (&mut share.provisioned, &mut share.bursting);
    provisioned.iops = settings.provisioned_iops.or(provisioned.iops);
    provisioned.bandwidth_mibps =
        settings.provisioned_bandwidth_mibps.or(provisioned.bandwidth_mibps);
    bursting.enabled = settings.bursting.or(bursting.enabled);
    bursting.iops_max = settings.bursting_iops_max.or(bursting.iops_max);
    bursting.bandwidth_mibps_max =
        settings.bursting_bandwidth_mibps_max.or(bursting.bandwidth_mibps_max);
    Ok(())
}

async fn put_root(transaction: &mut Transaction, share: &Share, stamp: Stamp) -> Result<(), Fault> {
    let permission =
        permission::key_of(transaction, share.id, &security::of_root().to_bytes()).await?;
    let posix = match share.protocol {
        Protocol::Smb => None,
        Protocol::Nfs => Some(PosixProperties { mode: ROOT_MODE, owner: 0, group: 0, links: 2 }),
    };
    let root = Node {
        id: share.root(),
        name: None,
        etag: stamp.etag,
        last_modified: stamp.now,
        metadata: Metadata::default(),
        times: FileTimes::all(stamp.now),
        attributes: Attributes::default(),
        permission,
        posix,
        generation: share.generation,
        placed: share.generation,
        moves: Vec::new(),
        names: Default::default(),
        kind: NodeKind::Directory(Directory {}),
    };
    transaction.put(rows::node(share.id, rows::ABOVE_ROOT, ""), root.encode());
    Ok(())
}

fn decide_lease(
    share: &mut Share,
    command: &LeaseShare,
    now: Timestamp,
) -> Result<LeaseOutcome, ShareRefusal> {
    let kind = LeaseKind::Share;
    let decided = lease::decide(&share.lease, command.action, kind, command.fresh_id, now)
        .map_err(ShareRefusal::LeaseAction)?;
    share.lease = decided.lease;
    Ok(decided.outcome)
}

pub(super) fn check_lease(
    share: &Share,
    access: Access,
    lease_id: Option<LeaseId>,
    now: Timestamp,
) -> Result<(), ShareRefusal> {
    lease::check_access(&share.lease, access, lease_id, LeaseKind::Share, now)?;
    Ok(())
}
