//! List Ranges, with and without a snapshot of the share to compare with.

use holdfast_domain::share::ListRanges;

use super::{node_address, parameters, rest_call};
use crate::answer::Answer;
use crate::error::Error;
use crate::headers::range;
use crate::headers::resource_headers;
use crate::listing::ranges_page;
use crate::request::Call;
use crate::url_query::QueryRefusal;
use crate::version::Version;

/// The most ranges of one page.
const RANGES_MAX: u32 = 10_000;

pub async fn list(call: &Call<'_>) -> Result<Answer, Error> {
    let file = node_address::read_file(call)?;
    let previous = match call.version >= Version::V2020_02_10 {
        true => node_address::previous_snapshot(call)?,
        false => None,
    };
    let follow_rename = call.version >= Version::V2024_05_04
        && parameters::boolean(call, "x-ms-file-support-rename")?.unwrap_or(false);
    // Before 2026-10-06, and in requests without paging, all ranges are in one page.
    let marker = call.query.get_nonempty("marker");
    let paged = call.version >= Version::V2026_10_06
        && (marker.is_some() || call.query.get_nonempty("maxresults").is_some());
    let (left, start_from) = match paged {
        true => (Some(call.query.page_size(RANGES_MAX)?), parse_marker(marker)?),
        false => (None, 0),
    };
    let range = range::requested(call.headers)?;
    let command = ListRanges { file, previous, follow_rename, range, start_from };
    let ranges = rest_call::run(call, command).await?;
    let node = &ranges.located.node;
    let (etag, last_modified, length) = (node.etag, node.last_modified, node.length());

    let mut answer = ranges_page::answer(ranges, left).await?;
    resource_headers::identity(&mut answer, etag, last_modified, call.version);
    answer.show("x-ms-content-length", length);
    Ok(answer)
}

/// The marker is the end of the ranges listed so far.
fn parse_marker(marker: Option<&str>) -> Result<u64, Error> {
    let Some(value) = marker else { return Ok(0) };
    let invalid = |_| QueryRefusal::InvalidValue { name: "marker", value: value.to_owned() };
    Ok(value.parse().map_err(invalid)?)
}
