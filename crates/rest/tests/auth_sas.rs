//! Shared access signatures made by official clients or, for versions that no client makes any
//! more, by code in the generator: accepted unchanged, refused if any signed part is changed, and
//! each other reason for refusal has its own variant.

mod golden_request;

use std::net::IpAddr;

use golden_request::{Golden, rfc1123, unsigned_token};
use holdfast_domain::access::StoredPolicy;
use holdfast_domain::time::Timestamp;
use holdfast_rest::auth::{AuthRefusal, BearerSettings, Below, Identity, KeyRange, resolve_policy};

const FILES: [&str; 2] =
    [include_str!("golden/sas_python.json"), include_str!("golden/sas_javascript.json")];

/// The valid ones of one kind, or all valid ones.
fn goldens(kind: Option<&str>) -> Vec<Golden> {
    let all = FILES.iter().flat_map(|file| Golden::load(file)).map(with_token);
    let valid = all.filter(|golden| golden.kind != "too long");
    valid.filter(|golden| kind.is_none_or(|kind| golden.kind == kind)).collect()
}

/// A signature for one user is sent with that user's token.
fn with_token(mut golden: Golden) -> Golden {
    if let Some(user) = golden.delegated_user.clone() {
        golden.bearer = BearerSettings::development();
        let tenant = "bbbbbbbb-0000-4000-8000-000000000002";
        let token = unsigned_token(&user, tenant, golden.now.unix_seconds());
        golden.set_header("authorization", &format!("Bearer {token}"));
    }
    golden
}

fn golden(name: &str) -> Golden {
    let found = goldens(None).into_iter().find(|golden| golden.name == name);
    found.unwrap_or_else(|| panic!("no golden case {name}"))
}

fn is_failed(result: &Result<Identity, AuthRefusal>) -> bool {
    matches!(result, Err(AuthRefusal::AuthenticationFailed { .. }))
}

#[test]
fn every_signature_of_the_clients_is_accepted() {
    let goldens = goldens(None);
    assert!(goldens.len() > 150, "the golden files are read");
    for golden in goldens {
        let identity = golden.authenticate();
        let expected = match (golden.kind.as_str(), &identity) {
            ("account", Ok(Identity::AccountSas(_)))
            | ("delegation", Ok(Identity::UserDelegationSas(_))) => true,
            ("service", Ok(Identity::ServiceSas(sas))) => sas.policy_id.is_none(),
            ("policy" | "policy and times", Ok(Identity::ServiceSas(sas))) => {
                sas.policy_id.is_some()
            }
            _ => false,
        };
        assert!(expected, "{}: {identity:?}", golden.name);
        assert_eq!(golden.authenticate_with_secondary(), identity, "{}", golden.name);
    }
}

#[test]
fn every_changed_or_missing_signed_parameter_is_refused() {
    let mut changed = 0;
    for golden in goldens(None) {
        for name in &golden.signed {
            let mut altered = golden.clone();
            altered.query_value(name).push('1');
            assert!(altered.authenticate().is_err(), "{}: {name} changed", golden.name);
            altered.remove_query(name);
            let result = altered.authenticate();
            // Without `sig` there is no signature to refuse; without `sduoid` the token alone counts.
            let no_signature = match name.as_str() {
                "sig" => matches!(result, Ok(Identity::Anonymous(_) | Identity::Bearer(_))),
                "sduoid" => matches!(result, Ok(Identity::Bearer(_))),
                _ => false,
            };
            assert!(result.is_err() || no_signature, "{}: {name} missing", golden.name);
            changed += 1;
        }
    }
    assert!(changed > 1000);
}

#[test]
fn a_signature_is_good_for_its_own_resource_only() {
    for golden in goldens(None).into_iter().filter(|golden| golden.kind != "account") {
        let mut altered = golden.clone();
        altered.path = format!("/x{}", &golden.path[1..]);
        assert!(altered.authenticate().is_err(), "{}: {}", golden.name, altered.path);

        let kind = golden.clone().query.into_iter().find(|(name, _)| name == "sr");
        let whole_container = kind.is_none_or(|(_, kind)| matches!(kind.as_str(), "c" | "s" | "d"));
        let mut altered = golden.clone();
        altered.path.push_str("/x");
        assert_eq!(altered.authenticate().is_err(), !whole_container, "{}", golden.name);
        let mut altered = golden.clone();
        altered.account = "other".to_owned();
        altered.serve("other");
        assert!(is_failed(&altered.authenticate()), "{}: account", golden.name);
    }
}

