//! The life of the real process: start, ready line, admin listener, signals, faults.

mod support;

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use holdfast_testkit::client::get;
use holdfast_testkit::process::{ChildProcess, PATIENCE, address, command, output};
use support::{FREE_PORTS, binary};

fn started(folder: &Path, more: &[&str]) -> (ChildProcess, String) {
    let arguments: Vec<&str> = FREE_PORTS.iter().chain(more).copied().collect();
    let server = ChildProcess::start(binary(), folder, &arguments);
    let ready = server.line();
    (server, ready)
}

#[test]
fn the_ready_line_names_listeners_that_accept() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut server, ready) = started(folder.path(), &["--data", "data"]);
    let names: Vec<&str> =
        ready.split(' ').map(|field| field.split('=').next().unwrap_or_default()).collect();
    assert_eq!(names, ["ready", "blob", "queue", "table", "file", "smb", "admin"]);
    for name in &names[1..] {
        TcpStream::connect(address(&ready, name)).expect(name);
    }
    assert!(folder.path().join("data").is_dir());
    server.signal(libc::SIGTERM);
    assert_eq!(server.ended().code(), Some(0));
    assert!(server.rest().is_empty(), "one line only");
}

#[test]
fn the_ready_line_names_the_websites_if_they_have_a_port_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_server, ready) = started(folder.path(), &["--memory", "--web-port", "0"]);
    assert_eq!(get(&address(&ready, "web"), "/").0, 404, "no website is enabled");
}

#[test]
fn it_starts_quickly_on_an_empty_folder() {
    // The documented time is 200 ms; a shared machine gets ten times that, and three tries.
    let quickest = (0..3).map(|_| {
        let folder = tempfile::tempdir().expect("a folder");
        let begun = Instant::now();
        let _server = started(folder.path(), &[]);
        begun.elapsed()
    });
    let quickest = quickest.min().expect("three runs");
    assert!(quickest < Duration::from_secs(2), "{quickest:?}");
}

#[test]
fn the_admin_listener_tells_health_readiness_and_metrics() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_server, ready) = started(folder.path(), &["--memory"]);
    let admin = address(&ready, "admin");
    assert_eq!(get(&admin, "/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(get(&admin, "/readyz"), (200, "ready\n".to_owned()));
    assert_eq!(get(&admin, "/nothing").0, 404);
    let (status, _) = get(&address(&ready, "queue"), "/devstoreaccount1?comp=list");
    assert!(status >= 400, "{status}");
    let (status, metrics) = get(&admin, "/metrics");
    assert_eq!(status, 200);
    for part in [
        "holdfast_build_info{version=\"",
        "holdfast_healthy 1\n",
        "# TYPE holdfast_commits_total counter\n",
        "holdfast_requests_total{service=\"queue\",operation=\"",
        "holdfast_request_duration_seconds_bucket{service=\"queue\",",
        "holdfast_connections_total{service=\"queue\"} 1\n",
    ] {
        assert!(metrics.contains(part), "{part} in\n{metrics}");
    }
}

#[test]
fn a_folder_in_use_and_a_port_in_use_are_named_and_end_with_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut first, _) = started(folder.path(), &["--data", "data"]);
    let arguments: Vec<&str> = FREE_PORTS.iter().copied().chain(["--data", "data"]).collect();
    let second = output(command(binary(), folder.path()).args(&arguments));
    let message = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{message}");
    assert!(message.contains("data is in use by another process"), "{message}");

    first.signal(libc::SIGTERM);
    assert_eq!(first.ended().code(), Some(0));
    let (_again, _) = started(folder.path(), &["--data", "data"]);

    let taken = TcpListener::bind("127.0.0.1:0").expect("bound");
    let port = taken.local_addr().expect("an address").port().to_string();
    let mut arguments = FREE_PORTS.to_vec();
    arguments[1] = &port;
    let refused = output(command(binary(), folder.path()).args(&arguments).arg("--memory"));
    let message = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{message}");
    assert!(message.contains(&format!("127.0.0.1:{port}")), "{message}");
}

#[test]
fn either_signal_ends_it_cleanly() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut server, ready) = started(folder.path(), &["--memory"]);
        // An idle connection must not delay the shutdown.
        let _idle = TcpStream::connect(address(&ready, "blob")).expect("connected");
        server.signal(signal);
        assert_eq!(server.ended().code(), Some(0));
    }
}

