//! Copy Blob, Copy Blob From URL, Incremental Copy Blob and Abort Copy Blob.

use holdfast_domain::blob::{
    AbortCopy, Blob, BlobRefusal, CopiedTags, CopyBlob, CopyIncremental, CopyRefusal, CopySource,
    Encryption, Manner, RehydratePriority, SourceHere,
};
use holdfast_domain::content::ByteSource as _;
use holdfast_domain::copy::{CopyDestination, SourceKind};
use holdfast_domain::etag::ETag;
use holdfast_domain::failure::Failure;
use holdfast_domain::share::FILE_BYTES_MAX;
use hyper::StatusCode;

use super::encryption::{self, Chosen};
use super::{headers, immutability, put_blob, tier};
use crate::answer::Answer;
use crate::body::{ExpectedDigests, FinishedDigests};
use crate::error::{Code, Error};
use crate::request::Call;
use crate::source::background_copy;
use crate::source::{FailureKind, Located, ReadableBlob, SourceFailure, SourceRequest};
use crate::version::Version;

const MIB: u64 = 1024 * 1024;
/// The longest source that Copy Blob From URL takes.
const SYNCHRONOUS_BYTES_MAX: u64 = 256 * MIB;

/// Copy Blob.
pub async fn copy(call: &Call<'_>) -> Result<Answer, Error> {
    let source = SourceRequest::parse_whole(call)?;
    let located = source.locate(call)?;
    check_account(call, &located)?;
    let (copy_source, asked) = match located {
        Located::Here(local) => {
            let blob = source.readable_blob(call, local).await;
            let blob = blob.map_err(|failure| source.error(failure))?;
            (CopySource::Here(here(&source, blob, None)), None)
        }
        Located::Elsewhere => {
            let properties = source.head(call).await?;
            let asked = background_copy::unchanged(source.asked(), &properties);
            (CopySource::Awaited(background_copy::source_of(properties)), Some(asked))
        }
        // Its bytes are read before the answer: block blobs are stored differently from files.
        Located::File(_) => (fetched(call, &source, FILE_BYTES_MAX).await?.0, None),
        Located::Unserved(_) => return Err(source.error(SourceFailure::unserved())),
    };
    let tags = CopiedTags::Sent(put_blob::tags(call)?);
    let command = command(call, &source, copy_source, tags, Manner::Asynchronous)?;
    let (path, copy_id) = (command.path.clone(), command.copy_id.clone());
    let blob = copied(call, &source, command).await?;
    if let Some(asked) = asked {
        let destination = CopyDestination::Blob(path);
        background_copy::begin(call.frontend, destination, copy_id, source.url.clone(), asked);
    }
    Ok(accepted(call, &blob))
}

/// Before 2012-02-12 a blob was copied within its account only.
fn check_account(call: &Call<'_>, located: &Located) -> Result<(), Error> {
    let same = match located {
        Located::Here(local) => local.account().as_str() == call.address.account,
        Located::File(_) | Located::Unserved(_) | Located::Elsewhere => false,
    };
    if same || call.version >= Version::V2012_02_12 {
        return Ok(());
    }
    Err(Code::CopyAcrossAccountsNotSupported.into())
}

/// Copy Blob From URL.
pub async fn copy_from_url(call: &Call<'_>) -> Result<Answer, Error> {
    let source = SourceRequest::parse_whole(call)?;
    let wants = SourceTags::asked(call)?;
    let (copy_source, tags, digests) = match source.locate(call)? {
        Located::Here(local) => {
            let blob = source.readable_blob(call, local).await;
            let blob = blob.map_err(|failure| source.error(failure))?;
            let tags = match wants {
                SourceTags::Replaced => CopiedTags::Sent(put_blob::tags(call)?),
                SourceTags::Copied if blob.may_read_tags => CopiedTags::OfSource,
                SourceTags::Copied => return Err(Code::AuthorizationPermissionMismatch.into()),
            };
            let (etag, digests) = verified(call, &source).await?;
            (CopySource::Here(here(&source, blob, etag)), tags, digests)
        }
        Located::File(_) | Located::Elsewhere => {
            let tags = match wants {
                SourceTags::Replaced => put_blob::tags(call)?,
                SourceTags::Copied => source.tags_elsewhere(call).await?,
            };
            let (fetched, digests) = fetched(call, &source, SYNCHRONOUS_BYTES_MAX).await?;
            (fetched, CopiedTags::Sent(tags), digests)
        }
        Located::Unserved(_) => {
            return Err(source.error(SourceFailure::unserved()));
        }
    };
    let manner = Manner::Synchronous { length_max: SYNCHRONOUS_BYTES_MAX };
    let blob = copied(call, &source, command(call, &source, copy_source, tags, manner)?).await?;
    let mut answer = accepted(call, &blob);
    headers::source_digests(&mut answer, call, digests);
    encryption::describe(&mut answer, &blob.encryption);
    Ok(answer)
}

