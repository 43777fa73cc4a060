//! Listings of the containers, queues or shares of an account.

use holdfast_domain::names::AccountName;
use holdfast_domain::time::Timestamp;

use super::{PAGE_MAX, echo, endpoint, names_addresses};
use crate::error::Error;
use crate::request::Call;
use crate::xml::Writer;

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// The parameters of these listings, besides what to include.
pub struct AccountListing<'a> {
    pub account: AccountName,
    prefix: Option<&'a str>,
    pub marker: Option<&'a str>,
    pub limit: usize,
}

impl<'a> AccountListing<'a> {
    pub fn asked(call: &'a Call<'_>) -> Result<Self, Error> {
        Ok(Self {
            limit: call.query.page_size(PAGE_MAX)? as usize,
            prefix: call.query.get_nonempty("prefix"),
            marker: call.query.get_nonempty("marker"),
            account: call.account()?,
        })
    }

    /// The prefix of the names; empty for all.
    pub fn prefix(&self) -> String {
        self.prefix.unwrap_or_default().to_owned()
    }

    /// The document up to the first of its `entries`.
    pub fn begin(&self, call: &Call<'_>, entries: &str) -> Writer {
        let mut xml = Writer::document();
        let attribute = if names_addresses(call) { "AccountName" } else { "ServiceEndpoint" };
        xml.open_with("EnumerationResults", &[(attribute, &endpoint(call))]);
        echo(&mut xml, call, self.prefix, self.marker);
        xml.open(entries);
        xml
    }
}

/// The time of a deletion, and how long it can still be undone.
pub fn write_retention(xml: &mut Writer, deleted: Timestamp, until: Timestamp, now: Timestamp) {
    xml.element("DeletedTime", &deleted.rfc1123().to_string());
    let left = until.since(now).as_secs().div_ceil(SECONDS_PER_DAY);
    xml.element("RemainingRetentionDays", &left.to_string());
}