#[test]
fn an_unfinished_request_does_not_keep_it_from_ending() {
    let folder = tempfile::tempdir().expect("a folder");
    let limits = ["--memory", "--shutdown-timeout", "500ms"];
    let (mut server, ready) = started(folder.path(), &limits);
    let mut slow = TcpStream::connect(address(&ready, "blob")).expect("connected");
    slow.write_all(b"PUT /a/b HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n").expect("written");
    std::thread::sleep(Duration::from_millis(200));
    server.signal(libc::SIGTERM);
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn a_seed_is_applied_once_and_found_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let seed = "[[containers]]\nname = 'seeded'\nblobs = [{ name = 'b', text = 'hello' }]\n\
                [[shares]]\nname = 'files'\ndirectories = ['x/y']\n\
                files = [{ path = 'a/b.txt', text = 'hello' }]";
    std::fs::write(folder.path().join("seed.toml"), seed).expect("written");
    let arguments: Vec<&str> =
        FREE_PORTS.iter().copied().chain(["--data", "data", "--seed", "seed.toml"]).collect();
    for created in [5, 0] {
        let mut command = command(binary(), folder.path());
        let log = std::fs::File::create(folder.path().join("log")).expect("created");
        let mut server = ChildProcess::spawn(command.args(&arguments).stderr(Stdio::from(log)));
        server.lines_to("ready");
        server.signal(libc::SIGTERM);
        assert_eq!(server.ended().code(), Some(0));
        let log = std::fs::read_to_string(folder.path().join("log")).expect("read");
        assert!(log.contains(&format!("created={created}")), "{log}");
    }
}

/// A server with umask 0, and a data folder as made by an earlier version.
fn started_with_umask_0(folder: &Path) -> ChildProcess {
    let mut shell = command(Path::new("sh"), folder);
    let umask = r#"umask 0; exec "$@""#;
    shell.args(["-c", umask, "sh"]).arg(binary()).args(FREE_PORTS).args(["--data", "data"]);
    let server = ChildProcess::spawn(shell.args(["--seed", "seed.toml"]).stderr(Stdio::null()));
    server.lines_to("ready ");
    server
}

/// The modes of a folder and everything in it.
fn modes(path: &Path, found: &mut Vec<(PathBuf, u32)>) {
    // A running server removes files.
    let Ok(metadata) = fs::symlink_metadata(path) else { return };
    found.push((path.to_path_buf(), metadata.permissions().mode() & 0o7777));
    if metadata.is_dir() {
        let entries = fs::read_dir(path).expect("a folder");
        entries.for_each(|entry| modes(&entry.expect("an entry").path(), found));
    }
}

#[test]
fn only_the_user_of_the_server_gets_at_the_data_whatever_the_umask() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    fs::create_dir(&data).expect("created");
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).expect("changed");
    let long = "x".repeat(100_000);
    let seed = format!(
        "[[containers]]\nname = 'container'\nblobs = [{{ name = 'b', text = '{long}' }}]\n"
    );
    fs::write(folder.path().join("seed.toml"), seed).expect("written");
    let mut server = started_with_umask_0(folder.path());
    server.signal(libc::SIGTERM);
    assert_eq!(server.ended().code(), Some(0));

    // Opening again turns the contents of the log into tables.
    let _server = started_with_umask_0(folder.path());
    let begun = Instant::now();
    while fs::read_dir(data.join("rows/tables")).expect("a folder").count() == 0 {
        assert!(begun.elapsed() < PATIENCE, "nothing is flushed");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut found = Vec::new();
    modes(&data, &mut found);
    for part in ["rows", "rows/tables", "segments", "log"] {
        let is_there = |path: &Path| path.parent().is_some_and(|it| it == data.join(part));
        assert!(found.iter().any(|(path, _)| is_there(path)), "{part} in {found:?}");
    }
    for (path, mode) in found {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{}: {mode:o}", path.display());
    }
}

#[test]
fn a_seed_that_cannot_be_applied_is_an_error_at_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let seed = "[[shares]]\nname = 'files'\ndirectories = ['a/b']\n\
                files = [{ path = 'A', text = 'x' }]";
    std::fs::write(folder.path().join("seed.toml"), seed).expect("written");
    let arguments: Vec<&str> =
        FREE_PORTS.iter().copied().chain(["--memory", "--seed", "seed.toml"]).collect();
    let result = output(command(binary(), folder.path()).args(&arguments));
    let message = String::from_utf8_lossy(&result.stderr);
    assert_eq!(result.status.code(), Some(1), "{message}");
    assert!(message.contains("cannot seed file \"A\" of share \"files\""), "{message}");
}

#[test]
fn the_log_can_be_json_and_warns_of_unsigned_tokens() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = std::fs::File::create(folder.path().join("log")).expect("created");
    let mut command = command(binary(), folder.path());
    command.args(FREE_PORTS).args(["--memory", "--log-format", "json", "--oauth-development"]);
    let mut server = ChildProcess::spawn(command.stderr(Stdio::from(log)));
    server.lines_to("ready");
    server.signal(libc::SIGTERM);
    assert_eq!(server.ended().code(), Some(0));
    let log = std::fs::read_to_string(folder.path().join("log")).expect("read");
    let warning = log.lines().find(|line| line.contains("WITHOUT CHECKING THEIR SIGNATURE"));
    assert!(warning.is_some_and(|line| line.starts_with('{') && line.contains("WARN")), "{log}");
}
