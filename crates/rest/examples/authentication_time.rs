//! How long authentication takes: `cargo run --release -p holdfast-rest --example authentication_time`.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use holdfast_domain::time::Timestamp;
use holdfast_rest::auth::{
    AccountKeys, Accounts, BearerSettings, Key, NamedResource, Presented, authenticate,
};
use holdfast_rest::headers::RequestHeaders;
use holdfast_rest::service::Service;
use holdfast_rest::version::Version;

const ROUNDS: u32 = 200_000;

/// A Put Blob as the Python SDK sends it; see `tests/golden/shared_key_python.json`.
const GOLDEN: &str = include_str!("../tests/golden/shared_key_python.json");

fn main() {
    let file: serde_json::Value = serde_json::from_str(GOLDEN).expect("a golden file");
    let cases = file["cases"].as_array().expect("cases");
    let name = "python blob path: put blob with content settings";
    let case = cases.iter().find(|case| case["name"] == name).expect("the case");
    let mut headers = RequestHeaders::default();
    for (name, value) in case["headers"].as_object().expect("headers") {
        let value = value.as_str().expect("text").as_bytes();
        headers.append(name, value).expect("a header");
    }
    let key = Key::from_base64(file["key"].as_str().expect("a key")).expect("a key");
    let keys = AccountKeys { primary: key, secondary: None };
    let accounts = Accounts::from_iter([("devstoreaccount1".to_owned(), keys)]);
    let url = case["url"].as_str().expect("a URL");
    let path = &url["http://127.0.0.1:10000".len()..];
    let presented = Presented {
        method: "PUT",
        path,
        path_style: true,
        query: &[],
        headers: &headers,
        version: Version::V2026_10_06,
        tls: false,
        client_ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        resource: NamedResource {
            account: "devstoreaccount1",
            service: Service::Blob,
            container: None,
            object: None,
        },
    };
    let now = Timestamp::parse_rfc1123(file["date"].as_str().expect("a date")).expect("a date");
    let bearer = BearerSettings::off();
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let started = Instant::now();
        for _ in 0..ROUNDS {
            authenticate(black_box(&presented), &accounts, &bearer, now).expect("accepted");
        }
        best = best.min(started.elapsed() / ROUNDS);
    }
    println!("Shared Key, {} headers: {best:?} a request", headers.len());
}
