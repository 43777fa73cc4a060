//! Every cell of the lease tables. A row has one expectation for each of [`STATES`], and a failure
//! names the row and the column.

use std::time::Duration;

use holdfast_random::Random;

use super::*;

const A: LeaseId = LeaseId::from_u128(0xA);
const B: LeaseId = LeaseId::from_u128(0xB);
const C: LeaseId = LeaseId::from_u128(0xC);
/// The id that the server makes.
const X: LeaseId = LeaseId::from_u128(0xF);

const GUARDED: [LeaseKind; 3] = [LeaseKind::Blob, LeaseKind::Container, LeaseKind::Share];
const STATES: [&str; 6] = [
    "Available",
    "Leased(A) fixed",
    "Leased(A) infinite",
    "Breaking(A)",
    "Broken(A)",
    "Expired(A)",
];

fn now() -> Timestamp {
    Timestamp::parse_iso8601("2024-01-31T12:34:56.5Z").expect("a time")
}

fn after(seconds: u64) -> Timestamp {
    now().plus(Duration::from_secs(seconds))
}

fn before(seconds: u64) -> Timestamp {
    Timestamp::from_ticks(now().ticks() - seconds * 10_000_000)
}

fn seconds(seconds: i64) -> LeaseDuration {
    LeaseDuration::parse(seconds, LeaseKind::Blob).expect("a duration")
}

fn period(seconds: i64) -> Option<BreakPeriod> {
    Some(BreakPeriod::parse(seconds).expect("a period"))
}

/// Leases in the states of [`STATES`]: 30 s left of 60, 20 s of breaking left, expired 1 s ago.
fn leases() -> [Lease; 6] {
    let leased = |duration, until| Stored::Leased { id: A, duration, until };
    [
        Stored::Available,
        leased(seconds(60), Some(after(30))),
        leased(LeaseDuration::INFINITE, None),
        Stored::Breaking { id: A, until: after(20) },
        Stored::Broken { id: A },
        leased(seconds(60), Some(before(1))),
    ]
    .map(Lease)
}

type Became = Result<(LeaseState, Option<LeaseId>), LeaseRefusal>;

fn act(lease: &Lease, action: LeaseAction, kind: LeaseKind) -> Became {
    decide(lease, action, kind, X, now())
        .map(|decided| (decided.lease.state(now()), decided.lease.id()))
}

const fn leased(id: LeaseId) -> Became {
    Ok((LeaseState::Leased, Some(id)))
}

const BREAKING: Became = Ok((LeaseState::Breaking, Some(A)));
const BROKEN: Became = Ok((LeaseState::Broken, Some(A)));
const FREED: Became = Ok((LeaseState::Available, None));

fn acquire(proposed: Option<LeaseId>) -> LeaseAction {
    LeaseAction::Acquire { proposed, duration: LeaseDuration::INFINITE }
}

fn break_after(period: Option<BreakPeriod>) -> LeaseAction {
    LeaseAction::Break { period }
}

