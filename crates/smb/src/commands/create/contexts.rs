//! Translates contexts of a CREATE for the domain, and what it granted to contexts of the answer.

use holdfast_domain::share::handles::{CachingWanted, DurableWanted, Opened};
use holdfast_domain::share::opens::{
    Caching, CachingGranted, Durability, LeaseGranted, LeaseKey, LeaseVersion, LeaseWanted,
    OplockLevel as DomainLevel,
};

use crate::dialect::{Dialect, Negotiated};
use crate::info::file::VOLUME_SERIAL;
use crate::status::Status;
use crate::wire::create::{OplockLevel, Request};
use crate::wire::create_context::{Lease, LeaseV2, RequestContexts, ResponseContext, lease_flags};

pub fn caching_wanted(request: &Request, dialect: Dialect) -> CachingWanted {
    match request.oplock_level {
        OplockLevel::None => CachingWanted::None,
        OplockLevel::LevelTwo => CachingWanted::Oplock(DomainLevel::Two),
        OplockLevel::Exclusive => CachingWanted::Oplock(DomainLevel::Exclusive),
        OplockLevel::Batch => CachingWanted::Oplock(DomainLevel::Batch),
        OplockLevel::Lease => {
            lease_wanted(request, dialect).map_or(CachingWanted::None, CachingWanted::Lease)
        }
    }
}

/// Leases came with SMB 2.1, and their second version with 3.0.
pub fn lease_wanted(request: &Request, dialect: Dialect) -> Option<LeaseWanted> {
    let asked = request.contexts.lease?;
    if dialect < Dialect::Smb2_1 {
        return None;
    }
    let v2 = asked.v2.filter(|_| dialect >= Dialect::Smb3_0);
    let has_parent = asked.flags & lease_flags::PARENT_KEY_SET != 0;
    let parent = v2.filter(|_| has_parent).map(|v2| LeaseKey(u128::from_le_bytes(v2.parent_key)));
    Some(LeaseWanted {
        key: LeaseKey(u128::from_le_bytes(asked.key)),
        caching: Caching::from_bits_truncate(asked.state),
        version: if v2.is_some() { LeaseVersion::Two } else { LeaseVersion::One },
        epoch: v2.map_or(0, |v2| v2.epoch),
        parent,
    })
}

pub fn durable_wanted(
    contexts: &RequestContexts,
    negotiated: &Negotiated,
) -> Option<DurableWanted> {
    if let Some(v2) = contexts.durable_v2.filter(|_| negotiated.dialect >= Dialect::Smb3_0) {
        return Some(DurableWanted {
            kind: Durability::Second(u128::from_le_bytes(v2.create_guid)),
            timeout_milliseconds: v2.timeout_milliseconds,
            persistent: v2.persistent && negotiated.has_persistent_handles(),
        });
    }
    let first =
        DurableWanted { kind: Durability::First, timeout_milliseconds: 0, persistent: false };
    contexts.durable.then_some(first)
}

/// Which contexts about durable opens exclude each other, [MS-SMB2] 3.3.5.9.6 and following.
pub fn check_durable(contexts: &RequestContexts) -> Result<(), Status> {
    let first = contexts.durable_reconnect.is_some();
    let second = contexts.durable_reconnect_v2.is_some();
    let excluded = contexts.durable && contexts.durable_v2.is_some()
        || first && (contexts.durable_v2.is_some() || second)
        || second && (contexts.durable || contexts.durable_v2.is_some());
    if excluded { Err(Status::INVALID_PARAMETER) } else { Ok(()) }
}

pub fn oplock_level(granted: CachingGranted) -> OplockLevel {
    match granted {
        CachingGranted::None => OplockLevel::None,
        CachingGranted::Oplock(level) => level_to_wire(level),
        CachingGranted::Lease(_) => OplockLevel::Lease,
    }
}

pub fn level_to_wire(level: DomainLevel) -> OplockLevel {
    match level {
        DomainLevel::None => OplockLevel::None,
        DomainLevel::Two => OplockLevel::LevelTwo,
        DomainLevel::Exclusive => OplockLevel::Exclusive,
        DomainLevel::Batch => OplockLevel::Batch,
    }
}

pub fn granted(request: &RequestContexts, opened: &Opened) -> Vec<ResponseContext> {
    let mut contexts = Vec::new();
    if request.maximal_access {
        let access = opened.maximal_access.bits();
        contexts.push(ResponseContext::MaximalAccess { status: Status::SUCCESS.0, access });
    }
    if request.query_on_disk_id {
        let (file, volume) = (opened.information.id, VOLUME_SERIAL.into());
        contexts.push(ResponseContext::OnDiskId { file, volume });
    }
    if let CachingGranted::Lease(lease) = opened.caching {
        contexts.push(ResponseContext::Lease(lease_to_wire(&lease)));
    }
    // A client that reconnects to a durable open does not request one.
    match opened.durable {
        Some(timeout_milliseconds) if request.durable_v2.is_some() => {
            let persistent = opened.handle.is_persistent();
            contexts.push(ResponseContext::DurableV2 { timeout_milliseconds, persistent });
        }
        Some(_) if request.durable => contexts.push(ResponseContext::Durable),
        Some(_) | None => {}
    }
    contexts
}

fn lease_to_wire(lease: &LeaseGranted) -> Lease {
    let mut flags = 0;
    if lease.breaking {
        flags |= lease_flags::BREAK_IN_PROGRESS;
    }
    let v2 = match lease.version {
        LeaseVersion::One => None,
        LeaseVersion::Two => {
            if lease.parent.is_some() {
                flags |= lease_flags::PARENT_KEY_SET;
            }
            let parent_key = lease.parent.map_or([0; 16], |LeaseKey(key)| key.to_le_bytes());
            Some(LeaseV2 { parent_key, epoch: lease.epoch })
        }
    };
    let LeaseKey(key) = lease.key;
    Lease { key: key.to_le_bytes(), state: lease.caching.bits(), flags, v2 }
}
