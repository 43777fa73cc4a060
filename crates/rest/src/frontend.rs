//! The way of every request: address, version, operation, caller, permission, handler, answer.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use holdfast_domain::Domain;
use holdfast_domain::access::StoredPolicy;
use holdfast_domain::account::ServiceProperties;
use holdfast_domain::blob::{Container, ContainerPath, ContainerRefusal};
use holdfast_domain::failure::Failure;
use holdfast_domain::names::{AccountName, ContainerName, TableName};
use holdfast_domain::table::{TablePath, TableRefusal};
use holdfast_places::Place;
use hyper::{Method, StatusCode};

use crate::address::{Address, HostStyle, Resource};
use crate::answer::Answer;
use crate::auth::{
    self, Accounts, BearerSettings, ClaimTexts, Granted, Identity, KeyFields, Presented,
};
use crate::blob;
use crate::connection::{Incoming, Parts, RequestCase, RequestHead};
use crate::cors;
use crate::date::with_date;
use crate::error::{Code, Error};
use crate::file;
use crate::lane_share::LaneShare;
use crate::metrics::Metrics;
use crate::negotiate::{self, negotiate};
use crate::operation::{Conditions, Need, Operation, check_since, in_known_form, route};
use crate::query::{self, Plus, Query};
use crate::queue;
use crate::redact;
use crate::request::{Call, RequestId};
use crate::request_body::RequestBody;
use crate::request_headers::RequestHeaders;
use crate::server::ConnectionLimits;
use crate::service::{Endpoint, Service};
use crate::service_properties;
use crate::source::{Fetcher, SourceSettings};
use crate::table;
use crate::version::Version;
use crate::website;

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub ip: IpAddr,
    pub tls: bool,
}

/// Where a request comes from, and what its connection knows of it.
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

/// A longer one is not sent back.
const CLIENT_REQUEST_ID_BYTES_MAX: usize = 1024;

/// A request as it came in.
#[derive(Clone, Copy)]
struct Arrival<'a> {
    service: Service,
    peer: Peer,
    /// Of the connection that it came on, unless it is a part of a batch.
    place: Option<&'a Place>,
    share: Option<&'a LaneShare>,
    parts: &'a Parts,
    case: &'a RequestCase,
    /// What it is a part of.
    batch: Option<Batch<'a>>,
}

#[derive(Clone, Copy)]
struct Batch<'a> {
    version: Version,
    /// The one that all parts have to be in.
    container: Option<&'a str>,
}

/// What became known of a request while it was looked at; for its log line and its headers.
#[derive(Default)]
struct Seen {
    operation: Option<Operation>,
    version: Option<Version>,
    /// A caller without credentials who names no version is not told one.
    keeps_version: bool,
    account: Option<AccountName>,
    website: bool,
}

impl Frontend {
    pub fn new(domain: Arc<Domain>, settings: Settings, metrics: Arc<Metrics>) -> Self {
        let fetcher = Arc::new(Fetcher::new(&settings.sources, settings.limits.stall_timeout));
        Self { domain, settings, metrics, fetcher }
    }

    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// For what goes on after a request.
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

