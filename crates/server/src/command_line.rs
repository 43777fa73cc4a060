//! Every setting of the command `holdfast`, in one table: its flag, its environment variable, its
//! key in the configuration file, its default and its help all come from the same row.
//!
//! Values are collected as text with their origin, so that an invalid one is reported under the
//! name that the user has used; `settings` parses them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::configuration_file;

/// The environment of the process, as a value, so that tests need not change their own.
pub type Environment = BTreeMap<OsString, OsString>;

pub struct Setting {
    /// The name of the flag, and of the key in the configuration file.
    pub name: &'static str,
    pub kind: Kind,
    /// The placeholder of the value in the help; empty for a switch.
    pub placeholder: &'static str,
    pub default: &'static str,
    section: &'static str,
    help: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One value.
    Value,
    /// A path; in a configuration file it is relative to the folder of that file.
    Path,
    /// On when named; `--name=false` turns off what the environment or the file turned on.
    Switch,
    /// May be given several times; the variable has the plural name and separates with `;`.
    List,
}

impl Setting {
    pub fn flag(&self) -> String {
        format!("--{}", self.name)
    }

    pub fn variable(&self) -> String {
        let plural = if self.kind == Kind::List { "S" } else { "" };
        format!("HOLDFAST_{}{plural}", self.name.replace('-', "_").to_uppercase())
    }

    /// The key in the configuration file.
    pub fn key(&self) -> String {
        let plural = if self.kind == Kind::List { "s" } else { "" };
        format!("{}{plural}", self.name)
    }
}

const STORAGE: &str = "Storage";
const LISTENERS: &str = "Listeners";
const ACCESS: &str = "Accounts and access";
const FEATURES: &str = "Features of the accounts";
const LIMITS: &str = "Limits";
const LOGGING: &str = "Logging";
const START: &str = "Start";

const fn row(
    section: &'static str,
    name: &'static str,
    kind: Kind,
    placeholder: &'static str,
    default: &'static str,
    help: &'static str,
) -> Setting {
    Setting { name, kind, placeholder, default, section, help }
}

