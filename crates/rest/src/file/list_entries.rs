//! List Directories and Files: one level, in the order of names.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdfast_domain::share::{ListDirectory, Node};
use hyper::StatusCode;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{node_address, node_headers, parameters, rest_call};
use crate::answer::Answer;
use crate::error::Error;
use crate::lanes::lane_share::leave_lane_for;
use crate::listing::{self, PAGE_MAX};
use crate::request::Call;
use crate::url_query::QueryRefusal;
use crate::version::Version;
use crate::xml::{self, Writer};

const MARKER: &str = "marker";

pub async fn list(call: &Call<'_>) -> Result<Answer, Error> {
    let directory = node_address::read_directory(call)?;
    let include = Include::parse(call)?;
    let known = call.version >= Version::V2016_05_31;
    let prefix = call.query.get_nonempty("prefix").filter(|_| known);
    let marker = call.query.get_nonempty(MARKER);
    let share = directory.address.share.share.as_str().to_owned();
    let command = ListDirectory {
        address: directory.address,
        state: directory.state,
        prefix: prefix.unwrap_or_default().to_owned(),
        after: marker.map(parse_marker).transpose()?,
        limit: call.query.page_size(PAGE_MAX)? as usize,
    };
    let page = rest_call::run(call, command).await?;

    leave_lane_for(page.entries.len()).await;
    let mut xml = Writer::document();
    let path = call.address.resource.object().unwrap_or_default();
    open(&mut xml, call, &share, path);
    write_text(&mut xml, call.version, "Prefix", prefix.unwrap_or_default());
    xml.optional("Marker", marker);
    xml.optional("MaxResults", call.query.get_nonempty("maxresults"));
    if call.version >= Version::V2020_10_02 {
        xml.element("DirectoryId", &page.directory.node.id.to_string());
    }
    xml.open("Entries");
    for node in &page.entries {
        write_entry(&mut xml, call.version, include, node);
    }
    xml.close("Entries");
    let next = page.next.as_deref().map(write_marker);
    xml.element("NextMarker", next.as_deref().unwrap_or_default());
    xml.close("EnumerationResults");
    Ok(Answer::xml(StatusCode::OK, xml.finish()))
}

fn open(xml: &mut Writer, call: &Call<'_>, share: &str, path: &str) {
    let endpoint = listing::endpoint(call);
    let mut attributes = vec![("ServiceEndpoint", endpoint.as_str()), ("ShareName", share)];
    if let Some(snapshot) = call.query.get_nonempty("sharesnapshot") {
        attributes.push(("ShareSnapshot", snapshot));
    }
    let encoded = encoded(call.version, path);
    match &encoded {
        Some(encoded) => attributes.extend([("Encoded", "true"), ("DirectoryPath", encoded)]),
        None => attributes.push(("DirectoryPath", path)),
    }
    xml.open_with("EnumerationResults", &attributes);
}

/// From 2021-12-02: the encoded text, if it has characters that XML cannot carry.
fn encoded(version: Version, text: &str) -> Option<String> {
    let unfit = text.chars().any(|letter| !xml::is_character(letter));
    let encode = || utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    (unfit && version >= Version::V2021_12_02).then(encode)
}

pub fn write_text(xml: &mut Writer, version: Version, element: &str, text: &str) {
    match encoded(version, text) {
        Some(encoded) => xml.element_with(element, &[("Encoded", "true")], &encoded),
        None => xml.element(element, text),
    }
}

fn write_entry(xml: &mut Writer, version: Version, include: Include, node: &Node) {
    let element = if node.is_directory() { "Directory" } else { "File" };
    xml.open(element);
    if version >= Version::V2020_10_02 || include.extended {
        xml.element("FileId", &node.id.to_string());
    }
    let name = node.name.as_ref().map_or("", |name| name.as_str());
    write_text(xml, version, "Name", name);
    xml.open("Properties");
    if !node.is_directory() {
        xml.element("Content-Length", &node.length().to_string());
    }
    if include.timestamps {
        for (element, time) in [
            ("CreationTime", node.times.created),
            ("LastAccessTime", node.times.accessed),
            ("LastWriteTime", node.times.written),
            ("ChangeTime", node.times.changed),
        ] {
            xml.element(element, &time.iso8601().to_string());
        }
        xml.element("Last-Modified", &node.last_modified.rfc1123().to_string());
    }
    if include.etag {
        xml.element("Etag", &node.etag.to_string());
    }
    xml.close("Properties");
    if include.attributes {
        xml.element("Attributes", &node_headers::attributes_of(node));
    }
    if include.permission_key {
        xml.element("PermissionKey", &node.permission.to_string());
    }
    xml.close(element);
}

/// The folded name to continue after, in characters that are valid in any answer and any URL.
fn write_marker(after: &str) -> String {
    URL_SAFE_NO_PAD.encode(after)
}

fn parse_marker(text: &str) -> Result<String, Error> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok();
    let name = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let invalid = || QueryRefusal::InvalidValue { name: MARKER, value: text.to_owned() };
    Ok(name.ok_or_else(invalid)?)
}

/// What a listing shows besides names and lengths.
#[derive(Clone, Copy, Default)]
struct Include {
    timestamps: bool,
    etag: bool,
    attributes: bool,
    permission_key: bool,
    /// `x-ms-file-extended-info`; lengths are exact without it, too.
    extended: bool,
}

const INCLUDES: [(&str, Version); 4] = [
    ("Timestamps", Version::V2020_04_08),
    ("Etag", Version::V2020_04_08),
    ("Attributes", Version::V2020_04_08),
    ("PermissionKey", Version::V2020_04_08),
];

impl Include {
    fn parse(call: &Call<'_>) -> Result<Self, Error> {
        let mut include = Self::default();
        if call.version >= Version::V2020_04_08 {
            let extended = parameters::boolean(call, "x-ms-file-extended-info")?;
            include.extended = extended.unwrap_or(false);
        }
        for name in listing::included(call, &INCLUDES)? {
            match name {
                "Timestamps" => include.timestamps = true,
                "Etag" => include.etag = true,
                "Attributes" => include.attributes = true,
                _ => include.permission_key = true,
            }
        }
        Ok(include)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_comes_back_as_the_name_it_was_written_for() {
        for name in ["A", "ÜBER ALL", "\u{FFFE}", ""] {
            assert_eq!(parse_marker(&write_marker(name)).expect("a marker"), name);
        }
        for text in ["!", "a", "_w"] {
            assert!(parse_marker(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_that_xml_cannot_carry_are_encoded() {
        for (name, version, expected) in [
            ("a&b", Version::V2021_12_02, None),
            ("a\u{FFFF}", Version::V2021_12_02, Some("a%EF%BF%BF")),
            ("a\u{FFFF}", Version::V2021_10_04, None),
        ] {
            assert_eq!(encoded(version, name).as_deref(), expected, "{name:?}");
        }
    }
}
