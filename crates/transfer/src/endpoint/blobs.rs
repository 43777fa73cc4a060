//! Blobs on a server: listed, looked at and read.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use holdfast_domain::time::Timestamp;
use holdfast_verify::account::Service;
use hyper::Method;

use super::lists::{next_marker, read_metadata, xml_metadata};
use super::{Endpoint, Failure, Request, path, xml};
use crate::model::{BlobKind, ContentHeaders, Page, Place, Version};

/// Asked for in one page of a list. A page is a few MiB at the most.
const PAGE_BLOBS: &str = "1000";

/// Of a blob or of one of its snapshots.
pub fn request(method: Method, container: &str, name: &str, snapshot: &str) -> Request {
    let request = Request::new(Service::Blob, method, path(container, name));
    if snapshot.is_empty() { request } else { request.query("snapshot", snapshot) }
}

/// The value of the header that asks for a range.
pub fn range(offset: u64, length: u64) -> String {
    format!("bytes={offset}-{}", offset + length - 1)
}

fn seconds_of(time: &str) -> i64 {
    Timestamp::parse_rfc1123(time).map_or(0, Timestamp::unix_seconds)
}

fn version(container: &Arc<str>, element: &xml::Element) -> Option<Version> {
    let properties = element.child("Properties")?;
    let text = |name| properties.text_of(name).to_owned();
    let tags = element.child("Tags").map(tag_set).unwrap_or_default();
    let is_inferred = properties.text_of("AccessTierInferred") == "true";
    Some(Version {
        container: Arc::clone(container),
        name: element.name_of("Name").into(),
        snapshot: element.text_of("Snapshot").to_owned(),
        kind: BlobKind::parse(properties.text_of("BlobType"))?,
        length: properties.text_of("Content-Length").parse().ok()?,
        headers: ContentHeaders {
            content_type: text("Content-Type"),
            encoding: text("Content-Encoding"),
            language: text("Content-Language"),
            disposition: text("Content-Disposition"),
            cache_control: text("Cache-Control"),
            md5: text("Content-MD5"),
        },
        metadata: xml_metadata(element),
        tags,
        tier: if is_inferred { String::new() } else { text("AccessTier") },
        sequence_number: properties.text_of("x-ms-blob-sequence-number").parse().unwrap_or(0),
        is_sealed: properties.text_of("Sealed") == "true",
        last_modified: seconds_of(properties.text_of("Last-Modified")),
        place: Place::Endpoint { etag: quoted(properties.text_of("Etag")) },
    })
}

/// Lists have ETags without quotation marks.
fn quoted(etag: &str) -> String {
    if etag.contains('"') { etag.to_owned() } else { format!("\"{etag}\"") }
}

fn tag_set(tags: &xml::Element) -> BTreeMap<String, String> {
    let all = tags.children_of("TagSet");
    all.map(|tag| (tag.text_of("Key").to_owned(), tag.text_of("Value").to_owned())).collect()
}

impl Endpoint {
    /// Blobs of which the name begins with `prefix`, and their snapshots, in order of names and of
    /// the times of snapshots.
    pub async fn list_blobs(
        &self,
        container: &str,
        prefix: &str,
        after: Option<&str>,
        with_tags: bool,
    ) -> Result<Page<Version>, Failure> {
        let include = if with_tags { "metadata,snapshots,tags" } else { "metadata,snapshots" };
        let mut request = Request::get(Service::Blob, path(container, ""))
            .query("restype", "container")
            .query("comp", "list")
            .query("include", include)
            .query("maxresults", PAGE_BLOBS);
        if !prefix.is_empty() {
            request = request.query("prefix", prefix);
        }
        if let Some(after) = after {
            request = request.query("marker", after);
        }
        let list = self.xml(request).await?;
        let container: Arc<str> = container.into();
        let blobs = list.children_of("Blobs").filter(|it| it.name == "Blob");
        let items = blobs.map(|blob| version(&container, blob)).collect::<Option<_>>();
        let items = items.ok_or_else(|| Failure::unexpected("list of blobs"))?;
        Ok(Page { items, next: next_marker(&list) })
    }