#[test]
fn lease_actions_on_blobs_containers_and_shares() {
    use LeaseAction::{Change, Release, Renew};
    let present: Became = Err(LeaseRefusal::AlreadyPresent);
    let breaking: Became = Err(LeaseRefusal::BreakingCannotBeAcquired);
    let unchangeable: Became = Err(LeaseRefusal::BreakingCannotBeChanged);
    let broken: Became = Err(LeaseRefusal::BrokenCannotBeRenewed);
    let mismatch: Became = Err(LeaseRefusal::IdMismatch);
    let none: Became = Err(LeaseRefusal::NotPresent);
    let (la, lb, lx) = (leased(A), leased(B), leased(X));
    let rows: [(&str, LeaseAction, [Became; 6]); 13] = [
        ("acquire, no proposed id", acquire(None), [lx, present, present, present, lx, lx]),
        ("acquire, proposed A", acquire(Some(A)), [la, la, la, breaking, la, la]),
        ("acquire, proposed B", acquire(Some(B)), [lb, present, present, present, lb, lb]),
        ("break, period 0", break_after(period(0)), [none, BROKEN, BROKEN, BROKEN, BROKEN, BROKEN]),
        (
            "break, period > 0",
            break_after(period(10)),
            [none, BREAKING, BREAKING, BREAKING, BROKEN, BROKEN],
        ),
        ("break, no period", break_after(None), [none, BREAKING, BROKEN, BREAKING, BROKEN, BROKEN]),
        ("change A to B", Change { id: A, proposed: B }, [none, lb, lb, unchangeable, none, none]),
        ("change B to A", Change { id: B, proposed: A }, [none, la, la, mismatch, none, none]),
        (
            "change B to C",
            Change { id: B, proposed: C },
            [none, mismatch, mismatch, mismatch, none, none],
        ),
        ("renew A", Renew { id: A }, [mismatch, la, la, broken, broken, la]),
        ("renew B", Renew { id: B }, [mismatch; 6]),
        ("release A", Release { id: A }, [mismatch, FREED, FREED, FREED, FREED, FREED]),
        ("release B", Release { id: B }, [mismatch; 6]),
    ];
    for kind in GUARDED {
        for (row, action, cells) in rows {
            for ((state, lease), expected) in STATES.iter().zip(leases()).zip(cells) {
                assert_eq!(act(&lease, action, kind), expected, "2.3 {row} / {state} ({kind:?})");
            }
        }
    }
}

#[test]
fn lease_actions_on_files() {
    use LeaseAction::{Change, Release, Renew};
    let present: Became = Err(LeaseRefusal::AlreadyPresent);
    let mismatch: Became = Err(LeaseRefusal::IdMismatch);
    let none: Became = Err(LeaseRefusal::NotPresent);
    let (la, lb, lx) = (leased(A), leased(B), leased(X));
    let [available, _, infinite, _, broken, _] = leases();
    for (row, action, cells) in [
        ("acquire, no id", acquire(None), [lx, present, lx]),
        ("acquire A", acquire(Some(A)), [la, la, la]),
        ("acquire B", acquire(Some(B)), [lb, present, lb]),
        ("break", break_after(None), [none, BROKEN, BROKEN]),
        ("break with a period", break_after(period(60)), [none, BROKEN, BROKEN]),
        ("change A to B", Change { id: A, proposed: B }, [none, lb, none]),
        ("change B to A", Change { id: B, proposed: A }, [none, la, none]),
        ("change B to C", Change { id: B, proposed: C }, [none, mismatch, none]),
        ("release A", Release { id: A }, [mismatch, FREED, FREED]),
        ("release B", Release { id: B }, [mismatch, mismatch, mismatch]),
        ("renew (2.1: no such action)", Renew { id: A }, [Err(LeaseRefusal::RenewNotSupported); 3]),
    ] {
        let columns = [("Available", &available), ("Leased(A)", &infinite), ("Broken(A)", &broken)];
        for ((state, lease), expected) in columns.into_iter().zip(cells) {
            assert_eq!(act(lease, action, LeaseKind::File), expected, "2.6 {row} / {state}");
        }
    }
}