    /// Answers a part of a batch as if it had come alone, but for its version: that is the batch's.
    /// A part is never a batch, so this cannot nest.
    pub fn handle_part<'a>(
        &'a self,
        batch: &'a Call<'_>,
        parts: &'a Parts,
        case: &'a RequestCase,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        let arrival = Arrival {
            service: batch.operation.service(),
            peer: batch.peer,
            place: None,
            share: None,
            parts,
            case,
            batch: Some(Batch {
                version: batch.version,
                container: batch.address.resource.container(),
            }),
        };
        Box::pin(self.exchange(arrival, RequestBody::none()))
    }

    /// Whose website is asked for, if one is; empty if that cannot be told.
    fn website_account<'a>(&'a self, endpoint: Endpoint, parts: &'a Parts) -> Option<&'a str> {
        let by_host = || match self.settings.host_style {
            HostStyle::Recognized => host(parts).and_then(website::account_of_host),
            HostStyle::Ignored => None,
        };
        match endpoint {
            Endpoint::Service(Service::Blob) => by_host(),
            Endpoint::Service(Service::Queue | Service::Table | Service::File) => None,
            Endpoint::Website => {
                let first_label = host(parts).and_then(|host| host.split(['.', ':']).next());
                let known = first_label.filter(|label| self.accounts().get(label).is_some());
                let mut names = self.accounts().names();
                let only = names.next().filter(|_| names.next().is_none());
                Some(by_host().or(known).or(only).unwrap_or_default())
            }
        }
    }

    async fn web_page(&self, account: &str, peer: Peer, parts: &Parts, bytes_in: u64) -> Answer {
        let (started, id, service) = (Instant::now(), RequestId::next(), Service::Blob);
        let mut seen = Seen { website: true, ..Seen::default() };
        seen.account = AccountName::new(account).ok();
        let answered = match self.properties(service, &seen).await {
            Ok(properties) => {
                website::answer(self, peer, account, parts, &properties.static_website).await
            }
            Err(error) => Err(error),
        };
        let (mut answer, code) = match answered {
            Ok(answer) => (answer, None),
            Err(error) => {
                let bodiless = parts.method == Method::HEAD;
                (error.page(&id.to_string(), bodiless), Some(error.code))
            }
        };
        answer.header("server", website::SERVER_HEADER);
        answer.show("x-ms-request-id", id);
        answer.show("x-ms-version", website::VERSION);
        with_date(self.domain.now(), |date| answer.header("date", date));
        let exchange = Exchange { service, id, peer, parts, seen: &seen, code };
        exchange.record(&self.metrics, &answer, bytes_in, started);
        answer
    }

    async fn exchange(&self, arrival: Arrival<'_>, body: RequestBody) -> Answer {
        let Arrival { service, peer, parts, batch, .. } = arrival;
        let (started, id) = (Instant::now(), RequestId::next());
        let bytes_in = body.declared_length();
        let batch_version = batch.map(|batch| batch.version);
        let version = batch_version.or_else(|| negotiate::named(&parts.headers));
        let mut seen = Seen { version, ..Seen::default() };
        let answered = self.answer(arrival, id, body, &mut seen).await;
        let (mut answer, code) = match answered {
            Ok(answer) => (answer, None),
            Err(error) => {
                let error = match service {
                    Service::Table => table::in_its_words(error),
                    Service::Blob | Service::Queue | Service::File => error,
                };
                let code = error.code;
                let bodiless = parts.method == Method::HEAD;
                (error.answer(service, id, self.domain.now(), bodiless), Some(code))
            }
        };
        self.common_headers(&mut answer, service, id, parts, &seen).await;
        let exchange = Exchange { service, id, peer, parts, seen: &seen, code };
        exchange.record(&self.metrics, &answer, bytes_in, started);
        answer
    }

    async fn answer(
        &self,
        arrival: Arrival<'_>,
        id: RequestId,
        body: RequestBody,
        seen: &mut Seen,
    ) -> Result<Answer, Error> {
        let Arrival { service, peer, place, share, parts, case, batch } = arrival;
        let query = Query::parse(parts.uri.query().unwrap_or_default())?;
        let host = host(parts);
        let address =
            Address::parse(service, host, self.settings.host_style, parts.uri.path(), &query)
                .map_err(|refusal| unreadable(parts.uri.path()).unwrap_or(refusal.into()))?;
        seen.account = AccountName::new(address.account).ok();
        if let Some(share) = share {
            share.is_for(address.account);
        }
        if let Some(only) = batch.and_then(|batch| batch.container)
            && address.resource.container() != Some(only)
        {
            let reason = "a part is for another container than the batch";
            return Err(Error::from(Code::InvalidInput).detail("Reason", reason));
        }
        let operation = route(
            service,
            parts.method.as_str(),
            address.resource.scope(),
            &query,
            &parts.headers,
        )?;
        seen.operation = Some(operation);
        if parts.method == Method::OPTIONS {
            return self.preflight(service, seen, &parts.headers).await;
        }
        let named = match batch.map(|batch| batch.version) {
            Some(version) => Some(version),
            None => {
                negotiate::check_page_blobs(operation, &parts.headers)?;
                negotiate(service, seen.version, &parts.headers, &query)?
            }
        };
        let version = match named {
            Some(version) => version,
            None => {
                let properties = self.properties(service, seen).await?;
                let default = service_properties::default_version(&properties);
                let has_credentials =
                    parts.headers.contains("authorization") || query.get("sig").is_some();
                seen.keeps_version = default.is_none() && !has_credentials;
                default.unwrap_or(Version::V2009_09_19)
            }
        };
        seen.version = Some(version);
        let operation = in_known_form(operation, version);
        seen.operation = Some(operation);
        check_since(operation, version, &query, &parts.headers)?;

        let pairs = query.to_pairs();
        let presented = presented(service, peer, parts, &address, &pairs, version);
        let (caller, granted) =
            self.authorize(&presented, version, &address, &operation.need(&query)).await?;
        if let Some(place) = place.filter(|_| granted.public_access.is_none()) {
            place.authenticated();
        }
        if address.secondary && !matches!(parts.method, Method::GET | Method::HEAD) {
            return Err(Error::secondary_is_read_only());
        }
        match service {
            // What these conditions mean to a table is for its operations to say.
            Service::Table => {}
            Service::Blob | Service::Queue | Service::File => {
                check_conditions(operation, &parts.headers)?;
            }
        }
        // No operation takes so long that it would have to be cut short; no sense is still refused.
        query.integer("timeout", 1..=i64::from(i32::MAX))?;
        if !operation.row().built {
            return Err(Code::NotImplemented.into());
        }
        let call = Call {
            frontend: self,
            operation,
            address: &address,
            query: &query,
            headers: &parts.headers,
            case,
            version,
            caller: &caller,
            granted: &granted,
            peer,
            host,
        };
        match service {
            Service::Blob => blob::dispatch(&call, body).await,
            Service::Queue => queue::dispatch(&call, body).await,
            Service::Table => table::dispatch(&call, id, body).await,
            Service::File => file::dispatch(&call, body).await,
        }
    }

    /// Who is calling, whether they may do this, and what the operation must still respect.
    pub(crate) async fn authorize(
        &self,
        presented: &Presented<'_>,
        version: Version,
        address: &Address<'_>,
        need: &Need,
    ) -> Result<(Identity, Granted), Error> {
        if self.accounts().is_disabled(address.account) {
            return Err(Code::AccountIsDisabled.into());
        }
        let now = self.domain.now();
        let settings = &self.settings;
        let mut identity =
            auth::authenticate(presented, &settings.accounts, &settings.bearer, now)?;
        if let Identity::ServiceSas(sas) = &identity
            && let Some(policy_id) = &sas.policy_id
        {
            let named = |policy: &StoredPolicy| policy.id == *policy_id;
            let policies =
                Box::pin(self.stored_policies(address, sas.scope.table.as_deref())).await?;
            let policy = policies.into_iter().find(named);
            identity = Identity::ServiceSas(auth::resolve_policy(sas.clone(), policy, now)?);
        }
        if let Identity::UserDelegationSas(sas) = &mut identity {
            let known = Box::pin(self.delegator_claims(address, &sas.key)).await?;
            sas.give_roles(&settings.bearer, known);
        }
        let granted = auth::authorize(&identity, need, version, &presented.target)?;
        if granted.public_access.is_some() {
            let container = Box::pin(self.container(address)).await?;
            let level = container.map(|container| container.public_access);
            auth::check_public_access(&granted, level, true)?;
        }
        Ok((identity, granted))
    }

    /// What the token said with which the maker of a signature got their key.
    async fn delegator_claims(
        &self,
        address: &Address<'_>,
        key: &KeyFields,
    ) -> Result<Option<ClaimTexts>, Error> {
        let account = AccountName::new(address.account)?;
        let known = self.domain.delegator(&account, &key.identity()).await?;
        Ok(known.map(|delegator| delegator.claims))
    }

    /// The stored access policies of what the address names, or of the table that a signature is
    /// for; none if it is not there.
    async fn stored_policies(
        &self,
        address: &Address<'_>,
        table: Option<&str>,
    ) -> Result<Vec<StoredPolicy>, Error> {
        if let Some(table) = table {
            let account = AccountName::new(address.account)?;
            let path = TablePath { account, table: TableName::new(table)? };
            return match self.domain.get_table(&path).await {
                Ok(table) => Ok(table.policies),
                Err(Failure::Refused(TableRefusal::NotFound)) => Ok(Vec::new()),
                Err(failure) => Err(failure.into()),
            };
        }
        if let Resource::Queue { queue }
        | Resource::Messages { queue }
        | Resource::Message { queue, .. } = &address.resource
        {
            return queue::stored_policies(&self.domain, address.account, queue).await;
        }
        if let Resource::Share { share } | Resource::Path { share, .. } = &address.resource {
            return file::stored_policies(&self.domain, address.account, share).await;
        }
        let container = self.container(address).await?;
        Ok(container.map(|container| container.policies).unwrap_or_default())
    }

    /// The container that the address names, if it names one of the Blob service and it exists.
    async fn container(&self, address: &Address<'_>) -> Result<Option<Container>, Error> {
        let (Resource::Container { container } | Resource::Blob { container, .. }) =
            &address.resource
        else {
            return Ok(None);
        };
        let path = ContainerPath {
            account: AccountName::new(address.account)?,
            container: ContainerName::new(container.as_ref())?,
        };
        match self.domain.get_container(&path, None).await {
            Ok((container, _)) => Ok(Some(container)),
            Err(Failure::Refused(ContainerRefusal::NotFound)) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    /// The properties of the service, if the account is served at all.
    async fn properties(
        &self,
        service: Service,
        seen: &Seen,
    ) -> Result<Arc<ServiceProperties>, Error> {
        self.with_properties(service, seen, Arc::clone).await
    }

    /// What `look` makes of them.
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

    async fn preflight(
        &self,
        service: Service,
        seen: &Seen,
        headers: &RequestHeaders,
    ) -> Result<Answer, Error> {
        let properties = self.properties(service, seen).await?;
        let allowed = cors::preflight(&properties.cors, headers)?;
        let mut answer = Answer::new(StatusCode::OK);
        for (name, value) in allowed {
            answer.header(name, value);
        }
        Ok(answer)
    }

    async fn common_headers(
        &self,
        answer: &mut Answer,
        service: Service,
        id: RequestId,
        parts: &Parts,
        seen: &Seen,
    ) {
        answer.header("server", service.server_header());
        answer.show("x-ms-request-id", id);
        with_date(self.domain.now(), |date| answer.header("date", date));
        let version = seen.version.unwrap_or(Version::V2009_09_19);
        if let Some(version) = seen.version {
            if !seen.keeps_version {
                answer.show("x-ms-version", version);
            }
            if version < Version::V2017_07_29 {
                answer.headers.remove("x-ms-error-code");
            }
            if version < Version::V2011_08_18 && answer.status == StatusCode::NOT_MODIFIED {
                unquote_etag(answer);
            }
        }
        let client_id = parts.headers.text("x-ms-client-request-id");
        let fits = |id: &&str| id.len() <= CLIENT_REQUEST_ID_BYTES_MAX;
        if let Some(client_id) = client_id.filter(fits)
            && version >= Version::V2019_02_02
        {
            answer.header("x-ms-client-request-id", client_id);
        }
        if parts.method == Method::OPTIONS {
            return;
        }
        let for_origin = |properties: &Arc<ServiceProperties>| {
            cors::actual(&properties.cors, &parts.method, &parts.headers, &answer.headers)
        };
        match self.with_properties(service, seen, for_origin).await {
            Ok(added) => {
                for (name, value) in added {
                    answer.header(name, value);
                }
            }
            Err(error) => tracing::error!(?error, "the rules for other origins cannot be read"),
        }
    }
}

fn presented<'a>(
    service: Service,
    peer: Peer,
    parts: &'a Parts,
    address: &'a Address<'a>,
    query: &'a [(String, String)],
    version: Version,
) -> Presented<'a> {
    Presented {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        path_style: address.path_style,
        query,
        headers: &parts.headers,
        version,
        tls: peer.tls,
        client_ip: peer.ip,
        target: address.target(service),
    }
}

