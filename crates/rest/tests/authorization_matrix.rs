//! Every operation, requested with every scheme, letter, kind of resource and role action: allowed
//! exactly where the reference says so.

mod authorization;
mod golden_request;

use std::collections::BTreeSet;

use authorization::{ACCOUNT, AnyOf, DATE, Fact, KEY, Request, VERSION, facts};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use golden_request::{assignment, rfc1123, unsigned_token};
use holdfast_domain::access::PublicAccess;
use holdfast_rest::auth::{
    AccountKeys, BearerSettings, Key, KeyFields, check_public_access, issue_user_delegation_key,
    key_time,
};
use holdfast_rest::operation::Operation;
use holdfast_rest::service::Service;
use holdfast_rest::version::Version;

const OBJECT: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const TENANT: &str = "bbbbbbbb-0000-4000-8000-000000000002";
/// Sets of which an operation may need all.
const PAIRS: [&str; 4] = ["au", "wd", "rw", "cd"];

/// Each letter by itself, the pairs, and all of them.
fn letter_sets() -> Vec<String> {
    let each = ('a'..='z').map(String::from);
    let pairs = PAIRS.into_iter().map(str::to_owned);
    each.chain(pairs).chain([every_letter()]).collect()
}

fn every_letter() -> String {
    ('a'..='z').collect()
}

/// For a resource that the request does not name, no letters are enough.
fn letter_sets_for(fits: bool) -> Vec<String> {
    if fits { letter_sets() } else { vec![every_letter()] }
}

/// All except the CORS preflight, which is answered with any credentials.
fn asked() -> impl Iterator<Item = Fact> {
    facts().into_iter().filter(|fact| fact.anonymous != "always")
}

fn requests(fact: &Fact) -> impl Iterator<Item = Request> + '_ {
    fact.methods.iter().map(|method| fact.request(method))
}

#[track_caller]
fn expect(fact: &Fact, request: &Request, expected: bool, case: &str) {
    let decided = request.decide();
    let name = decided.operation.as_str();
    assert_eq!(name, fact.operation, "{} {}", request.method, request.target);
    assert_eq!(decided.granted.is_ok(), expected, "{name}, {case}: {:?}", decided.granted);
}

#[test]
fn every_operation_is_in_the_matrix() {
    let facts: BTreeSet<String> = facts().into_iter().map(|fact| fact.operation).collect();
    let known: BTreeSet<String> = Operation::all().map(|it| it.as_str().to_owned()).collect();
    assert_eq!(facts, known);
}

#[test]
fn a_key_of_the_account_opens_what_the_reference_says() {
    for fact in facts() {
        for request in requests(&fact) {
            expect(&fact, &request.clone().by_shared_key(), fact.key, "Shared Key");
            expect(&fact, &request.by_shared_key_lite(), fact.key, "Shared Key Lite");
        }
    }
}

#[test]
fn an_account_sas_opens_its_letters_on_its_types_of_its_services() {
    let types = ["s", "c", "o", "sc", "so", "co", "sco"];
    let mut cells = 0;
    for fact in asked() {
        let own = fact.service.sas_letter().to_string();
        for request in requests(&fact) {
            for letters in letter_sets() {
                for types in types {
                    let type_fits = fact.resource_type == "*"
                        || types.chars().any(|letter| fact.resource_type.contains(letter));
                    let letters_fit = fact.letters.is_met(|letter| letters.contains(letter));
                    let request = request.clone().by_account_sas(&own, types, &letters);
                    let expected = fact.key && type_fits && letters_fit;
                    expect(&fact, &request, expected, &format!("srt={types} sp={letters}"));
                    cells += 1;
                }
            }
            let others: String = "bqtf".replace(&own, "");
            let request = request.clone().by_account_sas(&others, "sco", &every_letter());
            expect(&fact, &request, false, "of other services");
        }
    }
    assert!(cells > 30_000, "{cells}");
}

