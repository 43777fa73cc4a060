//! List Ranges, with and without a snapshot of the share to compare with.

use holdfast_domain::content::Difference;
use holdfast_domain::failure::Fault;
use holdfast_domain::share::{FileRanges, ListRanges};

use super::{beside, parameters, place};
use crate::answer::Answer;
use crate::blob::headers;
use crate::error::Error;
use crate::listing;
use crate::query::QueryRefusal;
use crate::range;
use crate::request::Call;
use crate::version::Version;
use crate::xml::Writer;

/// The most ranges of one page.
const RANGES_MAX: u32 = 10_000;

/// Ranges that are written into an answer at a time.
const RANGES_AT_A_TIME: u32 = 1000;

pub async fn list(call: &Call<'_>) -> Result<Answer, Error> {
    let file = place::read_file(call)?;
    let previous = match call.version >= Version::V2020_02_10 {
        true => place::previous_snapshot(call)?,
        false => None,
    };
    let follow_rename = call.version >= Version::V2024_05_04
        && parameters::boolean(call, "x-ms-file-support-rename")?.unwrap_or(false);
    // Before 2026-10-06, and for whoever does not ask for pages, there is one of all ranges.
    let marker = call.query.get_nonempty("marker");
    let paged = call.version >= Version::V2026_10_06
        && (marker.is_some() || call.query.get_nonempty("maxresults").is_some());
    let (left, start_from) = match paged {
        true => (Some(call.query.page_size(RANGES_MAX)?), parse_marker(marker)?),
        false => (None, 0),
    };
    let range = range::requested(call.headers)?;
    let command = ListRanges { file, previous, follow_rename, range, start_from };
    let ranges = beside::run(call, command).await?;
    let node = &ranges.located.node;
    let (etag, last_modified, length) = (node.etag, node.last_modified, node.length());

    let mut xml = Writer::document();
    xml.open("Ranges");
    let page = RangesPage { ranges, left, end: 0, next_marker: None };
    let mut answer = listing::answer(xml, page).await?;
    headers::identity(&mut answer, etag, last_modified, call.version);
    answer.header("x-ms-content-length", length.to_string());
    Ok(answer)
}

/// A marker is where the ranges that have been told end.
fn parse_marker(marker: Option<&str>) -> Result<u64, Error> {
    let Some(value) = marker else { return Ok(0) };
    let invalid = |_| QueryRefusal::InvalidValue { name: "marker", value: value.to_owned() };
    Ok(value.parse().map_err(invalid)?)
}

struct RangesPage {
    ranges: FileRanges,
    /// How many ranges may still be told, if there is a limit.
    left: Option<u32>,
    /// Where the ranges that have been told end.
    end: u64,
    next_marker: Option<String>,
}

impl listing::Page for RangesPage {
    const ENTRIES: &str = "Ranges";

    async fn write_next(&mut self, xml: &mut Writer) -> Result<bool, Fault> {
        for _ in 0..RANGES_AT_A_TIME {
            let Some((difference, range)) = self.ranges.next().await? else { return Ok(false) };
            if self.left == Some(0) {
                self.next_marker = Some(self.end.to_string());
                return Ok(false);
            }
            self.left = self.left.map(|left| left - 1);
            self.end = range.end;
            let element = match difference {
                Difference::Written => "Range",
                Difference::Cleared => "ClearRange",
            };
            xml.open(element);
            xml.element("Start", &range.start.to_string());
            xml.element("End", &(range.end - 1).to_string());
            xml.close(element);
        }
        Ok(true)
    }

    fn next_marker(&self) -> Option<&str> {
        self.next_marker.as_deref()
    }

    fn write_end(&self, xml: &mut Writer) {
        xml.optional("NextMarker", self.next_marker());
        xml.close(Self::ENTRIES);
    }
}
