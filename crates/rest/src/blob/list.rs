//! List Containers, and what List Blobs shares with it.

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use holdfast_domain::blob::{ContainerListing, ListContainers, ListedContainer};
use holdfast_domain::failure::Fault;
use holdfast_domain::metadata::Metadata;
use holdfast_domain::time::Timestamp;
use hyper::StatusCode;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{container, encryption, headers};
use crate::answer::{Answer, AnswerBody};
use crate::error::Error;
use crate::query::QueryRefusal;
use crate::request::Call;
use crate::version::Version;
use crate::xml::Writer;

/// The most entries of a page, whatever is asked for.
pub const PAGE_MAX: u32 = 5000;
const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// What is encoded in a path: all but the characters that mean only themselves, and the slash.
pub const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b'$');

pub async fn containers(call: &Call<'_>) -> Result<Answer, Error> {
    let include = Include::parse(call)?;
    let limit = call.query.page_size(PAGE_MAX)? as usize;
    let (prefix, marker) = (call.query.get_nonempty("prefix"), call.query.get_nonempty("marker"));
    let command = ListContainers {
        account: call.account()?,
        prefix: prefix.unwrap_or_default().to_owned(),
        marker: marker.map(str::to_owned),
        limit,
        deleted: include.deleted,
        system: include.system,
    };
    let listing = call.frontend.domain().list_containers(command).await?;

    let mut xml = Writer::document();
    let attribute = if names_addresses(call) { "AccountName" } else { "ServiceEndpoint" };
    xml.open_with("EnumerationResults", &[(attribute, &endpoint(call))]);
    echo(&mut xml, call, prefix, marker);
    xml.open("Containers");
    let address = names_addresses(call).then(|| endpoint(call));
    answer(xml, ContainersPage { listing, include, address }).await
}

fn write_container(
    xml: &mut Writer,
    address: Option<&str>,
    listed: &ListedContainer,
    include: Include,
    now: Timestamp,
) {
    let ListedContainer { name, container, deleted } = listed;
    xml.open("Container");
    xml.element("Name", name);
    write_url(xml, address, name);
    if let Some(deleted) = deleted {
        xml.element("Deleted", "true");
        xml.element("Version", &deleted.version.to_string());
    }
    xml.open("Properties");
    xml.element("Last-Modified", &container.last_modified.rfc1123().to_string());
    xml.element("Etag", &container.etag.to_string());
    xml.element("LeaseStatus", headers::lease_status(&container.lease, now));
    xml.element("LeaseState", headers::lease_state(&container.lease, now));
    xml.optional("LeaseDuration", headers::lease_duration(&container.lease, now));
    xml.optional("PublicAccess", container::public_access(container.public_access));
    xml.element("HasImmutabilityPolicy", "false");
    xml.element("HasLegalHold", "false");
    xml.element("ImmutableStorageWithVersioningEnabled", "false");
    xml.element("DefaultEncryptionScope", encryption::default_scope(&container.scope));
    let fixed = if container.scope.fixed { "true" } else { "false" };
    xml.element("DenyEncryptionScopeOverride", fixed);
    if let Some(deleted) = deleted {
        xml.element("DeletedTime", &deleted.at.rfc1123().to_string());
        let left = deleted.until.since(now).as_secs().div_ceil(SECONDS_PER_DAY);
        xml.element("RemainingRetentionDays", &left.to_string());
    }
    xml.close("Properties");
    if include.metadata {
        write_metadata(xml, &container.metadata);
    }
    xml.close("Container");
}

/// A page that is written while it is read.
pub trait Page: Send + 'static {
    /// The element around the entries.
    const ENTRIES: &str;

    /// Writes the next entries; false at the end of the page.
    fn write_next(&mut self, xml: &mut Writer) -> impl Future<Output = Result<bool, Fault>> + Send;

    fn next_marker(&self) -> Option<&str>;

    fn write_end(&self, xml: &mut Writer) {
        xml.close(Self::ENTRIES);
        xml.element("NextMarker", self.next_marker().unwrap_or_default());
        xml.close("EnumerationResults");
    }
}

struct ContainersPage {
    listing: ContainerListing,
    include: Include,
    /// What comes before the names in the addresses that old versions list.
    address: Option<String>,
}

impl Page for ContainersPage {
    const ENTRIES: &str = "Containers";

