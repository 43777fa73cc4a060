//! What may be built into Holdfast: licences, banned crates, sources, and crates in two versions. It reads
//! what Cargo resolves for this machine, which is what the tests were built from, without the network. This
//! is a check of our own and not cargo-deny; `docs/reliability.md` says what that leaves out.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde::Deserialize;
use spdx::{Expression, ParseMode};

/// Permissive licences, which ask for their notice and nothing else.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
];

const ONE_TLS: &str = "one TLS: rustls with ring";
const OWN_CONNECTIONS: &str =
    "connections are in crates/rest, see docs/design/0003-http-connections.md";

const BANS: &[(&str, &str)] = &[
    ("actix-web", OWN_CONNECTIONS),
    ("aws-lc-rs", ONE_TLS),
    ("axum", OWN_CONNECTIONS),
    ("native-tls", ONE_TLS),
    ("openssl", ONE_TLS),
    ("openssl-sys", ONE_TLS),
    ("reqwest", "hyper is here already; the tests speak HTTP with it or by hand"),
    ("serde_yaml", "not maintained"),
];

const HASHES: &str = "postgres-protocol has gone on to digest 0.11, and cmac, ccm and md4 have not";

/// Crates that are there in versions that do not get along, and who wants which.
const TWICE: &[(&str, &str)] = &[
    ("base64", "parquet and pem have gone on to 0.23"),
    ("block-buffer", HASHES),
    ("cpufeatures", HASHES),
    ("crypto-common", HASHES),
    ("digest", HASHES),
    ("embedded-io", "two choices that postcard offers, of which none is taken"),
    ("getrandom", "ring stays with 0.2, ahash of arrow with 0.3; tempfile and uuid have 0.4"),
    ("hashbrown", "quick_cache of lsm-tree stays with 0.16, arrow has 0.17"),
    ("hmac", HASHES),
    ("lz4_flex", "lsm-tree stays with 0.13, parquet has 0.14"),
    ("md-5", HASHES),
    (
        "num-bigint",
        "der-parser, a choice of rcgen that is not taken, stays with 0.4; arrow has 0.5",
    ),
    ("rand_core", HASHES),
    ("sha2", HASHES),
    ("syn", "half of the derives have gone on to 3"),
    ("winnow", "two halves of toml"),
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Clone, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// None for what is in this repository.
    source: Option<String>,
}

/// What is wrong, in sentences that say what to do.
fn findings(packages: &[Package], twice: &[(&str, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    let sources: BTreeSet<_> = packages.iter().filter_map(|it| it.source.as_ref()).collect();
    if sources.len() > 1 {
        found.push(format!("crates come from {sources:?}: settle on one"));
    }
    let mut lines: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for package in packages {
        let Package { name, version, license, source } = package;
        match license.as_deref() {
            None => found.push(format!("{name} {version} names no licence: leave it out")),
            Some(text) if !is_allowed(text) => {
                found.push(format!("{name} {version}: the licence {text} is not in LICENCES"));
            }
            Some(_) => {}
        }
        if let Some((_, reason)) = BANS.iter().find(|(banned, _)| banned == name) {
            found.push(format!("{name} {version} is banned: {reason}"));
        }
        if source.as_deref().is_some_and(|source| !source.starts_with("registry+")) {
            found.push(format!("{name} {version} is not from a registry: use a released version"));
        }
        lines.entry(name).or_default().insert(compatible_line(version));
    }
    for (name, lines) in &lines {
        let explained = twice.iter().any(|(explained, _)| explained == name);
        if lines.len() > 1 && !explained {
            found.push(format!(
                "{name} is here as {lines:?}: settle on one, or explain it in TWICE"
            ));
        }
        if lines.len() == 1 && explained {
            found.push(format!("{name} is here once: it needs no explanation in TWICE any more"));
        }
    }
    found
}

/// Whether one of the choices that the expression offers is allowed. Older crates have `/` for OR.
fn is_allowed(expression: &str) -> bool {
    Expression::parse_mode(expression, ParseMode::LAX).is_ok_and(|expression| {
        expression.evaluate(|asked| LICENCES.contains(&asked.to_string().as_str()))
    })
}

/// The part of a version that Cargo lets only one crate of a build have: up to the first number that is
/// not zero.
fn compatible_line(version: &str) -> String {
    let mut line = Vec::new();
    for number in version.split(['.', '-', '+']).take(3) {
        line.push(number);
        if number != "0" {
            break;
        }
    }
    line.join(".")
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the toolchain can be started");
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {problem}");
    String::from_utf8(output.stdout).expect("text")
}

/// Crates of other platforms need not have been downloaded, so only this one's are asked for.
fn resolved() -> Vec<Package> {
    let about = run("rustc", &["-vV"]);
    let host = about.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
    let text = run(
        env!("CARGO"),
        &["metadata", "--locked", "--offline", "--format-version=1", "--filter-platform", host],
    );
    serde_json::from_str::<Metadata>(&text).expect("metadata of Cargo").packages
}

#[test]
fn dependencies_are_licensed_wanted_released_and_there_once() {
    let packages = resolved();
    assert!(packages.iter().any(|package| package.name == "tokio"), "dependencies are listed");
    let found = findings(&packages, TWICE);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn package(name: &str, version: &str, license: &str) -> Package {
    Package {
        name: name.to_owned(),
        version: version.to_owned(),
        license: (!license.is_empty()).then(|| license.to_owned()),
        source: Some("registry+https://example.com".to_owned()),
    }
}

#[test]
fn each_broken_rule_is_found() {
    let from_git = Package {
        source: Some("git+https://example.org/a".to_owned()),
        ..package("a", "1.0.0", "MIT")
    };
    let from_elsewhere =
        Package { source: Some("registry+https://example.org".to_owned()), ..from_git.clone() };
    for (packages, finding) in [
        (vec![package("a", "1.0.0", "")], "names no licence"),
        (vec![package("a", "1.0.0", "GPL-3.0-only")], "GPL-3.0-only is not in LICENCES"),
        (vec![package("a", "1.0.0", "MIT AND AGPL-3.0-only")], "is not in LICENCES"),
        (vec![package("a", "1.0.0", "Nonsense-1.0")], "is not in LICENCES"),
        (vec![package("openssl", "0.10.0", "Apache-2.0")], "openssl 0.10.0 is banned: one TLS"),
        (vec![from_git], "is not from a registry"),
        (vec![from_elsewhere, package("b", "1.0.0", "MIT")], "settle on one"),
        (vec![package("a", "1.0.0", "MIT"), package("a", "2.1.0", "MIT")], "settle on one"),
        (vec![package("a", "0.1.0", "MIT"), package("a", "0.2.0", "MIT")], "settle on one"),
        (vec![package("twice", "1.0.0", "MIT")], "no explanation"),
    ] {
        let found = findings(&packages, &[("twice", "")]);
        assert!(found.len() == 1 && found[0].contains(finding), "{finding}: {found:?}");
    }
}

#[test]
fn what_keeps_the_rules_is_no_finding() {
    let packages = [
        package("a", "1.0.0", "MIT/Apache-2.0"),
        package("a", "1.2.0", "GPL-2.0-only OR (MIT AND Unicode-3.0)"),
        package("b", "1.0.0", "Apache-2.0 WITH LLVM-exception"),
        package("twice", "0.1.0", "MIT"),
        package("twice", "0.2.0+more", "MIT"),
        Package { source: None, ..package("ours", "0.1.0", "Apache-2.0") },
    ];
    assert_eq!(findings(&packages, &[("twice", "")]), Vec::<String>::new());
}
