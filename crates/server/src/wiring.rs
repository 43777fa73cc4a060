//! Connects the layers: the store below the services, and the front end of each listener. Nothing
//! else in this crate names internals of the other crates.

mod seed_target;
mod smb;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use holdfast_domain::content::INLINE_ROWS;
use holdfast_domain::workers::Workers;
use holdfast_domain::{Domain, recorded_time};
use holdfast_places::Places;
use holdfast_rest::address::HostStyle;
use holdfast_rest::auth::{AccountKeys, Accounts, BearerSettings, Key, KeyRing};
use holdfast_rest::frontend::{Frontend, Settings as FrontendSettings};
use holdfast_rest::lanes::Lanes;
use holdfast_rest::metrics::Metrics;
use holdfast_rest::server::{ConnectionLimits, HEAD_TIMEOUT, serve};
use holdfast_rest::service::Endpoint;
use holdfast_rest::source::{self, OwnAddress, SourceSettings};
use holdfast_smb::frontend::Frontend as SmbFrontend;
use holdfast_store::embedded::{
    self, DataFolder, EmbeddedEngine, EngineOptions, OpenError, SegmentExtents, SegmentOptions,
};
use holdfast_store::memory::{MemoryEngine, MemoryExtents};
use holdfast_store::{Engine, Extents};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::account::Account;
use crate::admin::{Figures, Observed};
use crate::clock::SteadyClock;
use crate::command_line::SettingsError;
use crate::open_files::Shares;
use crate::settings::{
    Bearer, CopySources, Durability, KeySource, Limits, Listen, Settings, Storage,
};
use crate::{tls, token_keys};

type Fault = Box<dyn Error + Send + Sync>;

/// An open store with the services on top of it.
pub struct Node {
    domain: Arc<Domain>,
    frontend: Arc<Frontend>,
    smb: Arc<SmbFrontend>,
    places: Arc<Places>,
    metrics: Arc<Metrics>,
}

impl Node {
    pub async fn open(
        settings: &Settings,
        shares: Shares,
        bearer: BearerSettings,
        sources: SourceSettings,
    ) -> Result<Self, Fault> {
        let (engine, extents) = match &settings.storage {
            Storage::Memory => in_memory(),
            Storage::Folder { path, durability } => in_folder(path, *durability, shares)?,
        };
        let mut clock = SteadyClock::new();
        if let Some(recorded) = recorded_time(&*engine).await? {
            clock = clock.starting_at_least(recorded);
        }
        let domain = Arc::new(
            Domain::open(engine, extents, Arc::new(clock), settings.features.clone()).await?,
        );
        domain.workers().log_failures(|worker, error| {
            tracing::warn!(worker, error, "background work failed");
        });
        domain.fail_interrupted_copies().await.map_err(|failure| format!("{failure:?}"))?;
        domain.restore_opens().await.map_err(|failure| format!("{failure:?}"))?;
        let metrics = Arc::new(Metrics::new());
        let front = frontend_settings(settings, bearer, sources);
        let frontend = Arc::new(Frontend::new(domain.clone(), front, metrics.clone()));
        let smb = Arc::new(smb::frontend(settings, &domain, &metrics));
        let places = Places::new(settings.limits.places(shares.connections));
        Ok(Self { domain, frontend, smb, places, metrics })
    }

    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Serves `listener` until `shutdown` is set and running requests have finished.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        endpoint: Endpoint,
        lanes: Arc<Lanes>,
        tls: Option<TlsAcceptor>,
        shutdown: watch::Receiver<bool>,
    ) {
        let (frontend, entrance) = (Arc::clone(&self.frontend), self.places.entrance());
        serve(listener, endpoint, frontend, lanes, tls, entrance, shutdown).await;
    }

    /// As [`Node::serve`], for SMB.
    pub async fn serve_smb(
        self: Arc<Self>,
        listener: TcpListener,
        shutdown: watch::Receiver<bool>,
    ) {
        let entrance = self.places.entrance();
        holdfast_smb::server::serve(listener, Arc::clone(&self.smb), entrance, shutdown).await;
    }
}

impl Observed for Node {
    fn unhealthy(&self) -> Option<String> {
        let engine = self.domain.engine();
        let poisoned = engine.poisoned().or_else(|| self.domain.extents().poisoned());
        let fault = poisoned.or_else(|| engine.short_of_room())?;
        Some(format!("{fault:?}"))
    }

    fn figures(&self) -> Figures {
        Figures {
            engine: self.domain.engine().statistics(),
            extents: self.domain.extents().statistics(),
            leases_live: self.domain.live_leases(),
        }
    }

    fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    fn workers(&self) -> &Workers {
        self.domain.workers()
    }
}

type Store = (Arc<dyn Engine>, Arc<dyn Extents>);

