//! Bearer tokens signed by PyJWT, in each mode of the server.

mod golden_request;

use std::collections::BTreeMap;

use golden_request::{Golden, unsigned_token};
use holdfast_rest::auth::{AuthRefusal, BearerSettings, Identity, InvalidKeySet};
use serde::Deserialize;

#[derive(Deserialize)]
struct Tokens {
    issuer: String,
    key_set: serde_json::Value,
    accepted: BTreeMap<String, String>,
    refused: BTreeMap<String, String>,
}

const OBJECT_ID: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const TENANT_ID: &str = "bbbbbbbb-0000-4000-8000-000000000002";

fn tokens() -> Tokens {
    serde_json::from_str(include_str!("golden/tokens.json")).expect("a golden file")
}

fn settings() -> BearerSettings {
    let Tokens { issuer, key_set, .. } = tokens();
    let settings = BearerSettings::issuer(issuer, &key_set.to_string());
    settings.expect("a usable key set").with_audience("https://storage.azure.com")
}

fn request(token: &str, bearer: BearerSettings) -> Golden {
    let goldens = Golden::load(include_str!("golden/shared_key_python.json"));
    let mut golden = goldens.into_iter().next().expect("a golden request");
    assert_eq!((golden.account.as_str(), golden.tls), ("goldenaccount", true));
    golden.set_header("authorization", &format!("Bearer {token}"));
    golden.bearer = bearer;
    golden
}

fn is_failed(result: &Result<Identity, AuthRefusal>) -> bool {
    matches!(result, Err(AuthRefusal::AuthenticationFailed { .. }))
}

/// A golden token for an audience that [`settings`] does not name.
const FOR_THE_ACCOUNT: &str = "audience is the account";

#[test]
fn only_audiences_that_are_configured_count() {
    let token = &tokens().accepted[FOR_THE_ACCOUNT];
    let refused = request(token, settings()).authenticate();
    assert!(matches!(refused, Err(AuthRefusal::InvalidToken { .. })), "{refused:?}");
    let named = settings().with_audience("https://goldenaccount.blob.core.windows.net");
    assert!(request(token, named).authenticate().is_ok());
    let Tokens { issuer, key_set, .. } = tokens();
    let none = BearerSettings::issuer(issuer, &key_set.to_string()).expect("a usable key set");
    for (name, token) in tokens().accepted {
        assert!(request(&token, none.clone()).authenticate().is_err(), "{name}");
    }
}

#[test]
fn tokens_of_the_issuer_are_accepted() {
    let accepted = tokens().accepted.into_iter().filter(|(name, _)| name != FOR_THE_ACCOUNT);
    for (name, token) in accepted {
        let identity = request(&token, settings()).authenticate();
        let Ok(Identity::Bearer(principal)) = identity else { panic!("{name}: {identity:?}") };
        assert_eq!(principal.object_id, OBJECT_ID, "{name}");
        assert_eq!(principal.tenant_id.as_deref(), Some(TENANT_ID), "{name}");
        assert_eq!(principal.name.as_deref(), Some("user@example.com"), "{name}");
    }
}

#[test]
fn every_other_token_is_refused_with_a_challenge() {
    for (name, token) in tokens().refused {
        let result = request(&token, settings()).authenticate();
        let Err(AuthRefusal::InvalidToken { challenge: Some(challenge), .. }) = result else {
            panic!("{name}: {result:?}")
        };
        let expected = format!(
            "Bearer authorization_uri=https://sts.windows.net/{TENANT_ID}/oauth2/authorize \
             resource_id=https://storage.azure.com"
        );
        assert_eq!(*challenge, *expected, "{name}");
    }
}

