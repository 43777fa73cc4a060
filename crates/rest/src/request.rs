//! What handlers see of a request, and how they read its headers.

use std::cell::Cell;
use std::fmt;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_domain::blob::{BlobPath, ContainerPath};
use holdfast_domain::lease::LeaseId;
use holdfast_domain::metadata::Metadata;
use holdfast_domain::names::{AccountName, BlobName, ContainerName, ShareName, TableName};
use holdfast_domain::share::SharePath;
use holdfast_domain::table::TablePath;
use holdfast_domain::time::Timestamp;

use crate::address::Address;
use crate::auth::{self, Granted, Identity, NamedResource};
use crate::connection::RequestCase;
use crate::error::{Code, Error};
use crate::frontend::{Frontend, Peer};
use crate::headers::RequestHeaders;
use crate::operation::{Need, Operation, Second};
use crate::url_query::UrlQuery;
use crate::version::Version;

/// A request that was understood and allowed, without its body.
pub struct Call<'a> {
    pub frontend: &'a Frontend,
    pub operation: Operation,
    pub address: &'a Address<'a>,
    pub query: &'a UrlQuery<'a>,
    pub headers: &'a RequestHeaders,
    /// The case of metadata names, which `headers` does not keep.
    pub case: &'a RequestCase,
    pub version: Version,
    /// The caller, for authorizing other resources that the request names.
    pub caller: &'a Identity,
    /// What the caller may do with the resource of the address.
    pub granted: &'a Granted,
    pub peer: Peer,
    /// As written by the client.
    pub host: Option<&'a str>,
}

/// A GUID that is new for every request: random per process, then counted.
#[derive(Clone, Copy, Debug)]
pub struct RequestId(uuid::Uuid);

/// A thread reserves so many ids at once from the shared counter.
const IDS_OF_A_THREAD: u64 = 4096;

impl RequestId {
    pub fn next() -> Self {
        static PROCESS: LazyLock<(u64, AtomicU64)> = LazyLock::new(|| {
            let (process, first) = uuid::Uuid::new_v4().as_u64_pair();
            (process, AtomicU64::new(first))
        });
        thread_local! {
            /// The next number, and how many are left.
            static OWN: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
        }
        let (process, counted) = &*PROCESS;
        let (count, left) = match OWN.get() {
            (_, 0) => (counted.fetch_add(IDS_OF_A_THREAD, Ordering::Relaxed), IDS_OF_A_THREAD),
            own => own,
        };
        OWN.set((count.wrapping_add(1), left - 1));
        Self(uuid::Uuid::from_u64_pair(*process, count))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Call<'_> {
    /// The resource of the address.
    pub fn named_resource(&self) -> NamedResource<'_> {
        self.address.named_resource(self.operation.service())
    }

    /// Whether the caller may use `second`, the other resource that the operation needs.
    pub fn authorize_second(&self, second: &NamedResource<'_>) -> Result<(), Error> {
        let Second::Use(need) = self.operation.row().second else {
            return Err(Code::AuthorizationFailure.into());
        };
        self.authorize_second_for(&need, second).map(drop)
    }

    /// Whether the caller has `need` for `second`, a resource other than that of the address.
    pub fn authorize_second_for(
        &self,
        need: &Need,
        second: &NamedResource<'_>,
    ) -> Result<Granted, Error> {
        let granted = auth::authorize_second(
            self.caller,
            need,
            self.version,
            &self.named_resource(),
            second,
        )?;
        Ok(granted)
    }

    /// `http://host` as the client addressed it, for answers that name their own address.
    pub fn origin(&self) -> String {
        let scheme = if self.peer.tls { "https://" } else { "http://" };
        [scheme, self.host.unwrap_or_default()].concat()
    }

    /// The value of a header, if it is sent and not empty. One that is not ASCII text is refused.
    pub fn header(&self, name: &'static str) -> Result<Option<&str>, Error> {
        header(self.headers, name)
    }