#[test]
fn a_parameter_sent_twice_is_refused() {
    for mut golden in goldens(None) {
        let (name, value) = golden.query[0].clone();
        golden.query.push((name.to_uppercase(), value));
        let result = golden.authenticate();
        let duplicate = matches!(&result, Err(AuthRefusal::DuplicateQueryParameter { name: found }) if *found == name);
        assert!(duplicate, "{}: {result:?}", golden.name);
    }
}

#[test]
fn a_second_signature_is_a_signature_that_failed() {
    for mut golden in goldens(None) {
        let signature = golden.query.iter().find(|(name, _)| name == "sig").cloned();
        golden.query.extend(signature);
        assert!(is_failed(&golden.authenticate()), "{}", golden.name);
    }
}

#[test]
fn a_signature_is_refused_after_its_end_and_before_its_start() {
    for golden in goldens(None).into_iter().filter(|golden| !golden.kind.starts_with("policy")) {
        let starts = golden.query.iter().any(|(name, _)| name == "st");
        for (now, accepted) in [
            ("Sat, 01 Jun 2024 12:30:00 GMT", true),
            ("Sat, 01 Jun 2024 12:30:01 GMT", false),
            ("Sat, 01 Jun 2024 11:30:00 GMT", true),
            ("Sat, 01 Jun 2024 11:29:59 GMT", !starts),
        ] {
            let mut golden = golden.clone();
            golden.now = rfc1123(now);
            let result = golden.authenticate();
            assert_eq!(result.is_ok(), accepted, "{} at {now}: {result:?}", golden.name);
            assert_eq!(is_failed(&result), !accepted, "{} at {now}: {result:?}", golden.name);
        }
    }
}

#[test]
fn a_delegation_key_ends_what_it_signed() {
    for mut golden in goldens(Some("delegation")) {
        golden.now = rfc1123("Sat, 01 Jun 2024 10:59:59 GMT");
        assert!(is_failed(&golden.authenticate()), "{}", golden.name);
    }
}

#[test]
fn an_address_outside_the_signed_range_is_refused() {
    let mut restricted = 0;
    for golden in goldens(None) {
        let Some((_, range)) = golden.query.iter().find(|(name, _)| name == "sip").cloned() else {
            continue;
        };
        restricted += 1;
        let in_range = |address: &str| match range.as_str() {
            "127.0.0.1" => address.ends_with("127.0.0.1"),
            "127.0.0.0-127.0.0.9" => address != "126.255.255.255" && address != "127.0.0.10",
            other => panic!("{other} is a range this test does not know"),
        };
        for address in
            ["127.0.0.1", "::ffff:127.0.0.1", "127.0.0.9", "127.0.0.10", "126.255.255.255"]
        {
            let mut golden = golden.clone();
            golden.client_ip = address.parse::<IpAddr>().expect("an address");
            let result = golden.authenticate();
            let expected =
                if in_range(address) { None } else { Some(AuthRefusal::SourceIpMismatch) };
            assert_eq!(result.err(), expected, "{} from {address}", golden.name);
        }
        let mut golden = golden.clone();
        golden.client_ip = "::1".parse().expect("an address");
        assert_eq!(golden.authenticate(), Err(AuthRefusal::SourceIpMismatch), "{}", golden.name);
    }
    assert!(restricted > 40);
}

#[test]
fn a_signature_for_https_is_refused_over_http() {
    let mut restricted = 0;
    for mut golden in goldens(None) {
        golden.tls = false;
        let protocol = golden.query.iter().find(|(name, _)| name == "spr").map(|(_, value)| value);
        let expected = match protocol.map(String::as_str) {
            Some("https") => Some(AuthRefusal::ProtocolMismatch),
            Some(_) | None => None,
        };
        restricted += usize::from(expected.is_some());
        assert_eq!(golden.authenticate().err(), expected, "{}", golden.name);
    }
    assert!(restricted > 20);
}