/// The bytes of a source that becomes a block blob, and their digests.
async fn fetched(
    call: &Call<'_>,
    source: &SourceRequest,
    length_max: u64,
) -> Result<(CopySource, FinishedDigests), Error> {
    let opened = source.open(call, length_max).await;
    let mut opened = opened.map_err(too_large_is_a_conflict)?;
    let received = call.frontend.domain().receive(&mut opened.body).await;
    let received = received.map_err(|failure| too_large_is_a_conflict(failure.into()))?;
    let digests = opened.body.finished();
    let mut source = background_copy::source_of(opened.properties);
    (source.kind, source.length) = (SourceKind::Block, received.length());
    Ok((CopySource::Fetched(received, source), digests))
}

/// Incremental Copy Blob, of sources on this server.
pub async fn incremental(call: &Call<'_>) -> Result<Answer, Error> {
    let source = SourceRequest::parse_whole(call)?;
    let Located::Here(local) = source.locate(call)? else {
        return Err(Code::InvalidSourceBlobUrl.into());
    };
    let blob = source.readable_blob(call, local).await;
    let blob = blob.map_err(|failure| source.error(failure))?;
    let command = CopyIncremental {
        path: call.blob_path()?,
        source: here(&source, blob, None),
        source_url: source.url.without_signature(),
        copy_id: uuid::Uuid::new_v4().to_string(),
        conditions: headers::write_conditions(call)?,
        create_only: call.granted.create_only,
    };
    let blob = call.frontend.domain().copy_incremental(command).await;
    Ok(accepted(call, &blob.map_err(|failure| refused(&source, failure))?))
}

pub async fn abort(call: &Call<'_>) -> Result<Answer, Error> {
    let copy_id = call.query.required("copyid")?.to_owned();
    let command = AbortCopy { path: call.blob_path()?, copy_id, lease_id: call.lease_id()? };
    call.frontend.domain().abort_copy(command).await?;
    Ok(Answer::new(StatusCode::NO_CONTENT))
}

fn command(
    call: &Call<'_>,
    request: &SourceRequest,
    source: CopySource,
    tags: CopiedTags,
    manner: Manner,
) -> Result<CopyBlob, Error> {
    let (immutability, legal_hold) = immutability::of_new_blob(call)?;
    let metadata = Some(call.metadata()?).filter(|metadata| !metadata.is_empty());
    Ok(CopyBlob {
        path: call.blob_path()?,
        source,
        source_url: request.url.without_signature(),
        copy_id: uuid::Uuid::new_v4().to_string(),
        metadata,
        tags,
        tier: tier::chosen(call)?,
        priority: priority(call)?,
        sealed: sealed(call)?,
        immutability,
        legal_hold,
        encryption: scope(call)?,
        conditions: headers::write_conditions(call)?,
        lease_id: call.lease_id()?,
        lease_needs_blob: headers::lease_needs_blob(call),
        create_only: call.granted.create_only,
        manner,
    })
}

/// A copy is never encrypted with a key of the client.
fn scope(call: &Call<'_>) -> Result<Encryption, Error> {
    let chosen = Chosen::read(call)?;
    match chosen.key {
        Some(_) => {
            Err(Error::from(Code::InvalidHeaderValue).detail("HeaderName", "x-ms-encryption-key"))
        }
        None => Ok(chosen.encryption()),
    }
}

