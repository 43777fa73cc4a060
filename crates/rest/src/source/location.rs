//! Whether a source is on this server, however its URL is written.

use std::net::SocketAddr;

use holdfast_domain::blob::{BlobPath, ContainerPath, Which};
use holdfast_domain::names::{
    AccountName, BlobName, ContainerName, FilePath, NameRefusal, ShareName, TrailingDots,
};
use holdfast_domain::share::{GetNode, NodeAddress, SharePath, ShareState, Wanted};
use holdfast_domain::time::Timestamp;

use super::url::{Host, SourceUrl, host_and_port};
use crate::address::{Address, HostStyle, InvalidUri, Resource};
use crate::service::Service;
use crate::url_query::{QueryRefusal, UrlQuery};

/// Where a service of this server listens.
#[derive(Clone, Debug)]
pub struct OwnAddress {
    pub service: Service,
    /// As the operator wrote it.
    pub host: String,
    pub bound: SocketAddr,
}

#[derive(Clone, Debug)]
pub enum Located {
    /// A blob on this server.
    Here(LocalSource),
    /// A file or a directory on this server.
    File(LocalFile),
    /// On this server, but in a service without sources.
    Unserved(Service),
    Elsewhere,
}

/// A blob on this server, as the URL of a source names it. Only
/// [`readable_blob`](super::SourceRequest::readable_blob) gives it out, after authorization.
#[derive(Clone, Debug)]
pub struct LocalSource {
    pub(super) path: BlobPath,
    pub(super) which: Which,
    pub(super) url: LocalUrl,
}

/// A file or a directory on this server, as the URL of a source names it. Only
/// [`readable_file`](super::SourceRequest::readable_file) and
/// [`movable_file`](super::SourceRequest::movable_file) give it out.
#[derive(Clone, Debug)]
pub struct LocalFile {
    pub(super) share: SharePath,
    pub(super) path: FilePath,
    pub(super) snapshot: Option<Timestamp>,
    pub(super) url: LocalUrl,
}

/// The URL of a source on this server as it is written, for checking its signature.
#[derive(Clone, Debug)]
pub struct LocalUrl {
    pub(super) service: Service,
    pub(super) host: String,
    /// Encoded.
    pub(super) raw_path: String,
    pub(super) raw_query: String,
}

/// The URL leads to this server, but cannot be that of a blob or file; 400 `InvalidHeaderValue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the URL of the source names no blob or file")]
pub struct NoBlob;

impl From<InvalidUri> for NoBlob {
    fn from(_: InvalidUri) -> Self {
        Self
    }
}

impl From<NameRefusal> for NoBlob {
    fn from(_: NameRefusal) -> Self {
        Self
    }
}

impl From<QueryRefusal> for NoBlob {
    fn from(_: QueryRefusal) -> Self {
        Self
    }
}

/// The names of this server, as known from a request.
#[derive(Clone, Copy, Debug)]
pub struct Vicinity<'a> {
    pub own_addresses: &'a [OwnAddress],
    pub host_style: HostStyle,
    /// The service that received the request, and its Host header: a name that leads here, even
    /// through a proxy.
    pub service: Service,
    pub request_host: Option<&'a str>,
    /// What happens to dots at the end of names of a file.
    pub dots: TrailingDots,
}

pub fn locate(url: &SourceUrl, vicinity: Vicinity<'_>) -> Result<Located, NoBlob> {
    let Some(service) = vicinity.service_at(url) else { return Ok(Located::Elsewhere) };
    match service {
        Service::Blob => LocalSource::of(url, vicinity.host_style).map(Located::Here),
        Service::File => LocalFile::of(url, vicinity.host_style, vicinity.dots).map(Located::File),
        Service::Queue | Service::Table => Ok(Located::Unserved(service)),
    }
}

impl Vicinity<'_> {
    /// The service of this server that the URL leads to, if it leads here.
    fn service_at(&self, url: &SourceUrl) -> Option<Service> {
        let (named, domain) = self.parts(&url.host);
        let listening = self.own_addresses.iter().find(|own| own.is_at(&domain, url.port));
        if let Some(own) = listening {
            return Some(named.unwrap_or(own.service));
        }
        let (own, port) = host_and_port(self.request_host?)?;
        // Without a port it is that of the scheme, which a proxy may have changed.
        let same_port = match port {
            Some(port) => port == url.port,
            None => url.port == url.scheme.default_port(),
        };
        let own = self.parts(&own).1;
        let same_host = own == domain || (own.is_loopback() && domain.is_loopback());
        (same_port && same_host).then(|| named.unwrap_or(self.service))
    }

    /// The host without a leading `account.service.`, and that service.
    fn parts(&self, host: &Host) -> (Option<Service>, Host) {
        if let (Host::Name(name), HostStyle::Recognized) = (host, self.host_style)
            && let Some((_, rest)) = name.split_once('.')
            && let Some((service, domain)) = rest.split_once('.')
            && let Some(service) = Service::from_name(service)
            && let Some(domain) = Host::parse(domain)
        {
            return (Some(service), domain);
        }
        (None, host.clone())
    }
}

