//! Put Range (update and clear) and Put Range From URL.

use holdfast_domain::share::{
    Located, PUT_RANGE_BYTES_MAX, PastEnd, PutRange, RangeChange, TimeChange, WriteAt,
};
use hyper::StatusCode;

use super::{node_address, node_headers, property_headers, rest_call};
use crate::answer::Answer;
use crate::body::RequestBody;
use crate::body::{ExpectedDigests, FinishedDigests};
use crate::error::{Code, Error};
use crate::headers::content_headers;
use crate::headers::range;
use crate::headers::resource_headers;
use crate::request::Call;
use crate::source::SourceRequest;

const RANGE: &str = "x-ms-range";
const WRITE: &str = "x-ms-write";

/// The range that is written or cleared.
#[derive(Clone, Copy, Debug)]
struct WrittenRange {
    offset: u64,
    length: u64,
}

pub async fn put(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    if call.required_header(WRITE)?.eq_ignore_ascii_case("clear") {
        return clear(call, &body).await;
    }
    let range = range_of_update(call)?;
    let mut body = body.open_part(call, PUT_RANGE_BYTES_MAX)?;
    let received = call.frontend.domain().receive(&mut body).await?;
    check_length(received.length(), range)?;
    let located = write(call, range.offset, RangeChange::Write(received)).await?;
    let mut answer = written(call, &located);
    content_headers::digests(&mut answer, call, &body);
    Ok(answer)
}

async fn clear(call: &Call<'_>, body: &RequestBody) -> Result<Answer, Error> {
    if body.declared_length() > 0 {
        let length = body.declared_length().to_string();
        return Err(Error::invalid_header("content-length", length));
    }
    let WrittenRange { offset, length } = written_range(call)?;
    let located = write(call, offset, RangeChange::Clear(length)).await?;
    Ok(written(call, &located))
}

/// The range of the source has the length of the one that is written.
pub async fn put_from_url(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    if body.declared_length() > 0 {
        let length = body.declared_length().to_string();
        return Err(Error::invalid_header("content-length", length));
    }
    let range = range_of_update(call)?;
    let source = SourceRequest::parse(call)?;
    let mut opened = source.open(call, PUT_RANGE_BYTES_MAX).await?;
    let received = call.frontend.domain().receive(&mut opened.body).await?;
    let digests = opened.body.finished();
    check_source(call, digests)?;
    check_length(received.length(), range)?;
    let located = write(call, range.offset, RangeChange::Write(received)).await?;
    let mut answer = written(call, &located);
    content_headers::source_digests(&mut answer, call, FinishedDigests { md5: None, ..digests });
    Ok(answer)
}

/// The conditions on the CRC64 of the bytes of the source.
fn check_source(call: &Call<'_>, digests: FinishedDigests) -> Result<(), Error> {
    const IF_MATCH: &str = "x-ms-source-if-match-crc64";
    const IF_NONE_MATCH: &str = "x-ms-source-if-none-match-crc64";
    for (name, wanted) in [(IF_MATCH, true), (IF_NONE_MATCH, false)] {
        let Some(text) = call.header(name)? else { continue };
        let named = ExpectedDigests::parse(None, Some(text));
        let named = named.map_err(|_| Error::invalid_header(name, text))?.crc64;
        if (digests.crc64 == named) != wanted {
            return Err(Code::SourceConditionNotMet.into());
        }
    }
    Ok(())
}

async fn write(call: &Call<'_>, offset: u64, change: RangeChange) -> Result<Located, Error> {
    let preserves = property_headers::preserves_written(call)?;
    let command = PutRange {
        address: node_address::file(call)?,
        at: WriteAt::Offset(offset),
        change,
        past_end: PastEnd::Refused,
        written: preserves.then_some(TimeChange::Preserve),
        by_handle: false,
        lease_id: call.lease_id()?,
    };
    Ok(rest_call::run(call, command).await?)
}

fn written(call: &Call<'_>, located: &Located) -> Answer {
    let node = &located.node;
    let mut answer = Answer::new(StatusCode::CREATED);
    resource_headers::identity(&mut answer, node.etag, node.last_modified, call.version);
    node_headers::written(&mut answer, call, node.times.written);
    answer.header("x-ms-request-server-encrypted", "true");
    answer
}

fn range_of_update(call: &Call<'_>) -> Result<WrittenRange, Error> {
    let range = written_range(call)?;
    if range.length > PUT_RANGE_BYTES_MAX {
        return Err(Error::from(Code::RequestBodyTooLarge)
            .detail("MaxLimit", PUT_RANGE_BYTES_MAX.to_string()));
    }
    Ok(range)
}

/// Both ends must be given.
fn written_range(call: &Call<'_>) -> Result<WrittenRange, Error> {
    let asked = range::requested(call.headers)?.ok_or_else(|| Error::missing_header(RANGE))?;
    let last = asked.last.ok_or_else(|| Error::invalid_header(RANGE, "no last byte"))?;
    let length = (last - asked.first).checked_add(1);
    let length = length.ok_or_else(|| Error::from(Code::InvalidRange))?;
    Ok(WrittenRange { offset: asked.first, length })
}

fn check_length(received: u64, range: WrittenRange) -> Result<(), Error> {
    if received != range.length {
        return Err(Error::invalid_header(RANGE, "not as long as the body"));
    }
    Ok(())
}