#[rustfmt::skip]
pub const SETTINGS: &[Setting] = &[
    row(START, "config", Kind::Path, "FILE.toml", "",
        "Read settings from this file; its keys are the names of the flags"),
    row(START, "seed", Kind::Path, "FILE", "",
        "Create the containers, queues, tables and shares that this TOML or JSON file lists"),
    row(START, "shutdown-timeout", Kind::Value, "TIME", "30s",
        "On SIGTERM or SIGINT, give running requests this long to finish"),

    row(STORAGE, "data", Kind::Path, "DIR", "./holdfast-data",
        "Keep the data in this folder"),
    row(STORAGE, "memory", Kind::Switch, "", "false",
        "Keep nothing on disk: the data is gone when the server stops"),
    row(STORAGE, "durability", Kind::Value, "fsync|relaxed", "fsync",
        "fsync: an acknowledged write survives power loss; relaxed: it survives the end of the \
         process, but the newest writes may be lost with the machine"),

    row(FEATURES, "versioning", Kind::Switch, "", "false",
        "Keep the earlier state of a blob as a version at every change"),
    row(FEATURES, "container-retention-days", Kind::Value, "DAYS", "0",
        "A deleted container can be restored for this many days, at most 365"),
    row(FEATURES, "container-name-hold-seconds", Kind::Value, "SECONDS", "0",
        "The name of a deleted container cannot be used again for this long; Azure: at least 30"),
    row(FEATURES, "queue-name-hold-seconds", Kind::Value, "SECONDS", "0",
        "The name of a deleted queue cannot be used again for this long; Azure: at least 30"),
    row(FEATURES, "table-name-hold-seconds", Kind::Value, "SECONDS", "0",
        "The name of a deleted table cannot be used again for this long; Azure: at least 40"),
    row(FEATURES, "share-name-hold-seconds", Kind::Value, "SECONDS", "0",
        "The name of a deleted share cannot be used again for this long; Azure: at least 30"),
    row(FEATURES, "rehydration-seconds", Kind::Value, "SECONDS", "0",
        "A blob takes this long to come back from the archive tier; Azure: up to 15 hours"),

    row(LISTENERS, "host", Kind::Value, "ADDRESS", "127.0.0.1",
        "Listen on this address"),
    row(LISTENERS, "blob-port", Kind::Value, "PORT", "10000",
        "Port of the Blob service; 0: any free port, off: not served"),
    row(LISTENERS, "queue-port", Kind::Value, "PORT", "10001",
        "Port of the Queue service"),
    row(LISTENERS, "table-port", Kind::Value, "PORT", "10002",
        "Port of the Table service"),
    row(LISTENERS, "file-port", Kind::Value, "PORT", "10003",
        "Port of the File service over REST"),
    row(LISTENERS, "smb-port", Kind::Value, "PORT", "10445",
        "Port of the File service over SMB"),
    row(LISTENERS, "web-port", Kind::Value, "PORT", "off",
        "Port of the accounts' static websites; the Blob port has them too, under the host names \
         ACCOUNT.web.* and ACCOUNT.zN.web.*"),
    row(LISTENERS, "admin-port", Kind::Value, "PORT", "10099",
        "Port of /healthz, /readyz, /metrics and /background"),
    row(LISTENERS, "tls-cert", Kind::Path, "FILE", "",
        "Serve HTTPS with this certificate chain (PEM); needs --tls-key"),
    row(LISTENERS, "tls-key", Kind::Path, "FILE", "",
        "The private key of the certificate (PEM)"),

    row(ACCESS, "account", Kind::List, "NAME:KEY[:KEY2]", "",
        "Serve this account, with one or two Base64 keys (repeatable); also AZURITE_ACCOUNTS. \
         Without any: devstoreaccount1 with its well-known key"),
    row(ACCESS, "disabled-account", Kind::List, "NAME", "",
        "Refuse every request to this account, and keep its data (repeatable)"),
    row(ACCESS, "allow-well-known-key", Kind::Switch, "", "false",
        "Accept the well-known key of devstoreaccount1 on an address other than loopback"),
    row(ACCESS, "oauth-issuer", Kind::Value, "URL", "",
        "Accept bearer tokens of this issuer; needs --oauth-audience and --oauth-keys or \
         --oauth-keys-url"),
    row(ACCESS, "oauth-audience", Kind::Value, "TEXT[;TEXT]", "",
        "The audiences that bearer tokens must be for; SDKs ask for https://storage.azure.com"),
    row(ACCESS, "oauth-keys", Kind::Path, "FILE", "",
        "The issuer's public keys (a JSON Web Key Set); read again when the file changes"),
    row(ACCESS, "oauth-keys-url", Kind::Value, "URL", "",
        "Fetch the issuer's public keys from here instead, and again when they change"),
    row(ACCESS, "role-assignment", Kind::List, "role=ROLE,account=NAME,...", "",
        "Give a built-in role to callers with object-id=ID, group=ID, issuer=URL or \
         claim.NAME=TEXT, in an account (* for all) or in one container=, queue=, table= or share= \
         of it (repeatable). A bearer token without a role may do nothing"),
    row(ACCESS, "oauth-development", Kind::Switch, "", "false",
        "Accept bearer tokens without checking their signature, so that anyone can claim to be \
         anyone; on loopback addresses only"),
    row(ACCESS, "smb-encryption", Kind::Value, "required|outside|when-asked", "outside",
        "Which SMB clients must encrypt: all, those on other machines, or none; others may"),
    row(ACCESS, "smb-signing", Kind::Value, "required|when-asked", "when-asked",
        "Whether SMB clients that do not encrypt must sign"),
    row(ACCESS, "smb-access-lists", Kind::Value, "ignored|enforced", "ignored",
        "Whether the access lists of files restrict SMB clients; Azure: not those with the key"),
    row(ACCESS, "copy-source-host", Kind::List, "HOST[:PORT]", "",
        "Let copies read from this host, *.SUFFIX or * (repeatable); a private address only if it \
         or its host is named exactly. Without any, copies read from this server only"),
    row(ACCESS, "copy-source-ca", Kind::Path, "FILE", "",
        "Trust the authorities in this file (PEM) for copies over https, besides the public ones"),

    row(LIMITS, "max-connections", Kind::Value, "COUNT", "10000",
        "Open connections of all services together; fewer if the limit of open files is lower"),
    row(LIMITS, "max-connections-per-address", Kind::Value, "COUNT|PERCENT%", "50%",
        "How many of these one address can keep; when all are in use, its connections beyond that \
         are closed to make place for others"),
    row(LIMITS, "min-connections-per-service", Kind::Value, "COUNT|PERCENT%", "5%",
        "How many of these each service can have, however many the others use"),
    row(LIMITS, "idle-timeout", Kind::Value, "TIME", "120s",
        "Close a connection that has had no request for this long"),
    row(LIMITS, "body-timeout", Kind::Value, "TIME", "30s",
        "Give up on a request whose body makes no progress for this long"),
    row(LIMITS, "max-header-bytes", Kind::Value, "BYTES", "65536",
        "The most bytes of a request line and its headers together"),

    row(LOGGING, "log", Kind::Value, "LEVEL|FILTER", "info",
        "error, warn, info, debug, trace or off, or a filter such as info,holdfast_rest=debug"),
    row(LOGGING, "log-format", Kind::Value, "text|json", "text",
        "How log lines are written to standard error"),
];

