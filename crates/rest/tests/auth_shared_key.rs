//! Requests that official clients signed with Shared Key, captured by the scripts in `golden`, are
//! accepted unchanged and refused if any signed part is changed.

mod golden_request;

use golden_request::Golden;
use holdfast_rest::auth::{AuthRefusal, Identity};
use holdfast_rest::version::Version;

/// The golden files; the first has the forms that no official client uses.
const FILES: [&str; 2] = [
    include_str!("golden/shared_key_python.json"),
    include_str!("golden/shared_key_javascript.json"),
];

fn goldens() -> Vec<Golden> {
    FILES.iter().flat_map(|file| Golden::load(file)).collect()
}

fn refused(result: &Result<Identity, AuthRefusal>) -> bool {
    matches!(result, Err(AuthRefusal::AuthenticationFailed { .. }))
}

fn is_lite(golden: &Golden) -> bool {
    golden.header("authorization").starts_with("SharedKeyLite ")
}

/// Which headers the signature covers, as the reference lists them.
fn signs_header(golden: &Golden, name: &str) -> bool {
    const FULL: [&str; 10] = [
        "content-encoding",
        "content-language",
        "content-length",
        "content-md5",
        "content-type",
        "if-match",
        "if-none-match",
        "if-modified-since",
        "if-unmodified-since",
        "range",
    ];
    const LITE: [&str; 2] = ["content-md5", "content-type"];
    let by_date = name == "date" && !golden.headers.contains("x-ms-date");
    let table = golden.service == "table";
    match (table, is_lite(golden)) {
        (true, true) => by_date || name == "x-ms-date",
        (true, false) => by_date || name == "x-ms-date" || LITE.contains(&name),
        (false, true) => by_date || name.starts_with("x-ms-") || LITE.contains(&name),
        (false, false) => by_date || name.starts_with("x-ms-") || FULL.contains(&name),
    }
}

#[test]
fn every_captured_request_is_accepted() {
    let goldens = goldens();
    assert!(goldens.len() > 100, "the golden files are read");
    for golden in goldens {
        assert_eq!(golden.authenticate(), Ok(Identity::Owner), "{}", golden.name);
    }
}

#[test]
fn the_secondary_key_is_as_good_as_the_primary() {
    for golden in goldens() {
        assert_eq!(golden.authenticate_with_secondary(), Ok(Identity::Owner), "{}", golden.name);
    }
}

#[test]
fn a_changed_signed_header_is_refused() {
    let mut changed = 0;
    for golden in goldens() {
        for name in golden.header_names() {
            let unsigned_length = name == "content-length" && golden.header(&name) == "0";
            if signs_header(&golden, &name) && !unsigned_length {
                let mut altered = golden.clone();
                // A second later is still within the skew, so that only the signature can refuse.
                let value = match name.as_str() {
                    "x-ms-date" | "date" => "Sat, 01 Jun 2024 12:00:01 GMT".to_owned(),
                    _ => format!("{}1", golden.header(&name)),
                };
                altered.set_header(&name, &value);
                assert!(refused(&altered.authenticate()), "{}: {name}", golden.name);
                altered.remove_header(&name);
                altered.remove_header("date");
                let dropped =
                    golden.header(&name).is_empty() && golden.version() < Version::V2016_05_31;
                assert_eq!(
                    refused(&altered.authenticate()),
                    !dropped,
                    "{}: no {name}",
                    golden.name
                );
                changed += 1;
            }
        }
        if golden.service != "table" {
            let mut altered = golden.clone();
            altered.set_header("x-ms-added", "1");
            assert!(refused(&altered.authenticate()), "{}: added header", golden.name);
        }
    }
    assert!(changed > 300);
}

