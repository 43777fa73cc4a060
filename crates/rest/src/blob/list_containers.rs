//! List Containers.

use holdfast_domain::blob::{ContainerListing, ListContainers, ListedContainer};
use holdfast_domain::failure::Fault;
use holdfast_domain::time::Timestamp;

use super::{container, encryption, headers};
use crate::answer::Answer;
use crate::error::Error;
use crate::listing::{
    PAGE_MAX, Page, answer, echo, endpoint, included, names_addresses, write_metadata, write_url,
};
use crate::request::Call;
use crate::version::Version;
use crate::xml::Writer;

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

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
