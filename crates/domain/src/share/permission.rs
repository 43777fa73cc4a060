//! The security descriptors of a share, each kept once: a descriptor is found by its digest, which
//! is its key.

use bytes::Bytes;
use holdfast_store::Fault;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::lifecycle::{Answer, ShareRefusal, read_share};
use super::model::{PermissionKey, SharePath};
use super::rows;
use super::security::Descriptor;
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
    /// The key of a descriptor in this share, which it is given if it has none yet.
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
            // Another one with the same digest; as rare as anything can be.
            Some(_) => key = PermissionKey(key.0.wrapping_add(1)),
            None => {
                let permission = Permission(Bytes::copy_from_slice(descriptor));
                transaction.put(row, permission.encode());
                return Ok(key);
            }
        }
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
