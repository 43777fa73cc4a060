//! Security descriptors as text and back.

use holdfast_random::Random;

use super::*;

fn parsed(text: &str) -> Descriptor {
    Descriptor::parse_sddl(text).unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"))
}

#[test]
fn descriptors_come_back_as_they_were_written() {
    for text in [
        "",
        "O:SY",
        "O:BAG:SYD:",
        "O:BAG:SYD:NO_ACCESS_CONTROL",
        "O:BAG:SYD:P(A;OICI;FA;;;BA)",
        "O:BAG:SYD:PARAI(A;OICIIO;GXGR;;;BU)(D;NPID;0x1301bf;;;AU)",
        "O:S-1-5-21-2127521184-1604012920-1887927527-21560478\
         G:S-1-5-21-2127521184-1604012920-1887927527-513\
         D:AI(A;ID;FA;;;SY)(A;ID;FA;;;BA)(A;ID;0x1200a9;;;S-1-5-21-397955417-626881126-188441444-3053964)",
        "O:BAG:BAD:(OA;CI;RPWP;bf967a86-0de6-11d0-a285-00aa003049e2;;BA)\
         (OD;;CC;;bf967a86-0de6-11d0-a285-00aa003049e2;WD)(OA;;GA;;;SY)",
        "O:BAG:SYD:(A;;CCDCLCSWRPWPDTLOCRSDRCWDWO;;;SY)(A;;;;;WD)(A;;FRDC;;;WD)",
        "O:BAG:SYD:(A;;FA;;;WD)S:PARAI(AU;OICISAFA;SD;;;WD)(ML;;NWNRNX;;;HI)(SP;;;;;S-1-17-1)",
        "S:(ML;;NW;;;LW)",
    ] {
        let descriptor = parsed(text);
        let written = descriptor.to_sddl().expect(text);
        // A combination plus other rights is written bit by bit.
        let expected = text.replace("FRDC", "0x12008b");
        assert_eq!(written, expected);
        assert_eq!(Descriptor::from_bytes(&descriptor.to_bytes()), Some(descriptor), "{text}");
    }
}

#[test]
fn the_bytes_are_those_that_windows_writes() {
    let text = "O:BAG:SYD:(A;OICI;FA;;;SY)S:(AU;SA;GA;;;WD)";
    let expected = [
        [1, 0, 0x14, 0x80].as_slice(),
        &[76, 0, 0, 0],
        &[92, 0, 0, 0],
        &[20, 0, 0, 0],
        &[48, 0, 0, 0],
        &[2, 0, 28, 0, 1, 0, 0, 0],
        &[2, 0x40, 20, 0, 0, 0, 0, 0x10, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0],
        &[2, 0, 28, 0, 1, 0, 0, 0],
        &[0, 3, 20, 0, 0xFF, 1, 0x1F, 0, 1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0],
        &[1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0],
        &[1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0],
    ]
    .concat();
    assert_eq!(parsed(text).to_bytes(), expected);
    assert_eq!(Descriptor::from_bytes(&expected), Some(parsed(text)));
}

#[test]
fn case_and_spaces_do_not_count() {
    let expected = parsed("O:BAG:SYD:P(A;OI;FA;;;WD)");
    assert_eq!(parsed(" o:baG:SyD:p(a; oi ;fa;;; wd) "), expected);
    assert_eq!(parsed("D:P(A;OI;0x1F01FF;;;S-1-1-0)G:SYO:S-1-5-32-544"), expected);
    assert_eq!(parsed("O:BAG:SYD:P(A;OI;2032127;;;WD)"), expected);
    assert_eq!(parsed("O:BAG:SYD:P(A;OI;07600777;;;WD)"), expected);
}

