//! Blobs and their snapshots.
//!
//! A blob with snapshots is written as often as it has versions, the oldest first, with a snapshot
//! after each but the last. A block blob appears whole or not at all. Page and append blobs, which
//! grow where they can be seen, bear a mark in their metadata until they are whole, so that a run
//! that is broken off leaves nothing that the next one takes for complete.

use bytes::Bytes;
use holdfast_verify::account::Service;
use holdfast_verify::client::Answer;
use hyper::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::content::ContentHash;
use super::{Destination, Left, READS_MAX};
use crate::endpoint::{Failure, Request, path};
use crate::endpoint::{blobs::range, lists::mark_header, lists::metadata_headers};
use crate::model::{Blob, BlobKind, ContentHeaders, Place, Version};
use crate::plan::{Decision, PIECE_BYTES, block_bytes, decide_blob, differs, pieces};
use crate::report::Kind;
use crate::source::Unreadable;

/// What must be at the destination for a write to happen.
enum Condition {
    Absent,
    Is(String),
}

impl Condition {
    fn header(&self) -> (String, String) {
        match self {
            Self::Absent => ("if-none-match".to_owned(), "*".to_owned()),
            Self::Is(etag) => ("if-match".to_owned(), etag.clone()),
        }
    }
}

fn put(version: &Version) -> Request {
    Request::put(Service::Blob, path(&version.container, &version.name))
}

