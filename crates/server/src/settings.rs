//! The settings of the server, typed and checked. Nothing here opens a socket or a store.

mod tokens;

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use holdfast_domain::features::{AccessLists, Features};
use holdfast_places::Limits as PlaceLimits;
use holdfast_rest::source::{AllowedHosts, HostPattern};
use holdfast_smb::settings::{Encryption, Signing};
use tracing_subscriber::EnvFilter;

pub use tokens::{Bearer, KeySource};

use crate::account::{self, Account};
use crate::azurite::{self, AzuriteName};
use crate::command_line::{
    AllGiven, Environment, Given, Origin, SETTINGS, Setting, SettingsError, collect,
};

const CONNECTIONS_MAX: usize = 1_000_000;
const SMB_ENCRYPTION: [(&str, Encryption); 3] = [
    ("required", Encryption::Required),
    ("outside", Encryption::RequiredFromOutside),
    ("when-asked", Encryption::WhenAsked),
];
const SMB_SIGNING: [(&str, Signing); 2] =
    [("required", Signing::Required), ("when-asked", Signing::WhenAsked)];
const SMB_ACCESS_LISTS: [(&str, AccessLists); 2] =
    [("ignored", AccessLists::Ignored), ("enforced", AccessLists::Enforced)];

#[derive(Debug)]
pub struct Settings {
    pub storage: Storage,
    pub blob: Option<Listen>,
    pub queue: Option<Listen>,
    pub table: Option<Listen>,
    pub file: Option<Listen>,
    pub smb: Option<Listen>,
    pub smb_encryption: Encryption,
    pub smb_signing: Signing,
    pub web: Option<Listen>,
    pub admin: Option<Listen>,
    pub tls: Option<TlsFiles>,
    pub accounts: Vec<Account>,
    /// Whether the account may be in the host name (`account.blob.localhost`).
    pub host_style_addresses: bool,
    pub bearer: Option<Bearer>,
    pub features: Features,
    pub copy_sources: CopySources,
    pub limits: Limits,
    pub log: Log,
    pub seed: Option<PathBuf>,
    pub shutdown_timeout: Duration,
    pub announcement: Announcement,
    /// Warnings to be logged once there is a log.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    Memory,
    Folder { path: PathBuf, durability: Durability },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    Fsync,
    Relaxed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// As written by the user.
    pub host: String,
    pub address: SocketAddr,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Where copies may read from besides this server.
#[derive(Clone, Debug, Default)]
pub struct CopySources {
    pub hosts: AllowedHosts,
    pub authorities: Option<PathBuf>,
    /// As in Azurite.
    pub key_opens_copy_from_url: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub connections_max: usize,
    /// How many of the possible connections one address can keep, and how many are reserved for
    /// each service.
    pub connections_of_address: Part,
    pub connections_of_service: Part,
    pub idle_timeout: Duration,
    pub body_timeout: Duration,
    pub header_bytes_max: usize,
}

/// A part of a number that is known later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Count(usize),
    Percent(usize),
}

impl Part {
    fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => percent.parse().ok().filter(|it| *it <= 100).map(Self::Percent),
            None => text.parse().ok().filter(|it| *it <= CONNECTIONS_MAX).map(Self::Count),
        }
    }

    fn of(self, whole: usize) -> usize {
        match self {
            Self::Count(count) => count.min(whole),
            Self::Percent(percent) => whole * percent / 100,
        }
    }
}

