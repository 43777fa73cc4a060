//! The command line of Azurite 3.37, for running this server in its place: under one of its four
//! names the process accepts its flags and variables, binds the same ports and prints the lines
//! that tools wait for. No flag, variable or file of `holdfast` is read.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use holdfast_domain::features::Features;
use holdfast_smb::settings::{Encryption, Signing};

use crate::command_line::{Environment, Given, Origin, SettingsError, split_list, variable};
use crate::settings::{
    Announcement, Bearer, CopySources, Durability, Limits, Listen, Log, LogFormat, Settings,
    Storage, TlsFiles, accounts, default_limits,
};

/// Azurite's own files are left alone.
const DATA_FOLDER: &str = "holdfast";
/// The version of Azurite with these flags, and the real version.
const VERSION: &str = concat!("3.37.0 (holdfast ", env!("CARGO_PKG_VERSION"), ")");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AzuriteName {
    Azurite,
    Blob,
    Queue,
    Table,
}

impl AzuriteName {
    pub fn of_program(program: &OsStr) -> Option<Self> {
        match Path::new(program).file_stem()?.to_str()? {
            "azurite" => Some(Self::Azurite),
            "azurite-blob" => Some(Self::Blob),
            "azurite-queue" => Some(Self::Queue),
            "azurite-table" => Some(Self::Table),
            _ => None,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Azurite => "azurite",
            Self::Blob => "azurite-blob",
            Self::Queue => "azurite-queue",
            Self::Table => "azurite-table",
        }
    }

    fn services(self) -> &'static [Emulated] {
        match self {
            Self::Azurite => &[BLOB, QUEUE, TABLE],
            Self::Blob => &[BLOB],
            Self::Queue => &[QUEUE],
            Self::Table => &[TABLE],
        }
    }
}

/// One of the three services, with the names of its flags.
struct Emulated {
    host: &'static str,
    port: &'static str,
    keep_alive: &'static str,
    default_port: u16,
}

const BLOB: Emulated = Emulated {
    host: "blobHost",
    port: "blobPort",
    keep_alive: "blobKeepAliveTimeout",
    default_port: 10000,
};
const QUEUE: Emulated = Emulated {
    host: "queueHost",
    port: "queuePort",
    keep_alive: "queueKeepAliveTimeout",
    default_port: 10001,
};
const TABLE: Emulated = Emulated {
    host: "tableHost",
    port: "tablePort",
    keep_alive: "tableKeepAliveTimeout",
    default_port: 10002,
};

/// Switches: Azurite checks only their presence, so a value after one is ignored.
#[rustfmt::skip]
const SWITCHES: [(&str, Option<char>, &str); 6] = [
    ("silent", Some('s'), "Log warnings and errors only"),
    ("loose", Some('L'), "No meaning here: unknown headers and parameters are always let through"),
    ("skipApiVersionCheck", None, "No meaning here: every API version is accepted"),
    ("disableProductStyleUrl", None, "Never take the account from the host name"),
    ("inMemoryPersistence", None, "Keep nothing on disk"),
    ("disableTelemetry", None, "No meaning here: nothing is ever collected"),
];

#[rustfmt::skip]
const VALUES: [(&str, Option<char>, &str, &str); 7] = [
    ("location", Some('l'), "DIR", "Keep the data in the folder `holdfast` in here; default: the working directory"),
    ("debug", Some('d'), "FILE", "Write a debug log to this file"),
    ("oauth", None, "LEVEL", "basic: accept bearer tokens without checking their signature"),
    ("cert", None, "FILE", "Serve HTTPS with this certificate (PEM)"),
    ("key", None, "FILE", "The private key of the certificate (PEM)"),
    ("pwd", None, "TEXT", "Password of a PFX certificate: refused, PEM is needed"),
    ("extentMemoryLimit", None, "MEGABYTES", "No meaning here: memory is not limited"),
];