#[test]
fn what_is_no_descriptor_is_refused() {
    for text in [
        "O",
        "X:BA",
        "O:",
        "O:XX",
        "OO:BA",
        "O:BAO:BA",
        "O:BA G",
        "D:(A;OI;FA;;;WD",
        "D:A;OI;FA;;;WD)",
        "D:(A;OI;FA;;WD)",
        "D:(A;OI;FA;;;WD;)",
        "D:(Q;OI;FA;;;WD)",
        "D:(A;QQ;FA;;;WD)",
        "D:(A;OI;QQ;;;WD)",
        "D:(A;OI;0x;;;WD)",
        "D:(A;OI;0x1FFFFFFFF;;;WD)",
        "D:(A;OI;FA;;;)",
        "D:Q(A;OI;FA;;;WD)",
        "D:(A;OI;FA;bf967a86-0de6-11d0-a285-00aa003049e2;;WD)",
        "D:(OA;OI;FA;guid;;WD)",
        "D:NO_ACCESS_CONTROL(A;;FA;;;WD)",
        "D:(A;;FA;;;WD)x",
        "D:(XA;;FX;;;WD;(@User.a==1))",
        "O:é",
        "O:é:",
        "é:BA",
        "::",
        "D:((",
        "O:S-1-5-21-",
    ] {
        assert_eq!(Descriptor::parse_sddl(text), Err(SddlRefusal::Malformed), "{text}");
    }
    for text in ["O:DA", "O:BAG:DU", "D:(A;;FA;;;LA)"] {
        assert_eq!(Descriptor::parse_sddl(text), Err(SddlRefusal::DomainRelative), "{text}");
    }
    for text in ["O:BAG:SY", "O:BAD:", "G:SYD:"] {
        assert_eq!(parsed(text).check_complete(), Err(SddlRefusal::Incomplete), "{text}");
    }
    assert_eq!(parsed("O:BAG:SYD:").check_complete(), Ok(()));
    let long = format!("D:{}", "(A;;;;;WD)".repeat(6000));
    assert_eq!(
        Descriptor::parse_sddl(&long),
        Err(SddlRefusal::Malformed),
        "more than a list can have"
    );
}

#[test]
fn rules_that_have_no_text_are_kept_in_bytes() {
    let sid = Sid::well_known(Sid::EVERYONE);
    let body = AceBody::About { mask: 1, object: None, sid, data: b"artx".to_vec() };
    let conditional = Ace { kind: AceKind::ALLOWED_CALLBACK, flags: AceFlags::default(), body };
    let unknown = Ace {
        kind: AceKind(0x77),
        flags: AceFlags::default(),
        body: AceBody::Unknown(vec![1, 2, 3, 4]),
    };
    for ace in [conditional, unknown] {
        let descriptor = Descriptor { dacl: List::Rules(vec![ace]), ..Descriptor::default() };
        assert_eq!(descriptor.to_sddl(), Err(Unwritable));
        assert_eq!(Descriptor::from_bytes(&descriptor.to_bytes()), Some(descriptor));
    }
}

#[test]
fn any_bytes_are_read_without_a_panic_and_what_is_read_is_written_alike() {
    let sample = parsed(
        "O:BAG:S-1-5-21-1-2-3-4D:PAI(A;OICI;FA;;;SY)(OA;;GA;bf967a86-0de6-11d0-a285-00aa003049e2;;WD)\
         S:(AU;SA;GA;;;WD)(ML;;NW;;;LW)",
    )
    .to_bytes();
    let mut random = Random::new(1);
    let mut read = 0;
    for _ in 0..20_000 {
        let mut bytes = sample.clone();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.below(256) as u8;
        }
        bytes.truncate(random.below(bytes.len() as u64 * 4) as usize);
        if let Some(descriptor) = Descriptor::from_bytes(&bytes) {
            read += 1;
            let written = descriptor.to_bytes();
            assert_eq!(Descriptor::from_bytes(&written).as_ref(), Some(&descriptor), "{bytes:?}");
            if let Ok(text) = descriptor.to_sddl() {
                assert_eq!(parsed(&text).to_sddl(), Ok(text), "{bytes:?}");
            }
        }
    }
    assert!(read > 1000, "only {read} were descriptors");
}

#[test]
fn any_text_is_read_without_a_panic() {
    let pieces =
        ["O:", "G:", "D:", "S:", "(", ")", ";", "A", "BA", "SY", "S-1-", "0x", "P", "AI", ":", "é"];
    let mut random = Random::new(42);
    for _ in 0..50_000 {
        let count = random.below(12);
        let text: String =
            (0..count).map(|_| pieces[random.below(pieces.len() as u64) as usize]).collect();
        if let Ok(descriptor) = Descriptor::parse_sddl(&text) {
            let written = descriptor.to_sddl().expect("it came from a text");
            assert_eq!(Descriptor::parse_sddl(&written), Ok(descriptor), "{text}");
        }
    }
}
