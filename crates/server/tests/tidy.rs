//! Rules of the repository that no compiler checks: the direction of the layers, what a layer may name,
//! and what must not be left behind in a file. Each finding says what to do instead.

use std::fs;
use std::path::{Path, PathBuf};

/// A longer file hides more than one idea; split it.
const LINES_MAX: usize = 800;

/// Which workspace crates each crate may depend on. A crate that is not listed is a finding: a new one
/// must be given its layer here.
const LAYERS: &[(&str, &[&str])] = &[
    ("random", &[]),
    ("sync", &[]),
    ("store", &["sync", "random"]),
    ("domain", &["store", "sync"]),
    ("sql", &[]),
    ("places", &[]),
    ("rest", &["domain", "sql", "places"]),
    ("smb", &["domain", "places"]),
    ("server", &["rest", "smb", "domain", "places", "store", "transfer", "verify"]),
    ("transfer", &["domain", "verify"]),
    ("verify", &["domain", "random"]),
    ("testkit", &["verify"]),
    ("bench", &["verify", "testkit", "random"]),
    ("fuzz", &["rest", "smb", "sql", "domain", "random"]),
];

/// Names a crate must not use in its source, and what to use instead.
const BANS: &[(&str, &[&str], &str)] = &[
    (
        "domain",
        &["hyper", "http_body", "tokio::net", "std::net::Tcp", "std::net::Udp", "rustls"],
        "domain knows no network: let a front end do it and pass a command in",
    ),
    (
        "domain",
        &["tokio::fs", "std::fs", "std::process", "std::env"],
        "domain knows no files and no process: go through holdfast_store",
    ),
    (
        "domain",
        &["SystemTime", "Instant::now", "Utc::now"],
        "domain takes time as an argument (`time::Timestamp`)",
    ),
    ("domain", &["x-ms-", "StatusCode"], "headers and statuses belong to the front ends"),
    (
        "store",
        &["SystemTime::now", "Instant::now", "Utc::now"],
        "store takes time as an argument; measure durations in an example, a benchmark or a test",
    ),
    (
        "store",
        &["holdfast_domain", "holdfast_rest", "holdfast_server", "x-ms-", "hyper"],
        "store knows no word of the services: the layer above says it in rows and extents",
    ),
    (
        "sql",
        &["holdfast_domain", "holdfast_store", "hyper", "x-ms-", "SystemTime::now", "std::fs"],
        "sql knows bytes and records: what they belong to and what time it is are arguments",
    ),
    (
        "places",
        &["holdfast_domain", "holdfast_store", "hyper", "tokio::net", "x-ms-"],
        "places knows addresses and listeners: what is said on a connection is for the front ends",
    ),
    (
        "verify random",
        &["holdfast_store", "holdfast_rest", "holdfast_smb"],
        "verify judges a server by its answers alone, and random by nothing",
    ),
    ("rest", &["holdfast_store", "holdfast_server"], "rest goes through holdfast_domain"),
    ("smb", &["holdfast_store", "holdfast_rest"], "smb goes through holdfast_domain"),
    (
        "domain store",
        &["thread_rng", "rand::random"],
        "randomness is an argument here, so that a seed repeats a run",
    ),
];

/// Split so that this file does not find itself.
const MARKS: &[(&str, &str)] = &[
    (concat!("TO", "DO"), "open an issue, or do it"),
    (concat!("FIX", "ME"), "open an issue, or fix it"),
    (concat!("XX", "X:"), "open an issue, or fix it"),
    (concat!("todo", "!("), "finish it, or answer NotImplemented from the operation table"),
    (
        concat!("unimplemented", "!("),
        "finish it, or answer NotImplemented from the operation table",
    ),
    (concat!("/ho", "me/"), "no path of one machine"),
    (concat!("/ro", "ot/"), "no path of one machine"),
    (concat!("/wo", "rk/"), "no path of one machine"),
    (concat!("/Us", "ers/"), "no path of one machine"),
    (concat!("<<<<", "<<<"), "resolve the merge"),
];

fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root.pop();
    root
}

