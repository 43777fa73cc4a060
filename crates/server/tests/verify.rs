//! Checked histories of many clients against the real binary: while it runs, and across `kill -9`.
//!
//! `HOLDFAST_VERIFY_SECONDS` lengthens each run, `HOLDFAST_VERIFY_SEED` makes its choices again.

mod support;

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use holdfast_random::{seed_of_this_run, setting};
use holdfast_testkit::process::{command, output};
use holdfast_verify::account::{Account, Service};
use holdfast_verify::report::Report;
use holdfast_verify::run::{Plan, Progress, run};
use support::{Server, binary};

fn plan(seconds: u64) -> Plan {
    Plan {
        seed: seed_of_this_run("HOLDFAST_VERIFY_SEED"),
        clients: 12,
        duration_max: Duration::from_secs(setting("HOLDFAST_VERIFY_SECONDS").unwrap_or(seconds)),
        operations_max: u64::MAX,
    }
}

fn account(address: impl Fn(Service) -> SocketAddr) -> Account {
    let url = |service| Some(format!("http://{}/devstoreaccount1", address(service)));
    Account::development(url).expect("the addresses are valid")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("a runtime starts")
}

#[track_caller]
fn assert_clean(report: &Report, workloads: usize) {
    println!("{report}");
    assert_eq!(report.violations().count(), 0, "{report}");
    assert_eq!(report.workloads.len(), workloads, "{report}");
    for figures in &report.workloads {
        assert!(figures.operations > figures.maybes, "{} did nothing", figures.workload);
        assert_eq!(figures.unjudged, 0, "{} was not judged", figures.workload);
    }
}

const WORKLOADS: usize = 8;

#[test]
fn histories_of_every_workload_are_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(&folder.path().join("data"), &folder.path().join("log"));
    let account = account(|service| match service {
        Service::Blob => server.blob,
        Service::Queue => server.queue,
        Service::Table => server.table,
        Service::File => server.file,
    });
    let report = runtime().block_on(run(account, plan(22), &Progress::default()));
    assert_clean(&report, WORKLOADS);
    let maybes: u64 = report.workloads.iter().map(|figures| figures.maybes).sum();
    assert_eq!(maybes, 0, "a server that is left alone answers everything\n{report}");
}

#[test]
fn histories_across_kills_and_restarts_are_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let ports = free_ports();
    let start = || restart(folder.path(), &ports);
    let mut server = start();
    let account = account(|service| SocketAddr::from(([127, 0, 0, 1], ports[service as usize])));
    let plan = plan(16);
    let report = runtime().block_on(async {
        let progress = Progress::default();
        let verifying = run(account, plan, &progress);
        let killing = async {
            for _ in 0..3 {
                tokio::time::sleep(plan.duration_max / 4).await;
                server.kill();
                server = start();
            }
        };
        tokio::join!(verifying, killing).0
    });
    assert_clean(&report, WORKLOADS);
    let maybes: u64 = report.workloads.iter().map(|figures| figures.maybes).sum();
    assert!(maybes > 0, "nothing was under way when the server was killed\n{report}");
}

/// Free ports for Blob, Queue, Table and File, in this order, to be the same after a restart.
fn free_ports() -> [u16; 4] {
    let listeners = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port is free"));
    listeners.map(|listener| listener.local_addr().expect("it is bound").port())
}

fn restart(folder: &Path, ports: &[u16; 4]) -> Server {
    let ports = ports.map(|port| port.to_string());
    Server::start_on(
        &folder.join("data"),
        &folder.join("log"),
        [&ports[0], &ports[1], &ports[2], &ports[3]],
    )
}

#[test]
fn the_command_says_what_it_found_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(&folder.path().join("data"), &folder.path().join("log"));
    let blobs = format!("BlobEndpoint=http://{}/devstoreaccount1", server.blob);
    let account = account(|_| server.blob).development_connection();
    let credentials = account.split(';').take(2).collect::<Vec<_>>().join(";");
    let output = output(
        command(binary(), folder.path())
            .args(["verify", "--seconds", "2", "--clients", "4", "--seed", "5"])
            .args(["--connection-string", &format!("{credentials};{blobs}")]),
    );
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("with seed 5: no violation found"), "{text}");
    assert!(text.contains("not run: the account has no queue endpoint"), "{text}");
}