/// A path that cannot be read names something, but nobody knows what.
fn unreadable(path: &str) -> Option<Error> {
    query::decode(path, Plus::IsPlus).is_none().then(|| Code::RequestUrlFailedToParse.into())
}

/// A condition that the operation would not look at must not be passed over in silence.
fn check_conditions(operation: Operation, headers: &RequestHeaders) -> Result<(), Error> {
    let accepted = operation.row().conditions;
    let known = [
        ("if-match", Conditions::IF_MATCH),
        ("if-none-match", Conditions::IF_NONE_MATCH),
        ("if-modified-since", Conditions::IF_MODIFIED_SINCE),
        ("if-unmodified-since", Conditions::IF_UNMODIFIED_SINCE),
        ("x-ms-if-tags", Conditions::TAGS),
    ];
    let mut unknown = known.into_iter().filter(|(_, condition)| !accepted.contains(*condition));
    if unknown.any(|(name, _)| headers.contains(name)) {
        return Err(Code::ConditionHeadersNotSupported.into());
    }
    Ok(())
}

/// A refusal does not know the version it is sent at; ETags had no quotes before 2011-08-18.
fn unquote_etag(answer: &mut Answer) {
    let quoted = answer.headers.get("etag");
    let unquoted = quoted.map(|etag| etag.trim_matches('"').to_owned());
    if let Some(etag) = unquoted {
        answer.headers.set_named("etag", &etag);
    }
}

