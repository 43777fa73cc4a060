//! The binary under the names of Azurite.

mod support;

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use holdfast_testkit::process::{ChildProcess, command, output};
use support::binary;

const PORTS: [&str; 6] = ["--blobPort", "0", "--queuePort", "0", "--tablePort", "0"];

struct Link {
    folder: tempfile::TempDir,
    program: PathBuf,
}

fn link(name: &str) -> Link {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join(name);
    symlink(binary(), &program).expect("linked");
    Link { folder, program }
}

fn without_port(line: &str) -> String {
    match line.rsplit_once(':') {
        Some((start, port)) if port.parse::<u16>().is_ok_and(|port| port != 0) => {
            format!("{start}:PORT")
        }
        Some(_) | None => line.to_owned(),
    }
}

#[test]
fn azurite_prints_the_lines_that_test_containers_wait_for() {
    let link = link("azurite");
    let mut arguments = PORTS.to_vec();
    arguments.extend(["-l", "workspace", "--skipApiVersionCheck", "--loose"]);
    let mut server = ChildProcess::start(&link.program, link.folder.path(), &arguments);
    let lines = server.lines_to("ready");
    let shown: Vec<String> = lines.iter().map(|line| without_port(line)).collect();
    assert_eq!(
        shown[..6],
        [
            "Azurite Blob service is starting at http://127.0.0.1:0",
            "Azurite Blob service is successfully listening at http://127.0.0.1:PORT",
            "Azurite Queue service is starting at http://127.0.0.1:0",
            "Azurite Queue service is successfully listening at http://127.0.0.1:PORT",
            "Azurite Table service is starting at http://127.0.0.1:0",
            "Azurite Table service is successfully listening at http://127.0.0.1:PORT",
        ]
    );
    let ready = &lines[6];
    for (present, name) in
        [(true, " blob="), (true, " queue="), (true, " table="), (false, "file"), (false, "admin")]
    {
        assert_eq!(ready.contains(name), present, "{ready}");
    }
    assert!(link.folder.path().join("workspace/holdfast").is_dir());

    server.signal(libc::SIGTERM);
    assert_eq!(server.ended().code(), Some(0));
    assert_eq!(
        server.rest(),
        [
            "Azurite Blob service is closing...",
            "Azurite Queue service is closing...",
            "Azurite Table service is closing...",
            "Azurite Blob service successfully closed",
            "Azurite Queue service successfully closed",
            "Azurite Table service successfully closed",
        ]
    );
}

#[test]
fn each_single_service_prints_its_own_lines() {
    for (name, port, lines) in [
        (
            "azurite-blob",
            "--blobPort",
            [
                "Azurite Blob service is starting on 127.0.0.1:0",
                "Azurite Blob service successfully listens on http://127.0.0.1:PORT",
                "Azurite Blob service is closing...",
                "Azurite Blob service successfully closed",
            ],
        ),
        (
            "azurite-queue",
            "--queuePort",
            [
                "Azurite Queue service is starting on 127.0.0.1:0",
                "Azurite Queue service successfully listens on http://127.0.0.1:PORT",
                "Azurite Queue service is closing...",
                "Azurite Queue service successfully closed",
            ],
        ),
        (
            "azurite-table",
            "--tablePort",
            [
                "Azurite Table service is starting on 127.0.0.1:0",
                "Azurite Table service successfully started on 127.0.0.1:0",
                "Azurite Table service is closing...",
                "Azurite Table service successfully closed",
            ],
        ),
    ] {
        let link = link(name);
        let arguments = [port, "0", "--inMemoryPersistence", "--silent"];
        let mut server = ChildProcess::start(&link.program, link.folder.path(), &arguments);
        let mut seen = server.lines_to(lines[1].split(" on ").next().expect("a beginning"));
        server.signal(libc::SIGINT);
        assert_eq!(server.ended().code(), Some(0), "{name}");
        seen.extend(server.rest());
        let seen: Vec<String> = seen.iter().map(|line| without_port(line)).collect();
        assert_eq!(seen, lines, "{name}");
    }
}

#[test]
fn the_address_of_a_container_is_served_with_a_warning() {
    let link = link("azurite");
    let log = std::fs::File::create(link.folder.path().join("log")).expect("created");
    let mut command = command(&link.program, link.folder.path());
    command.args(PORTS).args(["--inMemoryPersistence", "--blobHost", "0.0.0.0", "--loose"]);
    let mut server = ChildProcess::spawn(command.stderr(log));
    let lines = server.lines_to("ready");
    assert!(
        lines[1].starts_with("Azurite Blob service is successfully listening at http://0.0.0.0:")
    );
    server.signal(libc::SIGTERM);
    assert_eq!(server.ended().code(), Some(0));
    let log = std::fs::read_to_string(link.folder.path().join("log")).expect("read");
    assert!(log.contains("well-known"), "{log}");
    assert!(log.contains("without meaning here: --loose"), "{log}");
}

#[test]
fn a_debug_log_goes_to_its_file() {
    let link = link("azurite-blob");
    let arguments = ["--blobPort", "0", "--inMemoryPersistence", "--loose", "-d", "logs/debug.log"];
    let mut server = ChildProcess::start(&link.program, link.folder.path(), &arguments);
    server.lines_to("ready");
    server.signal(libc::SIGTERM);
    assert_eq!(server.ended().code(), Some(0));
    let log = std::fs::read_to_string(link.folder.path().join("logs/debug.log")).expect("a log");
    assert!(log.contains("--loose"), "{log}");
}

#[test]
fn what_azurite_does_not_know_ends_with_2() {
    for arguments in [
        &["--admin-port", "1"][..],
        &["--blobPort", "x"],
        &["--cert", "c.pfx", "--pwd", "secret"],
        &["--inMemoryPersistence", "-l", "x"],
    ] {
        let link = link("azurite");
        let result = output(command(&link.program, link.folder.path()).args(arguments));
        let message = String::from_utf8_lossy(&result.stderr);
        assert_eq!(result.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(arguments[0]), "{arguments:?}: {message}");
        assert!(!message.contains("secret"), "{message}");
    }
}