#[test]
fn answers_carry_the_id_or_the_time_left() {
    use LeaseAction::{Change, Release, Renew};
    use LeaseOutcome::{Acquired, Broken, Changed, Released, Renewed};
    let [_, fixed, infinite, breaking, broken, expired] = leases();
    let left = |remaining_seconds| Broken { remaining_seconds };
    for (cell, lease, action, expected) in [
        ("acquire, no proposed id / Broken(A)", &broken, acquire(None), Acquired(X)),
        ("acquire, proposed A / Leased(A)", &fixed, acquire(Some(A)), Acquired(A)),
        ("renew A / Leased(A)", &fixed, Renew { id: A }, Renewed(A)),
        ("change A to B / Leased(A)", &fixed, Change { id: A, proposed: B }, Changed(B)),
        ("change B to A / Leased(A)", &fixed, Change { id: B, proposed: A }, Changed(A)),
        ("release A / Leased(A)", &fixed, Release { id: A }, Released),
        ("break, period 0 / Leased(A)", &fixed, break_after(period(0)), left(0)),
        ("break, period 10 / 30 s left", &fixed, break_after(period(10)), left(10)),
        ("break, period 60 / 30 s left", &fixed, break_after(period(60)), left(30)),
        ("break, no period / 30 s left", &fixed, break_after(None), left(30)),
        ("break, period 60 / infinite", &infinite, break_after(period(60)), left(60)),
        ("break, no period / infinite", &infinite, break_after(None), left(0)),
        ("break, period 10 / Breaking, 20 s", &breaking, break_after(period(10)), left(10)),
        ("break, period 60 / Breaking, 20 s", &breaking, break_after(period(60)), left(20)),
        ("break, no period / Breaking, 20 s", &breaking, break_after(None), left(20)),
        ("break, period 60 / Broken(A)", &broken, break_after(period(60)), left(0)),
        ("break, period 60 / Expired(A)", &expired, break_after(period(60)), left(0)),
    ] {
        let outcome = decide(lease, action, LeaseKind::Blob, X, now()).map(|to| to.outcome);
        assert_eq!(outcome, Ok(expected), "2.3 {cell}");
    }
    let later = Timestamp::from_ticks(now().ticks() + 1);
    let decided = decide(&fixed, break_after(None), LeaseKind::Blob, X, later).map(|to| to.outcome);
    assert_eq!(decided, Ok(left(30)), "2.1 lease-time of 29.9999999 s is 30");
}

#[test]
fn before_2012_a_lease_was_broken_once() {
    let already: Became = Err(LeaseRefusal::AlreadyBroken);
    let expected = [
        Err(LeaseRefusal::NotPresent),
        Ok((LeaseState::Breaking, Some(A))),
        Ok((LeaseState::Broken, Some(A))),
        already,
        already,
        Ok((LeaseState::Broken, Some(A))),
    ];
    for ((state, lease), expected) in STATES.iter().zip(leases()).zip(expected) {
        let became = act(&lease, LeaseAction::BreakOnce, LeaseKind::Blob);
        assert_eq!(became, expected, "2.3 before 2012-02-12, break / {state}");
    }
}

#[test]
fn clocks_start_again_only_when_an_action_says_so() {
    let [_, fixed, infinite, ..] = leases();
    let until = |lease: &Lease, action: LeaseAction| {
        let decided = decide(lease, action, LeaseKind::Blob, X, now()).expect("allowed");
        match decided.lease.0 {
            Stored::Leased { until, .. } => until,
            Stored::Breaking { until, .. } => Some(until),
            Stored::Available | Stored::Broken { .. } => None,
        }
    };
    let reacquire = LeaseAction::Acquire { proposed: Some(A), duration: seconds(15) };
    let change = LeaseAction::Change { id: A, proposed: B };
    assert_eq!(until(&fixed, LeaseAction::Renew { id: A }), Some(after(60)), "2.3 renew A, 60 s");
    assert_eq!(until(&infinite, LeaseAction::Renew { id: A }), None, "2.3 renew A, infinite");
    assert_eq!(until(&fixed, reacquire), Some(after(15)), "2.3 acquire A, new duration");
    assert_eq!(until(&infinite, reacquire), Some(after(15)), "2.3 acquire A, new duration");
    assert_eq!(until(&fixed, change), Some(after(30)), "2.3 change keeps the clock");
    assert_eq!(until(&fixed, break_after(None)), Some(after(30)), "2.3 break, no period, fixed");
}