fn priority(call: &Call<'_>) -> Result<RehydratePriority, Error> {
    const NAME: &str = "x-ms-rehydrate-priority";
    match call.header(NAME)? {
        None => Ok(RehydratePriority::Standard),
        Some(text) if text.eq_ignore_ascii_case("Standard") => Ok(RehydratePriority::Standard),
        Some(text) if text.eq_ignore_ascii_case("High") => Ok(RehydratePriority::High),
        Some(text) => Err(Error::invalid_header(NAME, text)),
    }
}

fn sealed(call: &Call<'_>) -> Result<Option<bool>, Error> {
    const NAME: &str = "x-ms-seal-blob";
    match call.header(NAME)? {
        None => Ok(None),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
        Some(text) => Err(Error::invalid_header(NAME, text)),
    }
}

/// `x-ms-copy-source-tag-option`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceTags {
    /// By those in the request, if any.
    Replaced,
    Copied,
}

impl SourceTags {
    const NAME: &str = "x-ms-copy-source-tag-option";

    pub fn asked(call: &Call<'_>) -> Result<Self, Error> {
        let sent = call.header("x-ms-tags")?.is_some();
        match call.header(Self::NAME)? {
            None => Ok(Self::Replaced),
            Some(text) if text.eq_ignore_ascii_case("REPLACE") => Ok(Self::Replaced),
            Some(text) if text.eq_ignore_ascii_case("COPY") => match sent {
                true => Err(Code::BothUserTagsAndSourceTagsCopyPresentException.into()),
                false if call.granted.may_write_tags => Ok(Self::Copied),
                false => Err(Code::AuthorizationPermissionMismatch.into()),
            },
            Some(text) => Err(Error::invalid_header(Self::NAME, text)),
        }
    }
}

fn here(source: &SourceRequest, blob: ReadableBlob, etag: Option<ETag>) -> SourceHere {
    let conditions = source.conditions.here.clone();
    SourceHere { path: blob.path, which: blob.which, conditions, etag }
}

/// Reads a source whose digest the request names; returns the state that was read, and its digests.
async fn verified(
    call: &Call<'_>,
    source: &SourceRequest,
) -> Result<(Option<ETag>, FinishedDigests), Error> {
    if source.digests == ExpectedDigests::default() {
        return Ok((None, FinishedDigests::default()));
    }
    let opened = source.open(call, SYNCHRONOUS_BYTES_MAX).await;
    let mut opened = opened.map_err(too_large_is_a_conflict)?;
    while opened.body.next().await?.is_some() {}
    let etag = opened.properties.etag.as_deref().and_then(ETag::parse);
    Ok((etag, opened.body.finished()))
}

async fn copied(call: &Call<'_>, source: &SourceRequest, command: CopyBlob) -> Result<Blob, Error> {
    let copied = call.frontend.domain().copy_blob(command).await;
    copied.map_err(|failure| refused(source, failure))
}

fn refused(source: &SourceRequest, failure: Failure<CopyRefusal>) -> Error {
    let told = failure.map(|refusal| match refusal {
        CopyRefusal::Source(BlobRefusal::WrongKind) => Code::InvalidSourceBlobType.into(),
        // The only condition on a source with the code of one on the destination.
        CopyRefusal::Source(BlobRefusal::SourceTagsNotMet) => Code::ConditionNotMet.into(),
        CopyRefusal::Source(refusal) => source.error(SourceFailure::from(Error::from(refusal))),
        CopyRefusal::SourceTooLarge => {
            let kind = FailureKind::TooLarge { length_max: SYNCHRONOUS_BYTES_MAX };
            too_large_is_a_conflict(source.error(kind.into()))
        }
        CopyRefusal::Destination(refusal) => Error::from(refusal),
    });
    told.into()
}

/// Copy Blob From URL answers 409 where other operations answer 413.
fn too_large_is_a_conflict(error: Error) -> Error {
    if error.code == Code::RequestBodyTooLarge {
        error.with_status(StatusCode::CONFLICT)
    } else {
        error
    }
}

fn accepted(call: &Call<'_>, blob: &Blob) -> Answer {
    let mut answer = Answer::new(StatusCode::ACCEPTED);
    headers::identity(&mut answer, blob.etag, blob.last_modified, call.version);
    headers::version_id(&mut answer, call, blob);
    if let Some(copy) = &blob.copy {
        answer.header("x-ms-copy-id", &copy.id);
        answer.header("x-ms-copy-status", headers::copy_status(copy.status));
    }
    answer
}