impl Limits {
    /// The limits for so many possible connections.
    pub fn places(&self, possible: usize) -> PlaceLimits {
        let places = self.connections_max.min(possible);
        PlaceLimits {
            places,
            kept_by_address: self.connections_of_address.of(places).max(1),
            left_to_each_listener: self.connections_of_service.of(places),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// What goes to standard error.
    pub filter: String,
    pub format: LogFormat,
    /// A file that also gets everything down to debug.
    pub debug_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// What is printed to standard output when the server is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announcement {
    Ready,
    Azurite { name: AzuriteName, ready_too: bool },
}

/// Settings of a process started with these arguments, of which the first is its own name.
pub fn read(arguments: &[OsString], environment: &Environment) -> Result<Settings, SettingsError> {
    match arguments.first().and_then(|name| AzuriteName::of_program(name)) {
        Some(name) => azurite::read(name, arguments, environment),
        None => Reader { given: collect(arguments, environment)? }.settings(),
    }
}

impl Listen {
    pub fn resolve(host: &str, port: u16) -> Option<Self> {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let address = match bare.parse::<IpAddr>() {
            Ok(address) => SocketAddr::new(address, port),
            Err(_) => {
                let found: Vec<SocketAddr> = (bare, port).to_socket_addrs().ok()?.collect();
                *found.iter().find(|address| address.is_ipv4()).or_else(|| found.first())?
            }
        };
        Some(Self { host: host.to_owned(), address })
    }

    pub fn is_loopback(&self) -> bool {
        self.address.ip().to_canonical().is_loopback()
    }
}

impl Settings {
    /// The services that check account keys.
    pub fn storage_listeners(&self) -> impl Iterator<Item = &Listen> {
        [&self.blob, &self.queue, &self.table, &self.file, &self.smb].into_iter().flatten()
    }

    /// An account with the public key on a listener that other machines can reach.
    pub fn exposed_well_known_key(&self) -> Option<(&Account, &Listen)> {
        let account = self.accounts.iter().find(|account| account.has_well_known_key())?;
        let listener = self.storage_listeners().find(|listener| !listener.is_loopback())?;
        Some((account, listener))
    }
}

pub fn default_limits() -> Limits {
    let defaults = Reader { given: AllGiven::new() };
    defaults.limits().expect("the defaults are allowed")
}

/// Parses the given values, setting by setting.
struct Reader {
    given: AllGiven,
}

impl Reader {
    fn settings(&self) -> Result<Settings, SettingsError> {
        let host = self.text("host");
        let settings = Settings {
            storage: self.storage()?,
            blob: self.listen(&host, "blob-port")?,
            queue: self.listen(&host, "queue-port")?,
            table: self.listen(&host, "table-port")?,
            file: self.listen(&host, "file-port")?,
            smb: self.listen(&host, "smb-port")?,
            smb_encryption: self.choice("smb-encryption", &SMB_ENCRYPTION)?,
            smb_signing: self.choice("smb-signing", &SMB_SIGNING)?,
            web: self.listen(&host, "web-port")?,
            admin: self.listen(&host, "admin-port")?,
            tls: self.tls()?,
            accounts: self.accounts()?,
            host_style_addresses: true,
            bearer: self.bearer()?,
            features: self.features()?,
            copy_sources: self.copy_sources()?,
            limits: self.limits()?,
            log: self.log()?,
            seed: self.path("seed"),
            shutdown_timeout: self.duration("shutdown-timeout")?,
            announcement: Announcement::Ready,
            warnings: Vec::new(),
        };
        self.check_ports(&settings)?;
        self.check_development(&settings)?;
        match settings.exposed_well_known_key() {
            Some((account, listener)) if !self.switch("allow-well-known-key")? => {
                Err(SettingsError::rule(format!(
                    "account {:?} has the well-known development key, and {} is not a loopback \
                     address: anyone who can reach it could use the account. Give your own key \
                     (--account NAME:KEY), listen on 127.0.0.1, or accept it with \
                     --allow-well-known-key",
                    account.name, listener.host
                )))
            }
            Some(_) | None => Ok(settings),
        }
    }

    /// A server that accepts every token is open to everybody who can reach it.
    fn check_development(&self, settings: &Settings) -> Result<(), SettingsError> {
        let exposed = settings.storage_listeners().find(|listener| !listener.is_loopback());
        match (&settings.bearer, exposed) {
            (Some(Bearer::Development { .. }), Some(listener)) => {
                Err(SettingsError::rule(format!(
                    "--oauth-development believes every bearer token, and {} is not a loopback \
                     address: anyone who can reach it could use every account. Listen on 127.0.0.1, \
                     or verify tokens with --oauth-issuer",
                    listener.host
                )))
            }
            (Some(_) | None, _) => Ok(()),
        }
    }

    fn accounts(&self) -> Result<Vec<Account>, SettingsError> {
        const DISABLED: &str = "disabled-account";
        let mut accounts = accounts(self.given.get("account"))?;
        let disabled = self.given.get(DISABLED).map_or(&[][..], |given| given.texts.as_slice());
        for name in disabled {
            let account = accounts.iter_mut().find(|account| account.name == *name);
            let account = account.ok_or_else(|| SettingsError::Value {
                origin: self.origin(DISABLED),
                value: name.clone(),
                allowed: "the name of an account that is given".to_owned(),
            })?;
            account.disabled = true;
        }
        Ok(accounts)
    }

    fn storage(&self) -> Result<Storage, SettingsError> {
        let durability = self.choice(
            "durability",
            &[("fsync", Durability::Fsync), ("relaxed", Durability::Relaxed)],
        )?;
        if !self.switch("memory")? {
            let path = PathBuf::from(self.text("data"));
            return Ok(Storage::Folder { path, durability });
        }
        match (self.given.get("memory"), self.given.get("data")) {
            // An image that sets the folder in its environment can still be run with --memory; the
            // other way round would lose data that was meant to be kept.
            (Some(memory), Some(data)) if memory.origin.rank() <= data.origin.rank() => {
                Err(SettingsError::rule(format!(
                    "{} keeps no data, but {} names a folder for it: give one of the two",
                    memory.origin, data.origin
                )))
            }
            (Some(_) | None, Some(_) | None) => Ok(Storage::Memory),
        }
    }

    fn listen(&self, host: &str, port_name: &str) -> Result<Option<Listen>, SettingsError> {
        let text = self.text(port_name);
        if text == "off" {
            return Ok(None);
        }
        let port = text.parse().map_err(|_| {
            self.refuse(port_name, "a port from 1 to 65535, 0 for any free port, or off")
        })?;
        match Listen::resolve(host, port) {
            Some(listen) => Ok(Some(listen)),
            None => Err(self.refuse("host", "an IP address, or a name that resolves to one")),
        }
    }

    fn check_ports(&self, settings: &Settings) -> Result<(), SettingsError> {
        let listeners = [
            ("blob-port", &settings.blob),
            ("queue-port", &settings.queue),
            ("table-port", &settings.table),
            ("file-port", &settings.file),
            ("smb-port", &settings.smb),
            ("web-port", &settings.web),
            ("admin-port", &settings.admin),
        ];
        for (index, (name, listener)) in listeners.iter().enumerate() {
            let Some(port) = listener.as_ref().map(|listener| listener.address.port()) else {
                continue;
            };
            let earlier = listeners[..index].iter().find(|(_, other)| {
                port != 0 && other.as_ref().is_some_and(|other| other.address.port() == port)
            });
            if let Some((other, _)) = earlier {
                return Err(self.refuse(name, &format!("a port other than that of --{other}")));
            }
        }
        Ok(())
    }

    fn tls(&self) -> Result<Option<TlsFiles>, SettingsError> {
        match (self.path("tls-cert"), self.path("tls-key")) {
            (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(self.needs("tls-cert", "--tls-key")),
            (None, Some(_)) => Err(self.needs("tls-key", "--tls-cert")),
        }
    }

    fn copy_sources(&self) -> Result<CopySources, SettingsError> {
        const NAME: &str = "copy-source-host";
        let given = self.given.get(NAME).map_or(&[][..], |given| given.texts.as_slice());
        let pattern = |text: &String| {
            text.parse::<HostPattern>().map_err(|_| SettingsError::Value {
                origin: self.origin(NAME),
                value: text.clone(),
                allowed: "HOST, *.SUFFIX or *, each with :PORT or without".to_owned(),
            })
        };
        let hosts = given.iter().map(pattern).collect::<Result<AllowedHosts, _>>()?;
        let authorities = self.path("copy-source-ca");
        Ok(CopySources { hosts, authorities, key_opens_copy_from_url: false })
    }

    fn limits(&self) -> Result<Limits, SettingsError> {
        Ok(Limits {
            connections_max: self.number("max-connections", 1, CONNECTIONS_MAX)?,
            connections_of_address: self.part("max-connections-per-address")?,
            connections_of_service: self.part("min-connections-per-service")?,
            idle_timeout: self.duration("idle-timeout")?,
            body_timeout: self.duration("body-timeout")?,
            // hyper needs room for at least one line; a megabyte of headers is an attack.
            header_bytes_max: self.number("max-header-bytes", 8 * 1024, 1024 * 1024)?,
        })
    }

    fn features(&self) -> Result<Features, SettingsError> {
        let days = self.number("container-retention-days", 0, 365)? as u64;
        let hold = |name| Ok(Duration::from_secs(self.number(name, 0, 3600)? as u64));
        let rehydration = self.number("rehydration-seconds", 0, 15 * 60 * 60)? as u64;
        Ok(Features {
            versioning: self.switch("versioning")?,
            container_retention: (days > 0).then(|| Duration::from_secs(days * 24 * 60 * 60)),
            container_name_hold: hold("container-name-hold-seconds")?,
            queue_name_hold: hold("queue-name-hold-seconds")?,
            table_name_hold: hold("table-name-hold-seconds")?,
            share_name_hold: hold("share-name-hold-seconds")?,
            rehydration: Duration::from_secs(rehydration),
            access_lists: self.choice("smb-access-lists", &SMB_ACCESS_LISTS)?,
        })
    }

    fn log(&self) -> Result<Log, SettingsError> {
        let filter = self.text("log");
        if EnvFilter::try_new(&filter).is_err() {
            let allowed = "error, warn, info, debug, trace, off, or a filter such as \
                           info,holdfast_rest=debug";
            return Err(self.refuse("log", allowed));
        }
        let formats = [("text", LogFormat::Text), ("json", LogFormat::Json)];
        let format = self.choice("log-format", &formats)?;
        Ok(Log { filter, format, debug_file: None })
    }

    fn text(&self, name: &str) -> String {
        match self.given.get(name).and_then(|given| given.texts.last()) {
            Some(text) => text.clone(),
            None => setting(name).default.to_owned(),
        }
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        Some(self.text(name)).filter(|text| !text.is_empty()).map(PathBuf::from)
    }

    fn switch(&self, name: &str) -> Result<bool, SettingsError> {
        self.choice(name, &[("true", true), ("false", false), ("1", true), ("0", false)])
    }

    fn choice<T: Copy>(&self, name: &str, allowed: &[(&str, T)]) -> Result<T, SettingsError> {
        let text = self.text(name);
        match allowed.iter().find(|(candidate, _)| *candidate == text) {
            Some((_, value)) => Ok(*value),
            None => {
                let allowed: Vec<&str> = allowed.iter().map(|(text, _)| *text).collect();
                Err(self.refuse(name, &allowed.join(", ")))
            }
        }
    }

    fn number(&self, name: &str, least: usize, most: usize) -> Result<usize, SettingsError> {
        let number = self.text(name).parse().ok();
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| self.refuse(name, &format!("a whole number from {least} to {most}")))
    }

    fn part(&self, name: &str) -> Result<Part, SettingsError> {
        let allowed =
            format!("a whole number up to {CONNECTIONS_MAX}, or a percentage such as 50%");
        Part::parse(&self.text(name)).ok_or_else(|| self.refuse(name, &allowed))
    }

    fn duration(&self, name: &str) -> Result<Duration, SettingsError> {
        parse_duration(&self.text(name))
            .ok_or_else(|| self.refuse(name, "a time from 1ms to 24h, such as 500ms, 30s or 2m"))
    }

    fn origin(&self, name: &str) -> Origin {
        match self.given.get(name) {
            Some(given) => given.origin.clone(),
            None => Origin::Flag(format!("--{name}")),
        }
    }

    fn refuse(&self, name: &str, allowed: &str) -> SettingsError {
        SettingsError::Value {
            origin: self.origin(name),
            value: self.text(name),
            allowed: allowed.to_owned(),
        }
    }

    fn needs(&self, name: &str, other: &str) -> SettingsError {
        SettingsError::rule(format!("{} needs {other} as well", self.origin(name)))
    }
}

/// # Panics
/// If the table of settings has no such row.
fn setting(name: &str) -> &'static Setting {
    let found = SETTINGS.iter().find(|setting| setting.name == name);
    found.unwrap_or_else(|| panic!("{name} is not in the table of settings"))
}

pub fn accounts(given: Option<&Given>) -> Result<Vec<Account>, SettingsError> {
    let Some(given) = given.filter(|given| !given.texts.is_empty()) else {
        return Ok(vec![Account::development()]);
    };
    let mut accounts: Vec<Account> = Vec::new();
    for text in &given.texts {
        let account = Account::parse(text).ok_or_else(|| SettingsError::Value {
            origin: given.origin.clone(),
            value: account::without_keys(text),
            allowed: account::ACCOUNT_FORM.to_owned(),
        })?;
        if accounts.iter().any(|earlier| earlier.name == account.name) {
            let (origin, name) = (&given.origin, &account.name);
            return Err(SettingsError::rule(format!("{origin}: account {name:?} is given twice")));
        }
        accounts.push(account);
    }
    Ok(accounts)
}

const DURATION_MAX: Duration = Duration::from_secs(24 * 3600);

pub fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let milliseconds = match &text[digits.len()..] {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60 * 1000,
        "h" => 3600 * 1000,
        _ => return None,
    };
    let duration = Duration::from_millis(number.checked_mul(milliseconds)?);
    Some(duration).filter(|duration| !duration.is_zero() && *duration <= DURATION_MAX)
}

#[cfg(test)]
mod tests;
