//! The bytes of a source for an operation, wherever they are.

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_domain::blob::{Blob, Download, GetBlob};
use holdfast_domain::condition::CombinationRule;
use holdfast_domain::content::{ByteSource, ContentHeaders, ContentReader};
use holdfast_domain::metadata::Metadata;
use holdfast_domain::share::{FileDownload, GetFile, Node};
use holdfast_domain::tags::TagSet;
use holdfast_domain::time::Timestamp;

use super::fetcher::FetchedBytes;
use super::location::{LocalFile, LocalSource, Located};
use super::{FailureKind, ReadableBlob, ReadableFile, SourceFailure, SourceRequest};
use crate::blob::kind_name;
use crate::body::{Digests, ExpectedDigests, FinishedDigests};
use crate::error::Error;
use crate::file::rest_call;
use crate::request::Call;
use crate::version::Version;

/// What is known of a source.
#[derive(Clone, Debug, Default)]
pub struct SourceProperties {
    /// As received: that of another server need not have our form.
    pub etag: Option<String>,
    pub last_modified: Option<Timestamp>,
    /// The length of the whole source, if known.
    pub length: Option<u64>,
    /// `BlockBlob`, `PageBlob` or `AppendBlob`, if the source is a blob.
    pub blob_type: Option<String>,
    pub headers: ContentHeaders,
    /// HTTP does not keep the case of names; a source elsewhere has its metadata in lower case.
    pub metadata: Metadata,
    /// The tags of a blob on this server, if the caller may read them.
    pub tags: Option<TagSet>,
}

impl From<&Blob> for SourceProperties {
    fn from(blob: &Blob) -> Self {
        Self {
            etag: Some(blob.etag.to_string()),
            last_modified: Some(blob.last_modified),
            length: Some(blob.length),
            blob_type: Some(kind_name(blob.kind).to_owned()),
            headers: blob.headers.clone(),
            metadata: blob.metadata.clone(),
            tags: None,
        }
    }
}

impl From<&Node> for SourceProperties {
    fn from(node: &Node) -> Self {
        Self {
            etag: Some(node.etag.to_string()),
            last_modified: Some(node.last_modified),
            length: Some(node.length()),
            blob_type: None,
            headers: node.file().map(|file| file.headers.clone()).unwrap_or_default(),
            metadata: node.metadata.clone(),
            tags: None,
        }
    }
}

pub struct Opened {
    pub properties: SourceProperties,
    /// The length of the bytes, if it is known in advance.
    pub length: Option<u64>,
    pub body: SourceBody,
}

impl SourceRequest {
    /// Everything about the source except its bytes.
    pub async fn head(&self, call: &Call<'_>) -> Result<SourceProperties, Error> {
        let found = match self.locate(call)? {
            Located::Here(local) => self.head_here(call, local).await,
            Located::File(local) => self.head_file(call, local).await,
            Located::Unserved(_) => Err(SourceFailure::unserved()),
            Located::Elsewhere => call.frontend.fetcher().head(&self.url, &self.asked()).await,
        };
        found.map_err(|failure| self.error(failure))
    }

    /// The requested bytes: at most `length_max`.
    pub async fn open(&self, call: &Call<'_>, length_max: u64) -> Result<Opened, Error> {
        let opened = match self.locate(call)? {
            Located::Here(local) => self.open_here(call, local, length_max).await,
            Located::File(local) => self.open_file(call, local, length_max).await,
            Located::Unserved(_) => Err(SourceFailure::unserved()),
            Located::Elsewhere => self.open_elsewhere(call, length_max).await,
        };
        let (properties, length, bytes) = opened.map_err(|failure| self.error(failure))?;
        let (expected, version) = (self.digests, self.version);
        let digests = Some(Digests::both());
        let body = SourceBody { bytes, expected, digests, finished: None, version };
        Ok(Opened { properties, length, body })
    }

    async fn head_here(
        &self,
        call: &Call<'_>,
        local: LocalSource,
    ) -> Result<SourceProperties, SourceFailure> {
        let blob = self.readable_blob(call, local).await?;
        let command = self.read(&blob);
        let read =
            call.frontend.domain().get_blob_properties(&command).await.map_err(Error::from)?;
        Ok(SourceProperties::from(&*read.blob))
    }

