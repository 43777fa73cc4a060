//! List Blobs, flat and by delimiter: the command, and the answer in XML.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdfast_domain::blob::{BlobListing, ContainerPath, ListBlobs, Listed, Position, Show};
use holdfast_domain::failure::Fault;
use holdfast_domain::time::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::listed_blob::{self, Entry, Value};
use super::tags;
use crate::answer::Answer;
use crate::error::{Code, Error};
use crate::listing::{self, PAGE_MAX, PATH, Page};
use crate::request::Call;
use crate::url_query::QueryRefusal;
use crate::version::Version;
use crate::xml::Writer;

pub async fn list(call: &Call<'_>) -> Result<Answer, Error> {
    let (command, include) = command(call)?;
    let (path, start) = (command.container.clone(), command.start.clone());
    let (prefix, delimiter) = (command.prefix.clone(), command.delimiter.clone());
    let listing = call.frontend.domain().list_blobs(command).await?;

    let mut xml = Writer::document();
    open(&mut xml, call, &path);
    let prefix = Some(prefix.as_str()).filter(|prefix| !prefix.is_empty());
    let marker = start.and(call.query.get_nonempty("marker"));
    listing::echo(&mut xml, call, prefix, marker);
    xml.optional("Delimiter", delimiter.as_deref());
    xml.open("Blobs");
    let container = utf8_percent_encode(path.container.as_str(), PATH);
    let address =
        listing::names_addresses(call).then(|| format!("{}{container}/", listing::endpoint(call)));
    let next_marker = None;
    listing::answer(
        xml,
        BlobsPage { listing, include, version: call.version, address, next_marker },
    )
    .await
}

fn open(xml: &mut Writer, call: &Call<'_>, path: &ContainerPath) {
    let endpoint = listing::endpoint(call);
    if listing::names_addresses(call) {
        let url = format!("{endpoint}{}", path.container);
        xml.open_with("EnumerationResults", &[("ContainerName", url.as_str())]);
    } else {
        let name = path.container.to_string();
        let attributes = [("ServiceEndpoint", endpoint.as_str()), ("ContainerName", name.as_str())];
        xml.open_with("EnumerationResults", &attributes);
    }
}

/// The command of the request.
pub fn command(call: &Call<'_>) -> Result<(ListBlobs, Include), Error> {
    let include = Include::parse(call)?;
    let limit = call.query.page_size(PAGE_MAX)? as usize;
    let delimiter = call.query.get_nonempty("delimiter");
    if delimiter.is_some() && include.show.snapshots {
        return Err(Code::InvalidQueryParameterValue.into());
    }
    let show = show_only(call, include)?;
    let marker = call.query.get_nonempty("marker").map(parse_marker).transpose()?;
    // It came with 2026-02-06, but object_store sends it with an older version and relies on it.
    let start_from = call.query.get_nonempty("startFrom").map(Position::at_name);
    let end_before = call.query.get_nonempty("endBefore");
    let end_before = end_before.filter(|_| call.version >= Version::V2026_10_06);
    let command = ListBlobs {
        container: call.container_path()?,
        prefix: call.query.get_nonempty("prefix").unwrap_or_default().to_owned(),
        delimiter: delimiter.map(str::to_owned),
        start: marker.or(start_from),
        end_before: end_before.map(str::to_owned),
        limit,
        show,
    };
    Ok((command, include))
}

/// `showonly` is for accounts with a hierarchical namespace, except for deleted blobs.
fn show_only(call: &Call<'_>, include: Include) -> Result<Show, Error> {
    const NAME: &str = "showonly";
    match call.query.get_nonempty(NAME).filter(|_| call.version >= Version::V2020_08_04) {
        None => Ok(include.show),
        Some("deleted") if !include.show.deleted => {
            Ok(Show { current: false, deleted: true, ..include.show })
        }
        Some(value) => {
            Err(QueryRefusal::InvalidValue { name: NAME, value: value.to_owned() }.into())
        }
    }
}

