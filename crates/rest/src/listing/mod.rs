//! Common to listings: pages of XML that are written while they are read, and the parameters of the
//! request that every listing repeats.

pub(crate) mod account_listing;
pub(crate) mod ranges_page;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use holdfast_domain::failure::Fault;
use holdfast_domain::metadata::Metadata;
use hyper::StatusCode;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::answer::{Answer, AnswerBody};
use crate::error::Error;
use crate::request::Call;
use crate::url_query::QueryRefusal;
use crate::version::Version;
use crate::xml::Writer;

/// The most entries of a page, whatever is requested.
pub const PAGE_MAX: u32 = 5000;

/// What is encoded in a path: all except unreserved characters, slash and `$`.
pub const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b'$');

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

/// A short page is sent whole; a longer one while it is read, so that it is never held whole.
pub async fn answer<P: Page>(mut xml: Writer, mut page: P) -> Result<Answer, Error> {
    let mut goes_on = page.write_next(&mut xml).await?;
    if goes_on {
        // Each part takes as long as the share of a request on its lane.
        tokio::task::yield_now().await;
        goes_on = page.write_next(&mut xml).await?;
    }
    if !goes_on {
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

/// Before 2013-08-15 listings had a full URL for each entry.
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
    format!("{}/{account}{slash}", call.origin())
}

/// What a request asks to include, out of `known` options with their first versions.
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
