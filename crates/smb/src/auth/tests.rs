use super::accounts::NtHash;
use super::exchange::*;
use super::ntlm::{self, Before};
use super::ntlm_messages::{Authenticate, flags};
use super::spnego::{self, Said};
use super::{Accounts, der};
use crate::hexadecimal;
use crate::wire::text;

use bytes::BufMut as _;
use hmac::{Hmac, Mac as _};
use md5::Md5;

fn hmac_md5(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Md5>::new_from_slice(key).expect("any key");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}

#[test]
fn the_hash_of_a_password_is_that_of_the_specification() {
    // [MS-NLMP] 4.2.2.1.2
    let hash = NtHash::of_password("Password");
    assert_eq!(hash.bytes()[..], hexadecimal("a4f49c406510bdcab6824ee7c30fd852"));
}

/// [MS-NLMP] 4.2.4: user "User", domain "Domain", password "Password".
fn blob_of_the_specification() -> Vec<u8> {
    let mut blob = hexadecimal("01010000000000000000000000000000aaaaaaaaaaaaaaaa00000000");
    blob.extend(hexadecimal("02000c0044006f006d00610069006e00"));
    blob.extend(hexadecimal("01000c00530065007200760065007200"));
    blob.extend(hexadecimal("0000000000000000"));
    blob
}

fn authenticate_message(
    user: &str,
    domain: &str,
    response: &[u8],
    key: &[u8],
    agreed: u32,
) -> Vec<u8> {
    let [domain, user, machine] = [domain, user, "desk\u{7}top"].map(text::encode);
    let fields = [&[][..], response, &domain, &user, &machine, key];
    let mut out = b"NTLMSSP\0\x03\0\0\0".to_vec();
    let mut offset = 88;
    for field in fields {
        out.put_u16_le(field.len() as u16);
        out.put_u16_le(field.len() as u16);
        out.put_u32_le(offset);
        offset += field.len() as u32;
    }
    out.put_u32_le(agreed);
    out.put_u64_le(0);
    out.extend_from_slice(&[0; 16]);
    fields.into_iter().for_each(|field| out.extend_from_slice(field));
    out
}

#[test]
fn the_proof_and_the_key_are_those_of_the_specification() {
    let mut response = hexadecimal("68cd0ab851e51c96aabc927bebef6a1c");
    response.extend(blob_of_the_specification());
    let exchanged = hexadecimal("c5dad2544fc9799094ce1ce90bc9d03e");
    let message =
        authenticate_message("User", "Domain", &response, &exchanged, flags::KEY_EXCHANGE);
    let before = Before {
        negotiate: Vec::new(),
        challenge_message: Vec::new(),
        challenge: hexadecimal("0123456789abcdef").try_into().expect("8 bytes"),
    };
    let authenticate = Authenticate::decode(&message).expect("a message");
    let check = |password| {
        ntlm::check(&NtHash::of_password(password), &before, &message, &authenticate)
            .expect("a response of version 2")
    };
    assert_eq!(check("Password"), Some([0x55; 16]));
    assert_eq!(check("password"), None);
}

fn accounts() -> Accounts {
    let mut accounts = Accounts::default();
    accounts.insert("someone", ["Zmlyc3Q=", "c2Vjb25k"].into_iter());
    accounts
}

fn negotiate() -> Vec<u8> {
    let mut out = b"NTLMSSP\0\x01\0\0\0".to_vec();
    out.put_u32_le(flags::UNICODE | flags::SIGN | flags::KEY_128 | flags::KEY_EXCHANGE);
    out
}

fn init(token: &[u8]) -> Vec<u8> {
    let ntlm = der::value(der::OBJECT_IDENTIFIER, &hexadecimal("2b06010401823702020a"));
    let list = der::value(der::context(0), &der::value(der::SEQUENCE, &ntlm));
    let token = der::value(der::context(2), &der::value(der::OCTET_STRING, token));
    let fields = der::value(der::SEQUENCE, &[list, token].concat());
    let spnego = der::value(der::OBJECT_IDENTIFIER, &hexadecimal("2b0601050502"));
    let inner = [spnego, der::value(der::context(0), &fields)].concat();
    der::value(der::APPLICATION, &inner)
}

fn response(token: &[u8]) -> Vec<u8> {
    let token = der::value(der::context(2), &der::value(der::OCTET_STRING, token));
    der::value(der::context(1), &der::value(der::SEQUENCE, &token))
}

