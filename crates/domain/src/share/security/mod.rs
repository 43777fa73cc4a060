//! Security descriptors, the access control of SMB clients. They are stored and returned; they are
//! enforced only if the operator wants it, see [`crate::features::AccessLists`].

mod access;
mod assign;
mod descriptor;
mod inherit;
mod names;
mod sddl;
mod sid;

pub use access::{Token, permitted};
pub use assign::{assigned, assigned_to_new};
pub use descriptor::{
    Ace, AceBody, AceFlags, AceKind, BYTES_MAX, Control, Descriptor, List, ObjectTypes,
};
pub use inherit::inherited;
pub use sddl::{SddlRefusal, Unwritable};
pub use sid::Sid;

pub(crate) const FULL_ACCESS: u32 = 0x001F_01FF;
const MODIFY: u32 = 0x0013_01BF;
const READ_AND_EXECUTE: u32 = 0x0012_00A9;
const GENERIC_READ_AND_EXECUTE: u32 = 0xA000_0000;
const GENERIC_ALL: u32 = 0x1000_0000;

/// The descriptor of the root of a new share, as the service gives it.
pub fn of_root() -> Descriptor {
    let here = AceFlags::default();
    let and_below = AceFlags::OBJECT_INHERIT.union(AceFlags::CONTAINER_INHERIT);
    let below = and_below.union(AceFlags::INHERIT_ONLY);
    let rules = [
        (FULL_ACCESS, and_below, Sid::ADMINISTRATORS),
        (FULL_ACCESS, and_below, Sid::LOCAL_SYSTEM),
        (READ_AND_EXECUTE, here, Sid::USERS),
        (GENERIC_READ_AND_EXECUTE, below, Sid::USERS),
        (MODIFY, and_below, Sid::AUTHENTICATED_USERS),
        (FULL_ACCESS, here, Sid::LOCAL_SYSTEM),
        (GENERIC_ALL, below, Sid::CREATOR_OWNER),
    ];
    let rules = rules.map(|(mask, flags, sid)| Ace::allow(mask, flags, Sid::well_known(sid)));
    Descriptor {
        control: Control::default(),
        owner: Some(Sid::well_known(Sid::LOCAL_SYSTEM)),
        group: Some(Sid::well_known(Sid::LOCAL_SYSTEM)),
        dacl: List::Rules(rules.to_vec()),
        sacl: List::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_has_what_the_service_gives_it() {
        let expected = "O:SYG:SYD:(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;;0x1200a9;;;BU)\
                        (A;OICIIO;GXGR;;;BU)(A;OICI;0x1301bf;;;AU)(A;;FA;;;SY)(A;OICIIO;GA;;;CO)";
        assert_eq!(of_root().to_sddl().as_deref(), Ok(expected));
        assert_eq!(Descriptor::parse_sddl(expected), Ok(of_root()));
    }
}
