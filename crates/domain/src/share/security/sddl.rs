//! Security descriptors as text ([MS-DTYP] 2.5.1): `O:BAG:SYD:(A;OICI;FA;;;BA)`.
//!
//! Writes what Windows writes: rights by name if names cover all of them, identifiers by name.
//! Conditions and claims are not supported.

use std::fmt::Write as _;

use super::names::{
    ACE_FLAGS, ACE_KINDS, RIGHTS_OF_ALL, RIGHTS_OF_FILES, RIGHTS_OF_LABELS, domain_relative,
    well_known, well_known_name,
};
use super::{
    Ace, AceBody, AceFlags, AceKind, BYTES_MAX, Control, Descriptor, List, ObjectTypes, Sid,
};

const NULL_LIST: &str = "NO_ACCESS_CONTROL";

/// Why a text is not a descriptor for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SddlRefusal {
    /// It cannot be read.
    Malformed,
    /// It names an identifier relative to a domain, and there is none.
    DomainRelative,
    /// Owner, group or discretionary list is missing.
    Incomplete,
}

/// A rule without a text form: of an unknown kind, or with a condition or claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwritable;

type Read<T> = Result<T, SddlRefusal>;

impl Descriptor {
    /// Any descriptor; [`Descriptor::check_complete`] says whether a file can have it.
    pub fn parse_sddl(text: &str) -> Read<Self> {
        if !text.is_ascii() || text.len() > BYTES_MAX {
            return Err(SddlRefusal::Malformed);
        }
        let mut rest = text.trim();
        let mut descriptor = Self::default();
        let mut seen = String::new();
        while let Some((part, after)) = rest.split_once(':') {
            let [part] = part.as_bytes() else { return Err(SddlRefusal::Malformed) };
            let part = part.to_ascii_uppercase() as char;
            if seen.contains(part) {
                return Err(SddlRefusal::Malformed);
            }
            seen.push(part);
            let (value, next) = after.split_at(value_length(after, part));
            match part {
                'O' => descriptor.owner = Some(parse_sid(value)?),
                'G' => descriptor.group = Some(parse_sid(value)?),
                'D' => {
                    let (list, control) = parse_list(value, LIST_OF_D)?;
                    descriptor.dacl = list;
                    descriptor.control = descriptor.control.union(control);
                }
                'S' => {
                    let (list, control) = parse_list(value, LIST_OF_S)?;
                    descriptor.sacl = list;
                    descriptor.control = descriptor.control.union(control);
                }
                _ => return Err(SddlRefusal::Malformed),
            }
            rest = next;
        }
        // The length of a list has two bytes.
        let fits = rest.is_empty() && descriptor.to_bytes().len() <= BYTES_MAX;
        if fits { Ok(descriptor) } else { Err(SddlRefusal::Malformed) }
    }

    /// Checks that the descriptor has an owner, a group and a list, as a file's must.
    pub fn check_complete(&self) -> Read<()> {
        let complete =
            self.owner.is_some() && self.group.is_some() && !matches!(self.dacl, List::Absent);
        if complete { Ok(()) } else { Err(SddlRefusal::Incomplete) }
    }

    pub fn to_sddl(&self) -> Result<String, Unwritable> {
        let mut text = String::new();
        for (part, sid) in [("O:", &self.owner), ("G:", &self.group)] {
            if let Some(sid) = sid {
                text.push_str(part);
                text.push_str(&sid_text(sid));
            }
        }
        write_list(&mut text, "D:", &self.dacl, self.control, LIST_OF_D)?;
        write_list(&mut text, "S:", &self.sacl, self.control, LIST_OF_S)?;
        Ok(text)
    }
}

/// The length of the part at the start of `rest`: up to the next part, which begins with a letter and
/// a colon outside of parentheses.
fn value_length(rest: &str, part: char) -> usize {
    if matches!(part, 'D' | 'S') {
        // Rules have colons only within their parentheses.
        let mut depth = 0_usize;
        for (at, byte) in rest.bytes().enumerate() {
            match byte {
                b'(' => depth += 1,
                b')' => depth = depth.saturating_sub(1),
                b':' if depth == 0 => return at.saturating_sub(1),
                _ => {}
            }
        }
        return rest.len();
    }
    rest.find(':').map_or(rest.len(), |at| at.saturating_sub(1))
}

