//! Which version of the service a request is processed with.

use crate::error::{Code, Error};
use crate::headers::RequestHeaders;
use crate::operation::{BlobOperation, Operation};
use crate::request::header;
use crate::service::Service;
use crate::url_query::UrlQuery;
use crate::version::Version;

const HEADER: &str = "x-ms-version";

/// The version in the header, if it can be used: for answers to requests that fail early.
pub fn named(headers: &RequestHeaders) -> Option<Version> {
    let text = header(headers, HEADER).ok().flatten()?;
    Version::parse(text).ok().filter(|version| *version >= Version::V2009_09_19)
}

/// The version that the request is processed with, or `None` if the default of the Blob service
/// applies. `named` is the one of its header, by [`named`].
pub fn negotiate(
    service: Service,
    named: Option<Version>,
    headers: &RequestHeaders,
    query: &UrlQuery<'_>,
) -> Result<Option<Version>, Error> {
    if named.is_none() && headers.contains(HEADER) {
        let text = header(headers, HEADER)?.unwrap_or_default();
        return Err(Error::invalid_header(HEADER, text));
    }
    let signed = query.get_nonempty("sig").and_then(|_| query.get_nonempty("sv"));
    let signed = signed.and_then(|text| Version::parse(text).ok());
    let asked = query.get_nonempty("api-version").and_then(|text| Version::parse(text).ok());
    match signed {
        // The version of such an old signature decides how the request is processed, whatever the
        // header.
        Some(signed) if signed < Version::V2014_02_14 => Ok(Some(signed)),
        Some(signed) => Ok(Some(asked.or(named).unwrap_or(signed))),
        None if named.is_some() => Ok(named),
        None => match service {
            Service::Blob => Ok(None),
            // Signatures without `sv` are from before it existed, and so are their requests.
            Service::Queue | Service::Table | Service::File if query.get("sig").is_some() => {
                Ok(Some(Version::V2009_09_19))
            }
            Service::Queue | Service::Table | Service::File => Err(Error::missing_header(HEADER)),
        },
    }
}

/// Operations on page blobs have a separate refusal for versions before page blobs.
pub fn check_page_blobs(operation: Operation, headers: &RequestHeaders) -> Result<(), Error> {
    let on_pages = matches!(
        operation,
        Operation::Blob(
            BlobOperation::PutPageBlob
                | BlobOperation::PutPage
                | BlobOperation::ClearPage
                | BlobOperation::PutPageFromUrl
                | BlobOperation::GetPageRanges
                | BlobOperation::GetPageRangesDiff
        )
    );
    if !on_pages {
        return Ok(());
    }
    let named = header(headers, HEADER)?.and_then(|text| Version::parse(text).ok());
    match named {
        Some(version) if version < Version::V2009_09_19 => {
            Err(Code::InvalidVersionForPageBlobOperation.into())
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn negotiated(
        service: Service,
        version: Option<&'static str>,
        query: &str,
    ) -> Result<Option<String>, Code> {
        let headers: RequestHeaders =
            version.map(|version| (HEADER, version)).into_iter().collect();
        let query = UrlQuery::parse(query).expect("a query");
        match negotiate(service, named(&headers), &headers, &query) {
            Ok(version) => Ok(version.map(|version| version.to_string())),
            Err(error) => Err(error.code),
        }
    }

    #[test]
    fn every_row_of_the_version_table_is_kept() {
        let found = |version: &str| Ok(Some(version.to_owned()));
        let cases = [
            ("a header alone", Service::Blob, Some("2019-12-12"), "", found("2019-12-12")),
            ("a later header", Service::Queue, Some("2031-01-01"), "", found("2031-01-01")),
            ("the oldest", Service::Blob, Some("2009-09-19"), "", found("2009-09-19")),
            (
                "older than served",
                Service::Blob,
                Some("2009-04-14"),
                "",
                Err(Code::InvalidHeaderValue),
            ),
            ("empty", Service::Blob, Some(""), "", Err(Code::InvalidHeaderValue)),
            ("not a date", Service::Blob, Some("latest"), "", Err(Code::InvalidHeaderValue)),
            ("blob without header", Service::Blob, None, "", Ok(None)),
            ("queue without header", Service::Queue, None, "", Err(Code::MissingRequiredHeader)),
            ("table without header", Service::Table, None, "", Err(Code::MissingRequiredHeader)),
            ("file without header", Service::File, None, "", Err(Code::MissingRequiredHeader)),
            ("signature alone", Service::Queue, None, "sv=2020-02-10&sig=s", found("2020-02-10")),
            (
                "signature and header",
                Service::Blob,
                Some("2021-04-10"),
                "sv=2020-02-10&sig=s",
                found("2021-04-10"),
            ),
            (
                "signature, header and api-version",
                Service::Blob,
                Some("2021-04-10"),
                "sv=2020-02-10&sig=s&api-version=2019-02-02",
                found("2019-02-02"),
            ),
            (
                "an old signature decides alone",
                Service::Blob,
                Some("2021-04-10"),
                "sv=2012-02-12&sig=s",
                found("2012-02-12"),
            ),
        ];
        for (case, service, header, query, expected) in cases {
            assert_eq!(negotiated(service, header, query), expected, "{case}");
        }
    }
}