/// The origin of a value, as the user knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Flag(String),
    Variable(String),
    Key { key: String, file: PathBuf },
}

impl Origin {
    /// Of two origins the one with the higher rank wins.
    pub fn rank(&self) -> u8 {
        match self {
            Self::Flag(_) => 2,
            Self::Variable(_) => 1,
            Self::Key { .. } => 0,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => formatter.write_str(name),
            Self::Variable(name) => write!(formatter, "environment variable {name}"),
            Self::Key { key, file } => write!(formatter, "key {key:?} in {}", file.display()),
        }
    }
}

/// One setting as given by the user.
pub struct Given {
    pub texts: Vec<String>,
    pub origin: Origin,
}

/// The values from the command line, the environment and the file, by name of the setting.
pub type AllGiven = BTreeMap<&'static str, Given>;

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("{origin}: {value:?} is not allowed; allowed: {allowed}")]
    Value { origin: Origin, value: String, allowed: String },
    #[error("{0}")]
    Rule(String),
    /// A usage error, or the requested help or version, with its exit code.
    #[error("{0}")]
    Usage(clap::Error),
}

impl SettingsError {
    pub fn rule(message: impl Into<String>) -> Self {
        Self::Rule(message.into())
    }
}

/// A flag overrides a variable, a variable the file.
pub fn collect(
    arguments: &[OsString],
    environment: &Environment,
) -> Result<AllGiven, SettingsError> {
    let matches = command().try_get_matches_from(arguments).map_err(SettingsError::Usage)?;
    let mut given = AllGiven::new();
    for setting in SETTINGS {
        if let Some(value) = from_flags(setting, &matches) {
            given.insert(setting.name, value);
        } else if let Some(value) = from_environment(setting, environment)? {
            given.insert(setting.name, value);
        }
    }
    if let Some(path) = given.get("config").and_then(|config| config.texts.first()) {
        let path = PathBuf::from(path);
        for (name, value) in configuration_file::read(&path)? {
            given.entry(name).or_insert(value);
        }
    }
    Ok(given)
}

fn from_flags(setting: &Setting, matches: &ArgMatches) -> Option<Given> {
    let texts: Vec<String> = matches.get_many::<String>(setting.name)?.cloned().collect();
    Some(Given { texts, origin: Origin::Flag(setting.flag()) })
}

/// An empty variable counts as absent: compose files and shells write "not set" so.
fn from_environment(
    setting: &Setting,
    environment: &Environment,
) -> Result<Option<Given>, SettingsError> {
    let mut names = vec![setting.variable()];
    if setting.name == "account" {
        names.push("AZURITE_ACCOUNTS".to_owned());
    }
    for name in names {
        let Some(value) = variable(environment, &name)? else { continue };
        let texts = match setting.kind {
            Kind::List => split_list(&value),
            Kind::Value | Kind::Path | Kind::Switch => vec![value],
        };
        return Ok(Some(Given { texts, origin: Origin::Variable(name) }));
    }
    Ok(None)
}

/// The text of a variable; `None` if it is absent or empty.
pub fn variable(environment: &Environment, name: &str) -> Result<Option<String>, SettingsError> {
    let Some(value) = environment.get(&OsString::from(name)) else { return Ok(None) };
    match value.to_str() {
        Some(text) => Ok(Some(text.to_owned()).filter(|text| !text.is_empty())),
        None => Err(SettingsError::rule(format!("environment variable {name} is not valid UTF-8"))),
    }
}

