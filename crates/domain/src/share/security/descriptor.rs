//! Security descriptors and their self-relative form ([MS-DTYP] 2.4.4 to 2.4.6). Every length and
//! offset comes from a client and is checked.

use bitflags::bitflags;

use super::Sid;

/// More than any client writes; the length field of a list has 16 bits.
pub const BYTES_MAX: usize = 64 * 1024;

const REVISION: u8 = 1;
const HEADER_BYTES: usize = 20;
const ACL_HEADER_BYTES: usize = 8;
const ACE_HEADER_BYTES: usize = 4;
const ACL_REVISION: u8 = 2;
/// For lists with rules about object types.
const ACL_REVISION_OBJECTS: u8 = 4;
const GUID_BYTES: usize = 16;

const DACL_PRESENT: u16 = 0x0004;
const SACL_PRESENT: u16 = 0x0010;
const SELF_RELATIVE: u16 = 0x8000;
/// The bits about inheritance and defaults; the others follow from the parts present.
const CONTROL_KEPT: u16 = 0x3F2B;

const OBJECT_TYPE_PRESENT: u32 = 1;
const INHERITED_OBJECT_TYPE_PRESENT: u32 = 2;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    pub control: Control,
    pub owner: Option<Sid>,
    pub group: Option<Sid>,
    pub dacl: List,
    pub sacl: List,
}

bitflags! {
    /// The control bits that do not follow from the parts.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Control: u16 {
        const DACL_AUTO_INHERIT_REQUIRED = 0x0100;
        const SACL_AUTO_INHERIT_REQUIRED = 0x0200;
        const DACL_AUTO_INHERITED = 0x0400;
        const SACL_AUTO_INHERITED = 0x0800;
        const DACL_PROTECTED = 0x1000;
        const SACL_PROTECTED = 0x2000;
    }
}