/// Every file below `folder`, except in folders that tools generate.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    const SKIPPED: &[&str] =
        &[".git", ".local", "target", "node_modules", "__pycache__", "holdfast-data"];
    let mut entries: Vec<_> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    entries.sort();
    // What a link means is looked at where it is; in an image it may be something that is not here.
    for path in entries.into_iter().filter(|path| !path.is_symlink()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            if !SKIPPED.contains(&name) {
                files(&path, found);
            }
        } else {
            found.push(path);
        }
    }
}

fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&root(), &mut found);
    found.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let kind = path.extension().and_then(|kind| kind.to_str());
        let generated = ["Cargo.lock", "package-lock.json"].contains(&name);
        !generated
            && (kind.is_none()
                || matches!(kind, Some("rs" | "toml" | "md" | "py" | "js" | "sh" | "ini" | "txt")))
    });
    found
}

/// The text of a file, or nothing for one that is not text.
fn text(path: &Path) -> String {
    String::from_utf8(fs::read(path).expect("the file can be read")).unwrap_or_default()
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn crate_names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root().join("crates"))
        .expect("there are crates")
        .map(|entry| entry.expect("the folder can be read"))
        .filter(|entry| entry.path().join("Cargo.toml").is_file())
        .map(|entry| entry.file_name().into_string().expect("names of crates are UTF-8"))
        .collect();
    names.sort();
    names
}

/// The code of a Rust source without unit tests and comments, line by line.
fn code_lines(source: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_test = false;
    source.lines().enumerate().filter_map(move |(index, line)| {
        is_test |= line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test");
        if !is_test {
            return Some((index + 1, line.split("//").next().unwrap_or_default()));
        }
        // The item after the attribute ends at the line that closes it with the same indentation.
        is_test = line.starts_with([' ', '#']) || !line.ends_with([';', '}']);
        None
    })
}

#[test]
fn code_goes_on_behind_tests() {
    let source = "use a;\n#[cfg(test)]\nmod tests;\nfn b() {} // c\n#[cfg(test)]\n#[path = \"x\"]\n\
                  mod more {\n    fn d() {}\n\n}\nfn e() {}\n";
    let lines: Vec<_> = code_lines(source).collect();
    assert_eq!(lines, [(1, "use a;"), (4, "fn b() {} "), (11, "fn e() {}")]);
}

fn assert_none(findings: &[String]) {
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}

#[test]
fn crates_depend_only_downwards() {
    let mut findings = Vec::new();
    for name in crate_names() {
        let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
            findings.push(format!("crates/{name}: give it its place in LAYERS of tidy.rs"));
            continue;
        };
        let manifest = text(&root().join("crates").join(&name).join("Cargo.toml"));
        let mut section = "";
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let Some(rest) = line.strip_prefix("holdfast-") else { continue };
            let dependency = rest.split(['.', ' ', '=']).next().unwrap_or_default();
            let is_for_tests = section == "[dev-dependencies]"
                && (FOR_TESTS.contains(&dependency) || dependency == name);
            if !allowed.contains(&dependency) && !is_for_tests {
                findings.push(format!(
                    "crates/{name}/Cargo.toml: {name} must not depend on {dependency} ({section})"
                ));
            }
        }
    }
    assert_none(&findings);
}

/// The only exception to the bans: deadlines of waiting opens are compared with the runtime's clock,
/// which is not a time of day.
const ALLOWED: (&str, &str) = ("crates/domain/src/share/opens/waiting_time.rs", "Instant::now");

#[test]
fn layers_do_not_name_what_they_must_not_know() {
    let mut findings = Vec::new();
    for (layers, words, instead) in BANS {
        for layer in layers.split(' ') {
            let folder = root().join("crates").join(layer).join("src");
            let mut found = Vec::new();
            if folder.is_dir() {
                files(&folder, &mut found);
            }
            for path in
                found.iter().filter(|path| path.extension().is_some_and(|kind| kind == "rs"))
            {
                // Test files may use other layers than the one they test.
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                if name == "tests.rs" || path.components().any(|part| part.as_os_str() == "tests") {
                    continue;
                }
                for (number, line) in code_lines(&text(path)) {
                    for word in words.iter().filter(|word| line.contains(**word)) {
                        if (shown(path).as_str(), *word) == ALLOWED {
                            continue;
                        }
                        findings.push(format!("{}:{number}: `{word}`: {instead}", shown(path)));
                    }
                }
            }
        }
    }
    assert_none(&findings);
}

