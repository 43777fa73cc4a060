//! How a descriptor set by a client is stored: some bits differ from what was sent.

use super::inherit::particular_rights;
use super::{Ace, AceBody, AceFlags, Control, Descriptor, List, Sid};

/// For an existing node.
pub fn assigned(given: Descriptor) -> Descriptor {
    Descriptor {
        control: assigned_control(given.control),
        dacl: assigned_list(given.dacl),
        sacl: assigned_list(given.sacl),
        ..given
    }
}

/// For a new node. What the client does not give belongs to the system, see [`super::inherited`].
pub fn assigned_to_new(given: Descriptor) -> Descriptor {
    let system = || Some(Sid::well_known(Sid::LOCAL_SYSTEM));
    let Descriptor { owner, group, .. } = given.clone();
    Descriptor { owner: owner.or_else(system), group: group.or_else(system), ..assigned(given) }
}

/// A list counts as inherited if the client sets both that bit and the request for it; the request
/// bit is not stored.
fn assigned_control(control: Control) -> Control {
    let mut kept = control;
    for (inherited, asked) in [
        (Control::DACL_AUTO_INHERITED, Control::DACL_AUTO_INHERIT_REQUIRED),
        (Control::SACL_AUTO_INHERITED, Control::SACL_AUTO_INHERIT_REQUIRED),
    ] {
        if !control.contains(asked) {
            kept = kept.difference(inherited);
        }
        kept = kept.difference(asked);
    }
    kept
}

/// Generic rights of rules that apply to the node itself are expanded.
fn assigned_list(list: List) -> List {
    match list {
        List::Rules(rules) => List::Rules(rules.into_iter().map(assigned_rule).collect()),
        List::Absent | List::Null => list,
    }
}

fn assigned_rule(rule: Ace) -> Ace {
    match rule.body {
        AceBody::About { mask, object, sid, data }
            if !rule.flags.contains(AceFlags::INHERIT_ONLY) =>
        {
            let mask = particular_rights(mask);
            Ace { body: AceBody::About { mask, object, sid, data }, ..rule }
        }
        AceBody::About { .. } | AceBody::Unknown(_) => rule,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Descriptor {
        Descriptor::parse_sddl(text).expect(text)
    }

    #[test]
    fn generic_rights_are_spelled_out_where_they_apply() {
        for (given, kept) in [
            ("O:BAG:BAD:(A;;GR;;;WD)", "O:BAG:BAD:(A;;FR;;;WD)"),
            ("O:BAG:BAD:(A;OICI;GA;;;WD)", "O:BAG:BAD:(A;OICI;FA;;;WD)"),
            ("O:BAG:BAD:(D;;GW;;;WD)", "O:BAG:BAD:(D;;FW;;;WD)"),
            ("O:BAG:BAD:(A;OICIIO;GR;;;WD)", "O:BAG:BAD:(A;OICIIO;GR;;;WD)"),
            ("O:BAG:BAD:(A;;0x3;;;WD)", "O:BAG:BAD:(A;;0x3;;;WD)"),
        ] {
            assert_eq!(assigned(read(given)), read(kept), "{given}");
        }
    }

    #[test]
    fn a_list_is_inherited_only_if_that_is_asked_for_too() {
        for (given, kept) in [
            ("O:BAG:BAD:AI(A;;FR;;;WD)", "O:BAG:BAD:(A;;FR;;;WD)"),
            ("O:BAG:BAD:AR(A;;FR;;;WD)", "O:BAG:BAD:(A;;FR;;;WD)"),
            ("O:BAG:BAD:ARAI(A;;FR;;;WD)", "O:BAG:BAD:AI(A;;FR;;;WD)"),
            ("O:BAG:BAD:PAI(A;;FR;;;WD)", "O:BAG:BAD:P(A;;FR;;;WD)"),
        ] {
            assert_eq!(assigned(read(given)), read(kept), "{given}");
        }
    }

    #[test]
    fn what_is_new_has_an_owner() {
        for (given, kept) in [
            ("D:(A;;FR;;;WD)", "O:SYG:SYD:(A;;FR;;;WD)"),
            ("O:BAD:(A;;FR;;;WD)", "O:BAG:SYD:(A;;FR;;;WD)"),
        ] {
            assert_eq!(assigned_to_new(read(given)), read(kept), "{given}");
        }
    }
}