/// The kinds of signatures for one resource: the value of `sr`, the signed resource, and whether it
/// covers that of the request.
fn kinds(fact: &Fact) -> Vec<(&'static str, String, bool)> {
    let signed = |path: &str| format!("/{}/{ACCOUNT}/{path}", fact.service.name());
    let depth = fact.depth();
    let is_directory = fact.target.contains("restype=directory");
    match fact.service {
        Service::Blob => vec![
            ("c", signed("container"), depth > 0),
            ("b", signed("container/folder/blob"), depth > 1),
            ("d", signed("container/folder"), depth > 1),
            ("c", signed("other"), false),
            ("b", signed("container/folder/other"), false),
            ("d", signed("container/other"), false),
        ],
        Service::File if is_directory => {
            vec![("s", signed("share"), true), ("s", signed("other"), false)]
        }
        Service::File => vec![
            ("s", signed("share"), depth > 0),
            ("f", signed("share/folder/file"), depth > 1),
            ("s", signed("other"), false),
            ("f", signed("share/folder/other"), false),
        ],
        Service::Queue => vec![("", signed("queue"), depth > 0), ("", signed("other"), false)],
        Service::Table => {
            // These two name no table; each part of a batch is compared with the signature's.
            let unnamed = ["$batch", "$metadata"].iter().any(|name| fact.target.contains(name));
            vec![("", signed("people"), true), ("", signed("others"), unnamed)]
        }
    }
}

#[test]
fn a_service_sas_opens_its_letters_on_its_resource() {
    let mut cells = 0;
    for fact in asked() {
        for (kind, resource, fits) in kinds(&fact) {
            for request in requests(&fact) {
                for letters in letter_sets_for(fits) {
                    let letters_fit = fact.letters.is_met(|letter| letters.contains(letter));
                    let expected = fits && fact.service_sas && letters_fit;
                    let request = request.clone().by_service_sas(kind, &resource, &letters);
                    let case = format!("sr={kind} for {resource} sp={letters}");
                    expect(&fact, &request, expected, &case);
                    cells += 1;
                }
            }
        }
    }
    assert!(cells > 5_000, "{cells}");
}

/// Every action that any operation names.
fn actions() -> BTreeSet<String> {
    facts().iter().flat_map(|fact| fact.role.names()).collect()
}

/// Each action by itself, each set that an operation needs, all of them, and none.
fn action_sets() -> Vec<Vec<String>> {
    let mut sets: Vec<Vec<String>> = actions().into_iter().map(|action| vec![action]).collect();
    for fact in facts() {
        if let AnyOf::Of(alternatives) = fact.role {
            sets.extend(alternatives.into_iter().filter(|all| all.len() > 1));
        }
    }
    sets.push(actions().into_iter().collect());
    sets.push(Vec::new());
    sets.sort();
    sets.dedup();
    sets
}

fn settings(actions: &[String]) -> BearerSettings {
    let patterns = actions.iter().map(|it| format!("Microsoft.Storage/storageAccounts/{it}"));
    let role = assignment(OBJECT, &patterns.collect::<Vec<_>>());
    BearerSettings::development().with_assignments(vec![role])
}

#[test]
fn a_token_opens_the_actions_of_its_roles() {
    let token = unsigned_token(OBJECT, TENANT, rfc1123(DATE).unix_seconds());
    let mut cells = 0;
    for actions in action_sets() {
        let bearer = settings(&actions);
        for fact in asked() {
            let expected = fact.role.is_met(|action| actions.iter().any(|it| it == action));
            for request in requests(&fact) {
                let request = request.by_token(&token, &bearer);
                expect(&fact, &request, expected, &format!("{actions:?}"));
                cells += 1;
            }
        }
    }
    assert!(cells > 8_000, "{cells}");
}

#[test]
fn a_token_opens_nothing_in_versions_that_do_not_take_it() {
    let token = unsigned_token(OBJECT, TENANT, rfc1123(DATE).unix_seconds());
    let all: Vec<String> = actions().into_iter().collect();
    for fact in asked() {
        let known = Version::KNOWN.iter().map(Version::to_string);
        for version in known.filter(|version| version.as_str() >= "2009-09-19") {
            let expected = fact.role != AnyOf::Nothing && version >= fact.role_since;
            for request in requests(&fact) {
                let request = request.with_header("x-ms-version", &version);
                let request = request.by_token(&token, &settings(&all));
                expect(&fact, &request, expected, &version);
            }
        }
    }
}

