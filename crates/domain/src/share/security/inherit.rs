//! The descriptor that a new node inherits from its directory ([MS-DTYP] 2.5.3.4).

use super::{Ace, AceBody, AceFlags, Control, Descriptor, FULL_ACCESS, List, Sid};

/// The file rights that the generic ones stand for.
const GENERIC: [(u32, u32); 4] = [
    (0x8000_0000, 0x0012_0089),
    (0x4000_0000, 0x0012_0116),
    (0x2000_0000, 0x0012_00A0),
    (0x1000_0000, FULL_ACCESS),
];
const GENERIC_BITS: u32 = 0xF000_0000;

/// The owner of what a client with the account key creates is the system. A list and its rules are marked
/// as inherited only below a list that is marked so: in a new share nothing is marked, as the tests of
/// Azure-Samples/azure-files-samples (RestSetAcls) find it in the service.
pub fn inherited(parent: &Descriptor, is_directory: bool) -> Descriptor {
    let system = Sid::well_known(Sid::LOCAL_SYSTEM);
    let mark = |control: Control| match parent.control.contains(control) {
        true => (control, AceFlags::INHERITED),
        false => (Control::default(), AceFlags::default()),
    };
    let (dacl_control, mark_of_rules) = mark(Control::DACL_AUTO_INHERITED);
    let rules = inherited_rules(&parent.dacl, is_directory, &system, mark_of_rules);
    let (dacl, control) = match rules.is_empty() {
        // Nothing is inherited: the creator's defaults.
        true => {
            let full = |sid| Ace::allow(FULL_ACCESS, AceFlags::default(), Sid::well_known(sid));
            (vec![full(Sid::LOCAL_SYSTEM), full(Sid::ADMINISTRATORS)], Control::default())
        }
        false => (rules, dacl_control),
    };
    let (sacl_control, mark_of_audits) = mark(Control::SACL_AUTO_INHERITED);
    let audits = inherited_rules(&parent.sacl, is_directory, &system, mark_of_audits);
    let (sacl, control) = match audits.is_empty() {
        true => (List::Absent, control),
        false => (List::Rules(audits), control.union(sacl_control)),
    };
    Descriptor {
        control,
        owner: Some(system.clone()),
        group: Some(system),
        dacl: List::Rules(dacl),
        sacl,
    }
}

fn inherited_rules(list: &List, is_directory: bool, creator: &Sid, mark: AceFlags) -> Vec<Ace> {
    let List::Rules(rules) = list else { return Vec::new() };
    let mut inherited = Vec::new();
    for rule in rules {
        let to_files = rule.flags.contains(AceFlags::OBJECT_INHERIT);
        let to_directories = rule.flags.contains(AceFlags::CONTAINER_INHERIT);
        let goes_on = is_directory && !rule.flags.contains(AceFlags::NO_PROPAGATE);
        let applies = if is_directory { to_directories } else { to_files };
        let passing = AceFlags::OBJECT_INHERIT
            .union(AceFlags::CONTAINER_INHERIT)
            .union(AceFlags::NO_PROPAGATE)
            .union(AceFlags::INHERIT_ONLY);
        let flags = rule.flags.difference(AceFlags::INHERITED).union(mark);
        let below = flags.difference(AceFlags::INHERIT_ONLY);
        let here = flags.difference(passing);
        let effective = effective(rule, creator);
        match (applies, goes_on && (to_files || to_directories)) {
            (true, true) if effective == rule.body => {
                inherited.push(Ace { flags: below, ..rule.clone() });
            }
            (true, true) => {
                inherited.push(Ace { flags: here, body: effective, ..rule.clone() });
                let below = below.union(AceFlags::INHERIT_ONLY);
                inherited.push(Ace { flags: below, ..rule.clone() });
            }
            (true, false) => inherited.push(Ace { flags: here, body: effective, ..rule.clone() }),
            (false, true) => {
                let below = below.union(AceFlags::INHERIT_ONLY);
                inherited.push(Ace { flags: below, ..rule.clone() });
            }
            (false, false) => {}
        }
    }
    inherited
}

