//! The ranges of a page blob or a file, written into an answer as they are read.

use std::future::Future;
use std::ops::Range;

use holdfast_domain::blob::PageRanges;
use holdfast_domain::content::Difference;
use holdfast_domain::failure::Fault;
use holdfast_domain::share::FileRanges;

use crate::answer::Answer;
use crate::error::Error;
use crate::listing;
use crate::xml::Writer;

/// Ranges that are written at a time.
const RANGES_AT_A_TIME: u32 = 250;

pub trait Ranges: Send + 'static {
    /// The element around all of them.
    const ALL: &str;
    /// The element of one that has bytes.
    const WRITTEN: &str;

    fn next(
        &mut self,
    ) -> impl Future<Output = Result<Option<(Difference, Range<u64>)>, Fault>> + Send;
}

impl Ranges for PageRanges {
    const ALL: &str = "PageList";
    const WRITTEN: &str = "PageRange";

    async fn next(&mut self) -> Result<Option<(Difference, Range<u64>)>, Fault> {
        Self::next(self).await
    }
}

impl Ranges for FileRanges {
    const ALL: &str = "Ranges";
    const WRITTEN: &str = "Range";

    async fn next(&mut self) -> Result<Option<(Difference, Range<u64>)>, Fault> {
        Self::next(self).await
    }
}

/// At most `limit` ranges, if there is one, and a marker if there are more.
pub async fn answer<R: Ranges>(ranges: R, limit: Option<u32>) -> Result<Answer, Error> {
    let mut xml = Writer::document();
    xml.open(R::ALL);
    listing::answer(xml, Page { ranges, left: limit, end: 0, next_marker: None }).await
}

struct Page<R> {
    ranges: R,
    /// How many ranges may still be listed, if there is a limit.
    left: Option<u32>,
    /// The end of the ranges listed so far.
    end: u64,
    next_marker: Option<String>,
}

impl<R: Ranges> listing::Page for Page<R> {
    const ENTRIES: &str = R::ALL;

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
                Difference::Written => R::WRITTEN,
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
        xml.close(R::ALL);
    }
}