    pub fn required_header(&self, name: &'static str) -> Result<&str, Error> {
        self.header(name)?.ok_or_else(|| Error::missing_header(name))
    }

    pub fn date_header(&self, name: &'static str) -> Result<Option<Timestamp>, Error> {
        let Some(text) = self.header(name)? else { return Ok(None) };
        match Timestamp::parse_rfc1123(text) {
            Some(date) => Ok(Some(date)),
            None => Err(Error::invalid_header(name, text)),
        }
    }

    pub fn lease_id_header(&self, name: &'static str) -> Result<Option<LeaseId>, Error> {
        let Some(text) = self.header(name)? else { return Ok(None) };
        match LeaseId::parse(text) {
            Some(id) => Ok(Some(id)),
            None => Err(Error::invalid_header(name, text)),
        }
    }

    pub fn lease_id(&self) -> Result<Option<LeaseId>, Error> {
        self.lease_id_header("x-ms-lease-id")
    }

    /// The headers `x-ms-meta-*`, checked.
    pub fn metadata(&self) -> Result<Metadata, Error> {
        let mut pairs = Vec::new();
        for (name, value) in self.headers.iter() {
            if let Some(name) = name.strip_prefix(b"x-ms-meta-").and_then(text) {
                let value = text(value).ok_or(Code::InvalidMetadata)?;
                pairs.push((self.case.original(name).to_owned(), value.to_owned()));
            }
        }
        Metadata::new(pairs).map_err(Error::from)
    }

    pub fn account(&self) -> Result<AccountName, Error> {
        Ok(AccountName::new(self.address.account)?)
    }

    /// The table of an operation on a table or its entities.
    pub fn table_path(&self) -> Result<TablePath, Error> {
        let table = self.address.resource.container().ok_or(Code::InvalidUri)?;
        Ok(TablePath { account: self.account()?, table: TableName::new(table)? })
    }

    /// The share of an operation on a share or its contents.
    pub fn share_path(&self) -> Result<SharePath, Error> {
        let share = self.address.resource.container().ok_or(Code::InvalidUri)?;
        Ok(SharePath { account: self.account()?, share: ShareName::new(share)? })
    }

    /// The container of an operation on a container or its blobs.
    pub fn container_path(&self) -> Result<ContainerPath, Error> {
        let container = self.address.resource.container().ok_or(Code::InvalidUri)?;
        Ok(ContainerPath { account: self.account()?, container: ContainerName::new(container)? })
    }

    pub fn blob_path(&self) -> Result<BlobPath, Error> {
        let blob = self.address.resource.object().ok_or(Code::InvalidUri)?;
        let (container, blob) = (self.container_path()?, BlobName::new(blob)?);
        blob.check_in(&container.container)?;
        Ok(BlobPath { container, blob })
    }
}

pub fn header<'a>(
    headers: &'a RequestHeaders,
    name: &'static str,
) -> Result<Option<&'a str>, Error> {
    let mut sent = headers.all(name);
    let Some(value) = sent.next() else { return Ok(None) };
    // Using one of several would be a guess.
    if sent.next().is_some() {
        return Err(Error::from(Code::InvalidHeaderValue)
            .detail("HeaderName", name)
            .detail("Reason", "It is sent more than once."));
    }
    match text(value) {
        Some(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        None => Err(Error::invalid_header(name, String::from_utf8_lossy(value))),
    }
}

/// Header values are ASCII by the protocol; UTF-8 is accepted, too.
fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value.trim_ascii()).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_request_gets_an_id_of_its_own_on_whichever_thread() {
        let many = || (0..2 * IDS_OF_A_THREAD + 1).map(|_| RequestId::next().0).collect::<Vec<_>>();
        let ids: Vec<_> = std::thread::scope(|scope| {
            let threads = [scope.spawn(many), scope.spawn(many), scope.spawn(many)];
            threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
        });
        let different: HashSet<_> = ids.iter().collect();
        assert_eq!(different.len(), ids.len());
    }
}
