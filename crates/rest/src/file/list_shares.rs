//! List Shares.

use holdfast_domain::failure::Fault;
use holdfast_domain::share::{ListShares, ListedShare, ListedState, ShareListing, ShareMarker};
use holdfast_domain::time::Timestamp;

use super::share_headers;
use crate::answer::Answer;
use crate::error::{Code, Error};
use crate::listing::account_listing::{AccountListing, write_retention};
use crate::listing::{Page, answer, included, write_metadata};
use crate::request::Call;
use crate::version::Version;
use crate::xml::Writer;

const INCLUDES: [(&str, Version); 3] = [
    ("metadata", Version::V2014_02_14),
    ("snapshots", Version::V2017_04_17),
    ("deleted", Version::V2019_12_12),
];

pub async fn list(call: &Call<'_>) -> Result<Answer, Error> {
    let included = included(call, &INCLUDES)?;
    let includes = |name| included.contains(&name);
    let asked = AccountListing::asked(call)?;
    let from = match asked.marker {
        Some(marker) => Some(ShareMarker::parse(marker).ok_or(Code::InvalidMarker)?),
        None => None,
    };
    let command = ListShares {
        prefix: asked.prefix(),
        marker: from,
        limit: asked.limit,
        account: asked.account.clone(),
        snapshots: includes("snapshots"),
        deleted: includes("deleted"),
    };
    let listing = call.frontend.domain().list_shares(command).await?;

    let xml = asked.begin(call, SharesPage::ENTRIES);
    let (with_metadata, version) = (includes("metadata"), call.version);
    answer(xml, SharesPage { listing, with_metadata, version }).await
}

struct SharesPage {
    listing: ShareListing,
    with_metadata: bool,
    version: Version,
}

impl Page for SharesPage {
    const ENTRIES: &str = "Shares";

    async fn write_next(&mut self, xml: &mut Writer) -> Result<bool, Fault> {
        let entries = self.listing.next().await?;
        for listed in &entries {
            write_share(xml, listed, self.with_metadata, self.version, self.listing.now);
        }
        Ok(!entries.is_empty())
    }

    fn next_marker(&self) -> Option<&str> {
        self.listing.next_marker()
    }
}

fn write_share(
    xml: &mut Writer,
    listed: &ListedShare,
    with_metadata: bool,
    version: Version,
    now: Timestamp,
) {
    let ListedShare { name, share, state } = listed;
    xml.open("Share");
    xml.element("Name", name);
    match state {
        ListedState::Live => {}
        ListedState::Snapshot(moment) => xml.element("Snapshot", &moment.iso8601().to_string()),
        ListedState::Deleted { version, snapshot, .. } => {
            let snapshot = snapshot.map(|moment| moment.iso8601().to_string());
            xml.optional("Snapshot", snapshot.as_deref());
            xml.element("Deleted", "true");
            xml.element("Version", &version.to_string());
        }
    }
    xml.open("Properties");
    xml.element("Last-Modified", &share.last_modified.rfc1123().to_string());
    xml.element("Etag", &share.etag.to_string());
    for property in share_headers::shown_properties(share, version, now) {
        xml.element(property.element, &property.value);
    }
    if let ListedState::Deleted { at, until, .. } = state {
        write_retention(xml, *at, *until, now);
    }
    xml.close("Properties");
    if with_metadata {
        write_metadata(xml, &share.metadata);
    }
    xml.close("Share");
}
