//! Checks that `docs/error-codes.md` lists every code: with its status and a file that tests it, or
//! with the reason why it is never answered.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::Code;

const DOCUMENT: &str = "docs/error-codes.md";
const ANSWERED: &str = "| Code | Status | Message | Tested in |\n|---|---|---|---|\n";
const OWN: &str = "| Codes with a message of our own |\n|---|\n";
const NEVER: &str = "| Code | Why |\n|---|---|\n";

/// Codes that no request can provoke reliably, with the tests of their rules.
const BY_RULE: [(Code, &str, &str); 6] = [
    (Code::PublicAccessNotPermitted, "crates/rest/tests/auth_permissions.rs", PUBLIC_ACCESS),
    (Code::ServerBusy, "crates/domain/src/transact.rs", BUSY),
    (Code::SnapshotCountExceeded, "crates/domain/src/blob/snapshot.rs", SNAPSHOTS),
    (Code::XMethodIncorrectCount, "crates/rest/src/operation/tests.rs", TUNNEL),
    (Code::XMethodIncorrectValue, "crates/rest/src/operation/tests.rs", TUNNEL),
    (Code::XMethodNotUsingPost, "crates/rest/src/operation/tests.rs", TUNNEL),
];
const PUBLIC_ACCESS: &str = "callers_without_credentials_read_what_is_public";
const BUSY: &str = "an_operation_that_never_wins_is_told_so_after_bounded_attempts";
const SNAPSHOTS: &str = "a_premium_page_blob_has_100_snapshots_and_one_in_ten_minutes";
const TUNNEL: &str = "a_post_to_an_entity_can_tunnel_another_method";

#[test]
fn every_code_is_documented_and_tested() {
    let path = root().join(DOCUMENT);
    let document = fs::read_to_string(&path).expect(DOCUMENT);
    let tests = test_files();
    let mut wanted = String::new();
    for code in sorted() {
        let listed = cells(&document, ANSWERED).into_iter().find(|row| row[0] == code.name());
        let kept = listed.map(|row| row[3].clone()).filter(|file| is_tested(code, file, &tests));
        let file = kept.or_else(|| tested_in(code, &tests));
        let file = file.unwrap_or_else(|| panic!("no test expects {}", code.name()));
        let (name, status, message) = (code.name(), code.status(), code.message());
        // Writing to a string cannot fail.
        let _ = writeln!(wanted, "| `{name}` | {status} | {message} | `{file}` |");
    }
    for row in cells(&document, NEVER) {
        let answered = Code::ALL.iter().any(|code| code.name() == row[0]);
        assert!(!answered, "{} is answered, whatever {DOCUMENT} says", row[0]);
        assert!(!row[1].is_empty(), "{DOCUMENT} says not why {} is never answered", row[0]);
    }
    let own: String = sorted()
        .into_iter()
        .filter(|code| code.has_own_message())
        .map(|code| format!("| `{}` |\n", code.name()))
        .collect();
    let (before, after) = around(&document, ANSWERED);
    let wanted = format!("{before}{ANSWERED}{wanted}{after}");
    let (before, after) = around(&wanted, OWN);
    let wanted = format!("{before}{OWN}{own}{after}");
    if std::env::var_os("HOLDFAST_REWRITE_DOCS").is_some() {
        fs::write(&path, &wanted).expect(DOCUMENT);
    } else {
        assert_eq!(
            document, wanted,
            "HOLDFAST_REWRITE_DOCS=1 cargo test -p holdfast-rest --lib every_code_is_documented"
        );
    }
}

/// It is also the reason phrase of the answer.
#[test]
fn a_message_is_one_line_of_visible_ascii() {
    for code in Code::ALL {
        let message = code.message();
        let visible = message.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        assert!(visible && message.contains(' '), "{}: {message:?}", code.name());
    }
}

fn sorted() -> Vec<Code> {
    let mut codes = Code::ALL.to_vec();
    codes.sort_by_key(|code| code.name());
    codes
}

/// The text before and after a table.
fn around<'a>(document: &'a str, head: &str) -> (&'a str, &'a str) {
    let (before, rest) = document.split_once(head).expect("the document has all tables");
    let rows: usize =
        rest.split_inclusive('\n').take_while(|line| line.starts_with('|')).map(str::len).sum();
    (before, &rest[rows..])
}

fn cells(document: &str, head: &str) -> Vec<Vec<String>> {
    let (before, after) = around(document, head);
    let table = &document[before.len() + head.len()..document.len() - after.len()];
    let row = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect()
    };
    table.lines().map(row).collect()
}

/// A file that expects the code, or where its rule is tested.
fn tested_in(code: Code, tests: &BTreeMap<String, String>) -> Option<String> {
    let testing = || tests.keys().filter(|file| is_tested(code, file, tests));
    testing().find(|file| file.ends_with(".py")).or_else(|| testing().next()).cloned()
}

fn is_tested(code: Code, file: &str, tests: &BTreeMap<String, String>) -> bool {
    let Some(text) = tests.get(file) else { return false };
    BY_RULE.iter().find(|rule| rule.0 == code && rule.1 == file).map_or_else(
        || !BY_RULE.iter().any(|rule| rule.1 == file) && has_word(text, code.name()),
        |(_, _, test)| text.contains(&format!("fn {test}()")),
    )
}

fn has_word(text: &str, word: &str) -> bool {
    let outside = |letter: Option<char>| !letter.is_some_and(|letter| letter.is_alphanumeric());
    text.match_indices(word).any(|(at, _)| {
        outside(text[..at].chars().next_back()) && outside(text[at + word.len()..].chars().next())
    })
}

/// The texts of all tests that check answers, and of rules with unit tests, by their paths in the
/// repository.
fn test_files() -> BTreeMap<String, String> {
    let folders =
        ["tests/conformance/python", "tests/conformance/javascript", "crates/server/tests"];
    let mut paths: Vec<PathBuf> = BY_RULE.iter().map(|(_, file, _)| root().join(file)).collect();
    for folder in folders {
        let files = fs::read_dir(root().join(folder)).expect(folder);
        paths.extend(files.map(|file| file.expect(folder).path()).filter(|path| is_test(path)));
    }
    let text = |path: PathBuf| {
        let name = path.strip_prefix(root()).expect("in the repository").to_string_lossy();
        (name.into_owned(), fs::read_to_string(&path).expect("a text"))
    };
    paths.into_iter().map(text).collect()
}

fn is_test(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    (name.starts_with("test_") && name.ends_with(".py"))
        || name.ends_with(".test.js")
        || name.ends_with(".rs")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