impl OwnAddress {
    fn is_at(&self, host: &Host, port: u16) -> bool {
        let bound = self.bound.ip().to_canonical();
        let on_loopback = bound.is_loopback() || bound.is_unspecified();
        let here = match host {
            Host::Address(address) => *address == bound,
            Host::Name(_) => Host::parse(&self.host).as_ref() == Some(host),
        };
        (here || (on_loopback && host.is_loopback())) && port == self.bound.port()
    }
}

fn which(query: &UrlQuery<'_>) -> Result<Which, NoBlob> {
    let moment = |name| match query.get_nonempty(name) {
        None => Ok(None),
        Some(text) => Timestamp::parse_iso8601(text).map(Some).ok_or(NoBlob),
    };
    match (moment("snapshot")?, moment("versionid")?) {
        (None, None) => Ok(Which::Current),
        (Some(moment), None) => Ok(Which::Snapshot(moment)),
        (None, Some(moment)) => Ok(Which::Version(moment)),
        (Some(_), Some(_)) => Err(NoBlob),
    }
}

impl LocalSource {
    fn of(url: &SourceUrl, host_style: HostStyle) -> Result<Self, NoBlob> {
        let host = url.authority();
        let query = UrlQuery::parse(url.query())?;
        let address = Address::parse(Service::Blob, Some(&host), host_style, url.path(), &query)?;
        let Resource::Blob { container, blob } = &address.resource else { return Err(NoBlob) };
        let container = ContainerPath {
            account: AccountName::new(address.account)?,
            container: ContainerName::new(container.as_ref())?,
        };
        let blob = BlobName::new(blob.as_ref())?;
        blob.check_in(&container.container)?;
        let local = LocalUrl::of(Service::Blob, url);
        Ok(Self { path: BlobPath { container, blob }, which: which(&query)?, url: local })
    }

    pub fn account(&self) -> &AccountName {
        &self.path.container.account
    }
}

impl LocalFile {
    fn of(url: &SourceUrl, host_style: HostStyle, dots: TrailingDots) -> Result<Self, NoBlob> {
        let host = url.authority();
        let query = UrlQuery::parse(url.query())?;
        let address = Address::parse(Service::File, Some(&host), host_style, url.path(), &query)?;
        let Resource::Path { share, path, .. } = &address.resource else { return Err(NoBlob) };
        let share = SharePath {
            account: AccountName::new(address.account)?,
            share: ShareName::new(share.as_ref())?,
        };
        let snapshot = match query.get_nonempty("sharesnapshot") {
            None => None,
            Some(text) => Some(Timestamp::parse_iso8601(text).ok_or(NoBlob)?),
        };
        let local = LocalUrl::of(Service::File, url);
        Ok(Self { share, path: FilePath::file(path, dots)?, snapshot, url: local })
    }

    /// A source needs no lease id.
    pub(super) fn read(&self) -> GetNode {
        let state = self.snapshot.map_or(ShareState::Current, ShareState::Snapshot);
        let address = NodeAddress::path(self.share.clone(), self.path.clone());
        GetNode { address, state, wanted: Wanted::File, lease_id: None }
    }
}

