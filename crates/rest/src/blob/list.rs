//! List Containers and List Blobs.

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use holdfast_domain::blob::{
    Blob, BlobListing, ContainerListing, Kind, ListBlobs, ListContainers, Listed, ListedContainer,
};
use holdfast_domain::failure::Fault;
use holdfast_domain::metadata::Metadata;
use holdfast_domain::time::Timestamp;
use hyper::StatusCode;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{container, headers};
use crate::answer::{Answer, AnswerBody};
use crate::error::{Code, Error};
use crate::request::Call;
use crate::version::Version;
use crate::xml::Writer;

/// The most entries of a page, whatever is asked for.
const PAGE_MAX: u32 = 5000;
const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// What is encoded in a path: all but the characters that mean only themselves, and the slash.
const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b'$');

pub async fn containers(call: &Call<'_>) -> Result<Answer, Error> {
    let include = Include::parse(call, CONTAINER_INCLUDES)?;
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
    xml.element("DefaultEncryptionScope", "$account-encryption-key");
    xml.element("DenyEncryptionScopeOverride", "false");
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

pub async fn blobs(call: &Call<'_>) -> Result<Answer, Error> {
    let include = Include::parse(call, BLOB_INCLUDES)?;
    let limit = call.query.page_size(PAGE_MAX)? as usize;
    let delimiter = call.query.get_nonempty("delimiter");
    if delimiter.is_some() && include.snapshots {
        return Err(Code::InvalidQueryParameterValue.into());
    }
    let (prefix, marker) = (call.query.get_nonempty("prefix"), call.query.get_nonempty("marker"));
    let start_from = call.query.get_nonempty("startFrom");
    let start_from = start_from.filter(|_| call.version >= Version::V2026_02_06);
    let path = call.container_path()?;
    let command = ListBlobs {
        container: path.clone(),
        prefix: prefix.unwrap_or_default().to_owned(),
        delimiter: delimiter.map(str::to_owned),
        marker: marker.or(start_from).map(str::to_owned),
        limit,
    };
    let listing = call.frontend.domain().list_blobs(command).await?;

    let mut xml = Writer::document();
    if !names_addresses(call) {
        let attributes =
            [("ServiceEndpoint", endpoint(call)), ("ContainerName", path.container.to_string())];
        let attributes = attributes.each_ref().map(|(name, value)| (*name, value.as_str()));
        xml.open_with("EnumerationResults", &attributes);
    } else {
        let url = format!("{}{}", endpoint(call), path.container);
        xml.open_with("EnumerationResults", &[("ContainerName", url.as_str())]);
    }
    echo(&mut xml, call, prefix, marker);
    xml.optional("Delimiter", delimiter);
    xml.open("Blobs");
    let container = utf8_percent_encode(path.container.as_str(), PATH);
    let address = names_addresses(call).then(|| format!("{}{container}/", endpoint(call)));
    answer(xml, BlobsPage { listing, include, version: call.version, address }).await
}

/// A page that is written while it is read.
pub(super) trait Page: Send + 'static {
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

struct BlobsPage {
    listing: BlobListing,
    include: Include,
    version: Version,
    /// As for containers.
    address: Option<String>,
}

impl Page for BlobsPage {
    const ENTRIES: &str = "Blobs";

    async fn write_next(&mut self, xml: &mut Writer) -> Result<bool, Fault> {
        let entries = self.listing.next().await?;
        for entry in &entries {
            match entry {
                Listed::Blob(name, blob) => {
                    let address = self.address.as_deref();
                    let (version, now) = (self.version, self.listing.now);
                    write_blob(xml, version, address, name, blob, self.include, now);
                }
                Listed::Prefix(name) => {
                    xml.open("BlobPrefix");
                    write_name(xml, self.version, name);
                    xml.close("BlobPrefix");
                }
            }
        }
        Ok(!entries.is_empty())
    }

    fn next_marker(&self) -> Option<&str> {
        self.listing.next_marker()
    }
}

/// A short page is sent whole; a longer one as it is read, so that it is never in memory whole.
pub(super) async fn answer<P: Page>(mut xml: Writer, mut page: P) -> Result<Answer, Error> {
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

fn write_blob(
    xml: &mut Writer,
    version: Version,
    address: Option<&str>,
    name: &str,
    blob: &Blob,
    include: Include,
    now: Timestamp,
) {
    xml.open("Blob");
    write_name(xml, version, name);
    write_url(xml, address, name);
    xml.open("Properties");
    if version >= Version::V2017_11_09 {
        xml.element("Creation-Time", &blob.created.rfc1123().to_string());
    }
    xml.element("Last-Modified", &blob.last_modified.rfc1123().to_string());
    // Listings show ETags without their quotes.
    xml.element("Etag", &blob.etag.unquoted().to_string());
    xml.element("Content-Length", &blob.length.to_string());
    xml.element("Content-Type", headers::content_type(&blob.headers));
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    xml.element("Content-Encoding", &text(&blob.headers.content_encoding));
    xml.element("Content-Language", &text(&blob.headers.content_language));
    let md5 = blob.headers.content_md5.map(headers::encode_md5);
    xml.element("Content-MD5", &md5.unwrap_or_default());
    xml.element("Cache-Control", &text(&blob.headers.cache_control));
    xml.element("Content-Disposition", &text(&blob.headers.content_disposition));
    if let Kind::Page { sequence_number, .. } = blob.kind {
        xml.element("x-ms-blob-sequence-number", &sequence_number.get().to_string());
    }
    xml.element("BlobType", headers::kind_name(blob.kind));
    if version >= Version::V2017_04_17 {
        let (tier, inferred) = headers::tier(blob);
        xml.element("AccessTier", tier);
        xml.optional("AccessTierInferred", inferred.then_some("true"));
        let changed = blob.tier_changed.map(|changed| changed.rfc1123().to_string());
        xml.optional("AccessTierChangeTime", changed.as_deref());
    }
    xml.element("LeaseStatus", headers::lease_status(&blob.lease, now));
    xml.element("LeaseState", headers::lease_state(&blob.lease, now));
    xml.optional("LeaseDuration", headers::lease_duration(&blob.lease, now));
    xml.element("ServerEncrypted", "true");
    let tag_count = (!blob.tags.is_empty()).then(|| blob.tags.len().to_string());
    xml.optional("TagCount", tag_count.as_deref());
    xml.close("Properties");
    if include.metadata {
        write_metadata(xml, &blob.metadata);
    }
    if include.tags && !blob.tags.is_empty() {
        xml.open("Tags");
        xml.open("TagSet");
        for (key, value) in blob.tags.iter() {
            xml.open("Tag");
            xml.element("Key", key);
            xml.element("Value", value);
            xml.close("Tag");
        }
        xml.close("TagSet");
        xml.close("Tags");
    }
    xml.close("Blob");
}

/// A name that XML cannot carry is percent-encoded, and says so, from 2021-02-12.
fn write_name(xml: &mut Writer, version: Version, name: &str) {
    let unfit = name.chars().any(|letter| !crate::xml::is_character(letter));
    if unfit && version >= Version::V2021_02_12 {
        let encoded = utf8_percent_encode(name, NON_ALPHANUMERIC);
        xml.element_with("Name", &[("Encoded", "true")], &encoded.to_string());
    } else {
        xml.element("Name", name);
    }
}

fn write_metadata(xml: &mut Writer, metadata: &Metadata) {
    xml.open("Metadata");
    for (name, value) in metadata.iter() {
        xml.element(name, value);
    }
    xml.close("Metadata");
}

/// The parameters of the request, as every listing repeats them.
fn echo(xml: &mut Writer, call: &Call<'_>, prefix: Option<&str>, marker: Option<&str>) {
    xml.optional("Prefix", prefix);
    xml.optional("Marker", marker);
    xml.optional("MaxResults", call.query.get_nonempty("maxresults"));
}

/// Before 2013-08-15 listings gave every address in full.
fn names_addresses(call: &Call<'_>) -> bool {
    call.version < Version::V2013_08_15
}

fn write_url(xml: &mut Writer, address: Option<&str>, name: &str) {
    if let Some(address) = address {
        xml.element("Url", &format!("{address}{}", utf8_percent_encode(name, PATH)));
    }
}

fn endpoint(call: &Call<'_>) -> String {
    let account = if call.address.path_style { call.address.account } else { "" };
    let slash = if account.is_empty() { "" } else { "/" };
    format!("{}/{account}{slash}", call.origin)
}

/// What a listing shows beside names and properties.
#[derive(Clone, Copy, Default)]
struct Include {
    metadata: bool,
    snapshots: bool,
    tags: bool,
    deleted: bool,
    system: bool,
}

/// What may be included, from which version on.
type Includes = &'static [(&'static str, Version)];