fn parse_sid(text: &str) -> Read<Sid> {
    let text = text.trim();
    if let Some(sid) = well_known(text) {
        return Ok(sid);
    }
    if domain_relative(text) {
        return Err(SddlRefusal::DomainRelative);
    }
    Sid::parse(text).ok_or(SddlRefusal::Malformed)
}

fn sid_text(sid: &Sid) -> String {
    well_known_name(sid).map_or_else(|| sid.to_string(), str::to_owned)
}

/// What the flags in front of a list set.
type ListFlags = [(&'static str, Control); 3];

const LIST_OF_D: ListFlags = [
    ("P", Control::DACL_PROTECTED),
    ("AR", Control::DACL_AUTO_INHERIT_REQUIRED),
    ("AI", Control::DACL_AUTO_INHERITED),
];
const LIST_OF_S: ListFlags = [
    ("P", Control::SACL_PROTECTED),
    ("AR", Control::SACL_AUTO_INHERIT_REQUIRED),
    ("AI", Control::SACL_AUTO_INHERITED),
];

fn parse_list(text: &str, flags: ListFlags) -> Read<(List, Control)> {
    let (front, mut rest) = text.split_at(text.find('(').unwrap_or(text.len()));
    let mut front = front.trim();
    let mut control = Control::default();
    let mut is_null = false;
    while !front.is_empty() {
        if let Some(after) = strip(front, NULL_LIST) {
            (front, is_null) = (after, true);
            continue;
        }
        let flag = flags.iter().find_map(|(name, flag)| Some((strip(front, name)?, flag)));
        let (after, flag) = flag.ok_or(SddlRefusal::Malformed)?;
        control = control.union(*flag);
        front = after;
    }
    let mut rules = Vec::new();
    while let Some(open) = rest.trim_start().strip_prefix('(') {
        let (rule, after) = open.split_once(')').ok_or(SddlRefusal::Malformed)?;
        rules.push(parse_ace(rule)?);
        rest = after;
    }
    match (rest.trim().is_empty(), is_null) {
        (true, false) => Ok((List::Rules(rules), control)),
        (true, true) if rules.is_empty() => Ok((List::Null, control)),
        (true, true) | (false, _) => Err(SddlRefusal::Malformed),
    }
}

/// The rest of `text` after `name`, compared without case.
fn strip<'text>(text: &'text str, name: &str) -> Option<&'text str> {
    let (front, rest) = text.split_at_checked(name.len())?;
    front.eq_ignore_ascii_case(name).then_some(rest)
}

fn write_list(
    text: &mut String,
    part: &str,
    list: &List,
    control: Control,
    flags: ListFlags,
) -> Result<(), Unwritable> {
    let rules = match list {
        List::Absent => return Ok(()),
        List::Null => &[][..],
        List::Rules(rules) => rules,
    };
    text.push_str(part);
    for (name, flag) in flags {
        if control.contains(flag) {
            text.push_str(name);
        }
    }
    if matches!(list, List::Null) {
        text.push_str(NULL_LIST);
    }
    rules.iter().try_for_each(|ace| write_ace(text, ace))
}

fn parse_ace(text: &str) -> Read<Ace> {
    let fields: Vec<&str> = text.split(';').map(str::trim).collect();
    let [kind, flags, rights, object, inherited_object, sid] = fields[..] else {
        return Err(SddlRefusal::Malformed);
    };
    let named = ACE_KINDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(kind));
    let (_, kind) = named.ok_or(SddlRefusal::Malformed)?;
    let mut ace_flags = AceFlags::default();
    let mut rest = flags;
    while !rest.is_empty() {
        let flag = ACE_FLAGS.iter().find_map(|(name, flag)| Some((strip(rest, name)?, flag)));
        let (after, flag) = flag.ok_or(SddlRefusal::Malformed)?;
        ace_flags = ace_flags.union(*flag);
        rest = after;
    }
    let types = ObjectTypes {
        object: parse_guid(object)?,
        inherited_object: parse_guid(inherited_object)?,
    };
    let object = kind.names_object().then_some(types);
    if object.is_none() && types != ObjectTypes::default() {
        return Err(SddlRefusal::Malformed);
    }
    let body = AceBody::About {
        mask: parse_rights(rights, *kind)?,
        object,
        sid: parse_sid(sid)?,
        data: Vec::new(),
    };
    Ok(Ace { kind: *kind, flags: ace_flags, body })
}

