//! What a client may cache of a file: one type for oplocks and leases, and what is granted.

use std::fmt;

use bitflags::bitflags;

bitflags! {
    /// What a client caches: reads (R), writes (W), the handle (H); the bits of [MS-SMB2] 2.2.13.2.8.
    #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
    pub struct Caching: u32 {
        const READ = 1;
        const HANDLE = 2;
        const WRITE = 4;
    }
}

impl Caching {
    pub const READ_HANDLE: Self = Self::READ.union(Self::HANDLE);
    pub const READ_WRITE: Self = Self::READ.union(Self::WRITE);
    pub const ALL: Self = Self::all();

    /// Nothing is cached without reads being cached.
    #[must_use]
    const fn or_none_without_read(self) -> Self {
        if self.contains(Self::READ) { self } else { Self::empty() }
    }
}

impl fmt::Debug for Caching {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (part, letter) in [(Self::READ, 'R'), (Self::WRITE, 'W'), (Self::HANDLE, 'H')] {
            if self.contains(part) {
                write!(formatter, "{letter}")?;
            }
        }
        if self.is_empty() { formatter.write_str("none") } else { Ok(()) }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OplockLevel {
    #[default]
    None,
    Two,
    Exclusive,
    Batch,
}

impl OplockLevel {
    pub const fn caching(self) -> Caching {
        match self {
            Self::None => Caching::empty(),
            Self::Two => Caching::READ,
            Self::Exclusive => Caching::READ_WRITE,
            Self::Batch => Caching::ALL,
        }
    }

    /// The highest oplock level that caches no more than this.
    pub const fn of(caching: Caching) -> Self {
        if caching.contains(Caching::ALL) {
            Self::Batch
        } else if caching.contains(Caching::READ_WRITE) {
            Self::Exclusive
        } else if caching.contains(Caching::READ) {
            Self::Two
        } else {
            Self::None
        }
    }
}

/// An oplock belongs to one open, a lease to all opens of one client with one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolderKind {
    Oplock,
    Lease,
}

/// The opens and caches of others, as far as they limit what a new open can cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Opens for more than attributes, except those of the same lease.
    pub open: bool,
    /// What they cache, all together.
    pub cached: Caching,
    pub oplock: bool,
    pub handle_lease: bool,
    /// Any byte-range locks: locked ranges are not read from a cache.
    pub range_locks: bool,
}

/// What is granted to an open that asks to cache `wanted`, after all breaks.
pub fn grant(kind: HolderKind, wanted: Caching, others: Others) -> Caching {
    let mut granted = wanted.or_none_without_read();
    if others.range_locks || others.cached.contains(Caching::WRITE) {
        return Caching::empty();
    }
    if others.open || !others.cached.is_empty() {
        granted = granted.difference(Caching::WRITE);
    }
    match kind {
        // An oplock is granted as a whole: if it cannot be batch or exclusive it is level two.
        HolderKind::Oplock if others.handle_lease => Caching::empty(),
        HolderKind::Oplock => OplockLevel::of(granted).caching(),
        HolderKind::Lease if others.oplock => granted.difference(Caching::HANDLE),
        HolderKind::Lease => granted,
    }
}