#[test]
fn an_account_signature_is_refused_by_services_it_does_not_name() {
    for golden in goldens(Some("account")) {
        let services = golden.clone().query_value("ss").clone();
        for (service, letter) in [("blob", 'b'), ("queue", 'q'), ("table", 't'), ("file", 'f')] {
            let mut golden = golden.clone();
            golden.service = service.to_owned();
            let expected = (!services.contains(letter)).then_some(AuthRefusal::ServiceMismatch);
            assert_eq!(golden.authenticate().err(), expected, "{} as {service}", golden.name);
        }
    }
}

#[test]
fn a_delegated_signature_needs_the_token_of_its_user() {
    let golden = golden("python user delegation to a user");
    assert!(golden.authenticate().is_ok());
    let now = golden.now.unix_seconds();
    let user = golden.delegated_user.clone().expect("a delegated user");
    for (user, tenant) in
        [("someone else", "bbbbbbbb-0000-4000-8000-000000000002"), (&user, "other")]
    {
        let mut golden = golden.clone();
        let token = unsigned_token(user, tenant, now);
        golden.set_header("authorization", &format!("Bearer {token}"));
        assert!(is_failed(&golden.authenticate()), "{user} {tenant}");
    }
}

#[test]
fn a_directory_signature_says_how_deep_its_directory_is() {
    for mut golden in [golden("python directory"), golden("javascript directory 2020-02-10")] {
        let Ok(Identity::ServiceSas(sas)) = golden.authenticate() else { panic!("a service SAS") };
        let directory = Some(Below::Directory("d/e".to_owned()));
        assert_eq!(sas.scope.resource.map(|resource| resource.below), directory);
        let mut missing = golden.clone();
        missing.remove_query("sdd");
        let expected = AuthRefusal::SasParameterMandatory { name: "sdd" };
        assert_eq!(missing.authenticate(), Err(expected));
        golden.path = "/c/d".to_owned();
        assert_eq!(golden.authenticate(), Err(AuthRefusal::DirectoryDepthInvalid));
        for elsewhere in ["/c/d/ex", "/c//d/e/f", "/c/d//e/f"] {
            golden.path = elsewhere.to_owned();
            assert!(is_failed(&golden.authenticate()), "{elsewhere}");
        }
    }
}

#[test]
fn a_blob_signature_of_a_version_that_does_not_sign_its_kind_cannot_become_one_for_a_directory() {
    let mut golden = golden("python old blob 2015-04-05");
    assert!(golden.authenticate().is_ok());
    *golden.query_value("sr") = "d".to_owned();
    golden.query.push(("sdd".to_owned(), "1".to_owned()));
    golden.path = "/c/b/below".to_owned();
    assert_eq!(golden.authenticate().err(), Some(AuthRefusal::DirectorySasNotSupported));
}

#[test]
fn what_a_signature_says_reaches_the_identity() {
    let full = golden("python blob, every field").authenticate();
    let Ok(Identity::ServiceSas(sas)) = full else { panic!("a service SAS") };
    assert_eq!(sas.scope.encryption_scope.as_deref(), Some("scope1"));
    let headers = sas.scope.response_headers;
    assert_eq!(headers.cache_control.as_deref(), Some("no-store"));
    assert_eq!(headers.content_disposition.as_deref(), Some("attachment; filename=\"ü.txt\""));
    assert_eq!(headers.content_encoding.as_deref(), Some("gzip"));
    assert_eq!(headers.content_language.as_deref(), Some("de"));
    assert_eq!(headers.content_type.as_deref(), Some("text/plain; charset=utf-8"));

    let table = golden("python table, every field").authenticate();
    let Ok(Identity::ServiceSas(sas)) = table else { panic!("a service SAS") };
    let text = |text: &str| Some(text.to_owned());
    let range = KeyRange {
        start_partition: text("a +"),
        start_row: text("1"),
        end_partition: text("ü"),
        end_row: text("9"),
    };
    assert_eq!(sas.scope.key_range, Some(range));

    let agent = golden("python user delegation directory with agent").authenticate();
    let Ok(Identity::UserDelegationSas(sas)) = agent else { panic!("a user delegation SAS") };
    assert_eq!(sas.authorized_object_id.as_deref(), Some("dddddddd-0000-4000-8000-000000000004"));
    assert_eq!(sas.delegator.object_id, "aaaaaaaa-0000-4000-8000-000000000001");
}