#[test]
fn nothing_unfinished_or_private_is_left_in_a_file() {
    let mut findings = Vec::new();
    for path in sources() {
        for (index, line) in text(&path).lines().enumerate() {
            for (mark, instead) in MARKS.iter().filter(|(mark, _)| line.contains(mark)) {
                findings.push(format!("{}:{}: `{mark}`: {instead}", shown(&path), index + 1));
            }
        }
    }
    assert_none(&findings);
}

#[test]
fn no_file_is_too_long_to_read() {
    let mut findings = Vec::new();
    for path in sources() {
        let kind = path.extension().and_then(|kind| kind.to_str());
        let lines = text(&path).lines().count();
        if matches!(kind, Some("rs" | "py" | "js")) && lines > LINES_MAX {
            findings
                .push(format!("{}: {lines} lines, at most {LINES_MAX}: split it", shown(&path)));
        }
    }
    assert_none(&findings);
}

#[test]
fn every_module_says_what_it_owns() {
    let mut findings = Vec::new();
    for name in crate_names() {
        let mut found = Vec::new();
        files(&root().join("crates").join(name), &mut found);
        for path in found.iter().filter(|path| path.extension().is_some_and(|kind| kind == "rs")) {
            let is_tests = path.file_name().is_some_and(|name| name == "tests.rs");
            if !is_tests && !text(path).starts_with("//!") {
                findings.push(format!("{}: begin with what this file owns (`//!`)", shown(path)));
            }
        }
    }
    assert_none(&findings);
}

/// Which shipped files may use `unsafe`; each says why at its top. Nothing else compiles with it, as
/// every crate denies it.
const UNSAFE: &[&str] = &[
    "crates/rest/src/connection/io.rs",
    "crates/server/src/allocator.rs",
    "crates/server/src/hostile/mod.rs",
    "crates/store/src/embedded/log.rs",
    "crates/store/src/embedded/segments/buffer.rs",
    "crates/store/src/embedded/segments/file.rs",
    "crates/store/src/embedded/segments/huge_pages.rs",
];
/// Never shipped.
const TOOLS: &[&str] = &["bench", "fuzz", "testkit"];
/// What tests of any crate may use, besides the crate itself with other features.
const FOR_TESTS: &[&str] = &["random", "testkit", "verify"];

#[test]
fn what_is_shipped_is_safe_but_for_a_short_list_that_says_why() {
    let (mut findings, mut allowed) = (Vec::new(), Vec::new());
    for name in crate_names().iter().filter(|name| !TOOLS.contains(&name.as_str())) {
        let folder = root().join("crates").join(name).join("src");
        let main = ["lib.rs", "main.rs"].map(|file| folder.join(file));
        let main = main.iter().find(|path| path.is_file()).expect("a crate has a root");
        let denied = ["#![forbid(unsafe_code)]", "#![deny(unsafe_code)]"];
        if !denied.iter().any(|denied| text(main).contains(denied)) {
            findings.push(format!("{}: forbid `unsafe_code`", shown(main)));
        }
        let mut found = Vec::new();
        files(&folder, &mut found);
        for path in found.iter().filter(|path| text(path).contains("allow(unsafe_code")) {
            allowed.push(shown(path));
            if !text(path).contains("allow(unsafe_code, reason = ") {
                findings.push(format!("{}: say why", shown(path)));
            }
        }
    }
    assert_none(&findings);
    assert_eq!(allowed, UNSAFE, "the list in tidy.rs is what is allowed");
}

#[test]
fn lock_file_of_javascript_names_no_registry() {
    let lock = text(&root().join("tests/conformance/javascript/package-lock.json"));
    assert!(lock.contains("\"lockfileVersion\""));
    assert!(
        !lock.contains("\"resolved\""),
        "make it anew with: npm install --omit-lockfile-registry-resolved --ignore-scripts"
    );
}
