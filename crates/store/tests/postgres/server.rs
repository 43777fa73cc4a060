//! A PostgreSQL server of the tests' own, one for all of them, in a temporary folder.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use holdfast_store::postgres::{PostgresEngine, PostgresOptions};
use holdfast_testkit::process::ChildProcess;
use tokio_postgres::NoTls;

const BIN_DEFAULT: &str = "/usr/lib/postgresql/15/bin";
const START_WAIT_MAX: Duration = Duration::from_secs(60);

/// Waits so long that only a server that hangs makes a test fail, and not a busy machine.
pub fn patient() -> PostgresOptions {
    PostgresOptions { wait_max: Duration::from_secs(120), ..PostgresOptions::default() }
}

struct Server {
    port: u16,
    /// Holds the script's standard input, whose end is the end of the server.
    _script: ChildProcess,
}

/// Where an empty store of its own can be opened.
pub struct Place {
    schema: String,
}

impl Place {
    pub async fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let place = Self { schema: format!("store_{}", COUNT.fetch_add(1, Ordering::Relaxed)) };
        place.run(&format!("CREATE SCHEMA {}", place.schema)).await;
        place
    }

    pub fn connection(&self) -> String {
        self.connection_by(port())
    }

    /// The same store through another port.
    pub fn connection_by(&self, port: u16) -> String {
        format!(
            "host=127.0.0.1 port={port} user=holdfast dbname=postgres \
             options='-c search_path={}'",
            self.schema
        )
    }

    pub async fn open(&self, options: PostgresOptions) -> PostgresEngine {
        PostgresEngine::open(&self.connection(), options).await.expect("the store opens")
    }

    /// Runs SQL beside the engine.
    pub async fn run(&self, sql: &str) {
        self.client().await.batch_execute(sql).await.expect("the statement runs");
    }

    pub async fn count(&self, table: &str) -> i64 {
        let count = format!("SELECT count(*) FROM {table}");
        self.client().await.query_one(&count, &[]).await.expect("the table is there").get(0)
    }

    async fn client(&self) -> tokio_postgres::Client {
        let connected = tokio_postgres::connect(&self.connection(), NoTls).await;
        let (client, connection) = connected.expect("the server is up");
        tokio::spawn(connection);
        client
    }
}

pub fn port() -> u16 {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(start).port
}

fn start() -> Server {
    let bin = std::env::var("HOLDFAST_POSTGRES_BIN").unwrap_or_else(|_| BIN_DEFAULT.to_owned());
    assert!(
        Path::new(&bin).join("initdb").exists(),
        "PostgreSQL 15 is not installed in {bin}. Run scripts/setup, or set \
         HOLDFAST_POSTGRES_BIN to the folder that holds initdb and postgres."
    );
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of 127.0.0.1 is free");
    let port = listener.local_addr().expect("it has an address").port();
    drop(listener);

    let mut command = as_unprivileged_user();
    command.args(["sh", "-c", include_str!("serve.sh"), "serve.sh", &bin, &port.to_string()]);
    let script = ChildProcess::spawn(command.stdin(Stdio::piped()));
    let line = script.next_line(START_WAIT_MAX);
    assert_eq!(line.as_deref(), Some("ready"), "PostgreSQL did not start in time");
    Server { port, _script: script }
}

/// A command that runs the program given as its first argument. PostgreSQL refuses to run as root.
fn as_unprivileged_user() -> Command {
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        return Command::new("env");
    }
    let known = Command::new("id").args(["-u", "postgres"]).output();
    let user = match known {
        Ok(output) if output.status.success() => "postgres",
        Ok(_) | Err(_) => "nobody",
    };
    let group = Command::new("id").args(["-g", user]).output().expect("id runs");
    let group = String::from_utf8(group.stdout).expect("a number");
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", group.trim(), "--clear-groups"]);
    command
}
