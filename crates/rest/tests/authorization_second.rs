//! Every operation with a second resource, requested with every kind of credentials: the second
//! resource is opened exactly if they cover it, too.

mod authorization;
mod golden_request;

use std::collections::BTreeMap;

use authorization::{ACCOUNT, DATE, Fact, Request, VERSION, facts};
use golden_request::{assignment, rfc1123, unsigned_token};
use holdfast_rest::auth::{Assignment, BearerSettings, NamedResource, authorize_second};
use holdfast_rest::operation::{Need, Operation, Second, SourceCredentials};
use holdfast_rest::service::Service;
use holdfast_rest::version::Version;

const OBJECT: &str = "aaaaaaaa-0000-4000-8000-000000000001";

/// What the reference says about the second resource of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// Read by its own credentials, or a key or role in its account.
    Copied,
    /// Read by its own credentials only.
    FromUrl,
    /// Opened by credentials that have one of these sets of letters for it.
    Used(&'static [&'static str]),
    /// Parts are separate requests.
    Parts,
}

const SAID: [(&str, Said); 17] = [
    ("Copy Blob (asynchronous)", Said::Copied),
    ("Incremental Copy Blob", Said::Copied),
    ("Copy File", Said::Copied),
    ("Copy Blob From URL (synchronous)", Said::FromUrl),
    ("Put Blob From URL", Said::FromUrl),
    ("Put Block From URL", Said::FromUrl),
    ("Put Page From URL", Said::FromUrl),
    ("Append Block From URL", Said::FromUrl),
    ("Put Range From URL", Said::FromUrl),
    ("Rename File", Said::Used(&["w", "d"])),
    ("Rename Directory", Said::Used(&["w", "d"])),
    ("Create Hard Link (NFS)", Said::Used(&["rw"])),
    ("Rename Container", Said::Used(&["w"])),
    ("Restore Container", Said::Used(&["w"])),
    ("Blob Batch (account)", Said::Parts),
    ("Blob Batch (container)", Said::Parts),
    ("Entity Group Transaction (batch)", Said::Parts),
];

#[test]
fn every_operation_that_names_a_second_resource_says_what_opens_it() {
    let said: BTreeMap<&str, Said> = SAID.into_iter().collect();
    let words = ["Copy", "From URL", "Rename", "Hard Link", "Restore Container", "atch"];
    for operation in Operation::all() {
        let name = operation.as_str();
        let found = match operation.row().second {
            Second::None => None,
            Second::Read(SourceCredentials::OwnOrOfAccount) => Some(Said::Copied),
            Second::Read(SourceCredentials::Own) => Some(Said::FromUrl),
            Second::Use(need) => Some(Said::Used(need.letters)),
            Second::Parts => Some(Said::Parts),
        };
        assert_eq!(found, said.get(name).copied(), "{name}");
        let names_another =
            words.iter().any(|word| name.contains(word)) && !name.starts_with("Abort");
        assert_eq!(found.is_some(), names_another, "{name}");
    }
}

/// The operations whose second resource the caller's own credentials may open, with what it needs.
fn used() -> Vec<(Fact, Need)> {
    let of = |fact: Fact| {
        let operation = Operation::all().find(|operation| operation.as_str() == fact.operation)?;
        match operation.row().second {
            Second::Use(need) => Some((fact, need)),
            Second::None | Second::Read(_) | Second::Parts => None,
        }
    };
    facts().into_iter().filter_map(of).collect()
}

/// The resource of the request itself, as in the facts.
fn own(fact: &Fact) -> NamedResource<'static> {
    let (container, object) = match fact.service {
        Service::Blob => ("container", None),
        Service::File if fact.target.contains("restype=directory") => ("share", Some("folder")),
        Service::File => ("share", Some("folder/file")),
        Service::Queue | Service::Table => panic!("{} has no second resource", fact.operation),
    };
    NamedResource { account: ACCOUNT, service: fact.service, container: Some(container), object }
}

/// Other resources than `own`, and whether they are in its container.
fn seconds(own: NamedResource<'static>) -> Vec<(NamedResource<'static>, bool)> {
    let there = NamedResource { object: own.object.and(Some("private/secret")), ..own };
    vec![
        (there, true),
        (NamedResource { container: Some("other"), ..there }, false),
        (NamedResource { container: Some("other"), ..own }, false),
    ]
}

fn is_opened(
    request: &Request,
    need: &Need,
    own: &NamedResource<'_>,
    second: &NamedResource<'_>,
) -> bool {
    let version = Version::parse(VERSION).expect("a version");
    let decided = request.decide();
    let Ok(identity) = decided.identity else { return false };
    decided.granted.is_ok() && authorize_second(&identity, need, version, own, second).is_ok()
}