fn in_memory() -> Store {
    (Arc::new(MemoryEngine::default()), Arc::new(MemoryExtents::default()))
}

fn in_folder(path: &Path, durability: Durability, shares: Shares) -> Result<Store, OpenError> {
    let durability = match durability {
        Durability::Fsync => embedded::Durability::Fsync,
        Durability::Relaxed => embedded::Durability::Relaxed,
    };
    let folder = DataFolder::open(path)?;
    let options = EngineOptions { open_tables_max: shares.tables, ..engine_options(durability) };
    let engine = EmbeddedEngine::open(&folder, &options)?;
    let read_files_max = shares.segments;
    let options = SegmentOptions { durability, read_files_max, ..SegmentOptions::default() };
    let extents = SegmentExtents::open(&folder, &options)?;
    Ok((Arc::new(engine), Arc::new(extents)))
}

pub(crate) fn engine_options(durability: embedded::Durability) -> EngineOptions {
    EngineOptions { durability, apart: Some(INLINE_ROWS), ..EngineOptions::default() }
}

fn frontend_settings(
    settings: &Settings,
    bearer: BearerSettings,
    sources: SourceSettings,
) -> FrontendSettings {
    let mut accounts = settings.accounts.iter().filter_map(account_keys).collect::<Accounts>();
    for account in settings.accounts.iter().filter(|account| account.disabled) {
        accounts.disable(&account.name);
    }
    FrontendSettings {
        accounts,
        bearer,
        limits: connection_limits(settings.limits),
        host_style: if settings.host_style_addresses {
            HostStyle::Recognized
        } else {
            HostStyle::Ignored
        },
        sources,
    }
}

fn account_keys(account: &Account) -> Option<(String, AccountKeys)> {
    let mut keys = account.keys.iter().map(|key| Key::from_bytes(key.bytes()));
    let keys = AccountKeys { primary: keys.next()?, secondary: keys.next() };
    Some((account.name.clone(), keys))
}

/// The accepted tokens, and the keys to be kept up to date.
pub struct Tokens {
    pub settings: BearerSettings,
    pub keys: Option<(KeySource, Arc<KeyRing>)>,
}

/// The accepted tokens, with the keys that the settings name. Keys published by an issuer are fetched
/// once the server runs.
pub fn read_tokens(bearer: Option<&Bearer>) -> Result<Tokens, SettingsError> {
    match bearer {
        None => Ok(Tokens { settings: BearerSettings::off(), keys: None }),
        Some(Bearer::Development { assignments }) => {
            let mut settings = BearerSettings::development();
            if !assignments.is_empty() {
                settings = settings.with_assignments(assignments.clone());
            }
            Ok(Tokens { settings, keys: None })
        }
        Some(Bearer::Issuer { issuer, audiences, keys, assignments }) => {
            let ring = match keys {
                KeySource::File(path) => {
                    KeyRing::of(token_keys::read_file(path).map_err(SettingsError::rule)?)
                }
                KeySource::Url(_) => KeyRing::default(),
            };
            let ring = Arc::new(ring);
            let settings = BearerSettings::issuer_with(issuer, Arc::clone(&ring))
                .with_assignments(assignments.clone());
            let settings = audiences.iter().fold(settings, BearerSettings::with_audience);
            Ok(Tokens { settings, keys: Some((keys.clone(), ring)) })
        }
    }
}

/// Where copies may read from, with the authorities that the settings name. The server's own
/// addresses are known only once they are bound.
pub fn read_sources(sources: &CopySources) -> Result<SourceSettings, SettingsError> {
    let additional = match &sources.authorities {
        Some(path) => tls::read_certificates(path)?,
        None => Vec::new(),
    };
    let roots =
        source::roots(additional).map_err(|error| SettingsError::rule(error.to_string()))?;
    Ok(SourceSettings {
        own_addresses: Vec::new(),
        hosts: sources.hosts.clone(),
        roots,
        key_opens_copy_from_url: sources.key_opens_copy_from_url,
    })
}

/// The address for sources on this server; `None` for the website listener.
pub fn own_address(
    endpoint: Endpoint,
    listen: &Listen,
    listener: &TcpListener,
) -> std::io::Result<Option<OwnAddress>> {
    match endpoint {
        Endpoint::Website => Ok(None),
        Endpoint::Service(service) => {
            let (host, bound) = (listen.host.clone(), listener.local_addr()?);
            Ok(Some(OwnAddress { service, host, bound }))
        }
    }
}

fn connection_limits(limits: Limits) -> ConnectionLimits {
    ConnectionLimits {
        header_bytes_max: limits.header_bytes_max,
        idle_timeout: limits.idle_timeout,
        head_timeout: HEAD_TIMEOUT.min(limits.idle_timeout),
        stall_timeout: limits.body_timeout,
    }
}