fn command(name: AzuriteName) -> Command {
    let mut command = Command::new(name.text())
        .version(VERSION)
        .disable_version_flag(true)
        .arg(Arg::new("version").short('v').long("version").action(ArgAction::Version))
        .about("Holdfast under a name of Azurite: it takes the flags of Azurite 3.37")
        .arg(Arg::new("rest").num_args(0..).hide(true))
        .args_override_self(true);
    for service in name.services() {
        let host = Arg::new(service.host).value_name("ADDRESS").help("[default: 127.0.0.1]");
        let port = format!("0 is any free port [default: {}]", service.default_port);
        command = command
            .arg(host.long(service.host))
            .arg(Arg::new(service.port).long(service.port).value_name("PORT").help(port))
            .arg(
                Arg::new(service.keep_alive)
                    .long(service.keep_alive)
                    .value_name("SECONDS")
                    .help("Close a connection that has had no request for this long"),
            );
    }
    for (long, short, help) in SWITCHES {
        let switch = Arg::new(long).long(long).num_args(0..=1).default_missing_value("").help(help);
        command = command.arg(with_short(switch.hide_possible_values(true), short));
    }
    for (long, short, placeholder, help) in VALUES {
        let value = Arg::new(long).long(long).value_name(placeholder).help(help);
        command = command.arg(with_short(value.allow_negative_numbers(true), short));
    }
    command
}

fn with_short(argument: Arg, short: Option<char>) -> Arg {
    match short {
        Some(short) => argument.short(short),
        None => argument,
    }
}

pub fn read(
    name: AzuriteName,
    arguments: &[OsString],
    environment: &Environment,
) -> Result<Settings, SettingsError> {
    let matches = command(name).try_get_matches_from(arguments).map_err(SettingsError::Usage)?;
    let flags = Flags { matches };
    let silent = flags.has("silent");
    let mut settings = Settings {
        storage: flags.storage()?,
        blob: flags.listen(name, &BLOB)?,
        queue: flags.listen(name, &QUEUE)?,
        table: flags.listen(name, &TABLE)?,
        file: None,
        smb: None,
        smb_encryption: Encryption::default(),
        smb_signing: Signing::default(),
        web: None,
        admin: None,
        tls: flags.tls()?,
        accounts: accounts(given_accounts(environment)?.as_ref())?,
        host_style_addresses: !flags.has("disableProductStyleUrl"),
        bearer: flags.bearer()?,
        features: Features::default(),
        copy_sources: CopySources { key_opens_copy_from_url: true, ..CopySources::default() },
        limits: flags.limits(name)?,
        log: flags.log(silent),
        seed: None,
        shutdown_timeout: Duration::from_secs(30),
        announcement: Announcement::Azurite { name, ready_too: !silent },
        warnings: Vec::new(),
    };
    settings.warnings = warnings(&flags, environment, &settings)?;
    Ok(settings)
}

fn given_accounts(environment: &Environment) -> Result<Option<Given>, SettingsError> {
    let name = "AZURITE_ACCOUNTS";
    let Some(value) = variable(environment, name)? else { return Ok(None) };
    Ok(Some(Given { texts: split_list(&value), origin: Origin::Variable(name.to_owned()) }))
}

fn warnings(
    flags: &Flags,
    environment: &Environment,
    settings: &Settings,
) -> Result<Vec<String>, SettingsError> {
    let mut meaningless: Vec<String> = ["loose", "skipApiVersionCheck", "disableTelemetry"]
        .into_iter()
        .chain(["extentMemoryLimit", "pwd"])
        .filter(|flag| flags.has(flag))
        .map(|flag| format!("--{flag}"))
        .collect();
    for name in ["AZURITE_SKIP_API_VERSION_CHECK", "AZURITE_DB"] {
        meaningless.extend(variable(environment, name)?.map(|_| name.to_owned()));
    }
    if let Some(rest) = flags.matches.get_many::<String>("rest") {
        meaningless.extend(rest.cloned());
    }
    let mut warnings = Vec::new();
    if !meaningless.is_empty() {
        warnings.push(format!("accepted, but without meaning here: {}", meaningless.join(", ")));
    }
    if let Some((account, listener)) = settings.exposed_well_known_key() {
        warnings.push(format!(
            "account {:?} has the well-known development key and is served on {}: anyone who can \
             reach that address can use it",
            account.name, listener.host
        ));
    }
    Ok(warnings)
}

struct Flags {
    matches: ArgMatches,
}

impl Flags {
    fn has(&self, flag: &str) -> bool {
        self.matches.contains_id(flag)
    }

    fn text(&self, flag: &str) -> Option<&str> {
        self.matches.get_one::<String>(flag).map(String::as_str)
    }