#[test]
fn a_changed_method_path_query_account_or_signature_is_refused() {
    for golden in goldens() {
        let mut altered = golden.clone();
        altered.method.push('X');
        let signed = golden.service != "table" || !is_lite(&golden);
        assert_eq!(refused(&altered.authenticate()), signed, "{}: method", golden.name);

        let mut altered = golden.clone();
        altered.path.push('x');
        assert!(refused(&altered.authenticate()), "{}: path", golden.name);

        for at in 0..golden.query.len() {
            let full = golden.service != "table" && !is_lite(&golden);
            if full || golden.query[at].0 == "comp" {
                let mut altered = golden.clone();
                altered.query[at].1.push('x');
                assert!(refused(&altered.authenticate()), "{}: query {at}", golden.name);
                altered.query.remove(at);
                assert!(refused(&altered.authenticate()), "{}: query {at}", golden.name);
            }
        }

        let mut altered = golden.clone();
        let other = golden.header("authorization").replace(&golden.account, "other");
        altered.set_header("authorization", &other);
        assert!(refused(&altered.authenticate()), "{}: account", golden.name);

        let mut altered = golden.clone();
        let authorization = golden.header("authorization");
        let (before, signature) = authorization.split_once(':').expect("account:signature");
        let flipped: String =
            signature.chars().map(|c| if c == 'A' { 'B' } else { 'A' }).take(43).collect();
        for signature in [flipped + "=", String::new(), signature[..40].to_owned()] {
            altered.set_header("authorization", &format!("{before}:{signature}"));
            assert!(refused(&altered.authenticate()), "{}: signature", golden.name);
        }
    }
}

#[test]
fn a_request_is_good_for_fifteen_minutes_either_way() {
    for (now, accepted) in [
        ("Sat, 01 Jun 2024 11:45:00 GMT", true),
        ("Sat, 01 Jun 2024 12:15:00 GMT", true),
        ("Sat, 01 Jun 2024 11:44:59 GMT", false),
        ("Sat, 01 Jun 2024 12:15:01 GMT", false),
    ] {
        for golden in goldens() {
            let mut golden = golden.clone();
            golden.now = golden_request::rfc1123(now);
            let result = golden.authenticate();
            assert_eq!(result == Ok(Identity::Owner), accepted, "{} at {now}", golden.name);
            assert_eq!(refused(&result), !accepted, "{} at {now}", golden.name);
        }
    }
}

#[test]
fn an_authorization_header_that_cannot_be_read_is_invalid() {
    let golden = goldens().remove(0);
    for text in ["", "SharedKey", "SharedKey nocolon", "Basic dTpw", "sharedkey a:b"] {
        let mut golden = golden.clone();
        golden.set_header("authorization", text);
        let result = golden.authenticate();
        let invalid = matches!(result, Err(AuthRefusal::InvalidAuthenticationInfo { .. }));
        assert!(invalid, "{text}: {result:?}");
    }
}

#[test]
fn a_signed_header_sent_twice_is_refused() {
    let golden = goldens().remove(0);
    for name in ["x-ms-date", "x-ms-version", "content-type", "authorization", "date"] {
        let mut golden = golden.clone();
        golden.set_header("content-type", "a");
        golden.set_header("date", "a");
        golden.append_header(name, "b");
        let expected = AuthRefusal::DuplicateHeader { name: name.to_owned() };
        assert_eq!(golden.authenticate(), Err(expected));
    }
}

#[test]
fn an_account_that_is_not_served_is_not_found() {
    let mut golden = goldens().remove(0);
    golden.account = "other".to_owned();
    golden.serve("another");
    assert_eq!(golden.authenticate(), Err(AuthRefusal::ResourceNotFound));
}

#[test]
fn a_refusal_shows_the_signed_text_without_what_gives_access_elsewhere() {
    let mut golden = goldens().remove(0);
    golden.set_header("x-ms-copy-source", "https://account/c/b?sig=secret1");
    golden.set_header("x-ms-encryption-key", "secret2");
    golden.set_header("x-ms-copy-source-authorization", "Bearer secret3");
    golden.set_header("x-ms-meta-shown", "in full");
    golden.query.push(("sig".to_owned(), "secret4".to_owned()));
    let Err(AuthRefusal::AuthenticationFailed { detail }) = golden.authenticate() else {
        panic!("the signature is wrong")
    };
    assert!(detail.contains("x-ms-meta-shown:in full\n"), "{detail}");
    assert!(detail.contains("/goldenaccount/\ncomp:list\n"), "{detail}");
    assert!(!detail.contains("secret"), "{detail}");
}