#[test]
fn a_token_with_any_character_changed_is_refused() {
    let token = &tokens().accepted["RS256"];
    for at in (0..token.len()).step_by(7) {
        let other = if token.as_bytes()[at] == b'A' { "B" } else { "A" };
        let mut altered = token.clone();
        altered.replace_range(at..=at, other);
        let result = request(&altered, settings()).authenticate();
        assert!(matches!(result, Err(AuthRefusal::InvalidToken { .. })), "{at}: {result:?}");
    }
    for text in ["x", "a.b", "a.b.c", "..", "e30.e30.", "e30.e30.e30.e30"] {
        let result = request(text, settings()).authenticate();
        assert!(matches!(result, Err(AuthRefusal::InvalidToken { .. })), "{text}: {result:?}");
    }
}

#[test]
fn without_settings_no_token_is_accepted() {
    for token in tokens().accepted.values() {
        assert!(is_failed(&request(token, BearerSettings::off()).authenticate()));
    }
}

#[test]
fn tokens_need_https_and_a_version_that_has_them() {
    let token = &tokens().accepted["RS256"];
    let mut golden = request(token, settings());
    golden.tls = false;
    assert!(is_failed(&golden.authenticate()));
    let mut golden = request(token, settings());
    golden.set_header("x-ms-version", "2017-07-29");
    assert!(is_failed(&golden.authenticate()));
    golden.set_header("x-ms-version", "2017-11-09");
    assert!(golden.authenticate().is_ok());
}

#[test]
fn another_audience_can_be_configured() {
    let token = &tokens().refused["other audience"];
    let settings = settings().with_audience("https://graph.microsoft.com");
    assert!(request(token, settings).authenticate().is_ok());
}

#[test]
fn development_mode_accepts_what_nobody_signed_even_over_http() {
    let tokens = tokens();
    let unsigned = &tokens.refused["unsigned"];
    let foreign = &tokens.refused["signed by another key"];
    for token in [unsigned, foreign] {
        let mut golden = request(token, BearerSettings::development());
        golden.tls = false;
        assert!(matches!(golden.authenticate(), Ok(Identity::Bearer(_))));
    }
    for name in ["expired", "not yet valid", "no end", "other audience", "no audience", "no issuer"]
    {
        let result = request(&tokens.refused[name], BearerSettings::development()).authenticate();
        assert!(matches!(result, Err(AuthRefusal::InvalidToken { .. })), "{name}: {result:?}");
    }
}

#[test]
fn the_challenge_is_given_by_versions_that_have_it() {
    for (version, challenged) in [("2019-12-12", true), ("2019-07-07", false)] {
        let mut golden = request("", settings());
        golden.remove_header("authorization");
        golden.set_header("x-ms-version", version);
        let bearer = settings().challenge(golden.service(), golden.version());
        assert_eq!(bearer.is_some(), challenged, "{version}");
        assert!(matches!(golden.authenticate(), Ok(Identity::Anonymous(_))));
    }
}

#[test]
fn a_key_set_without_usable_keys_is_refused_at_start() {
    for (text, expected) in [
        ("", InvalidKeySet::NotJson),
        ("{}", InvalidKeySet::NotJson),
        (r#"{"keys":[]}"#, InvalidKeySet::NoUsableKey),
        (r#"{"keys":[{"kty":"oct","k":"AAAA"}]}"#, InvalidKeySet::NoUsableKey),
        (
            r#"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB","use":"enc"}]}"#,
            InvalidKeySet::NoUsableKey,
        ),
    ] {
        let result = BearerSettings::issuer("https://issuer", text);
        assert_eq!(result.err(), Some(expected), "{text}");
    }
}

#[test]
fn the_token_helper_of_these_tests_makes_what_development_mode_reads() {
    let golden = request("", BearerSettings::development());
    let token = unsigned_token(OBJECT_ID, TENANT_ID, golden.now.unix_seconds());
    let identity = request(&token, BearerSettings::development()).authenticate();
    let Ok(Identity::Bearer(principal)) = identity else { panic!("{identity:?}") };
    assert_eq!(principal.object_id, OBJECT_ID);
}
