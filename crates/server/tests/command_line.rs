//! The command line of the real binary.

mod support;

use std::process::Command;

use holdfast_testkit::process::{ChildProcess, command, output};
use support::binary;

struct Case {
    arguments: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
    file: &'static str,
    /// The message must contain all of them.
    parts: &'static [&'static str],
}

const fn case(
    arguments: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
    file: &'static str,
    parts: &'static [&'static str],
) -> Case {
    Case { arguments, variables, file, parts }
}

const CONFIG: &[&str] = &["--config", "holdfast.toml"];

#[rustfmt::skip]
const REFUSED: &[Case] = &[
    case(&["--blob-port", "70000"], &[], "", &["--blob-port", "\"70000\"", "1 to 65535", "off"]),
    case(&[], &[("HOLDFAST_BLOB_PORT", "70000")], "", &["HOLDFAST_BLOB_PORT", "\"70000\"", "off"]),
    case(CONFIG, &[], "blob-port = 70000", &["\"blob-port\" in holdfast.toml", "\"70000\"", "off"]),
    case(CONFIG, &[], "blob-prt = 5", &["unknown key \"blob-prt\"", "holdfast.toml", "blob-port"]),
    case(CONFIG, &[], "accounts = 'x'", &["\"accounts\" in holdfast.toml", "list"]),
    case(&["--config", "missing.toml"], &[], "", &["missing.toml"]),
    case(&["--no-such-flag"], &[], "", &["--no-such-flag"]),
    case(&["--blob-port"], &[], "", &["--blob-port"]),
    case(&["stray"], &[], "", &["stray"]),
    case(&["--durability", "maybe"], &[], "", &["--durability", "\"maybe\"", "fsync, relaxed"]),
    case(&["--account", "me:not*base64"], &[], "", &["--account", "\"me:(hidden)\"", "Base64"]),
    case(&[], &[("AZURITE_ACCOUNTS", "me:x")], "", &["AZURITE_ACCOUNTS", "Base64"]),
    case(&["--host", "0.0.0.0"], &[], "", &["0.0.0.0", "well-known", "--allow-well-known-key"]),
    case(&["--memory", "--data", "d"], &[], "", &["--memory", "--data"]),
    case(&["--tls-cert", "c.pem"], &[], "", &["--tls-key"]),
    case(&["--tls-cert", "holdfast.toml", "--tls-key", "k.pem"], &[], "memory = true",
        &["certificate", "holdfast.toml"]),
    case(&["--seed", "missing.toml"], &[], "", &["seed file missing.toml"]),
    case(&["--seed", "holdfast.toml"], &[], "[[containers]]\nname = 'X'", &["container \"X\""]),
    case(&["--log", "a=b=c"], &[], "", &["--log", "\"a=b=c\"", "debug"]),
    case(&["--oauth-issuer", "i"], &[], "", &["--oauth-audience", "--oauth-keys"]),
];

#[test]
fn what_cannot_be_used_is_named_and_ends_with_2() {
    for case in REFUSED {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("holdfast.toml"), case.file).expect("written");
        let mut command = command(binary(), folder.path());
        let result = output(command.args(case.arguments).envs(case.variables.iter().copied()));
        let message = String::from_utf8_lossy(&result.stderr);
        assert_eq!(result.status.code(), Some(2), "{:?}: {message}", case.arguments);
        for part in case.parts {
            assert!(message.contains(part), "{:?}: {part:?} in {message}", case.arguments);
        }
        assert!(result.stdout.is_empty(), "{:?}", case.arguments);
        let left = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, 1, "{:?} left something behind", case.arguments);
    }
}

#[test]
fn no_key_is_echoed_in_a_refusal() {
    let folder = tempfile::tempdir().expect("a folder");
    for text in ["me:c2VjcmV0", "c2VjcmV0", "valid:c2VjcmV0:*"] {
        let result = output(command(binary(), folder.path()).args(["--account", text]));
        let message = String::from_utf8_lossy(&result.stderr);
        assert_eq!(result.status.code(), Some(2));
        assert!(!message.contains("c2VjcmV0"), "{message}");
    }
}

#[test]
fn help_and_version_are_answers_not_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let help = output(command(binary(), folder.path()).arg("--help"));
    let text = String::from_utf8_lossy(&help.stdout);
    assert_eq!(help.status.code(), Some(0));
    for part in ["--blob-port", "HOLDFAST_BLOB_PORT", "10000", "azurite"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let version = output(command(binary(), folder.path()).arg("--version"));
    assert_eq!(version.status.code(), Some(0));
    let expected = format!("holdfast {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8_lossy(&version.stdout), expected);
}

/// Which services the ready line of a server with these settings names.
fn served(command: &mut Command) -> Vec<String> {
    let mut server = ChildProcess::spawn(command.stderr(std::process::Stdio::null()));
    let ready = server.line();
    server.signal(libc::SIGTERM);
    assert_eq!(server.ended().code(), Some(0));
    let fields = ready.split(' ').skip(1).map(|field| field.split('=').next().unwrap_or_default());
    fields.map(str::to_owned).collect()
}

#[test]
fn a_flag_wins_over_a_variable_and_a_variable_over_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = "memory = true\nblob-port = 0\nqueue-port = 0\ntable-port = 'off'\n\
                file-port = 'off'\nadmin-port = 'off'\nsmb-port = 'off'";
    std::fs::write(folder.path().join("holdfast.toml"), file).expect("written");
    assert_eq!(served(command(binary(), folder.path()).args(CONFIG)), ["blob", "queue"]);
    let variables = [("HOLDFAST_QUEUE_PORT", "off"), ("HOLDFAST_TABLE_PORT", "0")];
    let mut with_variables = command(binary(), folder.path());
    with_variables.env("HOLDFAST_CONFIG", "holdfast.toml").envs(variables);
    assert_eq!(served(&mut with_variables), ["blob", "table"]);
    with_variables.args(["--table-port", "off", "--file-port", "0"]);
    assert_eq!(served(&mut with_variables), ["blob", "file"]);
}