#[test]
fn time_alone_ends_leases_and_nothing_else() {
    let [available, fixed, infinite, breaking, broken, expired] = leases();
    let tick = |time: Timestamp| Timestamp::from_ticks(time.ticks() - 1);
    use LeaseState::{Available, Breaking, Broken, Expired, Leased};
    for (cell, lease, at, expected) in [
        ("Available stays", &available, Timestamp::MAX, Available),
        ("fixed, last tick", &fixed, tick(after(30)), Leased),
        ("fixed, at its end", &fixed, after(30), Expired),
        ("infinite stays", &infinite, Timestamp::MAX, Leased),
        ("Breaking, last tick", &breaking, tick(after(20)), Breaking),
        ("Breaking, at its end", &breaking, after(20), Broken),
        ("Broken stays", &broken, Timestamp::MAX, Broken),
        ("Expired stays", &expired, Timestamp::MAX, Expired),
    ] {
        assert_eq!(lease.state(at), expected, "2.3 time passes / {cell}");
    }
}

#[test]
fn states_show_as_the_headers_say() {
    use DurationKind::{Fixed, Infinite};
    use LeaseStatus::{Locked, Unlocked};
    let rows = [
        (LeaseState::Available, Unlocked, None, None),
        (LeaseState::Leased, Locked, Some(A), Some(Fixed)),
        (LeaseState::Leased, Locked, Some(A), Some(Infinite)),
        (LeaseState::Breaking, Locked, Some(A), None),
        (LeaseState::Broken, Unlocked, Some(A), None),
        (LeaseState::Expired, Unlocked, Some(A), None),
    ];
    for ((cell, lease), (state, status, id, duration)) in STATES.iter().zip(leases()).zip(rows) {
        assert_eq!(lease.state(now()), state, "2.2 state / {cell}");
        assert_eq!(lease.status(now()), status, "2.2 status / {cell}");
        assert_eq!(lease.id(), id, "2.2 id kept / {cell}");
        assert_eq!(lease.duration_kind(now()), duration, "2.2 duration / {cell}");
    }
    assert_eq!(Lease::default().state(now()), LeaseState::Available, "2.2 at first");
}

#[test]
fn durations_and_periods_are_those_of_the_service() {
    for (value, guarded, file) in [
        (-2, false, false),
        (-1, true, true),
        (0, false, false),
        (14, false, false),
        (15, true, false),
        (60, true, false),
        (61, false, false),
        (256 + 15, false, false),
    ] {
        for kind in GUARDED {
            let parsed = LeaseDuration::parse(value, kind);
            assert_eq!(parsed.is_some(), guarded, "2.1 duration / {kind:?} {value}");
        }
        let parsed = LeaseDuration::parse(value, LeaseKind::File);
        assert_eq!(parsed.is_some(), file, "2.1 duration / File {value}");
    }
    for (value, allowed) in [(-1, false), (0, true), (60, true), (61, false), (256, false)] {
        assert_eq!(BreakPeriod::parse(value).is_some(), allowed, "2.1 break period / {value}");
    }
}

const KEPT: Result<LeaseAfter, AccessRefusal> = Ok(LeaseAfter::Kept);
const FORGOTTEN: Result<LeaseAfter, AccessRefusal> = Ok(LeaseAfter::Available);
const MISSING: Result<LeaseAfter, AccessRefusal> = Err(AccessRefusal::IdMissing);
const MISMATCH: Result<LeaseAfter, AccessRefusal> = Err(AccessRefusal::IdMismatch);
const ABSENT: Result<LeaseAfter, AccessRefusal> = Err(AccessRefusal::NotPresent);
const LOST: Result<LeaseAfter, AccessRefusal> = Err(AccessRefusal::Lost);
const ENDS: Result<LeaseAfter, AccessRefusal> = Err(AccessRefusal::InfiniteDurationRequired);