/// A list of rules. A null list allows everything to everybody, an empty one nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum List {
    #[default]
    Absent,
    Null,
    Rules(Vec<Ace>),
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ace {
    pub kind: AceKind,
    pub flags: AceFlags,
    pub body: AceBody,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AceKind(pub u8);

impl AceKind {
    pub const ALLOWED: Self = Self(0x00);
    pub const DENIED: Self = Self(0x01);
    pub const AUDIT: Self = Self(0x02);
    pub const ALARM: Self = Self(0x03);
    pub const ALLOWED_OBJECT: Self = Self(0x05);
    pub const DENIED_OBJECT: Self = Self(0x06);
    pub const AUDIT_OBJECT: Self = Self(0x07);
    pub const ALARM_OBJECT: Self = Self(0x08);
    pub const ALLOWED_CALLBACK: Self = Self(0x09);
    pub const DENIED_CALLBACK: Self = Self(0x0A);
    pub const ALLOWED_CALLBACK_OBJECT: Self = Self(0x0B);
    pub const DENIED_CALLBACK_OBJECT: Self = Self(0x0C);
    pub const AUDIT_CALLBACK: Self = Self(0x0D);
    pub const AUDIT_CALLBACK_OBJECT: Self = Self(0x0F);
    pub const MANDATORY_LABEL: Self = Self(0x11);
    pub const RESOURCE_ATTRIBUTE: Self = Self(0x12);
    pub const SCOPED_POLICY: Self = Self(0x13);

    pub(super) const fn names_object(self) -> bool {
        matches!(
            self,
            Self::ALLOWED_OBJECT
                | Self::DENIED_OBJECT
                | Self::AUDIT_OBJECT
                | Self::ALARM_OBJECT
                | Self::ALLOWED_CALLBACK_OBJECT
                | Self::DENIED_CALLBACK_OBJECT
                | Self::AUDIT_CALLBACK_OBJECT
        )
    }

    const fn has_data(self) -> bool {
        matches!(
            self,
            Self::ALLOWED_CALLBACK
                | Self::DENIED_CALLBACK
                | Self::ALLOWED_CALLBACK_OBJECT
                | Self::DENIED_CALLBACK_OBJECT
                | Self::AUDIT_CALLBACK
                | Self::AUDIT_CALLBACK_OBJECT
                | Self::RESOURCE_ATTRIBUTE
        )
    }

    const fn names_somebody(self) -> bool {
        matches!(
            self,
            Self::ALLOWED
                | Self::DENIED
                | Self::AUDIT
                | Self::ALARM
                | Self::ALLOWED_CALLBACK
                | Self::DENIED_CALLBACK
                | Self::AUDIT_CALLBACK
                | Self::MANDATORY_LABEL
                | Self::RESOURCE_ATTRIBUTE
                | Self::SCOPED_POLICY
        ) || self.names_object()
    }
}

bitflags! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct AceFlags: u8 {
        const OBJECT_INHERIT = 0x01;
        const CONTAINER_INHERIT = 0x02;
        const NO_PROPAGATE = 0x04;
        const INHERIT_ONLY = 0x08;
        const INHERITED = 0x10;
        const AUDIT_SUCCESS = 0x40;
        const AUDIT_FAILURE = 0x80;
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AceBody {
    About {
        mask: u32,
        object: Option<ObjectTypes>,
        sid: Sid,
        /// A condition or a claim: the bytes after the identifier.
        data: Vec<u8>,
    },
    /// A rule of an unknown kind.
    Unknown(Vec<u8>),
}

/// The object types of a rule; GUIDs as their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectTypes {
    pub object: Option<[u8; GUID_BYTES]>,
    pub inherited_object: Option<[u8; GUID_BYTES]>,
}

impl Ace {
    pub fn allow(mask: u32, flags: AceFlags, sid: Sid) -> Self {
        let body = AceBody::About { mask, object: None, sid, data: Vec::new() };
        Self { kind: AceKind::ALLOWED, flags, body }
    }

    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&[kind, flags, low, high], _) = bytes.split_first_chunk::<ACE_HEADER_BYTES>()?;
        let length = usize::from(u16::from_le_bytes([low, high]));
        let (ace, rest) = bytes.split_at_checked(length)?;
        if !length.is_multiple_of(4) {
            return None;
        }
        let body = ace.get(ACE_HEADER_BYTES..)?;
        let (kind, flags) = (AceKind(kind), AceFlags::from_bits_retain(flags));
        let body = if kind.names_somebody() {
            AceBody::read(body, kind)?
        } else {
            AceBody::Unknown(body.to_vec())
        };
        Some((Self { kind, flags, body }, rest))
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let from = bytes.len();
        bytes.extend([self.kind.0, self.flags.bits(), 0, 0]);
        match &self.body {
            AceBody::Unknown(body) => bytes.extend(body),
            AceBody::About { mask, object, sid, data } => {
                bytes.extend(mask.to_le_bytes());
                if let Some(ObjectTypes { object, inherited_object }) = object {
                    let mut present = 0;
                    present |= if object.is_some() { OBJECT_TYPE_PRESENT } else { 0 };
                    let inherited = inherited_object.is_some();
                    present |= if inherited { INHERITED_OBJECT_TYPE_PRESENT } else { 0 };
                    bytes.extend(present.to_le_bytes());
                    bytes.extend(object.iter().chain(inherited_object).flatten());
                }
                sid.write(bytes);
                bytes.extend(data);
            }
        }
        while !(bytes.len() - from).is_multiple_of(4) {
            bytes.push(0);
        }
        let length = (bytes.len() - from) as u16;
        bytes[from + 2..from + 4].copy_from_slice(&length.to_le_bytes());
    }
}

impl AceBody {
    fn read(bytes: &[u8], kind: AceKind) -> Option<Self> {
        let (mask, mut rest) = bytes.split_first_chunk()?;
        let mut object = None;
        if kind.names_object() {
            let (present, after) = rest.split_first_chunk()?;
            let present = u32::from_le_bytes(*present);
            rest = after;
            let mut guid = |bit: u32| {
                if present & bit == 0 {
                    return Some(None);
                }
                let (guid, after) = rest.split_first_chunk()?;
                rest = after;
                Some(Some(*guid))
            };
            let types = ObjectTypes {
                object: guid(OBJECT_TYPE_PRESENT)?,
                inherited_object: guid(INHERITED_OBJECT_TYPE_PRESENT)?,
            };
            object = Some(types);
        }
        let (sid, data) = Sid::from_bytes(rest)?;
        // Other kinds have nothing after the identifier.
        let data = if kind.has_data() { data.to_vec() } else { Vec::new() };
        Some(Self::About { mask: u32::from_le_bytes(*mask), object, sid, data })
    }
}

