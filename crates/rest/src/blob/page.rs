//! Put Page (update and clear), Put Page From URL and Get Page Ranges (with and without a snapshot to compare with).

use holdfast_domain::blob::{
    GetBlob, GetPageRanges, PUT_PAGES_BYTES_MAX, PageChange, PageRange, PutPages,
};
use holdfast_domain::condition::{SequenceConditions, SequenceNumber};
use holdfast_domain::time::Timestamp;
use hyper::{StatusCode, Uri};

use super::encryption::{self, Chosen};
use super::{get_blob, headers, put_blob};
use crate::address::Address;
use crate::answer::Answer;
use crate::body::RequestBody;
use crate::error::{Code, Error};
use crate::headers::range;
use crate::listing::ranges_page;
use crate::request::Call;
use crate::service::Service;
use crate::source::SourceRequest;
use crate::url_query::{QueryRefusal, UrlQuery};
use crate::version::Version;

/// The most ranges of one answer, whatever is asked for.
const RANGES_MAX: u32 = 10_000;

pub async fn put(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let chosen = Chosen::read(call)?;
    let mut command = command(call, range_of_update(call)?, &chosen)?;
    let mut body = body.open_part(call, PUT_PAGES_BYTES_MAX)?;
    let sealing = chosen.sealing();
    let received = call.frontend.domain().receive_sealed(&mut body, sealing.as_ref()).await?;
    command.change = PageChange::Update(received);
    let mut answer = write(call, command).await?;
    headers::digests(&mut answer, call, &body);
    answer.header("x-ms-request-server-encrypted", "true");
    Ok(answer)
}

/// The range of the source is as long as that of the pages.
pub async fn put_from_url(call: &Call<'_>) -> Result<Answer, Error> {
    put_blob::check_bodiless(call)?;
    let range = range_of_update(call)?;
    let length = range.length();
    let source = SourceRequest::parse(call)?;
    check_source_range(&source, length)?;
    let chosen = Chosen::read(call)?;
    let mut command = command(call, range, &chosen)?;
    let mut opened = source.open(call, PUT_PAGES_BYTES_MAX).await?;
    let (domain, sealing) = (call.frontend.domain(), chosen.sealing());
    let received = domain.receive_sealed(&mut opened.body, sealing.as_ref()).await?;
    if received.length() != length {
        return Err(Code::InvalidRange.into());
    }
    command.change = PageChange::Update(received);
    let mut answer = write(call, command).await?;
    headers::source_digests(&mut answer, call, opened.body.finished());
    answer.header("x-ms-request-server-encrypted", "true");
    Ok(answer)
}

fn check_source_range(source: &SourceRequest, length: u64) -> Result<(), Error> {
    const NAME: &str = "x-ms-source-range";
    let asked = source.range.ok_or_else(|| Error::missing_header(NAME))?;
    let last = asked.last.ok_or_else(|| Error::invalid_header(NAME, "no last byte"))?;
    if asked.first > last || last - asked.first + 1 != length {
        return Err(Error::invalid_header(NAME, format!("bytes={}-{last}", asked.first)));
    }
    Ok(())
}

pub async fn clear(call: &Call<'_>) -> Result<Answer, Error> {
    put_blob::check_bodiless(call)?;
    let command = command(call, page_range(call)?, &Chosen::read(call)?)?;
    write(call, command).await
}

async fn write(call: &Call<'_>, command: PutPages) -> Result<Answer, Error> {
    let blob = call.frontend.domain().put_pages(command).await?;
    let mut answer = Answer::new(StatusCode::CREATED);
    headers::identity(&mut answer, blob.etag, blob.last_modified, call.version);
    headers::sequence_number(&mut answer, blob.kind);
    encryption::describe(&mut answer, &blob.encryption);
    Ok(answer)
}

/// The command for both kinds of Put Page; a clear until it is given bytes.
fn command(call: &Call<'_>, range: PageRange, chosen: &Chosen) -> Result<PutPages, Error> {
    Ok(PutPages {
        path: call.blob_path()?,
        range,
        change: PageChange::Clear,
        conditions: headers::write_conditions(call)?,
        sequence: SequenceConditions {
            at_most: sequence_number(call, "x-ms-if-sequence-number-le")?,
            below: sequence_number(call, "x-ms-if-sequence-number-lt")?,
            equal: sequence_number(call, "x-ms-if-sequence-number-eq")?,
        },
        lease_id: call.lease_id()?,
        encryption: chosen.encryption(),
    })
}

