//! The steps of every request: address, operation, version, authentication, authorization, handler,
//! answer.

use std::pin::Pin;
use std::time::Instant;

use holdfast_domain::names::AccountName;
use holdfast_places::Place;
use hyper::Method;

use super::accepted_conditions::check_conditions;
use super::caller::presented;
use super::exchange_record::ExchangeRecord;
use super::{Frontend, Peer, host};
use crate::address::Address;
use crate::answer::Answer;
use crate::blob;
use crate::body::RequestBody;
use crate::connection::{Parts, RequestCase};
use crate::error::{Code, Error};
use crate::file;
use crate::lanes::lane_share::LaneShare;
use crate::operation::{Operation, check_since, in_known_form, route};
use crate::queue;
use crate::request::{Call, RequestId};
use crate::service::Service;
use crate::service::properties_document;
use crate::table;
use crate::url_query::{self, Plus, UrlQuery};
use crate::version::Version;
use crate::version::negotiation::{self, negotiate};

/// A request as it arrived.
#[derive(Clone, Copy)]
pub(super) struct Arrival<'a> {
    pub(super) service: Service,
    pub(super) peer: Peer,
    /// The place of its connection, unless it is a part of a batch.
    pub(super) place: Option<&'a Place>,
    pub(super) share: Option<&'a LaneShare>,
    pub(super) parts: &'a Parts,
    pub(super) case: &'a RequestCase,
    /// The batch that it is a part of.
    pub(super) batch: Option<Batch<'a>>,
}

#[derive(Clone, Copy)]
pub(super) struct Batch<'a> {
    pub(super) version: Version,
    /// The container that all parts must be in.
    pub(super) container: Option<&'a str>,
}

/// What is known of a request so far, for its log line and the headers of the answer.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) operation: Option<Operation>,
    pub(super) version: Option<Version>,
    /// The version header is omitted for an anonymous caller who names no version.
    pub(super) keeps_version: bool,
    pub(super) account: Option<AccountName>,
    pub(super) website: bool,
}

impl Frontend {
    /// Answers a part of a batch as if it had been sent alone, but with the version of the batch. A
    /// part is never a batch, so this cannot nest.
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

    pub(super) async fn exchange(&self, arrival: Arrival<'_>, body: RequestBody) -> Answer {
        let Arrival { service, peer, parts, batch, .. } = arrival;
        let (started, id) = (Instant::now(), RequestId::next());
        let bytes_in = body.declared_length();
        let batch_version = batch.map(|batch| batch.version);
        let version = batch_version.or_else(|| negotiation::named(&parts.headers));
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
        let exchange = ExchangeRecord { service, id, peer, parts, seen: &seen, code };
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
        let query = UrlQuery::parse(parts.uri.query().unwrap_or_default())?;
        let host = host(parts);
        let path = parts.uri.path();
        let address = Address::parse(service, host, self.settings.host_style, path, &query)
            .map_err(|refusal| unreadable(path).unwrap_or(refusal.into()))?;
        seen.account = AccountName::new(address.account).ok();
        if let Some(share) = share {
            share.is_for(address.account);
        }
        check_container(batch, &address)?;
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
        let version = self.settle_version(&arrival, operation, &query, seen).await?;
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
            // The operations of tables check these conditions themselves.
            Service::Table => {}
            Service::Blob | Service::Queue | Service::File => {
                check_conditions(operation, &parts.headers)?;
            }
        }
        // No operation takes so long that it must be cut off; an invalid value is still refused.
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
        match operation {
            Operation::Blob(operation) => blob::dispatch(&call, operation, body).await,
            Operation::Queue(operation) => queue::dispatch(&call, operation, body).await,
            Operation::Table(operation) => table::dispatch(&call, operation, id, body).await,
            Operation::File(operation) => file::dispatch(&call, operation, body).await,
        }
    }

    /// The version that the request is processed with: the one it names, or the default of the
    /// account.
    async fn settle_version(
        &self,
        arrival: &Arrival<'_>,
        operation: Operation,
        query: &UrlQuery<'_>,
        seen: &mut Seen,
    ) -> Result<Version, Error> {
        let &Arrival { service, parts, batch, .. } = arrival;
        let named = match batch.map(|batch| batch.version) {
            Some(version) => Some(version),
            None => {
                negotiation::check_page_blobs(operation, &parts.headers)?;
                negotiate(service, seen.version, &parts.headers, query)?
            }
        };
        let version = match named {
            Some(version) => version,
            None => {
                let properties = self.properties(service, seen).await?;
                let default = properties_document::default_version(&properties);
                let has_credentials =
                    parts.headers.contains("authorization") || query.get("sig").is_some();
                seen.keeps_version = default.is_none() && !has_credentials;
                default.unwrap_or(Version::V2009_09_19)
            }
        };
        seen.version = Some(version);
        Ok(version)
    }
}

/// A batch on a container allows only parts in that container.
fn check_container(batch: Option<Batch<'_>>, address: &Address<'_>) -> Result<(), Error> {
    match batch.and_then(|batch| batch.container) {
        Some(only) if address.resource.container() != Some(only) => {
            let reason = "a part is for another container than the batch";
            Err(Error::from(Code::InvalidInput).detail("Reason", reason))
        }
        Some(_) | None => Ok(()),
    }
}

/// A path that cannot be decoded names an unknown resource.
fn unreadable(path: &str) -> Option<Error> {
    url_query::decode(path, Plus::IsPlus).is_none().then(|| Code::RequestUrlFailedToParse.into())
}
