//! Which operations break which caches, cell by cell.

use super::*;

fn caching(text: &str) -> Caching {
    text.chars().fold(Caching::empty(), |caching, letter| {
        caching.union(match letter {
            'R' => Caching::READ,
            'W' => Caching::WRITE,
            'H' => Caching::HANDLE,
            other => panic!("no such caching: {other}"),
        })
    })
}

fn lease(held: &str) -> Holder {
    Holder::new(HolderKind::Lease, caching(held), 0x11)
}

/// `->X` waits, `>X` does not, `=` stays.
fn shown(kind: HolderKind, held: &str, cause: Cause) -> String {
    match decide(kind, caching(held), cause) {
        None => "=".to_owned(),
        Some(Break { to, waits: true, .. }) => format!("->{to:?}"),
        Some(Break { to, waits: false, .. }) => format!(">{to:?}"),
    }
}

#[test]
fn leases_break_as_far_as_the_cause_needs() {
    let held = ["R", "RH", "RW", "RWH"];
    for (cause, cells) in [
        (Cause::Open, ["=", "=", "->R", "->RH"]),
        (Cause::Read, ["=", "=", "->R", "->RH"]),
        (Cause::Overwrite, [">none", ">none", "->none", "->none"]),
        (Cause::Write, [">none", ">none", "->none", "->none"]),
        (Cause::SharingConflict, ["=", "->R", "=", "->RW"]),
        (Cause::Remove, ["=", "->R", "=", "->RW"]),
    ] {
        for (held, expected) in held.into_iter().zip(cells) {
            assert_eq!(shown(HolderKind::Lease, held, cause), expected, "{cause:?} / {held}");
        }
    }
}

#[test]
fn oplocks_break_to_level_two_or_none() {
    let held = ["R", "RW", "RWH"];
    for (cause, cells) in [
        (Cause::Open, ["=", "->R", "->R"]),
        (Cause::Read, ["=", "->R", "->R"]),
        (Cause::Overwrite, [">none", "->none", "->none"]),
        (Cause::Write, [">none", "->none", "->none"]),
        (Cause::SharingConflict, ["=", "=", "->R"]),
        (Cause::Remove, ["=", "=", "->R"]),
    ] {
        for (held, expected) in held.into_iter().zip(cells) {
            assert_eq!(shown(HolderKind::Oplock, held, cause), expected, "{cause:?} / {held}");
        }
    }
}

#[test]
fn a_break_that_needs_no_answer_is_over_at_once() {
    let mut holder = lease("R");
    let notice = holder.start(Caching::empty()).expect("a notice");
    let (from, to) = (Caching::READ, Caching::empty());
    assert_eq!(notice, Notice { from, to, epoch: 0x12, must_acknowledge: false });
    assert!(!holder.is_breaking());
    assert_eq!(holder.held, Caching::empty());
    assert_eq!(holder.acknowledge(Caching::empty()), Err(AcknowledgeRefusal::NotBreaking));
    assert_eq!(holder.start(Caching::empty()), None, "nothing is left to break");
}

#[test]
fn the_client_may_keep_less_but_not_more_than_it_was_asked() {
    for (asked, kept, accepted) in [
        ("", "RWH", false),
        ("", "RW", false),
        ("", "RH", false),
        ("", "R", false),
        ("", "", true),
        ("RH", "RWH", false),
        ("RH", "RH", true),
        ("RH", "R", true),
        ("RH", "", true),
    ] {
        let mut holder = lease("RWH");
        holder.start(caching(asked)).expect("a notice");
        let outcome = holder.acknowledge(caching(kept));
        assert_eq!(outcome.is_ok(), accepted, "asked {asked}, kept {kept}");
        assert_eq!(holder.is_breaking(), !accepted, "asked {asked}, kept {kept}");
        assert_eq!(holder.held, caching(if accepted { kept } else { "RWH" }));
    }
}

#[test]
fn more_that_is_required_meanwhile_follows_in_steps_of_the_same_epoch() {
    let mut holder = lease("RWH");
    let first = holder.start(caching("RH")).expect("a notice");
    assert_eq!((first.to, first.epoch), (caching("RH"), 0x12));
    assert_eq!(holder.start(Caching::empty()), None, "the client is asked one thing at a time");
    assert_eq!(holder.remaining(), Caching::empty());

    let acknowledged = holder.acknowledge(caching("RH")).expect("as asked");
    let (from, to) = (caching("RH"), caching("R"));
    let next = Notice { from, to, epoch: 0x12, must_acknowledge: true };
    assert_eq!((acknowledged.next, acknowledged.settled), (Some(next), false));

    let acknowledged = holder.acknowledge(caching("R")).expect("as asked");
    let (from, to) = (caching("R"), Caching::empty());
    let last = Notice { from, to, epoch: 0x12, must_acknowledge: false };
    assert_eq!((acknowledged.next, acknowledged.settled), (Some(last), true));
    assert_eq!(holder.held, Caching::empty());
}

#[test]
fn a_client_that_is_silent_loses_everything() {
    let mut holder = lease("RWH");
    holder.start(caching("RH")).expect("a notice");
    holder.give_up();
    assert_eq!(holder.held, Caching::empty());
    assert_eq!(holder.acknowledge(caching("RH")), Err(AcknowledgeRefusal::NotBreaking));
}

#[test]
fn an_oplock_that_is_acknowledged_with_a_wrong_level_is_lost() {
    let mut holder = Holder::new(HolderKind::Oplock, Caching::ALL, 0);
    holder.start(Caching::READ).expect("a notice");
    let outcome = holder.acknowledge_level(OplockLevel::Exclusive);
    assert_eq!(outcome, Err(AcknowledgeRefusal::TooMuch));
    assert_eq!(holder.held, Caching::empty());
    assert!(!holder.is_breaking());
}

#[test]
fn a_lease_that_grows_has_a_new_epoch_and_one_that_stays_has_not() {
    let mut holder = lease("R");
    holder.grow(caching("R"));
    assert_eq!(holder.epoch, 0x11);
    holder.grow(caching("RWH"));
    assert_eq!((holder.held, holder.epoch), (caching("RWH"), 0x12));
}