pub fn sequence_number(
    call: &Call<'_>,
    name: &'static str,
) -> Result<Option<SequenceNumber>, Error> {
    let Some(text) = call.header(name)? else { return Ok(None) };
    let number = SequenceNumber::parse(text);
    number.map(Some).ok_or_else(|| Error::invalid_header(name, text))
}

/// The pages to write, at most as many as one request may write.
fn range_of_update(call: &Call<'_>) -> Result<PageRange, Error> {
    let range = page_range(call)?;
    if range.length() > PUT_PAGES_BYTES_MAX {
        return Err(Error::from(Code::RequestBodyTooLarge)
            .detail("MaxLimit", PUT_PAGES_BYTES_MAX.to_string()));
    }
    Ok(range)
}

/// The pages to write or clear: both ends must be given.
fn page_range(call: &Call<'_>) -> Result<PageRange, Error> {
    const NAME: &str = "x-ms-range";
    let asked = range::requested(call.headers)?.ok_or_else(|| Error::missing_header(NAME))?;
    let last = asked.last.ok_or_else(|| Error::invalid_header(NAME, "no last byte"))?;
    PageRange::new(asked.first, last).ok_or_else(|| Code::InvalidPageRange.into())
}

pub async fn ranges(call: &Call<'_>) -> Result<Answer, Error> {
    let blob = get_blob::command(call)?;
    let previous = previous_snapshot(call, &blob)?;
    // Before 2020-10-02 all ranges were in one page.
    let paged = call.version >= Version::V2020_10_02;
    let (limit, start_from) =
        if paged { (Some(call.query.page_size(RANGES_MAX)?), marker(call)?) } else { (None, 0) };
    let range = range::requested(call.headers)?;
    let command = GetPageRanges { blob, previous, range, start_from };
    let ranges = call.frontend.domain().get_page_ranges(&command).await?;
    let (etag, last_modified) = (ranges.read.blob.etag, ranges.read.blob.last_modified);
    let length = ranges.read.blob.length;

    let mut answer = ranges_page::answer(ranges, limit).await?;
    headers::identity(&mut answer, etag, last_modified, call.version);
    answer.show("x-ms-blob-content-length", length);
    Ok(answer)
}

/// The marker is the end of the ranges listed so far.
fn marker(call: &Call<'_>) -> Result<u64, Error> {
    const NAME: &str = "marker";
    let Some(value) = call.query.get_nonempty(NAME) else { return Ok(0) };
    let invalid = |_| QueryRefusal::InvalidValue { name: NAME, value: value.to_owned() };
    Ok(value.parse().map_err(invalid)?)
}

/// The snapshot to compare with, named by its moment or by its address.
fn previous_snapshot(call: &Call<'_>, blob: &GetBlob) -> Result<Option<Timestamp>, Error> {
    const PARAMETER: &str = "prevsnapshot";
    const HEADER: &str = "x-ms-previous-snapshot-url";
    if let Some(value) = call.query.get_nonempty(PARAMETER) {
        let moment = Timestamp::parse_iso8601(value);
        let invalid = || QueryRefusal::InvalidValue { name: PARAMETER, value: value.to_owned() };
        return Ok(Some(moment.ok_or_else(invalid)?));
    }
    let Some(url) = call.header(HEADER)? else { return Ok(None) };
    let moment = snapshot_at(call, url, blob);
    moment.map(Some).ok_or_else(|| Error::invalid_header(HEADER, url))
}

/// The moment of the snapshot of this same blob that `url` names.
fn snapshot_at(call: &Call<'_>, url: &str, blob: &GetBlob) -> Option<Timestamp> {
    let uri: Uri = url.parse().ok()?;
    let query = UrlQuery::parse(uri.query().unwrap_or_default()).ok()?;
    let host_style = call.frontend.host_style();
    let address = Address::parse(Service::Blob, uri.host(), host_style, uri.path(), &query).ok()?;
    let same = address.account == call.address.account
        && address.resource.container() == Some(blob.path.container.container.as_str())
        && address.resource.object() == Some(blob.path.blob.as_str());
    Timestamp::parse_iso8601(query.get_nonempty("snapshot")?).filter(|_| same)
}
