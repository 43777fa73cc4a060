//! What an open may do with its node, in the bits of [MS-SMB2] 2.2.13.1.

use bitflags::bitflags;

bitflags! {
    /// Rights that were asked for or granted.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct AccessMask: u32 {
        /// Also: list a directory.
        const READ_DATA = 0x1;
        /// Also: add a file to a directory.
        const WRITE_DATA = 0x2;
        /// Also: add a directory to a directory.
        const APPEND_DATA = 0x4;
        const READ_EXTENDED_ATTRIBUTES = 0x8;
        const WRITE_EXTENDED_ATTRIBUTES = 0x10;
        /// Also: traverse a directory.
        const EXECUTE = 0x20;
        const DELETE_CHILD = 0x40;
        const READ_ATTRIBUTES = 0x80;
        const WRITE_ATTRIBUTES = 0x100;
        const DELETE = 0x1_0000;
        const READ_CONTROL = 0x2_0000;
        const WRITE_DAC = 0x4_0000;
        const WRITE_OWNER = 0x8_0000;
        const SYNCHRONIZE = 0x10_0000;
        const ACCESS_SYSTEM_SECURITY = 0x100_0000;
        const MAXIMUM_ALLOWED = 0x200_0000;
        const GENERIC_ALL = 0x1000_0000;
        const GENERIC_EXECUTE = 0x2000_0000;
        const GENERIC_WRITE = 0x4000_0000;
        const GENERIC_READ = 0x8000_0000;
    }
}

impl AccessMask {
    /// Everything that can be done with a file or directory.
    pub const ALL: Self = Self::from_bits_retain(0x1f_01ff);
    const ALL_READ: Self = Self::from_bits_retain(0x12_0089);
    const ALL_WRITE: Self = Self::from_bits_retain(0x12_0116);
    const ALL_EXECUTE: Self = Self::from_bits_retain(0x12_00a0);

    const GENERIC: Self = Self::from_bits_retain(0xf000_0000);
    /// Bits with a meaning; others make a request invalid.
    const KNOWN: Self = Self::from_bits_retain(0xf31f_01ff);

    /// Whether all bits are known.
    pub const fn is_known(self) -> bool {
        Self::KNOWN.contains(self)
    }

    /// What is granted of a request, given the maximum `allowed`: generic rights are expanded, and
    /// MAXIMUM_ALLOWED is all of `allowed`. `None` if more is wanted.
    pub fn granted(self, allowed: Self) -> Option<Self> {
        let specific = self.specific();
        let wanted = specific.difference(Self::MAXIMUM_ALLOWED);
        if !allowed.contains(wanted) {
            return None;
        }
        let all = self.contains(Self::MAXIMUM_ALLOWED);
        Some(if all { wanted.union(allowed) } else { wanted })
    }

    /// The same with generic rights expanded.
    #[must_use]
    pub fn specific(self) -> Self {
        let generic = [
            (Self::GENERIC_ALL, Self::ALL),
            (Self::GENERIC_READ, Self::ALL_READ),
            (Self::GENERIC_WRITE, Self::ALL_WRITE),
            (Self::GENERIC_EXECUTE, Self::ALL_EXECUTE),
        ];
        let spelled = generic.into_iter().filter(|(bit, _)| self.contains(*bit));
        spelled.fold(self.difference(Self::GENERIC), |mask, (_, spelled)| mask.union(spelled))
    }

    pub const fn reads(self) -> bool {
        self.intersects(Self::READ_DATA.union(Self::EXECUTE))
    }

    pub const fn writes(self) -> bool {
        self.intersects(Self::WRITE_DATA.union(Self::APPEND_DATA))
    }

    pub const fn deletes(self) -> bool {
        self.intersects(Self::DELETE)
    }

    /// Whether share modes apply to this access: an open for attributes alone never conflicts.
    pub const fn takes_part_in_sharing(self) -> bool {
        self.reads() || self.writes() || self.deletes()
    }

    /// Whether an open with this access breaks no caches of others. Reading the security descriptor
    /// breaks oplocks, but not leases.
    pub const fn leaves_caches(self, of_leases: bool) -> bool {
        let attributes =
            Self::READ_ATTRIBUTES.union(Self::WRITE_ATTRIBUTES).union(Self::SYNCHRONIZE);
        let left = if of_leases { attributes.union(Self::READ_CONTROL) } else { attributes };
        left.contains(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_rights_are_spelled_out() {
        for (asked, spelled) in [
            (AccessMask::GENERIC_READ, 0x12_0089),
            (AccessMask::GENERIC_WRITE, 0x12_0116),
            (AccessMask::GENERIC_EXECUTE, 0x12_00a0),
            (AccessMask::GENERIC_ALL, 0x1f_01ff),
            (AccessMask::GENERIC_READ.union(AccessMask::DELETE), 0x13_0089),
            (AccessMask::MAXIMUM_ALLOWED, 0x200_0000),
        ] {
            assert_eq!(asked.specific(), AccessMask::from_bits_retain(spelled), "{asked:x?}");
        }
    }

    #[test]
    fn what_is_not_allowed_is_refused_and_the_maximum_is_what_is() {
        let reader = AccessMask::GENERIC_READ.specific();
        let asked = AccessMask::MAXIMUM_ALLOWED;
        assert_eq!(asked.granted(reader), Some(reader));
        assert_eq!(asked.union(AccessMask::READ_DATA).granted(reader), Some(reader));
        assert_eq!(asked.union(AccessMask::DELETE).granted(reader), None);
        assert_eq!(AccessMask::READ_DATA.granted(reader), Some(AccessMask::READ_DATA));
        assert_eq!(AccessMask::GENERIC_WRITE.granted(reader), None);
    }

    #[test]
    fn opens_for_attributes_disturb_nobody() {
        let attributes = AccessMask::READ_ATTRIBUTES.union(AccessMask::WRITE_ATTRIBUTES);
        assert!(attributes.leaves_caches(false) && attributes.leaves_caches(true));
        assert!(!attributes.takes_part_in_sharing());
        let control = attributes.union(AccessMask::READ_CONTROL);
        assert!(!control.leaves_caches(false) && control.leaves_caches(true));
        assert!(!AccessMask::READ_DATA.leaves_caches(true));
        assert!(!AccessMask::DELETE.leaves_caches(true));
        assert!(AccessMask::EXECUTE.reads() && AccessMask::APPEND_DATA.writes());
    }
}
