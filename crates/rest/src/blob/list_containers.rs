//! List Containers.

use holdfast_domain::blob::{ContainerListing, ListContainers, ListedContainer};
use holdfast_domain::failure::Fault;
use holdfast_domain::time::Timestamp;

use super::{container, encryption, headers};
use crate::answer::Answer;
use crate::error::Error;
use crate::listing::account_listing::{AccountListing, write_retention};
use crate::listing::{
    Page, answer, endpoint, included, names_addresses, write_metadata, write_url,
};
use crate::request::Call;
use crate::version::Version;
use crate::xml::Writer;

pub async fn containers(call: &Call<'_>) -> Result<Answer, Error> {
    let include = Include::parse(call)?;
    let asked = AccountListing::asked(call)?;
    let command = ListContainers {
        prefix: asked.prefix(),
        marker: asked.marker.map(str::to_owned),
        limit: asked.limit,
        account: asked.account.clone(),
        deleted: include.deleted,
        system: include.system,
    };
    let listing = call.frontend.domain().list_containers(command).await?;

    let address = names_addresses(call).then(|| endpoint(call));
    let xml = asked.begin(call, ContainersPage::ENTRIES);
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
        write_retention(xml, deleted.at, deleted.until, now);
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
    /// The prefix of the URLs that old versions list.
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

/// What a listing shows besides names and properties.
#[derive(Clone, Copy, Default)]
struct Include {
    metadata: bool,
    deleted: bool,
    system: bool,
}

/// What may be included, with the first version of each.
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