impl List {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (&[revision, _, low, high, count_low, count_high, _, _], _) =
            bytes.split_first_chunk::<ACL_HEADER_BYTES>()?;
        if !(ACL_REVISION..=ACL_REVISION_OBJECTS).contains(&revision) {
            return None;
        }
        let length = usize::from(u16::from_le_bytes([low, high]));
        let mut rest = bytes.get(ACL_HEADER_BYTES..length)?;
        let count = usize::from(u16::from_le_bytes([count_low, count_high]));
        let mut rules = Vec::new();
        for _ in 0..count {
            let (ace, after) = Ace::read(rest)?;
            rules.push(ace);
            rest = after;
        }
        Some(Self::Rules(rules))
    }

    fn write(rules: &[Ace], bytes: &mut Vec<u8>) {
        let from = bytes.len();
        let with_objects = rules.iter().any(|ace| ace.kind.names_object());
        let revision = if with_objects { ACL_REVISION_OBJECTS } else { ACL_REVISION };
        bytes.extend([revision, 0, 0, 0]);
        bytes.extend((rules.len() as u16).to_le_bytes());
        bytes.extend([0, 0]);
        rules.iter().for_each(|ace| ace.write(bytes));
        let length = (bytes.len() - from) as u16;
        bytes[from + 2..from + 4].copy_from_slice(&length.to_le_bytes());
    }

    const fn is_present(&self) -> bool {
        !matches!(self, Self::Absent)
    }
}

impl Descriptor {
    /// `None` for bytes that are not a self-relative descriptor.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<HEADER_BYTES>()?;
        let control = u16::from_le_bytes([header[2], header[3]]);
        if header[0] != REVISION || control & SELF_RELATIVE == 0 || bytes.len() > BYTES_MAX {
            return None;
        }
        let part = |at: usize| {
            let mut offset = [0; 4];
            offset.copy_from_slice(&header[at..at + 4]);
            let offset = u32::from_le_bytes(offset) as usize;
            if offset == 0 { Some(None) } else { bytes.get(offset..).map(Some) }
        };
        let sid = |part: Option<&[u8]>| match part {
            Some(bytes) => Sid::from_bytes(bytes).map(|(sid, _)| Some(sid)),
            None => Some(None),
        };
        let list = |part: Option<&[u8]>, bit: u16| match part {
            _ if control & bit == 0 => Some(List::Absent),
            None => Some(List::Null),
            Some(bytes) => List::read(bytes),
        };
        Some(Self {
            control: Control::from_bits_retain(control & CONTROL_KEPT),
            owner: sid(part(4)?)?,
            group: sid(part(8)?)?,
            sacl: list(part(12)?, SACL_PRESENT)?,
            dacl: list(part(16)?, DACL_PRESENT)?,
        })
    }

    /// Equal descriptors have equal bytes. The parts come in the order of Windows and the service:
    /// lists before owner and group.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut control = SELF_RELATIVE | self.control.bits();
        control |= if self.sacl.is_present() { SACL_PRESENT } else { 0 };
        control |= if self.dacl.is_present() { DACL_PRESENT } else { 0 };
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[0] = REVISION;
        bytes[2..4].copy_from_slice(&control.to_le_bytes());
        let begin = |bytes: &mut Vec<u8>, at: usize| {
            let offset = (bytes.len() as u32).to_le_bytes();
            bytes[at..at + 4].copy_from_slice(&offset);
        };
        for (at, list) in [(12, &self.sacl), (16, &self.dacl)] {
            if let List::Rules(rules) = list {
                begin(&mut bytes, at);
                List::write(rules, &mut bytes);
            }
        }
        for (at, sid) in [(4, &self.owner), (8, &self.group)] {
            if let Some(sid) = sid {
                begin(&mut bytes, at);
                sid.write(&mut bytes);
            }
        }
        bytes
    }
}
