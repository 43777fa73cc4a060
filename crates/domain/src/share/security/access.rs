//! The access that a security descriptor allows ([MS-DTYP] 2.5.3.2).

use super::inherit::particular_rights;
use super::{Ace, AceBody, AceFlags, AceKind, Descriptor, FULL_ACCESS, List, ObjectTypes, Sid};

const READ_CONTROL: u32 = 0x0002_0000;
const WRITE_DAC: u32 = 0x0004_0000;

/// The identity of a client: a user, and the user's groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    user: Sid,
    groups: Vec<Sid>,
}

impl Token {
    /// A client that has logged on with the key of an account. What it creates belongs to the system,
    /// see [`super::inherited`].
    pub fn of_account() -> Self {
        let groups = [
            Sid::EVERYONE,
            Sid::NETWORK,
            Sid::AUTHENTICATED_USERS,
            Sid::ADMINISTRATORS,
            Sid::USERS,
        ];
        Self {
            user: Sid::well_known(Sid::LOCAL_SYSTEM),
            groups: groups.map(Sid::well_known).to_vec(),
        }
    }

    fn is(&self, sid: &Sid) -> bool {
        self.user == *sid || self.groups.contains(sid)
    }
}

/// The rights that a descriptor gives to a token. The first rule about a right decides it.
pub fn permitted(descriptor: &Descriptor, token: &Token) -> u32 {
    let rules = match &descriptor.dacl {
        List::Absent | List::Null => return FULL_ACCESS,
        List::Rules(rules) => rules,
    };
    let is_owner = descriptor.owner.as_ref().is_some_and(|owner| token.is(owner));
    let here = || rules.iter().filter(|rule| !rule.flags.contains(AceFlags::INHERIT_ONLY));
    let limits_owner = here().any(|rule| is_about(rule, |sid| sid.is(Sid::OWNER_RIGHTS)));
    let mut allowed = if is_owner && !limits_owner { READ_CONTROL | WRITE_DAC } else { 0 };
    let mut denied = 0;
    let concerns = |sid: &Sid| token.is(sid) || is_owner && sid.is(Sid::OWNER_RIGHTS);
    for rule in here().filter(|rule| is_about(rule, concerns)) {
        let rights = rights_of(rule);
        match rule.kind {
            AceKind::ALLOWED | AceKind::ALLOWED_OBJECT => allowed |= rights & !denied,
            // A condition that cannot be evaluated counts as true in denying rules only.
            AceKind::DENIED
            | AceKind::DENIED_OBJECT
            | AceKind::DENIED_CALLBACK
            | AceKind::DENIED_CALLBACK_OBJECT => denied |= rights & !allowed,
            _ => {}
        }
    }
    allowed
}

/// Rules for object types apply to nothing in a share.
fn is_about(rule: &Ace, concerns: impl FnOnce(&Sid) -> bool) -> bool {
    match &rule.body {
        AceBody::About { object: Some(ObjectTypes { object: Some(_), .. }), .. }
        | AceBody::Unknown(_) => false,
        AceBody::About { sid, .. } => concerns(sid),
    }
}