/// The state of a lease after an open with its key asked for `wanted` and could get `granted`. It
/// grows to `wanted` if that contains what is held and is granted whole, else it stays.
pub fn upgrade(held: Caching, wanted: Caching, granted: Caching) -> Caching {
    let grows = wanted.contains(held) && granted == wanted;
    if grows { wanted } else { held }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn caching(text: &str) -> Caching {
        text.chars().fold(Caching::empty(), |caching, letter| {
            caching.union(match letter {
                'R' => Caching::READ,
                'W' => Caching::WRITE,
                'H' => Caching::HANDLE,
                other => panic!("no such caching: {other}"),
            })
        })
    }

    #[test]
    fn nothing_is_granted_without_reads() {
        for (wanted, granted) in [
            ("", ""),
            ("R", "R"),
            ("H", ""),
            ("W", ""),
            ("RH", "RH"),
            ("RW", "RW"),
            ("HW", ""),
            ("RHW", "RHW"),
        ] {
            let outcome = grant(HolderKind::Lease, caching(wanted), Others::default());
            assert_eq!(outcome, caching(granted), "{wanted}");
        }
    }

    #[test]
    fn a_lease_beside_another_lease_gets_no_writes() {
        for held in ["R", "RH"] {
            for (wanted, granted) in [("R", "R"), ("RH", "RH"), ("RW", "R"), ("RHW", "RH")] {
                let cached = caching(held);
                let handle_lease = cached.contains(Caching::HANDLE);
                let others = Others { open: true, cached, handle_lease, ..Others::default() };
                let outcome = grant(HolderKind::Lease, caching(wanted), others);
                assert_eq!(outcome, caching(granted), "{wanted} beside {held}");
            }
        }
    }

    #[test]
    fn oplocks_and_leases_limit_each_other() {
        use OplockLevel::{Batch, Exclusive, Two};
        for level in [Two, Exclusive, Batch] {
            let wanted = level.caching();
            let read = Others { open: true, cached: Caching::READ, ..Others::default() };
            assert_eq!(grant(HolderKind::Oplock, wanted, read), Caching::READ, "{level:?}");
            let cached = Caching::READ_HANDLE;
            let handle = Others { open: true, cached, handle_lease: true, ..Others::default() };
            assert_eq!(grant(HolderKind::Oplock, wanted, handle), Caching::empty(), "{level:?}");
        }
        for wanted in ["R", "RH", "RW", "RHW"] {
            let cached = Caching::READ;
            let oplock = Others { open: true, cached, oplock: true, ..Others::default() };
            let outcome = grant(HolderKind::Lease, caching(wanted), oplock);
            assert_eq!(outcome, Caching::READ, "{wanted} beside level two");
        }
    }

    #[test]
    fn what_does_not_break_a_writing_cache_gets_none_itself() {
        let others = Others { cached: Caching::ALL, oplock: true, ..Others::default() };
        assert_eq!(grant(HolderKind::Oplock, Caching::ALL, others), Caching::empty());
    }

    #[test]
    fn opens_without_a_cache_and_locked_ranges_limit_too() {
        let open = Others { open: true, ..Others::default() };
        assert_eq!(grant(HolderKind::Oplock, Caching::ALL, open), Caching::READ);
        assert_eq!(grant(HolderKind::Lease, Caching::ALL, open), Caching::READ_HANDLE);
        let locked = Others { range_locks: true, ..Others::default() };
        assert_eq!(grant(HolderKind::Lease, Caching::ALL, locked), Caching::empty());
    }

    #[test]
    fn a_lease_grows_but_does_not_change_sides() {
        for (held, wanted, expected) in [
            ("", "R", "R"),
            ("", "RWH", "RWH"),
            ("R", "", "R"),
            ("R", "RH", "RH"),
            ("R", "RW", "RW"),
            ("R", "RWH", "RWH"),
            ("RH", "R", "RH"),
            ("RH", "RW", "RH"),
            ("RH", "RWH", "RWH"),
            ("RW", "RH", "RW"),
            ("RW", "RWH", "RWH"),
            ("RWH", "", "RWH"),
            ("RWH", "RH", "RWH"),
        ] {
            let outcome = upgrade(caching(held), caching(wanted), caching(wanted));
            assert_eq!(outcome, caching(expected), "{held} asked for {wanted}");
        }
    }

    #[test]
    fn a_lease_beside_another_grows_only_to_all_that_it_asks_for() {
        for held in ["R", "RH"] {
            for (wanted, expected) in
                [("", held), ("R", held), ("RW", held), ("RH", "RH"), ("RHW", held)]
            {
                let others = Others { open: true, cached: Caching::READ, ..Others::default() };
                let granted = grant(HolderKind::Lease, caching(wanted), others);
                let outcome = upgrade(caching(held), caching(wanted), granted);
                assert_eq!(outcome, caching(expected), "{held} asked for {wanted}");
            }
        }
    }
}
