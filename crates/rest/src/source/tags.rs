//! The tags of a source on another host, for copies that keep them.

use holdfast_domain::content::ByteSource as _;
use holdfast_domain::tags::TagSet;
use hyper::HeaderMap;

use super::fetcher::{Asked, Fetcher};
use super::{FailureKind, SourceFailure, SourceRequest, SourceUrl};
use crate::blob::parse_tags;
use crate::error::Error;
use crate::request::Call;

/// Ten tags of the longest names and values, with every character escaped.
const DOCUMENT_BYTES_MAX: u64 = 64 * 1024;

impl SourceRequest {
    /// By Get Blob Tags, with the credentials that the source is read with.
    pub async fn tags_elsewhere(&self, call: &Call<'_>) -> Result<TagSet, Error> {
        let asked = Asked { range: None, conditions: HeaderMap::new(), ..self.asked() };
        let tags = call.frontend.fetcher().tags(&self.url, &asked).await;
        tags.map_err(|failure| self.error(failure))
    }
}

impl Fetcher {
    async fn tags(&self, url: &SourceUrl, asked: &Asked) -> Result<TagSet, SourceFailure> {
        let url = url.with_parameter("comp=tags").ok_or(FailureKind::UnexpectedAnswer)?;
        let document = match self.document(&url, asked).await {
            // So long an answer is not a document of tags.
            Err(failure) if matches!(failure.kind, FailureKind::TooLarge { .. }) => {
                return Err(FailureKind::UnexpectedAnswer.into());
            }
            document => document?,
        };
        // A host without tags answers with the source itself.
        let tags = parse_tags(&document).ok().and_then(|tags| TagSet::new(tags).ok());
        tags.ok_or_else(|| FailureKind::UnexpectedAnswer.into())
    }

    async fn document(&self, url: &SourceUrl, asked: &Asked) -> Result<Vec<u8>, SourceFailure> {
        let mut fetched = self.open(url, asked, DOCUMENT_BYTES_MAX).await?;
        let mut document = Vec::new();
        while let Some(bytes) = fetched.bytes.next().await? {
            document.extend_from_slice(&bytes);
        }
        Ok(document)
    }
}