fn content_headers(headers: &ContentHeaders, md5: &str) -> [(String, String); 6] {
    [
        ("x-ms-blob-content-type", &*headers.content_type),
        ("x-ms-blob-content-encoding", &headers.encoding),
        ("x-ms-blob-content-language", &headers.language),
        ("x-ms-blob-content-disposition", &headers.disposition),
        ("x-ms-blob-cache-control", &headers.cache_control),
        ("x-ms-blob-content-md5", md5),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
}

fn tags_header(version: &Version) -> (String, String) {
    let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
    let tags =
        version.tags.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    ("x-ms-tags".to_owned(), tags.collect::<Vec<_>>().join("&"))
}

fn etag_of(answer: &Answer) -> Result<Condition, Failure> {
    let etag = answer.headers.get("etag").map(str::to_owned);
    etag.map(Condition::Is).ok_or_else(|| Failure::Broken("the answer has no ETag".to_owned()))
}

impl Destination {
    /// `is_fresh`: the container was made by this run, so that nothing is in it.
    pub async fn blob(&self, mut blob: Blob, is_fresh: bool) {
        let Some(base) = blob.versions.last() else { return };
        let what = format!("blob {}/{}", base.container, base.name);
        for read in 1..=READS_MAX {
            match self.try_blob(&blob, is_fresh).await {
                Ok(()) => return,
                Err(Left::Source(Unreadable::Changed)) if read < READS_MAX => {
                    match self.source.look_again(&blob).await {
                        Ok(Some(again)) => blob = again,
                        Ok(None) => {
                            return self.report.note(format!("{what} was deleted meanwhile"));
                        }
                        Err(why) => return self.report.left(what, Left::from(why)),
                    }
                }
                Err(left) => return self.report.left(what, left),
            }
        }
    }

    async fn try_blob(&self, blob: &Blob, is_fresh: bool) -> Result<(), Left> {
        let there = if is_fresh { Vec::new() } else { self.versions_there(blob).await? };
        let mut decision = decide_blob(&blob.versions, &there, self.rules);
        let differs = || differs(self.rules, "its content differs");
        if let Decision::CompareContents = decision {
            let is_same = self.same_contents(blob.versions.iter().zip(&there)).await?;
            decision = if is_same { Decision::Same } else { differs() };
        }
        if let Decision::ReplaceIfBegun(at) = decision
            && let Some((base, older)) = there.split_last()
        {
            let pairs = blob.versions.iter().zip(older).chain([(&blob.versions[at], base)]);
            let is_begun = self.same_contents(pairs).await?;
            decision = if is_begun { Decision::Replace } else { differs() };
        }
        let snapshots = blob.versions.len() as u64 - 1;
        match decision {
            Decision::Same | Decision::CompareContents => {
                self.report.there(Kind::Blob);
                self.report.there_many(Kind::Snapshot, snapshots);
                return Ok(());
            }
            Decision::Conflict(what) => return Err(Left::Conflict(what)),
            Decision::Send | Decision::Replace | Decision::ReplaceIfBegun(_) if self.is_dry => {
                self.report.bytes(blob.versions.iter().map(|version| version.length).sum());
            }
            Decision::Send | Decision::Replace | Decision::ReplaceIfBegun(_) => {
                self.write(blob, &there).await?;
            }
        }
        self.report.sent(Kind::Blob);
        self.report.sent_many(Kind::Snapshot, snapshots);
        Ok(())
    }

    async fn versions_there(&self, blob: &Blob) -> Result<Vec<Version>, Left> {
        let Some(Version { container, name, .. }) = blob.versions.last() else {
            return Ok(Vec::new());
        };
        let base = self.endpoint.blob(container, name).await?;
        if base.is_some() && blob.versions.len() > 1 {
            return Ok(self.endpoint.versions(container, name).await?);
        }
        Ok(base.into_iter().collect())
    }

    /// Of versions at the source and at the destination, which are as long as each other.
    async fn same_contents<'pair>(
        &self,
        pairs: impl Iterator<Item = (&'pair Version, &'pair Version)>,
    ) -> Result<bool, Left> {
        for (source, there) in pairs {
            let known = [&source.headers.md5, &there.headers.md5];
            if known.iter().all(|md5| !md5.is_empty()) {
                continue;
            }
            let (mut here, mut other) = (ContentHash::default(), ContentHash::default());
            for (offset, length) in pieces(0, source.length, PIECE_BYTES) {
                here.take(&self.source.read(source, offset, length).await?);
                if there.headers.md5.is_empty() {
                    other.take(&self.endpoint.read_blob(there, offset, length).await?);
                }
            }
            let other = if there.headers.md5.is_empty() {
                other.finish()
            } else {
                there.headers.md5.clone()
            };
            if here.finish() != other {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn write(&self, blob: &Blob, there: &[Version]) -> Result<(), Left> {
        let mut condition = match there {
            [] => Condition::Absent,
            [base] => match &base.place {
                Place::Endpoint { etag } => Condition::Is(etag.clone()),
                Place::Extents(_) => Condition::Absent,
            },
            [.., base] => {
                let request =
                    Request::new(Service::Blob, Method::DELETE, path(&base.container, &base.name));
                let request = request.header("x-ms-delete-snapshots", "include");
                self.endpoint.send(request).await?;
                Condition::Absent
            }
        };
        let last = blob.versions.len() - 1;
        for (index, version) in blob.versions.iter().enumerate() {
            let what = format!("blob {}/{}", version.container, version.name);
            self.tell_unsendable(what, &version.metadata);
            let is_last = index == last;
            condition = match version.kind {
                BlobKind::Block => self.write_block_blob(version, &condition, is_last).await?,
                BlobKind::Page => self.write_page_blob(version, &condition).await?,
                BlobKind::Append => self.write_append_blob(version, &condition).await?,
            };
            if !is_last {
                self.snapshot(version).await?;
            }
        }
        Ok(())
    }

    async fn snapshot(&self, version: &Version) -> Result<(), Left> {
        let request = put(version).query("comp", "snapshot").once();
        let answer = self.endpoint.send(request).await?;
        if version.kind == BlobKind::Block && version.tier == ARCHIVE {
            let snapshot = answer.headers.get("x-ms-snapshot").unwrap_or_default();
            let request = put(version)
                .query("comp", "tier")
                .query("snapshot", snapshot)
                .header("x-ms-access-tier", &*version.tier);
            self.endpoint.send(request).await?;
        }
        Ok(())
    }

    async fn piece(&self, version: &Version, offset: u64, length: u64) -> Result<Bytes, Left> {
        let bytes = self.source.read(version, offset, length).await?;
        self.report.bytes(length);
        Ok(bytes)
    }

    async fn write_block_blob(
        &self,
        version: &Version,
        condition: &Condition,
        is_last: bool,
    ) -> Result<Condition, Left> {
        // No snapshot can be taken of what is archived.
        let tier = if is_last || version.tier != ARCHIVE { &*version.tier } else { "" };
        let finish = |request: Request, md5: &str| {
            request
                .headers(content_headers(&version.headers, md5))
                .headers(metadata_headers(&version.metadata))
                .headers([tags_header(version), condition.header()])
                .header("x-ms-access-tier", tier)
        };
        let mut hash = ContentHash::default();
        if version.length <= PIECE_BYTES {
            let bytes = self.piece(version, 0, version.length).await?;
            let md5 = ContentHash::of(&bytes);
            if version.headers.md5.is_empty() || version.headers.md5 == md5 {
                let request = put(version).header("x-ms-blob-type", "BlockBlob").body(bytes);
                let answer = self.endpoint.send(finish(request, &md5)).await?;
                return Ok(etag_of(&answer)?);
            }
            // A hash that somebody has set is kept, which Put Blob refuses.
        }
        let mut list = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>".to_owned();
        let length = block_bytes(version.length);
        for (index, (offset, length)) in pieces(0, version.length, length).enumerate() {
            let bytes = self.piece(version, offset, length).await?;
            hash.take(&bytes);
            let id = base64::Engine::encode(
                &base64::engine::general_purpose::STANDARD,
                format!("{index:06}"),
            );
            let request = put(version).query("comp", "block").query("blockid", &*id).body(bytes);
            self.endpoint.send(request).await?;
            list.push_str(&format!("<Latest>{id}</Latest>"));
        }
        list.push_str("</BlockList>");
        let computed = hash.finish();
        let md5 = &version.headers.md5;
        let md5 = if md5.is_empty() { &computed } else { md5 };
        if *md5 != computed {
            let Version { container, name, .. } = version;
            self.report.note(format!(
                "blob {container}/{name}: its Content-MD5 is not that of its content; both are kept"
            ));
        }
        let request =
            put(version).query("comp", "blocklist").content_type("application/xml").body(list);
        Ok(etag_of(&self.endpoint.send(finish(request, md5)).await?)?)
    }

    /// What page and append blobs begin with: nothing in them, and a mark.
    async fn begin(&self, version: &Version, condition: &Condition) -> Result<(), Left> {
        let mut request = put(version)
            .header("x-ms-blob-type", version.kind.name())
            .headers(content_headers(&version.headers, ""))
            .headers([mark_header(), tags_header(version), condition.header()]);
        if version.kind == BlobKind::Page {
            request = request
                .header("x-ms-blob-content-length", version.length.to_string())
                .header("x-ms-blob-sequence-number", version.sequence_number.to_string());
        }
        self.endpoint.send(request).await?;
        Ok(())
    }

    /// Takes the mark away, as the last step.
    async fn finish(&self, version: &Version) -> Result<Condition, Left> {
        if !version.headers.md5.is_empty() {
            let request = put(version)
                .query("comp", "properties")
                .headers(content_headers(&version.headers, &version.headers.md5));
            self.endpoint.send(request).await?;
        }
        if version.is_sealed {
            self.endpoint.send(put(version).query("comp", "seal")).await?;
        }
        let request =
            put(version).query("comp", "metadata").headers(metadata_headers(&version.metadata));
        Ok(etag_of(&self.endpoint.send(request).await?)?)
    }

    async fn write_page_blob(
        &self,
        version: &Version,
        condition: &Condition,
    ) -> Result<Condition, Left> {
        if !version.tier.is_empty() {
            self.report.note("the tiers of page blobs are not taken");
        }
        self.begin(version, condition).await?;
        for (first, length) in self.source.page_ranges(version).await? {
            for (offset, length) in pieces(first, length, PIECE_BYTES) {
                let bytes = self.piece(version, offset, length).await?;
                let request = put(version)
                    .query("comp", "page")
                    .header("x-ms-page-write", "update")
                    .header("x-ms-range", range(offset, length))
                    .body(bytes);
                self.endpoint.send(request).await?;
            }
        }
        self.finish(version).await
    }

    async fn write_append_blob(
        &self,
        version: &Version,
        condition: &Condition,
    ) -> Result<Condition, Left> {
        self.begin(version, condition).await?;
        for (offset, length) in pieces(0, version.length, block_bytes(version.length)) {
            let bytes = self.piece(version, offset, length).await?;
            let request = put(version)
                .query("comp", "appendblock")
                .header("x-ms-blob-condition-appendpos", offset.to_string())
                .body(bytes);
            match self.endpoint.send(request).await {
                Ok(_) => {}
                // An earlier try of which the answer was lost has appended it.
                Err(failure) if failure.has_code("AppendPositionConditionNotMet") => {
                    let there = self.endpoint.blob(&version.container, &version.name).await?;
                    if there.is_none_or(|there| there.length != offset + length) {
                        return Err(failure.into());
                    }
                }
                Err(failure) => return Err(failure.into()),
            }
        }
        self.finish(version).await
    }
}

const ARCHIVE: &str = "Archive";