/// A key of the service, and its fields by the names that signatures give them.
fn delegation_key(service: Service) -> (Vec<u8>, Vec<(&'static str, String)>) {
    let now = rfc1123(DATE);
    let fields = KeyFields {
        signed_oid: OBJECT.to_owned(),
        signed_tid: TENANT.to_owned(),
        signed_start: now,
        signed_expiry: now.plus(std::time::Duration::from_secs(3600)),
        signed_service: service.sas_letter().to_string(),
        signed_version: VERSION.to_owned(),
        signed_delegated_user_tid: None,
    };
    let keys = AccountKeys { primary: Key::from_bytes(KEY), secondary: None };
    let key = issue_user_delegation_key(fields, &keys, now).expect("a key");
    let named = vec![
        ("skoid", key.fields.signed_oid),
        ("sktid", key.fields.signed_tid),
        ("skt", key_time(key.fields.signed_start)),
        ("ske", key_time(key.fields.signed_expiry)),
        ("sks", key.fields.signed_service),
        ("skv", key.fields.signed_version),
    ];
    (STANDARD.decode(key.value).expect("Base64"), named)
}

/// Whether a user delegation SAS can open the resource of `fact`, given both letters and role.
fn can_be_delegated(fact: &Fact) -> bool {
    // There are no such signatures for tables.
    fact.service != Service::Table && fact.service_sas && fact.key
}

#[test]
fn a_user_delegation_sas_opens_its_letters_on_its_resource() {
    let all: Vec<String> = actions().into_iter().collect();
    let bearer = settings(&all);
    let mut cells = 0;
    for fact in asked() {
        let (key, fields) = delegation_key(fact.service);
        for (kind, resource, fits) in kinds(&fact) {
            for request in requests(&fact) {
                for letters in letter_sets_for(fits) {
                    let letters_fit = fact.letters.is_met(|letter| letters.contains(letter));
                    let role_fits = fact.role != AnyOf::Nothing;
                    let expected = can_be_delegated(&fact) && fits && letters_fit && role_fits;
                    let mut request =
                        request.clone().by_delegation(&key, &fields, kind, &resource, &letters);
                    request.bearer = bearer.clone();
                    let case = format!("sr={kind} for {resource} sp={letters}");
                    expect(&fact, &request, expected, &case);
                    cells += 1;
                }
            }
        }
    }
    assert!(cells > 5_000, "{cells}");
}

#[test]
fn a_user_delegation_sas_opens_no_more_than_its_maker_may_do() {
    let letters = every_letter();
    for actions in action_sets() {
        let bearer = settings(&actions);
        for fact in asked() {
            let (key, fields) = delegation_key(fact.service);
            let role_fits = fact.role.is_met(|action| actions.iter().any(|it| it == action));
            let letters_fit = fact.letters != AnyOf::Nothing;
            for (kind, resource, fits) in kinds(&fact).into_iter().take(1) {
                for request in requests(&fact) {
                    let expected = can_be_delegated(&fact) && fits && letters_fit && role_fits;
                    let mut request =
                        request.by_delegation(&key, &fields, kind, &resource, &letters);
                    request.bearer = bearer.clone();
                    expect(&fact, &request, expected, &format!("{actions:?}"));
                }
            }
        }
    }
}

#[test]
fn a_user_delegation_sas_of_another_service_opens_nothing() {
    let letters = every_letter();
    for fact in asked() {
        for other in Service::ALL.into_iter().filter(|other| *other != fact.service) {
            let (key, fields) = delegation_key(other);
            let (kind, resource, _) = kinds(&fact).swap_remove(0);
            for request in requests(&fact) {
                let mut request = request.by_delegation(&key, &fields, kind, &resource, &letters);
                request.bearer = BearerSettings::development();
                expect(&fact, &request, false, other.name());
            }
        }
    }
}

#[test]
fn nobody_in_particular_opens_what_is_public() {
    let levels = [
        ("private", None),
        ("blob", Some(PublicAccess::Blob)),
        ("container", Some(PublicAccess::Container)),
    ];
    for fact in facts() {
        for request in requests(&fact) {
            for (name, level) in levels {
                let expected = match fact.anonymous.as_str() {
                    "always" => true,
                    "blob" => level.is_some(),
                    "container" => level == Some(PublicAccess::Container),
                    _ => false,
                };
                let decided = request.decide().granted;
                let opened = decided.is_ok_and(|granted| {
                    // An anonymous caller may read, and nothing else.
                    assert!(!granted.may('r', "x"));
                    check_public_access(&granted, level, true).is_ok()
                });
                assert_eq!(opened, expected, "{}, {name}", fact.operation);
            }
        }
    }
}
