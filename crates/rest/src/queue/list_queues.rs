//! List Queues.

use holdfast_domain::failure::Fault;
use holdfast_domain::names::QueueName;
use holdfast_domain::queue::{ListQueues, QueueListing};

use crate::answer::Answer;
use crate::error::{Code, Error};
use crate::listing::account_listing::AccountListing;
use crate::listing::{
    Page, answer, endpoint, included, names_addresses, write_metadata, write_url,
};
use crate::request::Call;
use crate::version::Version;
use crate::xml::Writer;

const INCLUDES: [(&str, Version); 1] = [("metadata", Version::V2009_09_19)];

pub async fn queues(call: &Call<'_>) -> Result<Answer, Error> {
    let with_metadata = !included(call, &INCLUDES)?.is_empty();
    let asked = AccountListing::asked(call)?;
    // The marker of a page is the name of the next queue.
    if asked.marker.is_some_and(|marker| QueueName::new(marker).is_err()) {
        return Err(Code::InvalidMarker.into());
    }
    let command = ListQueues {
        prefix: asked.prefix(),
        marker: asked.marker.map(str::to_owned),
        limit: asked.limit,
        account: asked.account.clone(),
    };
    let listing = call.frontend.domain().list_queues(command).await?;

    let address = names_addresses(call).then(|| endpoint(call));
    let xml = asked.begin(call, QueuesPage::ENTRIES);
    answer(xml, QueuesPage { listing, with_metadata, address }).await
}

struct QueuesPage {
    listing: QueueListing,
    with_metadata: bool,
    /// The prefix of the URLs that old versions list.
    address: Option<String>,
}

impl Page for QueuesPage {
    const ENTRIES: &str = "Queues";

    async fn write_next(&mut self, xml: &mut Writer) -> Result<bool, Fault> {
        let queues = self.listing.next().await?;
        for listed in &queues {
            xml.open("Queue");
            xml.element("Name", &listed.name);
            write_url(xml, self.address.as_deref(), &listed.name);
            if self.with_metadata {
                write_metadata(xml, &listed.queue.metadata);
            }
            xml.close("Queue");
        }
        Ok(!queues.is_empty())
    }

    fn next_marker(&self) -> Option<&str> {
        self.listing.next_marker()
    }
}
