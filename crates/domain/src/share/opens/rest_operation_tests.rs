//! REST calls against opens, cell by cell of the tables of the service.

use super::super::breaks::{self, Break};
use super::super::caching::{Caching, HolderKind};
use super::super::range_locks::{LockKind, Range, RangeLock, RangeLocks};
use super::RestOperation::{
    CreateFile, DeleteFile, GetFile, GetFileMetadata, GetFileProperties, LeaseFile, List,
    ListRanges, PutRange, SetFileMetadata, SetFileProperties,
};
use super::*;
use crate::lease::{Lease, LeaseAction, LeaseDuration, LeaseId, LeaseKind, decide};
use crate::time::Timestamp;

fn share(text: &str) -> ShareMode {
    let has = |letter| text.contains(letter);
    ShareMode { read: has('R'), write: has('W'), delete: has('D') }
}

#[test]
fn operations_meet_share_modes_as_in_section_6_5() {
    let operations = [
        CreateFile,
        GetFile,
        SetFileProperties,
        SetFileMetadata,
        DeleteFile,
        PutRange,
        ListRanges,
        LeaseFile,
    ];
    for (mode, cells) in [
        ("none", "xxxxxxxx"),
        ("R", "x.xxxx.x"),
        ("W", "xx..x.xx"),
        ("D", "xxxxxxxx"),
        ("RW", "x...x..x"),
        ("RD", "x.xxxx.x"),
        ("WD", ".x..x.xx"),
        ("RWD", "....x..."),
    ] {
        let open = Claim { access: READ, share: share(mode) };
        for (operation, cell) in operations.into_iter().zip(cells.chars()) {
            let allowed = operation.compatible_with(open);
            assert_eq!(allowed, cell == '.', "6.5 share mode {mode} / {operation:?}");
        }
    }
}

#[test]
fn operations_that_need_no_access_go_on_beside_any_open() {
    let alone = Claim { access: AccessMask::ALL, share: ShareMode::NONE };
    for operation in [List, GetFileProperties, GetFileMetadata] {
        assert!(operation.compatible_with(alone), "6.5 needs no access / {operation:?}");
    }
}

#[test]
fn a_file_is_deleted_only_if_nobody_has_it_open_at_all() {
    let attributes = Claim { access: AccessMask::READ_ATTRIBUTES, share: ShareMode::ALL };
    assert!(!DeleteFile.compatible_with(attributes));
    assert!(PutRange.compatible_with(attributes));
}

#[test]
fn a_lease_is_acquired_beside_readers_only() {
    for (name, access, granted) in [
        ("none", AccessMask::READ_ATTRIBUTES, true),
        ("Read", READ, true),
        ("Write", WRITE, false),
        ("Delete", DELETE, false),
        ("Read, Write", READ.union(WRITE), false),
        ("Read, Delete", READ.union(DELETE), false),
        ("Write, Delete", WRITE.union(DELETE), false),
        ("Read, Write, Delete", READ.union(WRITE).union(DELETE), false),
    ] {
        let open = Claim { access, share: ShareMode::ALL };
        let allowed = LeaseFile.compatible_with(open);
        assert_eq!(allowed, granted, "6.5 acquire a lease / SMB access {name}");
    }
}

#[test]
fn a_held_lease_lets_smb_read_and_an_ended_one_lets_it_do_anything() {
    let now = Timestamp::from_ticks(1);
    let act = |lease: &Lease, action| {
        let fresh = LeaseId::from_u128(1);
        decide(lease, action, LeaseKind::File, fresh, now).expect("allowed").lease
    };
    let available = Lease::default();
    let acquire = LeaseAction::Acquire { proposed: None, duration: LeaseDuration::INFINITE };
    let leased = act(&available, acquire);
    let broken = act(&leased, LeaseAction::Break { period: None });
    for (name, access, permitted) in [
        ("none", AccessMask::READ_ATTRIBUTES, [true, true, true]),
        ("Read", READ, [true, true, true]),
        ("Write", WRITE, [true, false, true]),
        ("Append", AccessMask::APPEND_DATA, [true, false, true]),
        ("Delete", DELETE, [true, false, true]),
        ("Read, Write", READ.union(WRITE), [true, false, true]),
    ] {
        let states = [("Available", &available), ("Leased", &leased), ("Broken", &broken)];
        for ((state, lease), expected) in states.into_iter().zip(permitted) {
            let outcome = lease_permits(lease.status(now), access);
            assert_eq!(outcome, expected, "6.5 SMB open while {state} / {name}");
        }
    }
}

#[test]
fn a_byte_range_lock_anywhere_keeps_put_range_out() {
    let mut locks = RangeLocks::default();
    let range = Range::new(1000, 1).expect("a range");
    locks.lock(&[RangeLock { owner: 1, range, kind: LockKind::Shared }]).expect("free");
    for (operation, refused) in
        [(PutRange, true), (CreateFile, true), (GetFile, false), (SetFileMetadata, false)]
    {
        let entry = operation.entry();
        let conflict = entry.whole_file_written && locks.check_rest_write().is_err();
        assert_eq!(conflict, refused, "6.5 byte-range lock / {operation:?}");
    }
}

#[test]
fn operations_break_caches_as_in_section_6_5() {
    let (all, handle, write) = (Caching::ALL, Caching::READ_HANDLE, Caching::READ_WRITE);
    let (read, none) = (Caching::READ, Caching::empty());
    // B: the call waits; N: it does not; -: the cache stays.
    for (operations, cells) in [
        (
            &[GetFile, GetFileProperties, GetFileMetadata, ListRanges][..],
            [('B', handle), ('-', handle), ('B', read)],
        ),
        (&[List], [('-', all), ('-', handle), ('-', write)]),
        (&[PutRange, SetFileProperties, SetFileMetadata], [('B', none), ('N', none), ('B', none)]),
        (&[DeleteFile], [('B', write), ('B', read), ('-', write)]),
    ] {
        for operation in operations {
            for (held, expected) in [all, handle, write].into_iter().zip(cells) {
                let cause = operation.entry().cause;
                let decided =
                    cause.and_then(|cause| breaks::decide(HolderKind::Lease, held, cause));
                let outcome = match decided {
                    None => ('-', held),
                    Some(Break { to, waits: true, .. }) => ('B', to),
                    Some(Break { to, waits: false, .. }) => ('N', to),
                };
                assert_eq!(outcome, expected, "6.5 oplock effect / {operation:?} / {held:?}");
            }
        }
    }
}
