//! Requests to a static website: finding the account, and the page or the error page.

use std::time::Instant;

use holdfast_domain::names::AccountName;
use hyper::Method;

use super::exchange::Seen;
use super::exchange_record::ExchangeRecord;
use super::{Frontend, Peer, host};
use crate::address::HostStyle;
use crate::answer::Answer;
use crate::connection::Parts;
use crate::headers::date::with_date;
use crate::request::RequestId;
use crate::service::{Endpoint, Service};
use crate::website;

impl Frontend {
    /// The account of the requested website, if the request is for one; empty if the account is
    /// unknown.
    pub(super) fn website_account<'a>(
        &'a self,
        endpoint: Endpoint,
        parts: &'a Parts,
    ) -> Option<&'a str> {
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

    pub(super) async fn web_page(
        &self,
        account: &str,
        peer: Peer,
        parts: &Parts,
        bytes_in: u64,
    ) -> Answer {
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
        let exchange = ExchangeRecord { service, id, peer, parts, seen: &seen, code };
        exchange.record(&self.metrics, &answer, bytes_in, started);
        answer
    }
}