fn letters_fit(need: &Need, letters: &str) -> bool {
    need.letters.iter().any(|all| all.chars().all(|letter| letters.contains(letter)))
}

const LETTERS: [&str; 9] = ["r", "c", "w", "d", "cd", "rw", "rc", "rcd", "rcwdl"];

#[test]
fn a_key_opens_what_is_in_its_account_and_nothing_else() {
    for (fact, need) in used() {
        let (request, own) = (fact.request(&fact.methods[0]).by_shared_key(), own(&fact));
        for (second, _) in seconds(own) {
            assert!(is_opened(&request, &need, &own, &second), "{}", fact.operation);
            let elsewhere = NamedResource { account: "another", ..second };
            assert!(!is_opened(&request, &need, &own, &elsewhere), "{}", fact.operation);
        }
    }
}

#[test]
fn an_account_sas_opens_its_letters_in_its_services_of_its_account() {
    for (fact, need) in used() {
        let own = own(&fact);
        for letters in LETTERS {
            let services = fact.service.sas_letter().to_string();
            let request = fact.request(&fact.methods[0]);
            let request = request.by_account_sas(&services, "sco", letters);
            let first = fact.letters.is_met(|letter| letters.contains(letter));
            for (second, _) in seconds(own) {
                let expected = first && letters_fit(&need, letters);
                let case = format!("{} {letters} {second:?}", fact.operation);
                assert_eq!(is_opened(&request, &need, &own, &second), expected, "{case}");
                let elsewhere = NamedResource { account: "another", ..second };
                assert!(!is_opened(&request, &need, &own, &elsewhere), "{case}");
                let service = Service::ALL.into_iter().find(|other| *other != fact.service);
                let service = service.expect("another service");
                let of_other_service = NamedResource { service, ..second };
                assert!(!is_opened(&request, &need, &own, &of_other_service), "{case}");
            }
        }
    }
}

#[test]
fn a_service_sas_opens_what_it_was_made_for() {
    let mut cells = 0;
    for (fact, need) in used().into_iter().filter(|(fact, _)| fact.service_sas) {
        let own = own(&fact);
        let path = own.object.expect("a path");
        let kinds = [
            ("s", format!("/file/{ACCOUNT}/share")),
            ("f", format!("/file/{ACCOUNT}/share/{path}")),
        ];
        for (kind, resource) in kinds {
            for letters in LETTERS {
                let request = fact.request(&fact.methods[0]);
                let request = request.by_service_sas(kind, &resource, letters);
                let first = request.is_allowed();
                for (second, same_share) in seconds(own) {
                    let covered = kind == "s" && same_share;
                    let expected = first && covered && letters_fit(&need, letters);
                    let case = format!("{} sr={kind} {letters} {second:?}", fact.operation);
                    assert_eq!(is_opened(&request, &need, &own, &second), expected, "{case}");
                    cells += 1;
                }
                let itself = first && letters_fit(&need, letters);
                assert_eq!(is_opened(&request, &need, &own, &own), itself, "{}", fact.operation);
            }
        }
    }
    assert!(cells > 100, "{cells}");
}

#[test]
fn a_token_opens_where_its_roles_are() {
    let token = unsigned_token(OBJECT, "tenant", rfc1123(DATE).unix_seconds());
    let scoped = |service: Service, container: Option<&str>| {
        let mut role: Assignment = assignment(OBJECT, &["*".to_owned()]);
        role.scope.account = Some(ACCOUNT.to_owned());
        role.scope.container = container.map(|name| (service, name.to_owned()));
        BearerSettings::development().with_assignments(vec![role])
    };
    for (fact, need) in used() {
        let own = own(&fact);
        for (container, opens_own, opens_other) in
            [(None, true, true), (own.container, true, false), (Some("other"), false, true)]
        {
            let bearer = scoped(fact.service, container);
            let request = fact.request(&fact.methods[0]).by_token(&token, &bearer);
            for (second, same_container) in seconds(own) {
                let second_opens = if same_container { opens_own } else { opens_other };
                let expected = opens_own && second_opens;
                let case = format!("{} at {container:?}: {second:?}", fact.operation);
                assert_eq!(is_opened(&request, &need, &own, &second), expected, "{case}");
            }
        }
    }
}

#[test]
fn nobody_in_particular_opens_no_second_resource() {
    for (fact, need) in used() {
        let (request, own) = (fact.request(&fact.methods[0]), own(&fact));
        let decided = request.decide();
        let identity = decided.identity.expect("nobody in particular");
        let version = Version::parse(VERSION).expect("a version");
        let opened = authorize_second(&identity, &need, version, &own, &own);
        assert!(opened.is_err(), "{}", fact.operation);
    }
}
