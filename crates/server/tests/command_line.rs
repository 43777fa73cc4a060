//! The command line of the real binary.

mod support;

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use holdfast_testkit::process::{ChildProcess, address, command, output};
use support::{FREE_PORTS, binary};

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
    case(&["--log", "loud"], &[], "", &["--log", "\"loud\"", "debug"]),
    case(&["--log", "info,holdfast_rest"], &[], "", &["--log", "holdfast_rest=debug"]),
    case(&["--memory", "scrub"], &[], "", &["scrub", "--memory"]),
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
    for subcommand in ["completions", "export", "health", "import", "man", "scrub", "verify"] {
        assert!(text.contains(&format!("\n  {subcommand} ")), "{subcommand} in {text}");
        let help = output(command(binary(), folder.path()).args([subcommand, "--help"]));
        let text = String::from_utf8_lossy(&help.stdout);
        assert_eq!(help.status.code(), Some(0));
        assert!(text.contains(&format!("Usage: holdfast {subcommand}")), "{text}");
    }
    let version = env!("CARGO_PKG_VERSION");
    for (arguments, expected) in [
        (&["--version"][..], format!("holdfast {version}\n")),
        (&["-V"], format!("holdfast {version}\n")),
        (&["health", "-V"], format!("health {version}\n")),
        (&["scrub", "-V"], format!("scrub {version}\n")),
        (&["verify", "--version"], format!("verify {version}\n")),
        (&["azurite", "-v"], format!("3.37.0 (holdfast {version})\n")),
    ] {
        let shown = output(command(binary(), folder.path()).args(arguments));
        assert_eq!(shown.status.code(), Some(0), "{arguments:?}");
        let shown = String::from_utf8_lossy(&shown.stdout);
        assert!(shown.ends_with(&expected), "{arguments:?}: {shown}");
    }
}

#[test]
fn shells_and_man_get_what_they_need() {
    let folder = tempfile::tempdir().expect("a folder");
    let written = |arguments: &[&str]| {
        let output = output(command(binary(), folder.path()).args(arguments));
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    for (shell, mark) in [("bash", "complete -F"), ("zsh", "#compdef"), ("fish", "complete -c")] {
        let script = written(&["completions", shell]);
        assert!(script.contains(mark) && script.contains("blob-port"), "{shell}");
    }
    let page = written(&["man"]);
    assert!(page.contains(".TH") && page.contains("blob\\-port"), "{page}");
}

#[test]
fn a_server_is_asked_for_its_health_by_the_same_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments: Vec<&str> = FREE_PORTS.iter().copied().chain(["--memory"]).collect();
    let mut server = ChildProcess::start(binary(), folder.path(), &arguments);
    let admin = address(&server.line(), "admin");
    let (_, port) = admin.rsplit_once(':').expect("a port");
    let health = || output(command(binary(), folder.path()).args(["health", "--admin-port", port]));
    let healthy = health();
    assert_eq!(healthy.status.code(), Some(0), "{healthy:?}");
    assert_eq!(healthy.stdout, b"ready\n");
    server.signal(libc::SIGTERM);
    server.ended();
    let gone = health();
    let message = String::from_utf8_lossy(&gone.stderr);
    assert_eq!(gone.status.code(), Some(1), "{message}");
    assert!(message.contains("no answer from http://127.0.0.1:"), "{message}");
}

#[test]
fn a_run_of_verify_that_reaches_nobody_ends_at_once_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let closed = listener.local_addr().expect("an address");
    drop(listener);
    let connection = format!(
        "AccountName=a;AccountKey=a2V5;BlobEndpoint=http://{closed}/a;TableEndpoint=http://{closed}/a"
    );
    let begun = Instant::now();
    let ended = output(command(binary(), folder.path()).args([
        "verify",
        "--connection-string",
        &connection,
    ]));
    let text = String::from_utf8_lossy(&ended.stdout);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(ended.status.code(), Some(2), "{text}");
    assert!(text.contains(&format!("http://{closed}/a cannot be reached")), "{text}");
    assert!(text.contains("nothing was checked"), "{text}");
    assert!(!text.contains("no violation found"), "{text}");
}

#[test]
fn the_names_of_azurite_are_taken_as_a_word_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut azurite = command(binary(), folder.path());
    azurite.args(["azurite-blob", "--blobPort", "0", "--inMemoryPersistence"]);
    let mut server = ChildProcess::spawn(azurite.stderr(std::process::Stdio::null()));
    assert_eq!(server.line(), "Azurite Blob service is starting on 127.0.0.1:0");
    server.signal(libc::SIGTERM);
    assert_eq!(server.ended().code(), Some(0));
}

/// In a terminal, which `script` makes.
#[test]
fn a_person_is_told_what_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = format!("{} --memory {}", binary().display(), FREE_PORTS.join(" "));
    let mut in_terminal = command(Path::new("script"), folder.path());
    in_terminal.args(["--quiet", "--return", "--command", &format!("timeout 3 {server}"), "log"]);
    let shown = output(in_terminal.stdin(std::process::Stdio::null()));
    let text = String::from_utf8_lossy(&shown.stdout);
    for part in
        ["ready blob=http://", "Holdfast ", "BlobEndpoint=http://127.0.0.1:", "Ctrl+C", "stopped"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
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