#[test]
fn overrides_that_the_version_does_not_sign_are_ignored() {
    let mut golden = golden("python old blob 2012-02-12");
    golden.query.push(("rsct".to_owned(), "text/html".to_owned()));
    let Ok(Identity::ServiceSas(sas)) = golden.authenticate() else { panic!("a service SAS") };
    assert_eq!(sas.scope.response_headers.content_type, None);
}

#[test]
fn a_signature_without_version_lasts_an_hour_at_most() {
    let all = FILES.iter().flat_map(|file| Golden::load(file));
    let unversioned: Vec<Golden> =
        all.filter(|golden| golden.name.contains("without version")).collect();
    let results: Vec<bool> =
        unversioned.iter().map(|golden| golden.authenticate().is_ok()).collect();
    assert_eq!(results, [true, false]);
    assert!(is_failed(&unversioned[1].authenticate()));
}

fn policy(start: Option<&str>, expiry: Option<&str>, permissions: Option<&str>) -> StoredPolicy {
    StoredPolicy {
        id: "p".to_owned(),
        start: start.map(rfc1123),
        expiry: expiry.map(rfc1123),
        permissions: permissions.map(str::to_owned),
    }
}

#[test]
fn a_policy_completes_the_signatures_that_name_it() {
    const EARLIER: &str = "Sat, 01 Jun 2024 11:00:00 GMT";
    const LATER: &str = "Sat, 01 Jun 2024 13:00:00 GMT";
    for golden in goldens(Some("policy")) {
        let Ok(Identity::ServiceSas(sas)) = golden.authenticate() else { panic!("a service SAS") };
        let resolve = |policy| resolve_policy(sas.clone(), policy, golden.now);
        let complete = policy(Some(EARLIER), Some(LATER), Some("r"));
        let resolved = resolve(Some(complete)).expect("a complete policy");
        assert_eq!(resolved.policy_id, None);
        assert!(resolve(Some(policy(None, Some(LATER), Some("r")))).is_ok(), "no start is needed");

        assert_eq!(resolve(None), Err(AuthRefusal::PolicyNotFound), "{}", golden.name);
        for (what, incomplete) in [
            ("expired", policy(None, Some(EARLIER), Some("r"))),
            ("not yet valid", policy(Some(LATER), Some(LATER), Some("r"))),
            ("without end", policy(None, None, Some("r"))),
            ("without permissions", policy(None, Some(LATER), None)),
            ("with empty permissions", policy(None, Some(LATER), Some(""))),
            ("with repeated permissions", policy(None, Some(LATER), Some("rr"))),
        ] {
            let failed =
                matches!(resolve(Some(incomplete)), Err(AuthRefusal::AuthenticationFailed { .. }));
            assert!(failed, "{}: {what}", golden.name);
        }
    }
}

#[test]
fn a_field_that_the_policy_also_gives_is_refused() {
    let golden = golden("python blob policy and times");
    let Ok(Identity::ServiceSas(sas)) = golden.authenticate() else { panic!("a service SAS") };
    let later = "Sat, 01 Jun 2024 13:00:00 GMT";
    for (name, policy) in [
        ("st", policy(Some(later), None, None)),
        ("se", policy(None, Some(later), None)),
        ("sp", policy(None, None, Some("r"))),
    ] {
        let result = resolve_policy(sas.clone(), Some(policy), golden.now);
        assert_eq!(result, Err(AuthRefusal::FieldInPolicyAndToken { name }));
    }
    assert!(resolve_policy(sas.clone(), Some(policy(None, None, None)), golden.now).is_ok());
    let expired = resolve_policy(sas, Some(policy(None, None, None)), Timestamp::MAX);
    assert!(matches!(expired, Err(AuthRefusal::AuthenticationFailed { .. })));
}