const CONTAINER_INCLUDES: Includes = &[
    ("metadata", Version::V2009_09_19),
    ("deleted", Version::V2019_12_12),
    ("system", Version::V2020_10_02),
];

const BLOB_INCLUDES: Includes = &[
    ("snapshots", Version::V2009_09_19),
    ("metadata", Version::V2009_09_19),
    ("uncommittedblobs", Version::V2009_09_19),
    ("copy", Version::V2012_02_12),
    ("deleted", Version::V2017_07_29),
    ("tags", Version::V2019_12_12),
    ("versions", Version::V2019_12_12),
    ("deletedwithversions", Version::V2020_10_02),
    ("immutabilitypolicy", Version::V2020_06_12),
    ("legalhold", Version::V2020_06_12),
    ("permissions", Version::V2020_06_12),
];

impl Include {
    /// Of what is allowed, that which these operations know: there are no snapshots, copies,
    /// versions and deleted blobs to show yet.
    fn parse(call: &Call<'_>, allowed: Includes) -> Result<Self, Error> {
        let mut include = Self::default();
        let lists = call.query.all("include").flat_map(|list| list.split(','));
        for name in lists.map(str::trim).filter(|name| !name.is_empty()) {
            let known = allowed
                .iter()
                .find(|(known, since)| known.eq_ignore_ascii_case(name) && *since <= call.version);
            match known.map(|(known, _)| *known) {
                Some("metadata") => include.metadata = true,
                Some("snapshots") => include.snapshots = true,
                Some("tags") if !call.granted.may_read_tags => {
                    return Err(Code::AuthorizationPermissionMismatch.into());
                }
                Some("tags") => include.tags = true,
                Some("deleted") => include.deleted = true,
                Some("system") => include.system = true,
                Some(_) => {}
                None => {
                    return Err(Error::from(Code::InvalidQueryParameterValue)
                        .detail("QueryParameterName", "include")
                        .detail("QueryParameterValue", name));
                }
            }
        }
        Ok(include)
    }
}