    /// None if it is not there.
    pub async fn blob(
        &self,
        container: &Arc<str>,
        name: &Arc<str>,
    ) -> Result<Option<Version>, Failure> {
        let answer = match self.send(request(Method::HEAD, container, name, "")).await {
            Ok(answer) => answer,
            Err(failure) if failure.is(404) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let text = |name: &str| answer.headers.get(name).unwrap_or_default().to_owned();
        let tags = match answer.headers.get("x-ms-tag-count") {
            None | Some("0") => BTreeMap::new(),
            Some(_) => self.tags(container, name).await?,
        };
        let is_inferred = text("x-ms-access-tier-inferred") == "true";
        let unexpected = || Failure::unexpected("answer about a blob");
        Ok(Some(Version {
            container: Arc::clone(container),
            name: Arc::clone(name),
            snapshot: String::new(),
            kind: BlobKind::parse(&text("x-ms-blob-type")).ok_or_else(unexpected)?,
            length: text("content-length").parse().map_err(|_| unexpected())?,
            headers: ContentHeaders {
                content_type: text("content-type"),
                encoding: text("content-encoding"),
                language: text("content-language"),
                disposition: text("content-disposition"),
                cache_control: text("cache-control"),
                md5: text("content-md5"),
            },
            metadata: read_metadata(&answer.headers),
            tags,
            tier: if is_inferred { String::new() } else { text("x-ms-access-tier") },
            sequence_number: text("x-ms-blob-sequence-number").parse().unwrap_or(0),
            is_sealed: text("x-ms-blob-sealed") == "true",
            last_modified: seconds_of(&text("last-modified")),
            place: Place::Endpoint { etag: text("etag") },
        }))
    }

    /// The versions of one name, as a list of them has it.
    pub async fn versions(
        &self,
        container: &Arc<str>,
        name: &Arc<str>,
    ) -> Result<Vec<Version>, Failure> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = self.list_blobs(container, name, after.as_deref(), true).await?;
            let others = page.items.iter().any(|version| version.name != *name);
            found.extend(page.items.into_iter().filter(|version| version.name == *name));
            // Longer names come behind all versions of this one.
            if page.next.is_none() || others {
                found.sort_by_key(|version: &Version| {
                    (version.snapshot.is_empty(), version.snapshot.clone())
                });
                return Ok(found);
            }
            after = page.next;
        }
    }

    async fn tags(&self, container: &str, name: &str) -> Result<BTreeMap<String, String>, Failure> {
        let request = request(Method::GET, container, name, "").query("comp", "tags");
        Ok(tag_set(&self.xml(request).await?))
    }

    /// As long as the blob is that of `version`.
    pub async fn read_blob(
        &self,
        version: &Version,
        offset: u64,
        length: u64,
    ) -> Result<Bytes, Failure> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        let Version { container, name, snapshot, .. } = version;
        let request = request(Method::GET, container, name, snapshot)
            .header("x-ms-range", range(offset, length))
            .header("if-match", etag(version));
        let answer = self.send(request).await?;
        if answer.body.len() as u64 != length {
            return Err(Failure::unexpected("part of a blob"));
        }
        Ok(answer.body)
    }

    pub async fn page_ranges(&self, version: &Version) -> Result<Vec<(u64, u64)>, Failure> {
        let Version { container, name, snapshot, .. } = version;
        let request = request(Method::GET, container, name, snapshot)
            .query("comp", "pagelist")
            .header("if-match", etag(version));
        let list = self.xml(request).await?;
        ranges(&list, "PageRange", version.length)
            .ok_or_else(|| Failure::unexpected("list of pages"))
    }
}

/// The ranges of a list, each within the length.
pub fn ranges(list: &xml::Element, name: &str, length: u64) -> Option<Vec<(u64, u64)>> {
    let ranges = list.children.iter().filter(|it| it.name == name);
    let range = |range: &xml::Element| {
        let start: u64 = range.text_of("Start").parse().ok()?;
        let end: u64 = range.text_of("End").parse().ok()?;
        (start <= end && end < length).then(|| (start, end - start + 1))
    };
    ranges.map(range).collect()
}

pub fn etag(version: &Version) -> &str {
    match &version.place {
        Place::Endpoint { etag } => etag,
        Place::Extents(_) => "",
    }
}
