//! Put Blob From URL: a whole source of any kind becomes a block blob.

use holdfast_domain::blob::NewBlob;
use holdfast_domain::content::{ContentHeaders, ContentMd5};
use holdfast_domain::tags::TagSet;

use super::copy::SourceTags;
use super::encryption::Chosen;
use super::{headers, put_blob};
use crate::answer::Answer;
use crate::body::DigestRefusal;
use crate::error::{Code, Error};
use crate::request::Call;
use crate::source::{Located, SourceRequest, condition_as_refusal};

/// The longest source that one request takes.
const SOURCE_BYTES_MAX: u64 = 5000 * 1024 * 1024;

/// `Content-MD5` would be that of the body, and there is none.
pub async fn put(call: &Call<'_>) -> Result<Answer, Error> {
    put_blob::check_bodiless(call)?;
    let source = SourceRequest::parse_whole(call)?;
    let sent = headers::content_headers(call, false)?;
    let stored_md5 = headers::whole_md5(&sent)?;
    let (chosen, wanted_tags) = (Chosen::read(call)?, SourceTags::asked(call)?);
    let copies_properties = copies_properties(call)?;
    let command = put_blob::command(call, &chosen)?;

    let fetched_tags = match (wanted_tags, source.locate(call)?) {
        (SourceTags::Copied, Located::Elsewhere) => Some(source.tags_elsewhere(call).await?),
        (SourceTags::Copied | SourceTags::Replaced, _) => None,
    };
    let opened = source.open(call, SOURCE_BYTES_MAX).await;
    let mut opened = opened.map_err(condition_as_refusal)?;
    let copied_tags = match wanted_tags {
        SourceTags::Copied => Some(copied_tags(fetched_tags.or(opened.properties.tags))?),
        SourceTags::Replaced => None,
    };
    let sealing = chosen.sealing();
    let domain = call.frontend.domain();
    let received = domain.receive_sealed(&mut opened.body, sealing.as_ref()).await?;
    let digests = opened.body.finished();
    check_md5(stored_md5, digests.md5)?;
    let mut stored =
        if copies_properties { overlaid(sent, opened.properties.headers) } else { sent };
    stored.content_md5 = digests.md5.map(ContentMd5::from);
    let mut command = command(NewBlob::Block(received), stored);
    if let Some(tags) = copied_tags {
        command.tags = tags;
    }
    if copies_properties && command.metadata.is_empty() {
        command.metadata = opened.properties.metadata;
    }
    let blob = domain.put_blob(command).await?;

    let mut answer = put_blob::created(call, &blob);
    headers::source_digests(&mut answer, call, digests);
    Ok(answer)
}

fn copies_properties(call: &Call<'_>) -> Result<bool, Error> {
    const NAME: &str = "x-ms-copy-source-blob-properties";
    match call.header(NAME)? {
        None => Ok(true),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
        Some(text) => Err(Error::invalid_header(NAME, text)),
    }
}

/// The tags of a source, if they are known and may be read.
fn copied_tags(tags: Option<TagSet>) -> Result<TagSet, Error> {
    tags.ok_or_else(|| Code::AuthorizationPermissionMismatch.into())
}

fn check_md5(stored: Option<[u8; 16]>, calculated: Option<[u8; 16]>) -> Result<(), Error> {
    match (stored, calculated) {
        (Some(stored), Some(calculated)) if stored != calculated => {
            let (sent, calculated) = (headers::encode_md5(stored), headers::encode_md5(calculated));
            Err(DigestRefusal::Md5Mismatch { sent, calculated }.into())
        }
        (_, _) => Ok(()),
    }
}

/// The headers of the request, and for absent ones those of the source.
fn overlaid(sent: ContentHeaders, source: ContentHeaders) -> ContentHeaders {
    ContentHeaders {
        content_type: sent.content_type.or(source.content_type),
        content_encoding: sent.content_encoding.or(source.content_encoding),
        content_language: sent.content_language.or(source.content_language),
        content_disposition: sent.content_disposition.or(source.content_disposition),
        cache_control: sent.cache_control.or(source.cache_control),
        content_md5: sent.content_md5.or(source.content_md5),
    }
}
