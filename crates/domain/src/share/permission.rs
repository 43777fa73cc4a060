//! The security descriptors of a share, each kept once: a descriptor is found by its digest, which
//! is its key.

use std::collections::HashMap;

use bytes::Bytes;
use holdfast_store::Fault;
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::lifecycle::{Answer, ShareRefusal, read_share};
use super::model::{PermissionKey, SharePath};
use super::rows;
use super::security::{Descriptor, inherited};
use crate::domain::{Domain, read};
use crate::failure::Failure;
use crate::rows::Stored;
use crate::transact::Transaction;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionRefusal {
    /// The share has no descriptor of this key.
    UnknownKey,
}

/// A descriptor in its self-relative form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Permission(Bytes);

impl Stored for Permission {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "a security descriptor";
}

impl Domain {
    /// The key of a descriptor in this share; a new one if it has none yet.
    pub async fn permission_key(
        &self,
        path: &SharePath,
        descriptor: &Descriptor,
    ) -> Answer<PermissionKey> {
        let bytes = descriptor.to_bytes();
        self.transact(&[], async |mut transaction| {
            let share = read_share(&mut transaction, path).await?;
            let key = key_of(&mut transaction, share.id, &bytes).await?;
            Ok((key, transaction))
        })
        .await
    }

    /// The descriptor that has this key in this share.
    pub async fn descriptor(&self, path: &SharePath, key: PermissionKey) -> Answer<Descriptor> {
        let share = self.find_share(path).await?;
        let share = share.ok_or(Failure::Refused(ShareRefusal::NotFound))?;
        let row = self.engine.snapshot().await?.get(&rows::permission(share.id, key.0)).await?;
        let unknown = ShareRefusal::Permission(PermissionRefusal::UnknownKey);
        let row = row.ok_or(Failure::Refused(unknown))?;
        Ok(decode(&row)?)
    }
}

/// The key of a descriptor in its self-relative form. It is written if it is new.
pub(crate) async fn key_of(
    transaction: &mut Transaction,
    share: u64,
    descriptor: &[u8],
) -> Result<PermissionKey, Fault> {
    let mut key = first_key(descriptor);
    loop {
        let row = rows::permission(share, key.0);
        let known: Option<Permission> = read(transaction, &row).await?;
        match known {
            Some(Permission(known)) if known == descriptor => return Ok(key),
            // A hash collision: another descriptor has the same digest.
            Some(_) => key = PermissionKey(key.0.wrapping_add(1)),
            None => {
                let permission = Permission(Bytes::copy_from_slice(descriptor));
                transaction.put(row, permission.encode());
                return Ok(key);
            }
        }
    }
}

impl Domain {
    /// The key of the descriptor that a new node inherits from a directory whose descriptor has
    /// this key.
    pub(super) async fn inherited_key(
        &self,
        transaction: &mut Transaction,
        share: u64,
        parent: PermissionKey,
        is_directory: bool,
    ) -> Result<PermissionKey, Fault> {
        let known = &self.live_shares.inherited;
        if let Some(key) = known.get(share, parent, is_directory) {
            return Ok(key);
        }
        let descriptor = descriptor_of(transaction, share, parent).await?;
        let missing = || Fault::new("the security descriptor of a directory is missing");
        let descriptor = inherited(&descriptor.ok_or_else(missing)?, is_directory).to_bytes();
        let key = key_of(transaction, share, &descriptor).await?;
        // Only cached if its row is committed: this transaction may still fail.
        let row = transaction.snapshot().get(&rows::permission(share, key.0)).await?;
        if row.is_some() {
            known.note(share, parent, is_directory, key);
        }
        Ok(key)
    }
}

/// Caches what is inherited from which descriptor, so that it is not computed for each file.
/// Descriptors exist as long as their share.
#[derive(Default)]
pub(super) struct InheritanceCache {
    keys: Mutex<HashMap<(u64, PermissionKey, bool), PermissionKey>>,
}

/// Directories have few different descriptors, mostly one.
const INHERITANCE_MAX: usize = 4096;

impl InheritanceCache {
    fn get(&self, share: u64, parent: PermissionKey, is_directory: bool) -> Option<PermissionKey> {
        self.keys.lock().get(&(share, parent, is_directory)).copied()
    }

    fn note(&self, share: u64, parent: PermissionKey, is_directory: bool, key: PermissionKey) {
        let mut keys = self.keys.lock();
        if keys.len() >= INHERITANCE_MAX {
            keys.clear();
        }
        keys.insert((share, parent, is_directory), key);
    }
}

/// The descriptor of a key that a node of the share has.
pub(crate) async fn descriptor_of(
    transaction: &mut Transaction,
    share: u64,
    key: PermissionKey,
) -> Result<Option<Descriptor>, Fault> {
    let row = transaction.get(&rows::permission(share, key.0)).await?;
    row.map(|row| decode(&row)).transpose()
}

fn first_key(descriptor: &[u8]) -> PermissionKey {
    let digest = digest(&SHA256, descriptor);
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_ref()[..8]);
    PermissionKey(u64::from_be_bytes(first))
}

fn decode(row: &[u8]) -> Result<Descriptor, Fault> {
    let Permission(bytes) = Permission::decode(row)?;
    let corrupt = || crate::rows::corrupt(Permission::WHAT);
    Descriptor::from_bytes(&bytes).ok_or_else(corrupt)
}