/// What a valid client sends, with a checksum over the three messages, correct or broken.
fn answer_to(
    challenge: &[u8; 8],
    messages: [&[u8]; 2],
    user: &str,
    password: &str,
    spoil: bool,
) -> Vec<u8> {
    let owner =
        hmac_md5(NtHash::of_password(password).bytes(), &[&text::encode(&user.to_uppercase())]);
    let mut blob = hexadecimal("01010000000000000000000000000000aaaaaaaaaaaaaaaa00000000");
    blob.extend(hexadecimal("060004000200000000000000"));
    let proof = hmac_md5(&owner, &[challenge, &blob]);
    let base = hmac_md5(&owner, &[&proof]);
    let mut message = authenticate_message(user, "", &[proof, blob].concat(), &[], 0);
    let mic = hmac_md5(&base, &[messages[0], messages[1], &message]);
    message[72..88].copy_from_slice(&mic);
    message[72] ^= u8::from(spoil);
    message
}

fn log_on(user: &str, password: &str, spoil: bool) -> Result<Authenticated, Refused> {
    let (accounts, challenge) = (accounts(), [7; 8]);
    let mut exchange = Exchange::default();
    let first = exchange.step(&accounts, &init(&negotiate()), challenge, 1)?;
    let Step::Continue(answer) = first else { panic!("a challenge first") };
    let Said::Response(said) = Said::decode(&answer).expect("an answer") else { panic!() };
    let message = said.token.expect("a challenge");
    assert_eq!(message[24..32], challenge);
    let last = answer_to(&challenge, [&negotiate(), message], user, password, spoil);
    match exchange.step(&accounts, &response(&last), challenge, 1)? {
        Step::Done(done) => Ok(done),
        Step::Continue(_) => panic!("two tokens are enough"),
    }
}

#[test]
fn either_key_logs_on_whatever_the_case_of_the_name_and_the_machine_is_known() {
    for (user, password) in [("someone", "Zmlyc3Q="), ("SomeOne", "c2Vjb25k")] {
        let done = log_on(user, password, false).expect("logged on");
        assert_eq!((&*done.user.account, &*done.user.client_name), ("someone", "desktop"));
    }
}

#[test]
fn a_wrong_key_a_stranger_and_a_changed_message_are_refused() {
    for (user, password, spoil) in [
        ("someone", "d3Jvbmc=", false),
        ("stranger", "Zmlyc3Q=", false),
        ("", "", false),
        ("someone", "Zmlyc3Q=", true),
    ] {
        let refused = log_on(user, password, spoil).err();
        assert_eq!(refused, Some(Refused::LogonFailure), "{user} {password} {spoil}");
    }
}

#[test]
fn an_anonymous_client_is_refused() {
    let (accounts, challenge) = (accounts(), [7; 8]);
    let mut exchange = Exchange::default();
    exchange.step(&accounts, &init(&negotiate()), challenge, 1).expect("a challenge");
    let message = authenticate_message("", "", &[], &[], flags::ANONYMOUS);
    let refused = exchange.step(&accounts, &response(&message), challenge, 1).err();
    assert_eq!(refused, Some(Refused::LogonFailure));
}

#[test]
fn tokens_cut_off_anywhere_or_out_of_turn_are_refused() {
    let (accounts, challenge) = (accounts(), [7; 8]);
    let whole = init(&negotiate());
    for length in 0..whole.len() {
        let mut exchange = Exchange::default();
        assert!(exchange.step(&accounts, &whole[..length], challenge, 1).is_err(), "{length}");
    }
    let message = answer_to(&challenge, [&[], &[]], "someone", "Zmlyc3Q=", false);
    for length in 0..message.len() {
        let mut exchange = Exchange::default();
        exchange.step(&accounts, &whole, challenge, 1).expect("a challenge");
        let cut = response(&message[..length]);
        assert!(exchange.step(&accounts, &cut, challenge, 1).is_err(), "{length}");
    }
    let mut exchange = Exchange::default();
    assert!(exchange.step(&accounts, &response(&negotiate()), challenge, 1).is_err());
}

#[test]
fn the_offer_is_what_a_client_can_read() {
    let offer = spnego::offer();
    let inner = der::whole(&offer, der::APPLICATION).expect("one value");
    assert!(inner.starts_with(&hexadecimal("06062b0601050502a0")));
}