/// A row of an outcome table: operation, given id, expectation for each of [`STATES`].
type Row = (&'static str, Access, Option<LeaseId>, [Result<LeaseAfter, AccessRefusal>; 6]);

const ID_A: [Result<LeaseAfter, AccessRefusal>; 6] = [ABSENT, KEPT, KEPT, KEPT, ABSENT, LOST];
const ID_B: [Result<LeaseAfter, AccessRefusal>; 6] =
    [ABSENT, MISMATCH, MISMATCH, MISMATCH, ABSENT, ABSENT];
const NO_ID_NEEDED: [Result<LeaseAfter, AccessRefusal>; 6] = [KEPT; 6];
const NO_ID_REFUSED: [Result<LeaseAfter, AccessRefusal>; 6] =
    [KEPT, MISSING, MISSING, MISSING, KEPT, KEPT];

fn check_rows(section: &str, kind: LeaseKind, rows: &[Row]) {
    for (row, access, given, cells) in rows {
        for ((state, lease), expected) in STATES.iter().zip(leases()).zip(cells) {
            let outcome = check_access(&lease, *access, *given, kind, now());
            assert_eq!(outcome, *expected, "{section} {row} / {state}");
        }
    }
}

#[test]
fn leases_guard_blobs() {
    const NO_ID: [Result<LeaseAfter, AccessRefusal>; 6] =
        [KEPT, MISSING, MISSING, MISSING, FORGOTTEN, FORGOTTEN];
    check_rows(
        "2.4",
        LeaseKind::Blob,
        &[
            ("write, id A", Access::Write, Some(A), ID_A),
            ("write, id B", Access::Write, Some(B), ID_B),
            ("write, no id", Access::Write, None, NO_ID),
            ("delete, id A", Access::Delete, Some(A), ID_A),
            ("delete, id B", Access::Delete, Some(B), ID_B),
            ("delete, no id", Access::Delete, None, NO_ID),
            ("read, id A", Access::Read, Some(A), ID_A),
            ("read, id B", Access::Read, Some(B), ID_B),
            ("read, no id", Access::Read, None, NO_ID_NEEDED),
            ("Put Block, id A", Access::WriteBeside, Some(A), ID_A),
            ("Put Block, id B", Access::WriteBeside, Some(B), ID_B),
            ("Put Block, no id", Access::WriteBeside, None, NO_ID_REFUSED),
            (
                "Copy Blob destination, id A",
                Access::CopyOnto,
                Some(A),
                [ABSENT, ENDS, KEPT, ENDS, ABSENT, LOST],
            ),
            ("Copy Blob destination, id B", Access::CopyOnto, Some(B), ID_B),
            ("Copy Blob destination, no id", Access::CopyOnto, None, NO_ID),
            ("Abort Copy Blob, id A", Access::AbortCopy, Some(A), ID_A),
            ("Abort Copy Blob, id B", Access::AbortCopy, Some(B), ID_B),
            (
                "Abort Copy Blob, no id",
                Access::AbortCopy,
                None,
                [KEPT, KEPT, MISSING, KEPT, KEPT, KEPT],
            ),
        ],
    );
}

#[test]
fn leases_guard_containers_against_deletion_alone() {
    check_rows(
        "2.5",
        LeaseKind::Container,
        &[
            ("delete, id A", Access::Delete, Some(A), ID_A),
            ("delete, id B", Access::Delete, Some(B), ID_B),
            ("delete, no id", Access::Delete, None, NO_ID_REFUSED),
            ("other operation, id A", Access::Read, Some(A), ID_A),
            ("other operation, id B", Access::Read, Some(B), ID_B),
            ("other operation, no id", Access::Read, None, NO_ID_NEEDED),
            ("set operation, id A", Access::Write, Some(A), ID_A),
            ("set operation, id B", Access::Write, Some(B), ID_B),
            ("set operation, no id", Access::Write, None, NO_ID_NEEDED),
        ],
    );
}

#[test]
fn leases_guard_shares_against_deletion_and_set_operations() {
    check_rows(
        "2.6 share",
        LeaseKind::Share,
        &[
            ("delete, id A", Access::Delete, Some(A), ID_A),
            ("delete, id B", Access::Delete, Some(B), ID_B),
            ("delete, no id", Access::Delete, None, NO_ID_REFUSED),
            ("set operation, id A", Access::Write, Some(A), ID_A),
            ("set operation, id B", Access::Write, Some(B), ID_B),
            ("set operation, no id", Access::Write, None, NO_ID_REFUSED),
            ("get operation, id A", Access::Read, Some(A), ID_A),
            ("get operation, id B", Access::Read, Some(B), ID_B),
            ("get operation, no id", Access::Read, None, NO_ID_NEEDED),
        ],
    );
}

#[test]
fn leases_guard_files() {
    let [available, _, infinite, _, broken, _] = leases();
    for (row, access, given, cells) in [
        ("write, id A", Access::Write, Some(A), [ABSENT, KEPT, ABSENT]),
        ("write, id B", Access::Write, Some(B), [ABSENT, MISMATCH, ABSENT]),
        ("write, no id", Access::Write, None, [KEPT, MISSING, KEPT]),
        ("delete, id A", Access::Delete, Some(A), [ABSENT, KEPT, ABSENT]),
        ("delete, id B", Access::Delete, Some(B), [ABSENT, MISMATCH, ABSENT]),
        ("delete, no id", Access::Delete, None, [KEPT, MISSING, KEPT]),
        ("read, id A", Access::Read, Some(A), [ABSENT, KEPT, ABSENT]),
        ("read, id B", Access::Read, Some(B), [ABSENT, MISMATCH, ABSENT]),
        ("read, no id", Access::Read, None, [KEPT, KEPT, KEPT]),
        ("Copy File destination, id A", Access::CopyOnto, Some(A), [ABSENT, KEPT, ABSENT]),
        ("Copy File destination, no id", Access::CopyOnto, None, [KEPT, MISSING, KEPT]),
    ] {
        let columns = [("Available", &available), ("Leased(A)", &infinite), ("Broken(A)", &broken)];
        for ((state, lease), expected) in columns.into_iter().zip(cells) {
            let outcome = check_access(lease, access, given, LeaseKind::File, now());
            assert_eq!(outcome, expected, "2.6 file {row} / {state}");
        }
    }
}

#[test]
fn an_id_for_something_absent_is_refused() {
    assert_eq!(check_absent(Some(A)), Err(AccessRefusal::NotPresent), "2.4, 2.6 absent, id");
    assert_eq!(check_absent(None), Ok(()), "2.4, 2.6 absent, no id");
}

#[test]
fn an_expired_lease_is_renewed_only_on_an_unmodified_blob() {
    let [.., expired] = leases();
    let renew = LeaseAction::Renew { id: A };
    let mismatch: Became = Err(LeaseRefusal::IdMismatch);
    for (cell, kind, access, expected) in [
        ("blob read", LeaseKind::Blob, Access::Read, leased(A)),
        ("blob, block staged", LeaseKind::Blob, Access::WriteBeside, leased(A)),
        ("blob modified", LeaseKind::Blob, Access::Write, mismatch),
        ("blob copied onto", LeaseKind::Blob, Access::CopyOnto, mismatch),
        ("container modified", LeaseKind::Container, Access::Write, leased(A)),
        ("share modified", LeaseKind::Share, Access::Write, leased(A)),
    ] {
        let after = check_access(&expired, access, None, kind, now()).expect("allowed");
        assert_eq!(act(&after.apply(&expired), renew, kind), expected, "2.3 renew A / {cell}");
    }
}

#[test]
fn a_write_under_a_lease_leaves_the_lease() {
    let [_, fixed, ..] = leases();
    let after = check_access(&fixed, Access::Write, Some(A), LeaseKind::Blob, now());
    assert_eq!(after.map(|after| after.apply(&fixed)), Ok(fixed), "2.4 lease after overwrite");
}

#[test]
fn a_path_that_is_replaced_has_its_lease_broken() {
    for (state, lease) in STATES.iter().zip(leases()) {
        let replaced = lease.broken_by_replacement();
        let expected = match lease.id() {
            Some(_) => LeaseState::Broken,
            None => LeaseState::Available,
        };
        assert_eq!(replaced.state(now()), expected, "2.4 dfs Path Create / {state}");
        assert_eq!(replaced.id(), lease.id(), "2.4 dfs Path Create / {state}");
    }
}

#[test]
fn stored_leases_read_back_as_they_were() {
    for (state, lease) in STATES.iter().zip(leases()) {
        let stored = postcard::to_stdvec(&lease).expect("encodes");
        assert_eq!(postcard::from_bytes(&stored), Ok(lease), "{state}");
    }
}

fn random_id(random: &mut Random) -> LeaseId {
    [A, B, C][random.within(0..3)]
}

fn random_action(random: &mut Random) -> LeaseAction {
    let id = random_id(random);
    match random.below(6) {
        0 => LeaseAction::Acquire { proposed: None, duration: LeaseDuration::INFINITE },
        1 => {
            let duration = seconds(15 + random.below(46) as i64);
            LeaseAction::Acquire { proposed: Some(id), duration }
        }
        2 => LeaseAction::Renew { id },
        3 => LeaseAction::Change { id, proposed: random_id(random) },
        4 => LeaseAction::Release { id },
        _ => {
            let given = random.below(2) == 0;
            LeaseAction::Break {
                period: if given { period(random.below(61) as i64) } else { None },
            }
        }
    }
}

/// Ids that an action shows its sender to know.
fn known_ids(action: LeaseAction) -> Vec<LeaseId> {
    match action {
        LeaseAction::Acquire { proposed, .. } => proposed.into_iter().collect(),
        LeaseAction::Renew { id } | LeaseAction::Release { id } => vec![id],
        LeaseAction::Change { id, proposed } => vec![id, proposed],
        LeaseAction::Break { .. } | LeaseAction::BreakOnce => vec![],
    }
}

#[test]
fn no_history_of_actions_takes_a_lease_from_its_holder() {
    for seed in 1..=200_u64 {
        let mut random = Random::new(seed);
        let (mut lease, mut time) = (Lease::default(), now());
        for step in 0..200 {
            time = time.plus(Duration::from_millis(random.below(20_000)));
            let kind = GUARDED[random.below(3) as usize];
            let action = random_action(&mut random);
            let context = format!("seed {seed} step {step}: {action:?} on {lease:?} at {time:?}");
            let locked = lease.status(time) == LeaseStatus::Locked;
            let holder = lease.id().filter(|_| locked);
            let Ok(decided) = decide(&lease, action, kind, X, time) else { continue };
            if let Some(holder) = holder {
                let broken = matches!(action, LeaseAction::Break { .. });
                assert!(broken || known_ids(action).contains(&holder), "{context}");
            }
            match decided.outcome {
                LeaseOutcome::Acquired(id)
                | LeaseOutcome::Renewed(id)
                | LeaseOutcome::Changed(id) => {
                    assert_eq!(decided.lease.state(time), LeaseState::Leased, "{context}");
                    assert_eq!(decided.lease.id(), Some(id), "{context}");
                }
                LeaseOutcome::Released => assert_eq!(decided.lease, Lease::default(), "{context}"),
                LeaseOutcome::Broken { remaining_seconds } => {
                    let end = time.plus(Duration::from_secs(remaining_seconds));
                    assert!(remaining_seconds <= 60, "{context}");
                    assert_eq!(decided.lease.state(end), LeaseState::Broken, "{context}");
                    for offset in 0..=60 {
                        let at = time.plus(Duration::from_secs(offset));
                        let longer = lease.status(at) == LeaseStatus::Unlocked
                            && decided.lease.status(at) == LeaseStatus::Locked;
                        assert!(!longer, "a break makes no lease last longer: {context}");
                    }
                }
            }
            lease = decided.lease;
        }
    }
}