fn host(parts: &Parts) -> Option<&str> {
    match parts.uri.authority() {
        Some(authority) => Some(authority.as_str()),
        None => parts.headers.text("host"),
    }
}

/// One request and its answer, for the log and the metrics.
struct Exchange<'a> {
    service: Service,
    id: RequestId,
    peer: Peer,
    parts: &'a Parts,
    seen: &'a Seen,
    code: Option<Code>,
}

impl Exchange<'_> {
    fn record(&self, metrics: &Metrics, answer: &Answer, bytes_in: u64, started: Instant) {
        let operation = match self.seen.operation {
            Some(operation) => operation.as_str(),
            None if self.seen.website => "Get Web Content",
            None => "Unknown",
        };
        let (status, elapsed) = (answer.status.as_u16(), started.elapsed());
        metrics.record(
            self.service,
            operation,
            status,
            elapsed,
            bytes_in,
            answer.body.length().unwrap_or(0),
            self.code.map(Code::name),
        );
        tracing::info!(
            id = %self.id,
            service = self.service.name(),
            operation,
            method = %self.parts.method,
            uri = %redact::uri(&self.parts.uri),
            status,
            code = self.code.map(Code::name),
            micros = elapsed.as_micros() as u64,
            ip = %self.peer.ip,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_takes_its_conditions_and_no_other() {
        let names = [
            "if-match",
            "if-none-match",
            "if-modified-since",
            "if-unmodified-since",
            "x-ms-if-tags",
        ];
        let four = [true, true, true, true, false];
        for (cell, operation, expected) in [
            ("1.6 Put Block", Operation::PutBlock, [false; 5]),
            ("1.6 Create Container", Operation::CreateContainer, [false; 5]),
            ("1.6 Append Blob Seal", Operation::SealAppendBlob, four),
            ("1.6 Get Blob", Operation::GetBlob, [true; 5]),
            ("1.6 Put Blob", Operation::PutBlockBlob, [true; 5]),
            ("1.6 Lease Blob", Operation::AcquireBlobLease, [true; 5]),
            ("1.6 Get Block List", Operation::GetBlockList, [false, false, false, false, true]),
            ("1.6 Delete Container", Operation::DeleteContainer, [false, false, true, true, false]),
            (
                "1.6 Set Container Metadata",
                Operation::SetContainerMetadata,
                [false, false, true, false, false],
            ),
            (
                "1.6 Set Blob Immutability Policy",
                Operation::SetBlobImmutabilityPolicy,
                [false, false, false, true, false],
            ),
        ] {
            assert!(
                check_conditions(operation, &RequestHeaders::default()).is_ok(),
                "{cell}: none sent"
            );
            for (name, taken) in names.into_iter().zip(expected) {
                let sent = RequestHeaders::from_iter([(name, "x")]);
                let code = check_conditions(operation, &sent).err().map(|error| error.code);
                let refused = (!taken).then_some(Code::ConditionHeadersNotSupported);
                assert_eq!(code, refused, "{cell}: {name}");
            }
        }
    }
}