    async fn open_here(
        &self,
        call: &Call<'_>,
        local: LocalSource,
        length_max: u64,
    ) -> Result<(SourceProperties, Option<u64>, SourceBytes), SourceFailure> {
        let blob = self.readable_blob(call, local).await?;
        let command = self.read(&blob);
        let download =
            call.frontend.domain().get_blob(&command, self.range).await.map_err(Error::from)?;
        let Download { read, range, reader } = download;
        let length = range.end - range.start;
        if length > length_max {
            return Err(FailureKind::TooLarge { length_max }.into());
        }
        let tags = blob.may_read_tags.then(|| read.blob.tags.clone());
        let properties = SourceProperties { tags, ..SourceProperties::from(&*read.blob) };
        Ok((properties, Some(length), SourceBytes::Here(Box::new(reader))))
    }

    async fn open_elsewhere(
        &self,
        call: &Call<'_>,
        length_max: u64,
    ) -> Result<(SourceProperties, Option<u64>, SourceBytes), SourceFailure> {
        let fetched = call.frontend.fetcher().open(&self.url, &self.asked(), length_max).await?;
        Ok((fetched.properties, fetched.length, SourceBytes::Elsewhere(fetched.bytes)))
    }

    async fn head_file(
        &self,
        call: &Call<'_>,
        local: LocalFile,
    ) -> Result<SourceProperties, SourceFailure> {
        let ReadableFile { read } = self.readable_file(call, local).await?;
        let located = rest_call::run(call, read).await.map_err(Error::from)?;
        Ok(SourceProperties::from(&located.node))
    }

    async fn open_file(
        &self,
        call: &Call<'_>,
        local: LocalFile,
        length_max: u64,
    ) -> Result<(SourceProperties, Option<u64>, SourceBytes), SourceFailure> {
        let ReadableFile { read } = self.readable_file(call, local).await?;
        let get = GetFile { file: read, range: self.range };
        let download = rest_call::run(call, get).await.map_err(Error::from)?;
        let FileDownload { located, range, reader } = download;
        let length = range.end - range.start;
        if length > length_max {
            return Err(FailureKind::TooLarge { length_max }.into());
        }
        let properties = SourceProperties::from(&located.node);
        Ok((properties, Some(length), SourceBytes::Here(Box::new(reader))))
    }

    /// A source needs no lease id (§2.4 of the notes on the protocol).
    fn read(&self, blob: &ReadableBlob) -> GetBlob {
        GetBlob {
            path: blob.path.clone(),
            which: blob.which,
            conditions: self.conditions.here.clone(),
            combination: CombinationRule::Free,
            lease_id: None,
            key: self.key.clone(),
        }
    }
}

enum SourceBytes {
    Here(Box<ContentReader>),
    Elsewhere(FetchedBytes),
}

/// The bytes of a source. Its end is reached only if they match the digests in the request.
pub struct SourceBody {
    bytes: SourceBytes,
    expected: ExpectedDigests,
    /// Until the end.
    digests: Option<Digests>,
    finished: Option<FinishedDigests>,
    version: Version,
}

impl SourceBody {
    /// The digests of the bytes, once they have been read to their end.
    pub fn finished(&self) -> FinishedDigests {
        self.finished.unwrap_or_default()
    }
}

#[async_trait]
impl ByteSource for SourceBody {
    type Refusal = Error;

    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let next = match &mut self.bytes {
            SourceBytes::Here(reader) => reader.next().await?,
            SourceBytes::Elsewhere(fetched) => {
                fetched.next().await.map_err(|failure| failure.into_error(self.version))?
            }
        };
        match (&next, self.digests.take()) {
            (Some(bytes), Some(mut digests)) => {
                digests.update(bytes);
                self.digests = Some(digests);
            }
            (None, Some(digests)) => {
                let finished = digests.finish();
                self.expected.verify(&finished)?;
                self.finished = Some(finished);
            }
            (_, None) => {}
        }
        Ok(next)
    }
}