    async fn write_next(&mut self, xml: &mut Writer) -> Result<bool, Fault> {
        let entries = self.listing.next().await?;
        for listed in &entries {
            let address = self.address.as_deref();
            write_container(xml, address, listed, self.include, self.listing.now);
        }
        Ok(!entries.is_empty())
    }

    fn next_marker(&self) -> Option<&str> {
        self.listing.next_marker()
    }
}

/// A short page is sent whole; a longer one as it is read, so that it is never in memory whole.
pub async fn answer<P: Page>(mut xml: Writer, mut page: P) -> Result<Answer, Error> {
    if !page.write_next(&mut xml).await? || !page.write_next(&mut xml).await? {
        page.write_end(&mut xml);
        return Ok(Answer::xml(StatusCode::OK, xml.finish()));
    }
    let rest = stream::unfold(Some(page), async |page| {
        let mut page = page?;
        let mut xml = Writer::fragment();
        match page.write_next(&mut xml).await {
            Ok(true) => Some((Ok(Bytes::from(xml.finish())), Some(page))),
            Ok(false) => {
                page.write_end(&mut xml);
                Some((Ok(Bytes::from(xml.finish())), None))
            }
            Err(fault) => {
                tracing::error!(?fault, "a listing was broken off");
                Some((Err(std::io::Error::other(fault)), None))
            }
        }
    });
    let begun = stream::once(async { Ok(Bytes::from(xml.finish())) });
    let mut answer = Answer::xml(StatusCode::OK, String::new());
    answer.body = AnswerBody::Stream(None, Box::pin(begun.chain(rest)));
    Ok(answer)
}

pub fn write_metadata(xml: &mut Writer, metadata: &Metadata) {
    xml.open("Metadata");
    for (name, value) in metadata.iter() {
        xml.element(name, value);
    }
    xml.close("Metadata");
}

/// The parameters of the request, as every listing repeats them.
pub fn echo(xml: &mut Writer, call: &Call<'_>, prefix: Option<&str>, marker: Option<&str>) {
    xml.optional("Prefix", prefix);
    xml.optional("Marker", marker);
    xml.optional("MaxResults", call.query.get_nonempty("maxresults"));
}

/// Before 2013-08-15 listings gave every address in full.
pub fn names_addresses(call: &Call<'_>) -> bool {
    call.version < Version::V2013_08_15
}

pub fn write_url(xml: &mut Writer, address: Option<&str>, name: &str) {
    if let Some(address) = address {
        xml.element("Url", &format!("{address}{}", utf8_percent_encode(name, PATH)));
    }
}

pub fn endpoint(call: &Call<'_>) -> String {
    let account = if call.address.path_style { call.address.account } else { "" };
    let slash = if account.is_empty() { "" } else { "/" };
    format!("{}/{account}{slash}", call.origin)
}

/// What a listing shows beside names and properties.
#[derive(Clone, Copy, Default)]
struct Include {
    metadata: bool,
    deleted: bool,
    system: bool,
}

/// What may be included, from which version on.
const INCLUDES: [(&str, Version); 3] = [
    ("metadata", Version::V2009_09_19),
    ("deleted", Version::V2019_12_12),
    ("system", Version::V2020_10_02),
];

impl Include {
    fn parse(call: &Call<'_>) -> Result<Self, Error> {
        let mut include = Self::default();
        for name in included(call, &INCLUDES)? {
            match name {
                "metadata" => include.metadata = true,
                "deleted" => include.deleted = true,
                "system" => include.system = true,
                _ => {}
            }
        }
        Ok(include)
    }
}

/// What a request asks to include, of what is `known` from some version on.
pub fn included(
    call: &Call<'_>,
    known: &[(&'static str, Version)],
) -> Result<Vec<&'static str>, Error> {
    let lists = call.query.all("include").flat_map(|list| list.split(','));
    let names = lists.map(str::trim).filter(|name| !name.is_empty());
    let find = |name: &str| {
        let fits = |(known, since): &&(&'static str, Version)| {
            known.eq_ignore_ascii_case(name) && *since <= call.version
        };
        let refusal = || QueryRefusal::InvalidValue { name: "include", value: name.to_owned() };
        Ok(known.iter().find(fits).ok_or_else(refusal)?.0)
    };
    names.map(find).collect()
}
