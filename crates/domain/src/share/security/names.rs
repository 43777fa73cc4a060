//! The names that descriptors as text have for identifiers, rights and flags ([MS-DTYP] 2.4.4.1.1 and
//! 2.5.1.1).

use super::{AceFlags, AceKind, Sid};

const NT: u64 = 5;
const BUILTIN: u32 = 32;
const LABEL: u64 = 16;

/// Well-known identifiers; if one has two names, the first is written.
const WELL_KNOWN: [(&str, u64, &[u32]); 48] = [
    ("WD", 1, &[0]),
    ("CO", 3, &[0]),
    ("CG", 3, &[1]),
    ("OW", 3, &[4]),
    ("NU", NT, &[2]),
    ("IU", NT, &[4]),
    ("SU", NT, &[6]),
    ("AN", NT, &[7]),
    ("ED", NT, &[9]),
    ("PS", NT, &[10]),
    ("AU", NT, &[11]),
    ("RC", NT, &[12]),
    ("SY", NT, &[18]),
    ("LS", NT, &[19]),
    ("NS", NT, &[20]),
    ("WR", NT, &[33]),
    ("BA", NT, &[BUILTIN, 544]),
    ("BU", NT, &[BUILTIN, 545]),
    ("BG", NT, &[BUILTIN, 546]),
    ("PU", NT, &[BUILTIN, 547]),
    ("AO", NT, &[BUILTIN, 548]),
    ("SO", NT, &[BUILTIN, 549]),
    ("PO", NT, &[BUILTIN, 550]),
    ("BO", NT, &[BUILTIN, 551]),
    ("RE", NT, &[BUILTIN, 552]),
    ("RU", NT, &[BUILTIN, 554]),
    ("RD", NT, &[BUILTIN, 555]),
    ("NO", NT, &[BUILTIN, 556]),
    ("MU", NT, &[BUILTIN, 558]),
    ("LU", NT, &[BUILTIN, 559]),
    ("IS", NT, &[BUILTIN, 568]),
    ("CY", NT, &[BUILTIN, 569]),
    ("ER", NT, &[BUILTIN, 573]),
    ("CD", NT, &[BUILTIN, 574]),
    ("RA", NT, &[BUILTIN, 575]),
    ("ES", NT, &[BUILTIN, 576]),
    ("MS", NT, &[BUILTIN, 577]),
    ("HA", NT, &[BUILTIN, 578]),
    ("AA", NT, &[BUILTIN, 579]),
    ("RM", NT, &[BUILTIN, 580]),
    ("UD", NT, &[84, 0, 0, 0, 0, 0]),
    ("AC", 15, &[2, 1]),
    ("AS", 18, &[1]),
    ("SS", 18, &[2]),
    ("LW", LABEL, &[4096]),
    ("ME", LABEL, &[8192]),
    ("HI", LABEL, &[12288]),
    ("SI", LABEL, &[16384]),
];

/// Identifiers that have the number of a domain or of a machine in them.
const DOMAIN_RELATIVE: [&str; 17] = [
    "AP", "CA", "CN", "DA", "DC", "DD", "DG", "DU", "EA", "EK", "KA", "LA", "LG", "PA", "RO", "RS",
    "SA",
];

pub fn well_known(name: &str) -> Option<Sid> {
    let (_, authority, sub_authorities) =
        WELL_KNOWN.iter().find(|(known, _, _)| known.eq_ignore_ascii_case(name))?;
    Some(Sid::well_known((*authority, sub_authorities)))
}

pub fn well_known_name(sid: &Sid) -> Option<&'static str> {
    let (name, _, _) = WELL_KNOWN
        .iter()
        .find(|(_, authority, sub_authorities)| sid.is((*authority, sub_authorities)))?;
    Some(name)
}

pub fn domain_relative(name: &str) -> bool {
    DOMAIN_RELATIVE.iter().any(|known| known.eq_ignore_ascii_case(name))
}

pub const ACE_KINDS: [(&str, AceKind); 9] = [
    ("A", AceKind::ALLOWED),
    ("D", AceKind::DENIED),
    ("AU", AceKind::AUDIT),
    ("AL", AceKind::ALARM),
    ("OA", AceKind::ALLOWED_OBJECT),
    ("OD", AceKind::DENIED_OBJECT),
    ("OU", AceKind::AUDIT_OBJECT),
    ("ML", AceKind::MANDATORY_LABEL),
    ("SP", AceKind::SCOPED_POLICY),
];

pub const ACE_FLAGS: [(&str, AceFlags); 7] = [
    ("OI", AceFlags::OBJECT_INHERIT),
    ("CI", AceFlags::CONTAINER_INHERIT),
    ("NP", AceFlags::NO_PROPAGATE),
    ("IO", AceFlags::INHERIT_ONLY),
    ("ID", AceFlags::INHERITED),
    ("SA", AceFlags::AUDIT_SUCCESS),
    ("FA", AceFlags::AUDIT_FAILURE),
];

/// Names for combinations of file rights; written only for exactly that combination.
pub const RIGHTS_OF_FILES: [(&str, u32); 7] = [
    ("FA", 0x001F_01FF),
    ("FR", 0x0012_0089),
    ("FW", 0x0012_0116),
    ("FX", 0x0012_00A0),
    ("KA", 0x000F_003F),
    ("KR", 0x0002_0019),
    ("KW", 0x0002_0006),
];

/// Rights of one bit each, in the order in which they are written.
pub const RIGHTS_OF_ALL: [(&str, u32); 17] = [
    ("CC", 0x0000_0001),
    ("DC", 0x0000_0002),
    ("LC", 0x0000_0004),
    ("SW", 0x0000_0008),
    ("RP", 0x0000_0010),
    ("WP", 0x0000_0020),
    ("DT", 0x0000_0040),
    ("LO", 0x0000_0080),
    ("CR", 0x0000_0100),
    ("SD", 0x0001_0000),
    ("RC", 0x0002_0000),
    ("WD", 0x0004_0000),
    ("WO", 0x0008_0000),
    ("GA", 0x1000_0000),
    ("GX", 0x2000_0000),
    ("GW", 0x4000_0000),
    ("GR", 0x8000_0000),
];

pub const RIGHTS_OF_LABELS: [(&str, u32); 3] = [("NW", 1), ("NR", 2), ("NX", 4)];