fn rights_of(rule: &Ace) -> u32 {
    match &rule.body {
        AceBody::About { mask, .. } => particular_rights(*mask),
        AceBody::Unknown(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u32 = FULL_ACCESS;
    const READ: u32 = 0x0012_0089;
    const WRITE: u32 = 0x0012_0116;
    const EXECUTE: u32 = 0x0012_00A0;
    const OWNER: u32 = READ_CONTROL | WRITE_DAC;

    #[test]
    fn the_list_decides_who_may_do_what() {
        for (why, descriptor, rights) in [
            ("no list lets everybody do everything", "O:BUG:BU", ALL),
            ("nor does one that is null", "O:BUG:BUD:NO_ACCESS_CONTROL", ALL),
            ("an empty list lets nobody do anything", "O:S-1-5-9G:BUD:", 0),
            ("but the owner can change it", "O:SYG:BUD:", OWNER),
            ("as can a member of an owning group", "O:BAG:BUD:", OWNER),
            ("the user", "O:S-1-5-9G:BUD:(A;;FR;;;SY)", READ),
            ("everyone", "O:S-1-5-9G:BUD:(A;;FR;;;WD)", READ),
            ("who has logged on", "O:S-1-5-9G:BUD:(A;;FR;;;AU)", READ),
            ("from the network", "O:S-1-5-9G:BUD:(A;;FR;;;NU)", READ),
            ("somebody else", "O:S-1-5-9G:BUD:(A;;FA;;;S-1-5-9)", 0),
            ("several rules add up", "O:S-1-5-9G:BUD:(A;;FR;;;WD)(A;;FW;;;SY)", READ | WRITE),
            ("denied before allowed", "O:S-1-5-9G:BUD:(D;;FW;;;WD)(A;;FA;;;SY)", ALL & !WRITE),
            ("allowed before denied", "O:S-1-5-9G:BUD:(A;;FA;;;SY)(D;;FW;;;WD)", ALL),
            ("denied to another", "O:S-1-5-9G:BUD:(D;;FA;;;S-1-5-9)(A;;FR;;;WD)", READ),
            ("only for what is below", "O:S-1-5-9G:BUD:(A;OICIIO;FA;;;WD)", 0),
            ("for what is below too", "O:S-1-5-9G:BUD:(A;OICI;FA;;;WD)", ALL),
            ("denied only below", "O:S-1-5-9G:BUD:(D;OICIIO;FA;;;WD)(A;;FR;;;WD)", READ),
            ("generic reading", "O:S-1-5-9G:BUD:(A;;GR;;;WD)", READ),
            ("generic writing", "O:S-1-5-9G:BUD:(A;;GW;;;WD)", WRITE),
            ("generic execution", "O:S-1-5-9G:BUD:(A;;GX;;;WD)", EXECUTE),
            ("everything", "O:S-1-5-9G:BUD:(A;;GA;;;WD)", ALL),
            ("generic denial", "O:S-1-5-9G:BUD:(D;;GW;;;WD)(A;;GA;;;WD)", ALL & !WRITE),
            ("the owner besides what is allowed", "O:SYG:BUD:(A;;FR;;;WD)", READ | OWNER),
            ("what the owner has cannot be denied", "O:SYG:BUD:(D;;FA;;;WD)", OWNER),
            ("but by a rule about owners", "O:SYG:BUD:(A;;FR;;;OW)", READ),
            ("that denies", "O:SYG:BUD:(D;;WD;;;OW)(A;;FA;;;WD)", ALL & !WRITE_DAC),
            ("which is about owners only", "O:S-1-5-9G:BUD:(A;;FA;;;OW)", 0),
            ("and not about those below", "O:SYG:BUD:(A;OICIIO;FR;;;OW)", OWNER),
            ("an audit allows nothing", "O:S-1-5-9G:BUD:(AU;SA;FA;;;WD)", 0),
        ] {
            let descriptor = Descriptor::parse_sddl(descriptor).expect(descriptor);
            let found = permitted(&descriptor, &Token::of_account());
            assert_eq!(found, rights, "{why}: {found:x} instead of {rights:x}");
        }
    }

    #[test]
    fn a_rule_with_a_condition_denies_and_does_not_allow() {
        let rule = |kind| {
            let rule = Ace::allow(READ, AceFlags::default(), Sid::well_known(Sid::EVERYONE));
            Ace { kind, ..rule }
        };
        let rights = |rules: Vec<Ace>| {
            let dacl = List::Rules(rules);
            permitted(&Descriptor { dacl, ..Descriptor::default() }, &Token::of_account())
        };
        assert_eq!(rights(vec![rule(AceKind::ALLOWED_CALLBACK)]), 0);
        assert_eq!(rights(vec![rule(AceKind::DENIED_CALLBACK), rule(AceKind::ALLOWED)]), 0);
    }

    #[test]
    fn the_root_of_a_new_share_keeps_nobody_out() {
        assert_eq!(permitted(&super::super::of_root(), &Token::of_account()), ALL);
    }
}