    fn storage(&self) -> Result<Storage, SettingsError> {
        let in_memory = self.has("inMemoryPersistence");
        if in_memory && self.has("location") {
            return Err(SettingsError::rule(
                "The --inMemoryPersistence option is not supported when the --location option is \
                 set.",
            ));
        }
        match self.text("extentMemoryLimit") {
            Some(_) if !in_memory => {
                return Err(SettingsError::rule(
                    "The --extentMemoryLimit option is only supported when the \
                     --inMemoryPersistence option is set.",
                ));
            }
            Some(limit) if !limit.parse::<f64>().is_ok_and(|limit| limit >= 0.0) => {
                let allowed = "a number of megabytes, 0 or more";
                return Err(refuse("extentMemoryLimit", limit, allowed));
            }
            Some(_) | None => {}
        }
        if in_memory {
            return Ok(Storage::Memory);
        }
        let path = Path::new(self.text("location").unwrap_or(".")).join(DATA_FOLDER);
        Ok(Storage::Folder { path, durability: Durability::Fsync })
    }

    fn listen(
        &self,
        name: AzuriteName,
        service: &Emulated,
    ) -> Result<Option<Listen>, SettingsError> {
        if !name.services().iter().any(|served| served.host == service.host) {
            return Ok(None);
        }
        let port = match self.text(service.port) {
            Some(text) => text.parse().map_err(|_| {
                refuse(service.port, text, "a port from 1 to 65535, or 0 for any free port")
            })?,
            None => service.default_port,
        };
        let host = self.text(service.host).unwrap_or("127.0.0.1");
        match Listen::resolve(host, port) {
            Some(listen) => Ok(Some(listen)),
            None => {
                let allowed = "an IP address, or a name that resolves to one";
                Err(refuse(service.host, host, allowed))
            }
        }
    }

    fn tls(&self) -> Result<Option<TlsFiles>, SettingsError> {
        match (self.text("cert"), self.text("key"), self.text("pwd")) {
            (Some(certificate), Some(key), _) => Ok(Some(TlsFiles {
                certificate: PathBuf::from(certificate),
                key: PathBuf::from(key),
            })),
            (Some(certificate), None, Some(_)) => Err(SettingsError::rule(format!(
                "--cert {certificate} with --pwd is a PFX file, which is not read here: give PEM \
                 files with --cert and --key (openssl pkcs12 -in {certificate} -nodes writes them)"
            ))),
            (Some(_), None, None) => Err(SettingsError::rule("--cert needs --key as well")),
            (None, Some(_), _) => Err(SettingsError::rule("--key needs --cert as well")),
            (None, None, _) => Ok(None),
        }
    }

    fn bearer(&self) -> Result<Option<Bearer>, SettingsError> {
        match self.text("oauth") {
            Some(level) if level.eq_ignore_ascii_case("basic") => {
                Ok(Some(Bearer::Development { assignments: Vec::new() }))
            }
            Some(level) => Err(refuse("oauth", level, "basic")),
            None => Ok(None),
        }
    }

    /// All listeners have one idle timeout, so the longest counts.
    fn limits(&self, name: AzuriteName) -> Result<Limits, SettingsError> {
        let mut limits = default_limits();
        let mut longest = None;
        for service in name.services() {
            let Some(text) = self.text(service.keep_alive) else { continue };
            let seconds: u64 = text
                .parse()
                .ok()
                .filter(|seconds| *seconds <= 24 * 3600)
                .ok_or_else(|| refuse(service.keep_alive, text, "seconds, from 0 to 86400"))?;
            longest = longest.max(Some(seconds));
        }
        // As in Azurite, 0 leaves the default.
        if let Some(seconds) = longest.filter(|seconds| *seconds > 0) {
            limits.idle_timeout = Duration::from_secs(seconds);
        }
        Ok(limits)
    }

    fn log(&self, silent: bool) -> Log {
        Log {
            filter: if silent { "warn" } else { "info" }.to_owned(),
            format: LogFormat::Text,
            debug_file: self.text("debug").map(PathBuf::from),
        }
    }
}

fn refuse(flag: &str, value: &str, allowed: &str) -> SettingsError {
    SettingsError::Value {
        origin: Origin::Flag(format!("--{flag}")),
        value: value.to_owned(),
        allowed: allowed.to_owned(),
    }
}

#[cfg(test)]
mod tests;