/// A rule as it applies to the node: with a concrete identifier and specific rights.
fn effective(rule: &Ace, creator: &Sid) -> AceBody {
    let AceBody::About { mask, object, sid, data } = &rule.body else { return rule.body.clone() };
    let about_creator = sid.is(Sid::CREATOR_OWNER) || sid.is(Sid::CREATOR_GROUP);
    let sid = if about_creator { creator.clone() } else { sid.clone() };
    AceBody::About { mask: particular_rights(*mask), object: *object, sid, data: data.clone() }
}

/// A mask with generic rights expanded.
pub(super) fn particular_rights(mask: u32) -> u32 {
    let spelled = GENERIC.iter().filter(|(generic, _)| mask & generic != 0);
    spelled.fold(mask & !GENERIC_BITS, |rights, (_, particular)| rights | particular)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inherited_text(parent: &str, is_directory: bool) -> String {
        let parent = Descriptor::parse_sddl(parent).expect(parent);
        inherited(&parent, is_directory).to_sddl().expect("a text")
    }

    #[test]
    fn rules_go_where_their_flags_send_them() {
        for (rule, file, directory) in [
            ("(A;OICI;FA;;;BA)", "(A;ID;FA;;;BA)", "(A;OICIID;FA;;;BA)"),
            ("(A;OI;FR;;;BU)", "(A;ID;FR;;;BU)", "(A;OIIOID;FR;;;BU)"),
            ("(A;CI;FR;;;BU)", "", "(A;CIID;FR;;;BU)"),
            ("(A;OICINP;FR;;;BU)", "(A;ID;FR;;;BU)", "(A;ID;FR;;;BU)"),
            ("(A;OINP;FR;;;BU)", "(A;ID;FR;;;BU)", ""),
            ("(D;OICIIO;FW;;;WD)", "(D;ID;FW;;;WD)", "(D;OICIID;FW;;;WD)"),
            ("(A;;FA;;;WD)", "", ""),
            ("(A;OICIIO;GR;;;BU)", "(A;ID;FR;;;BU)", "(A;ID;FR;;;BU)(A;OICIIOID;GR;;;BU)"),
            ("(A;OICIIO;FA;;;CO)", "(A;ID;FA;;;SY)", "(A;ID;FA;;;SY)(A;OICIIOID;FA;;;CO)"),
        ] {
            for (is_directory, rules) in [(false, file), (true, directory)] {
                let (marked, unmarked) = match rules {
                    "" => {
                        let given = "O:SYG:SYD:(A;;FA;;;SY)(A;;FA;;;BA)".to_owned();
                        (given.clone(), given)
                    }
                    rules => {
                        let unmarked = rules.replace("ID;", ";");
                        (format!("O:SYG:SYD:AI{rules}"), format!("O:SYG:SYD:{unmarked}"))
                    }
                };
                let below = |list: &str| inherited_text(&format!("O:BAG:BAD:{list}"), is_directory);
                assert_eq!(below(&format!("AI{rule}")), marked, "{rule} {is_directory}");
                assert_eq!(below(rule), unmarked, "{rule} {is_directory}");
            }
        }
    }

    #[test]
    fn a_mark_of_the_parent_is_not_handed_on_by_a_list_that_has_none() {
        let parent = "O:BAG:BAD:(A;OICIID;FA;;;BA)";
        assert_eq!(inherited_text(parent, true), "O:SYG:SYD:(A;OICI;FA;;;BA)");
    }

    #[test]
    fn the_first_nodes_of_a_share_have_what_the_service_gives_them() {
        let root = super::super::of_root();
        let text = |is_directory| inherited(&root, is_directory).to_sddl().expect("a text");
        let file = "O:SYG:SYD:(A;;FA;;;BA)(A;;FA;;;SY)(A;;0x1200a9;;;BU)(A;;0x1301bf;;;AU)\
                    (A;;FA;;;SY)";
        let directory = "O:SYG:SYD:(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;;0x1200a9;;;BU)\
                         (A;OICIIO;GXGR;;;BU)(A;OICI;0x1301bf;;;AU)(A;;FA;;;SY)\
                         (A;OICIIO;GA;;;CO)";
        assert_eq!((text(false), text(true)), (file.to_owned(), directory.to_owned()));
    }

    #[test]
    fn what_is_below_the_root_inherits_again() {
        let child = inherited(&super::super::of_root(), true);
        let grandchild = inherited(&child, true);
        assert_eq!(inherited(&grandchild, true), grandchild);
        assert_eq!(inherited(&child, false), inherited(&grandchild, false));
    }
}