fn write_ace(text: &mut String, ace: &Ace) -> Result<(), Unwritable> {
    let AceBody::About { mask, object, sid, data } = &ace.body else { return Err(Unwritable) };
    let named = ACE_KINDS.iter().find(|(_, kind)| *kind == ace.kind);
    let (Some((kind, _)), true) = (named, data.is_empty()) else { return Err(Unwritable) };
    let mut flags = String::new();
    let mut left = ace.flags;
    for (name, flag) in ACE_FLAGS {
        if left.contains(flag) {
            flags.push_str(name);
            left = left.difference(flag);
        }
    }
    if left != AceFlags::default() {
        return Err(Unwritable);
    }
    let types = object.unwrap_or_default();
    let guid = |guid: Option<[u8; 16]>| guid.map(guid_text).unwrap_or_default();
    let (object, inherited) = (guid(types.object), guid(types.inherited_object));
    let (rights, sid) = (rights_text(*mask, ace.kind), sid_text(sid));
    // Writing to a string cannot fail.
    let _ = write!(text, "({kind};{flags};{rights};{object};{inherited};{sid})");
    Ok(())
}

fn parse_rights(text: &str, kind: AceKind) -> Read<u32> {
    let digits = |prefix: &str| strip(text, prefix).filter(|digits| !digits.is_empty());
    let numeric = if let Some(digits) = digits("0x") {
        Some(u32::from_str_radix(digits, 16))
    } else if text.starts_with(|letter: char| letter.is_ascii_digit()) {
        let octal = text.len() > 1 && text.starts_with('0');
        Some(u32::from_str_radix(text, if octal { 8 } else { 10 }))
    } else {
        None
    };
    if let Some(number) = numeric {
        return number.map_err(|_| SddlRefusal::Malformed);
    }
    let labels: &[(&str, u32)] =
        if kind == AceKind::MANDATORY_LABEL { &RIGHTS_OF_LABELS } else { &[] };
    let names = || labels.iter().chain(&RIGHTS_OF_FILES).chain(&RIGHTS_OF_ALL);
    let (mut mask, mut rest) = (0, text);
    while !rest.is_empty() {
        let right = names().find_map(|(name, right)| Some((strip(rest, name)?, right)));
        let (after, right) = right.ok_or(SddlRefusal::Malformed)?;
        mask |= right;
        rest = after;
    }
    Ok(mask)
}

/// One name for all rights, or the names of all bits, or a number.
fn rights_text(mask: u32, kind: AceKind) -> String {
    if kind == AceKind::MANDATORY_LABEL {
        let names = RIGHTS_OF_LABELS.iter().filter(|(_, right)| mask & right != 0);
        let all = RIGHTS_OF_LABELS.iter().fold(0, |all, (_, right)| all | right);
        if mask & !all == 0 {
            return names.map(|(name, _)| *name).collect();
        }
    }
    if let Some((name, _)) = RIGHTS_OF_FILES.iter().find(|(_, right)| *right == mask) {
        return (*name).to_owned();
    }
    let names = RIGHTS_OF_ALL.iter().filter(|(_, right)| mask & right != 0);
    let all = RIGHTS_OF_ALL.iter().fold(0, |all, (_, right)| all | right);
    if mask & !all == 0 { names.map(|(name, _)| *name).collect() } else { format!("{mask:#x}") }
}

fn parse_guid(text: &str) -> Read<Option<[u8; 16]>> {
    if text.is_empty() {
        return Ok(None);
    }
    let guid = uuid::Uuid::try_parse(text).map_err(|_| SddlRefusal::Malformed)?;
    Ok(Some(guid.to_bytes_le()))
}

fn guid_text(guid: [u8; 16]) -> String {
    uuid::Uuid::from_bytes_le(guid).to_string()
}

#[cfg(test)]
#[path = "sddl_tests.rs"]
mod tests;