pub fn split_list(value: &str) -> Vec<String> {
    value.split(';').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// A path from the file is relative to the folder of the file, not to the working directory.
pub fn relative_to_file(path: &str, file: &Path) -> String {
    match file.parent() {
        Some(folder) => folder.join(path).to_string_lossy().into_owned(),
        None => path.to_owned(),
    }
}

pub fn command() -> Command {
    let mut command = Command::new("holdfast")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A storage account you run yourself: Blob, Queue, Table and File services")
        .after_help(
            "A flag wins over its environment variable, the variable over the configuration file.\n\
             TIME is a number with ms, s, m or h (seconds without a unit).\n\
             holdfast verify checks the concurrency of a running server: holdfast verify --help.\n\
             Run under the name azurite, azurite-blob, azurite-queue or azurite-table (a link to \
             this file is\nenough) it takes the flags of Azurite instead.",
        );
    for setting in SETTINGS {
        command = command.arg(argument(setting));
    }
    command
}

fn argument(setting: &Setting) -> Arg {
    let mut help = format!("{} [env: {}]", setting.help, setting.variable());
    if !setting.default.is_empty() && setting.kind != Kind::Switch {
        help.push_str(&format!(" [default: {}]", setting.default));
    }
    let argument = Arg::new(setting.name)
        .long(setting.name)
        .help(help)
        .help_heading(setting.section)
        .allow_negative_numbers(true);
    match setting.kind {
        Kind::Value | Kind::Path => argument.value_name(setting.placeholder).action(ArgAction::Set),
        Kind::List => argument.value_name(setting.placeholder).action(ArgAction::Append),
        Kind::Switch => argument
            .value_name("BOOL")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .hide_possible_values(true)
            .action(ArgAction::Set),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn arguments(rest: &[&str]) -> Vec<OsString> {
        std::iter::once("holdfast").chain(rest.iter().copied()).map(OsString::from).collect()
    }

    #[test]
    fn clap_accepts_the_table() {
        command().debug_assert();
    }

    #[test]
    fn every_setting_has_a_flag_a_variable_and_a_key() {
        let folder = tempfile::tempdir().expect("a folder");
        for setting in SETTINGS.iter().filter(|setting| setting.name != "config") {
            let flag = match setting.kind {
                Kind::Switch => format!("{}=true", setting.flag()),
                Kind::Value | Kind::Path | Kind::List => format!("{}=x", setting.flag()),
            };
            let given = collect(&arguments(&[&flag]), &Environment::new()).expect("flag");
            assert_eq!(given[setting.name].origin, Origin::Flag(setting.flag()));

            let variables = environment(&[(&setting.variable(), "x")]);
            let given = collect(&arguments(&[]), &variables).expect("variable");
            assert_eq!(given[setting.name].origin, Origin::Variable(setting.variable()));

            let path = folder.path().join("holdfast.toml");
            let value = if setting.kind == Kind::List { "['x']" } else { "'x'" };
            std::fs::write(&path, format!("{} = {value}", setting.key())).expect("written");
            let config = format!("--config={}", path.display());
            let given = collect(&arguments(&[&config]), &Environment::new()).expect("key");
            let origin = Origin::Key { key: setting.key(), file: path };
            assert_eq!(given[setting.name].origin, origin);
        }
    }

    #[test]
    fn a_flag_wins_over_a_variable_and_a_variable_over_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("holdfast.toml");
        std::fs::write(&path, "blob-port = 1\nqueue-port = 1\ntable-port = 1").expect("written");
        let variables = environment(&[
            ("HOLDFAST_CONFIG", path.to_str().expect("a UTF-8 path")),
            ("HOLDFAST_BLOB_PORT", "2"),
            ("HOLDFAST_QUEUE_PORT", "2"),
        ]);
        let given = collect(&arguments(&["--blob-port", "3"]), &variables).expect("collected");
        let text = |name: &str| given[name].texts[0].as_str();
        assert_eq!((text("blob-port"), text("queue-port"), text("table-port")), ("3", "2", "1"));
    }

    #[test]
    fn accounts_of_holdfast_win_over_accounts_of_azurite() {
        let variables =
            environment(&[("AZURITE_ACCOUNTS", "old:a2V5;"), ("HOLDFAST_ACCOUNTS", "new:a2V5")]);
        let given = collect(&arguments(&[]), &variables).expect("collected");
        assert_eq!(given["account"].texts, ["new:a2V5"]);
        let variables = environment(&[("AZURITE_ACCOUNTS", "a:k1:k2;b:k1;")]);
        let given = collect(&arguments(&[]), &variables).expect("collected");
        assert_eq!(given["account"].texts, ["a:k1:k2", "b:k1"]);
    }

    #[test]
    fn an_empty_variable_is_not_a_value() {
        let given = collect(&arguments(&[]), &environment(&[("HOLDFAST_HOST", "")]));
        assert!(!given.expect("collected").contains_key("host"));
    }
}