/// A position as a marker: its moment, then its name, in characters that are valid in any answer
/// and any URL.
pub fn write_marker(position: &Position) -> String {
    let mut bytes = position.moment.ticks().to_be_bytes().to_vec();
    bytes.extend_from_slice(position.name.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

fn parse_marker(text: &str) -> Result<Position, Error> {
    let decode = || {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (ticks, name) = bytes.split_first_chunk()?;
        let name = std::str::from_utf8(name).ok()?.to_owned();
        Some(Position { name, moment: Timestamp::from_ticks(u64::from_be_bytes(*ticks)) })
    };
    let refusal = || QueryRefusal::InvalidValue { name: "marker", value: text.to_owned() };
    decode().ok_or_else(|| refusal().into())
}

struct BlobsPage {
    listing: BlobListing,
    include: Include,
    version: Version,
    /// The prefix of the URLs that old versions list.
    address: Option<String>,
    next_marker: Option<String>,
}

impl Page for BlobsPage {
    const ENTRIES: &str = "Blobs";

    async fn write_next(&mut self, xml: &mut Writer) -> Result<bool, Fault> {
        let entries = self.listing.next().await?;
        for entry in &entries {
            match entry {
                Listed::Blob(name, listed) => {
                    let (include, version, now) = (self.include, self.version, self.listing.now);
                    let entry = Entry { listed, include, version, now };
                    write_blob(xml, self.address.as_deref(), name, &entry);
                }
                Listed::Uncommitted(name) => {
                    write_uncommitted(xml, self.version, self.address.as_deref(), name);
                }
                Listed::Prefix(name) => {
                    xml.open("BlobPrefix");
                    write_name(xml, self.version, name);
                    xml.close("BlobPrefix");
                }
            }
        }
        self.next_marker = self.listing.next_marker().map(write_marker);
        Ok(!entries.is_empty())
    }

    fn next_marker(&self) -> Option<&str> {
        self.next_marker.as_deref()
    }
}

fn write_blob(xml: &mut Writer, address: Option<&str>, name: &str, entry: &Entry<'_>) {
    xml.open("Blob");
    write_name(xml, entry.version, name);
    listing::write_url(xml, address, name);
    for (name, _, value) in listed_blob::IDENTITY {
        write_value(xml, name, value(entry));
    }
    xml.open("Properties");
    for (name, _, value) in listed_blob::PROPERTIES {
        write_value(xml, name, value(entry));
    }
    xml.close("Properties");
    if let Some(metadata) = entry.metadata() {
        listing::write_metadata(xml, metadata);
    }
    if let Some(blob_tags) = entry.tags() {
        tags::write(xml, blob_tags.iter());
    }
    xml.close("Blob");
}

fn write_uncommitted(xml: &mut Writer, version: Version, address: Option<&str>, name: &str) {
    xml.open("Blob");
    write_name(xml, version, name);
    listing::write_url(xml, address, name);
    xml.open("Properties");
    for (name, _, _) in listed_blob::PROPERTIES {
        write_value(xml, name, listed_blob::of_uncommitted(name));
    }
    xml.close("Properties");
    xml.close("Blob");
}

fn write_value(xml: &mut Writer, name: &str, value: Value) {
    match value {
        Value::None => {}
        Value::Text(text) => xml.element(name, &text),
        Value::Flag(flag) => xml.element(name, if flag { "true" } else { "false" }),
        Value::Number(number) => xml.element(name, &number.to_string()),
        Value::Time(time) => xml.element(name, &time.rfc1123().to_string()),
    }
}

/// From 2021-02-12 a name that XML cannot carry is percent-encoded and marked so.
pub fn write_name(xml: &mut Writer, version: Version, name: &str) {
    let unfit = name.chars().any(|letter| !crate::xml::is_character(letter));
    if unfit && version >= Version::V2021_02_12 {
        let encoded = utf8_percent_encode(name, NON_ALPHANUMERIC);
        xml.element_with("Name", &[("Encoded", "true")], &encoded.to_string());
    } else {
        xml.element("Name", name);
    }
}

/// What a listing shows besides names and properties.
#[derive(Clone, Copy, Default)]
pub struct Include {
    pub show: Show,
    pub metadata: bool,
    pub tags: bool,
    pub copy: bool,
    pub immutability: bool,
    pub legal_hold: bool,
}

/// What may be included, with the first version of each.
const INCLUDES: [(&str, Version); 11] = [
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
    // For accounts with a hierarchical namespace.
    ("permissions", Version::V2020_06_12),
];

impl Include {
    fn parse(call: &Call<'_>) -> Result<Self, Error> {
        let mut include = Self::default();
        for name in listing::included(call, &INCLUDES)? {
            match name {
                "uncommittedblobs" => include.show.uncommitted = true,
                "snapshots" => include.show.snapshots = true,
                "versions" => include.show.versions = true,
                "deleted" => include.show.deleted = true,
                "deletedwithversions" => include.show.deleted_with_versions = true,
                "metadata" => include.metadata = true,
                "tags" if !call.granted.may_read_tags => {
                    return Err(Code::AuthorizationPermissionMismatch.into());
                }
                "tags" => include.tags = true,
                "copy" => include.copy = true,
                "immutabilitypolicy" => include.immutability = true,
                "legalhold" => include.legal_hold = true,
                _ => {}
            }
        }
        Ok(include)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_comes_back_as_the_position_it_was_written_for() {
        for (name, ticks) in [("a", 0), ("ü/\u{FFFE}", 638_000_000_000_000_000), ("", u64::MAX)] {
            let position = Position { name: name.to_owned(), moment: Timestamp::from_ticks(ticks) };
            let marker = write_marker(&position);
            assert_eq!(parse_marker(&marker).expect("a marker"), position, "{marker}");
        }
    }

    #[test]
    fn text_that_is_no_marker_is_refused() {
        for text in ["a", "AAAA", "\u{0}garbage", "____________w"] {
            assert!(parse_marker(text).is_err(), "{text}");
        }
    }
}