impl LocalUrl {
    fn of(service: Service, url: &SourceUrl) -> Self {
        Self {
            service,
            host: url.authority(),
            raw_path: url.path().to_owned(),
            raw_query: url.query().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(service: Service, host: &str, bound: &str) -> OwnAddress {
        OwnAddress { service, host: host.to_owned(), bound: bound.parse().expect(bound) }
    }

    fn shown(text: &str, own_addresses: &[OwnAddress], request_host: &str) -> String {
        let url = SourceUrl::parse(text).expect(text);
        let vicinity = Vicinity {
            own_addresses,
            host_style: HostStyle::Recognized,
            service: Service::Blob,
            request_host: Some(request_host),
            dots: TrailingDots::Removed,
        };
        match locate(&url, vicinity) {
            Ok(Located::Here(source)) => {
                let BlobPath { container, blob } = &source.path;
                let (account, container) = (&container.account, &container.container);
                format!("{}/{}/{}", account.as_str(), container.as_str(), blob.as_str())
            }
            Ok(Located::File(source)) => {
                let SharePath { account, share } = &source.share;
                format!("file {}/{}/{}", account.as_str(), share.as_str(), source.path)
            }
            Ok(Located::Unserved(service)) => service.name().to_owned(),
            Ok(Located::Elsewhere) => "elsewhere".to_owned(),
            Err(NoBlob) => "no blob".to_owned(),
        }
    }

    #[test]
    fn every_spelling_of_a_listener_on_loopback_is_here() {
        let addresses = [
            address(Service::Blob, "127.0.0.1", "127.0.0.1:10000"),
            address(Service::File, "127.0.0.1", "127.0.0.1:10003"),
            address(Service::Queue, "127.0.0.1", "127.0.0.1:10004"),
        ];
        for (text, expected) in [
            ("http://127.0.0.1:10000/acct/con/a%20b/c", "acct/con/a b/c"),
            ("https://127.0.0.1:10000/acct/con/b", "acct/con/b"),
            ("http://LOCALHOST:10000/acct/con/b", "acct/con/b"),
            ("http://localhost.:10000/acct/con/b", "acct/con/b"),
            ("http://[::1]:10000/acct/con/b", "acct/con/b"),
            ("http://[::ffff:127.0.0.1]:10000/acct/con/b", "acct/con/b"),
            ("http://127.0.0.2:10000/acct/con/b", "acct/con/b"),
            ("http://acct.blob.localhost:10000/con/b", "acct/con/b"),
            ("http://ACCT.Blob.LocalHost:10000/con/b", "acct/con/b"),
            ("http://127.0.0.1:10000/acct-secondary/con/b", "acct/con/b"),
            ("http://acct-secondary.blob.localhost:10000/con/b", "acct/con/b"),
            ("http://127.0.0.1:10000/acct/b", "acct/$root/b"),
            ("http://127.0.0.1:10003/acct/share/file", "file acct/share/file"),
            ("http://127.0.0.1:10003/acct/share/d%20e/f.", "file acct/share/d e/f"),
            ("http://acct.file.localhost:10003/share/file", "file acct/share/file"),
            ("http://127.0.0.1:10003/acct/share", "no blob"),
            ("http://127.0.0.1:10003/acct/share/a%3Ab", "no blob"),
            ("http://127.0.0.1:10004/acct/queue", "queue"),
            ("http://127.0.0.1:10000/acct", "no blob"),
            ("http://127.0.0.1:10000/acct/CON/b", "no blob"),
            ("http://127.0.0.1:10000/acct/con/b?snapshot=yesterday", "no blob"),
            (
                "http://127.0.0.1:10000/acct/con/b?snapshot=2026-01-01T00:00:00Z\
                 &versionid=2026-01-01T00:00:00Z",
                "no blob",
            ),
            ("http://127.0.0.1:10000/acct/con?restype=container", "no blob"),
            ("http://127.0.0.1:10001/acct/con/b", "elsewhere"),
            ("http://127.0.0.1/acct/con/b", "elsewhere"),
            ("http://192.0.2.1:10000/acct/con/b", "elsewhere"),
            ("http://acct.blob.core.windows.net/con/b", "elsewhere"),
            ("http://localhost.evil.example:10000/acct/con/b", "elsewhere"),
        ] {
            assert_eq!(shown(text, &addresses, "127.0.0.1:10000"), expected, "{text}");
        }
    }

    #[test]
    fn the_host_that_a_request_was_addressed_to_leads_here() {
        let addresses = [address(Service::Blob, "0.0.0.0", "0.0.0.0:10000")];
        for (request_host, text, expected) in [
            ("holdfast:10000", "http://holdfast:10000/acct/con/b", "acct/con/b"),
            ("store.example", "https://STORE.example/acct/con/b", "acct/con/b"),
            ("store.example", "http://store.example:80/acct/con/b", "acct/con/b"),
            ("store.example", "http://store.example:81/acct/con/b", "elsewhere"),
            ("one.blob.store.example", "https://two.blob.store.example/con/b", "two/con/b"),
            ("one.blob.store.example", "https://two.file.store.example/con/b", "file two/con/b"),
            ("one.blob.store.example", "https://two.blob.other.example/con/b", "elsewhere"),
            ("localhost:32768", "http://127.0.0.1:32768/acct/con/b", "acct/con/b"),
            ("192.0.2.7:10000", "http://192.0.2.7:10000/acct/con/b", "acct/con/b"),
            ("192.0.2.7:10000", "http://0.0.0.0:10000/acct/con/b", "acct/con/b"),
            ("not a host", "http://store.example/acct/con/b", "elsewhere"),
        ] {
            assert_eq!(shown(text, &addresses, request_host), expected, "{request_host} {text}");
        }
    }

    #[test]
    fn a_listener_on_one_address_is_there_and_not_on_loopback() {
        let addresses = [address(Service::Blob, "store.lan", "192.0.2.7:10000")];
        for (text, expected) in [
            ("http://192.0.2.7:10000/acct/con/b", "acct/con/b"),
            ("http://Store.LAN:10000/acct/con/b", "acct/con/b"),
            ("http://acct.blob.store.lan:10000/con/b", "acct/con/b"),
            ("http://127.0.0.1:10000/acct/con/b", "elsewhere"),
        ] {
            assert_eq!(shown(text, &addresses, "proxy.example"), expected, "{text}");
        }
    }
}
