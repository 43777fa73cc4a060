//! Share modes: which access an open allows to others, checked in both directions.

use serde::{Deserialize, Serialize};

use super::access::AccessMask;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ShareMode {
    pub read: bool,
    pub write: bool,
    pub delete: bool,
}

impl ShareMode {
    pub const NONE: Self = Self { read: false, write: false, delete: false };
    pub const ALL: Self = Self { read: true, write: true, delete: true };
    pub const READ: Self = Self { read: true, write: false, delete: false };

    /// The bits of [MS-SMB2] 2.2.13; others are an invalid request.
    pub fn from_bits(bits: u32) -> Option<Self> {
        let bit = |value: u32| bits & value != 0;
        (bits & !7 == 0).then(|| Self { read: bit(1), write: bit(2), delete: bit(4) })
    }

    /// Whether this mode lets others have `access`.
    pub const fn permits(self, access: AccessMask) -> bool {
        (self.read || !access.reads())
            && (self.write || !access.writes())
            && (self.delete || !access.deletes())
    }
}

/// The part of an open that share modes compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub access: AccessMask,
    pub share: ShareMode,
}

/// Whether two opens of one node can coexist. The order does not matter.
pub const fn compatible(one: Claim, other: Claim) -> bool {
    if !one.access.takes_part_in_sharing() || !other.access.takes_part_in_sharing() {
        return true;
    }
    one.share.permits(other.access) && other.share.permits(one.access)
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: AccessMask = AccessMask::READ_DATA;
    const WRITE: AccessMask = AccessMask::WRITE_DATA;
    const DELETE: AccessMask = AccessMask::DELETE;

    #[test]
    fn every_access_is_checked_against_every_share_mode_in_both_directions() {
        for bits in 0..8 {
            let share = ShareMode::from_bits(bits).expect("three bits");
            for (access, permitted) in
                [(READ, bits & 1 != 0), (WRITE, bits & 2 != 0), (DELETE, bits & 4 != 0)]
            {
                let holder = Claim { access: READ, share };
                let comer = Claim { access, share: ShareMode::ALL };
                assert_eq!(compatible(holder, comer), permitted, "{share:?} {access:?}");
                assert_eq!(compatible(comer, holder), permitted, "{share:?} {access:?}");
            }
        }
        assert_eq!(ShareMode::from_bits(8), None);
    }

    #[test]
    fn attributes_are_shared_whatever_the_modes_say() {
        let alone = Claim { access: AccessMask::ALL, share: ShareMode::NONE };
        let attributes = AccessMask::READ_ATTRIBUTES.union(AccessMask::SYNCHRONIZE);
        let look = Claim { access: attributes, share: ShareMode::NONE };
        assert!(compatible(alone, look) && compatible(look, alone));
        assert!(!compatible(alone, alone));
    }
}
