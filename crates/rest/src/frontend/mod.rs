//! The front end of all services: state shared by requests, and their entry point.

mod accepted_conditions;
mod caller;
mod common_headers;
mod exchange;
mod exchange_record;
mod web_page;

use std::net::IpAddr;
use std::sync::Arc;

use holdfast_domain::Domain;
use holdfast_domain::account::ServiceProperties;
use holdfast_places::Place;

use crate::address::HostStyle;
use crate::answer::Answer;
use crate::auth::{Accounts, BearerSettings};
use crate::body::RequestBody;
use crate::connection::{Incoming, Parts, RequestHead};
use crate::error::Error;
use crate::lanes::lane_share::LaneShare;
use crate::metrics::Metrics;
use crate::server::ConnectionLimits;
use crate::service::{Endpoint, Service};
use crate::source::{Fetcher, SourceSettings};
use exchange::{Arrival, Seen};

/// The peer of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub ip: IpAddr,
    pub tls: bool,
}

/// Where a request comes from, and the state of its connection.
#[derive(Clone, Copy)]
pub struct Sender<'a> {
    pub peer: Peer,
    pub place: &'a Place,
    pub share: &'a LaneShare,
}

pub struct Settings {
    pub accounts: Accounts,
    pub bearer: BearerSettings,
    pub limits: ConnectionLimits,
    pub host_style: HostStyle,
    pub sources: SourceSettings,
}

pub struct Frontend {
    domain: Arc<Domain>,
    settings: Settings,
    metrics: Arc<Metrics>,
    fetcher: Arc<Fetcher>,
}

impl Frontend {
    pub fn new(domain: Arc<Domain>, settings: Settings, metrics: Arc<Metrics>) -> Self {
        let fetcher = Arc::new(Fetcher::new(&settings.sources, settings.limits.stall_timeout));
        Self { domain, settings, metrics, fetcher }
    }

    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// For work that continues after a request.
    pub(crate) fn shared_domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    pub fn limits(&self) -> &ConnectionLimits {
        &self.settings.limits
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Reads sources that are not on this server.
    pub fn fetcher(&self) -> &Arc<Fetcher> {
        &self.fetcher
    }

    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    pub fn accounts(&self) -> &Accounts {
        &self.settings.accounts
    }

    pub fn host_style(&self) -> HostStyle {
        self.settings.host_style
    }

    pub async fn handle(
        &self,
        endpoint: Endpoint,
        Sender { peer, place, share }: Sender<'_>,
        RequestHead { parts, case, .. }: RequestHead,
        body: Incoming,
    ) -> Answer {
        let body = RequestBody::new(body, self.limits().stall_timeout);
        if let Some(account) = self.website_account(endpoint, &parts) {
            share.is_for(account);
            return Box::pin(self.web_page(account, peer, &parts, body.declared_length())).await;
        }
        let service = endpoint.service();
        let (parts, case, place, share) = (&parts, &case, Some(place), Some(share));
        let arrival = Arrival { service, peer, place, share, parts, case, batch: None };
        self.exchange(arrival, body).await
    }

    /// The properties of the service, if the account is served at all.
    async fn properties(
        &self,
        service: Service,
        seen: &Seen,
    ) -> Result<Arc<ServiceProperties>, Error> {
        self.with_properties(service, seen, Arc::clone).await
    }

    /// Returns what `look` makes of the properties.
    async fn with_properties<T>(
        &self,
        service: Service,
        seen: &Seen,
        look: impl FnOnce(&Arc<ServiceProperties>) -> T,
    ) -> Result<T, Error> {
        match &seen.account {
            Some(account) if self.accounts().get(account.as_str()).is_some() => {
                Ok(self.domain.with_service_properties(account, service.kind(), look).await?)
            }
            Some(_) | None => Ok(look(&Arc::default())),
        }
    }
}

fn host(parts: &Parts) -> Option<&str> {
    match parts.uri.authority() {
        Some(authority) => Some(authority.as_str()),
        None => parts.headers.text("host"),
    }
}
