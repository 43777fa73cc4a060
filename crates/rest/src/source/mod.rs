//! The source of the operations "from URL": Copy Blob, Copy Blob From URL, Put Blob, Block and Page
//! From URL, Append Block From URL. This module locates it, checks whether it may be read, and
//! reads its bytes; the operation uses them.
//!
//! An operation that takes the bytes, wherever they are:
//!
//! ```ignore
//! let source = SourceRequest::parse(call)?;                       // every header about the source
//! let mut opened = source.open(call, BLOCK_BYTES_MAX).await?;     // located, allowed, conditions met
//! let received = domain.receive(&mut opened.body).await?;         // refuses with `Error`
//! let digests = opened.body.finished();                           // of the bytes, for the answer
//! ```
//!
//! An operation that shares the extents of a blob on this server, or copies in the background:
//!
//! ```ignore
//! match source.locate(call)? {
//!     Located::Here(local) => {
//!         let blob = source.readable_blob(call, local).await.map_err(|e| source.error(e))?;
//!         // … the domain reads `blob.path` and checks `source.conditions.here` …
//!     }
//!     Located::File(local) => …                                   // source.readable_file
//!     Located::Elsewhere => {
//!         let properties = source.head(call).await?;              // then, without the request:
//!         let fetcher = Arc::clone(call.frontend.fetcher());
//!         let mut fetched = fetcher.open(&source.url, &source.asked(), length_max).await?;
//!         // `fetched.bytes` refuses with `SourceFailure`, of which the domain keeps the reason
//!     }
//!     Located::Unserved(_) => return Err(source.error(SourceFailure::unserved())),
//! }
//! ```
//!
//! Another host is read from only if a setting names it; see `allowed_hosts`.

mod access;
mod allowed_hosts;
pub(crate) mod background_copy;
mod copy_failure;
mod failure;
mod fetcher;
mod headers;
mod location;
mod resolver;
mod source_bytes;
mod tags;
mod url;

pub use access::{MovableFile, ReadableBlob, ReadableFile};
pub use allowed_hosts::{AllowedHosts, HostPattern, InvalidHostPattern};
pub(crate) use copy_failure::copy_status_description;
pub use failure::{FailureKind, SourceFailure, condition_as_refusal};
pub use fetcher::{Asked, FetchLimits, Fetched, FetchedBytes, Fetcher, InvalidRoot, roots};
pub use headers::SourceConditions;
pub use location::{LocalFile, LocalSource, LocalUrl, Located, OwnAddress};
pub(crate) use location::{Vicinity, locate};
pub use resolver::{Resolver, SystemResolver};
pub use source_bytes::{Opened, SourceBody, SourceProperties};
pub use url::{Host, InvalidSourceUrl, Scheme, SourceUrl};

use std::borrow::Cow;

use holdfast_domain::content::CustomerKey;
use holdfast_domain::content::ReadRange;
use tokio_rustls::rustls::RootCertStore;

use crate::blob::encryption;
use crate::body::ExpectedDigests;
use crate::error::{Code, Error};
use crate::request::Call;
use crate::version::Version;

const NAME: &str = "x-ms-copy-source";

/// Which sources can be read.
#[derive(Clone)]
pub struct SourceSettings {
    /// Where this server listens: sources there are read without a connection.
    pub own_addresses: Vec<OwnAddress>,
    /// Other hosts that may be read from.
    pub hosts: AllowedHosts,
    /// The certificate authorities for them. See [`roots`].
    pub roots: RootCertStore,
    /// Whether Copy Blob From URL reads a source in the same account with the key of the request, as
    /// Copy Blob does; the service does not.
    pub key_opens_copy_from_url: bool,
}

/// The source of a request, from its headers.
#[derive(Clone, Debug)]
pub struct SourceRequest {
    pub url: SourceUrl,
    pub conditions: SourceConditions,
    /// `x-ms-source-range`
    pub range: Option<ReadRange>,
    /// `x-ms-source-content-md5` and `-crc64`
    pub digests: ExpectedDigests,
    /// The key that the bytes of a source on this server are encrypted with.
    key: Option<CustomerKey>,
    token: Option<String>,
    version: Version,
}

impl SourceRequest {
    pub fn parse(call: &Call<'_>) -> Result<Self, Error> {
        let text = call.required_header(NAME)?;
        let url = SourceUrl::parse(&early_form(call, text)?).map_err(|_| invalid())?;
        Ok(Self {
            url,
            conditions: headers::conditions(call)?,
            range: headers::range(call)?,
            digests: headers::digests(call)?,
            key: encryption::source_key(call)?,
            token: headers::token(call)?,
            version: call.version,
        })
    }

    /// For operations that name a source in another header, without further options.
    pub fn parse_named(call: &Call<'_>, name: &'static str) -> Result<Self, Error> {
        let text = call.required_header(name)?;
        let url = SourceUrl::parse(text).map_err(|_| Error::invalid_header(name, ""))?;
        Ok(Self {
            url,
            conditions: SourceConditions::default(),
            range: None,
            digests: ExpectedDigests::default(),
            key: None,
            token: None,
            version: call.version,
        })
    }

    /// For operations that read their whole source.
    pub fn parse_whole(call: &Call<'_>) -> Result<Self, Error> {
        let source = Self::parse(call)?;
        match source.range {
            None => Ok(source),
            Some(_) => Err(Error::invalid_header(
                headers::RANGE,
                call.header(headers::RANGE)?.unwrap_or_default(),
            )),
        }
    }

    pub fn locate(&self, call: &Call<'_>) -> Result<Located, Error> {
        let settings = call.frontend.settings();
        let vicinity = Vicinity {
            own_addresses: &settings.sources.own_addresses,
            host_style: settings.host_style,
            service: call.operation.service(),
            request_host: call.host,
            dots: headers::source_dots(call)?,
        };
        location::locate(&self.url, vicinity).map_err(|_| invalid())
    }

    /// The request for a source on another host.
    pub fn asked(&self) -> Asked {
        Asked {
            range: self.range,
            conditions: self.conditions.elsewhere.clone(),
            token: self.token.clone(),
        }
    }

    /// The answer to the request if its source cannot be read.
    pub fn error(&self, failure: SourceFailure) -> Error {
        failure.into_error(self.version)
    }
}

/// Before 2012-02-12 a source was named as `/account/container/blob`, and was in the same account.
fn early_form<'a>(call: &Call<'_>, text: &'a str) -> Result<Cow<'a, str>, Error> {
    let Some(named) = text.strip_prefix('/').filter(|_| call.version < Version::V2012_02_12) else {
        return Ok(Cow::Borrowed(text));
    };
    let (account, path) = named.split_once('/').ok_or_else(invalid)?;
    if account != call.address.account {
        return Err(Code::CopyAcrossAccountsNotSupported.into());
    }
    let path = if call.address.path_style { named } else { path };
    Ok(Cow::Owned(format!("{}/{path}", call.origin())))
}

/// The value can contain a signature, so it is not returned.
fn invalid() -> Error {
    Error::invalid_header(NAME, "")
}
