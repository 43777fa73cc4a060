//! Set Blob Expiry, and the expiry of new blobs. Azure has both only with a hierarchical namespace;
//! here every blob can expire.

use std::time::Duration;

use holdfast_domain::blob::{Expiry, SetBlobExpiry};
use holdfast_domain::time::Timestamp;
use hyper::StatusCode;

use super::headers;
use crate::answer::Answer;
use crate::error::Error;
use crate::request::Call;
use crate::version::Version;

pub(super) const OPTION: &str = "x-ms-expiry-option";
const TIME: &str = "x-ms-expiry-time";

pub async fn set(call: &Call<'_>) -> Result<Answer, Error> {
    let (option, time) = (call.required_header(OPTION)?, call.header(TIME)?);
    let command = SetBlobExpiry { path: call.blob_path()?, expiry: parse(option, time)? };
    let blob = call.frontend.domain().set_blob_expiry(command).await?;
    let mut answer = Answer::new(StatusCode::OK);
    headers::identity(&mut answer, blob.etag, blob.last_modified, call.version);
    Ok(answer)
}

/// The expiry that a blob is put with, since 2023-08-03.
pub fn of_new_blob(call: &Call<'_>) -> Result<Option<Expiry>, Error> {
    if call.version < Version::V2023_08_03 {
        return Ok(None);
    }
    match (call.header(OPTION)?, call.header(TIME)?) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Error::missing_header(OPTION)),
        (Some(option), time) => parse(option, time).map(Some),
    }
}

fn parse(option: &str, time: Option<&str>) -> Result<Expiry, Error> {
    let required = || time.ok_or_else(|| Error::missing_header(TIME));
    if option.eq_ignore_ascii_case("NeverExpire") {
        return match time {
            None => Ok(Expiry::Never),
            Some(time) => Err(Error::invalid_header(TIME, time)),
        };
    }
    if option.eq_ignore_ascii_case("RelativeToCreation") {
        return Ok(Expiry::AfterCreation(milliseconds(required()?)?));
    }
    if option.eq_ignore_ascii_case("RelativeToNow") {
        return Ok(Expiry::AfterNow(milliseconds(required()?)?));
    }
    if option.eq_ignore_ascii_case("Absolute") {
        let time = required()?;
        let parsed = Timestamp::parse_rfc1123(time);
        return parsed.map(Expiry::At).ok_or_else(|| Error::invalid_header(TIME, time));
    }
    Err(Error::invalid_header(OPTION, option))
}

fn milliseconds(text: &str) -> Result<Duration, Error> {
    text.parse().map(Duration::from_millis).map_err(|_| Error::invalid_header(TIME, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn every_option_takes_the_time_in_its_own_form() {
        let second = Duration::from_secs(1);
        let date = "Sun, 06 Nov 2094 08:49:37 GMT";
        let cases = [
            ("NeverExpire", None, Some(Expiry::Never)),
            ("NeverExpire", Some("1000"), None),
            ("RelativeToCreation", Some("1000"), Some(Expiry::AfterCreation(second))),
            ("relativetonow", Some("1000"), Some(Expiry::AfterNow(second))),
            ("RelativeToNow", Some("-1"), None),
            ("RelativeToNow", Some(date), None),
            ("RelativeToNow", None, None),
            ("Absolute", Some(date), Timestamp::parse_rfc1123(date).map(Expiry::At)),
            ("Absolute", Some("1000"), None),
            ("Absolute", None, None),
            ("Someday", Some("1000"), None),
        ];
        for (option, time, expected) in cases {
            assert_eq!(parse(option, time).ok(), expected, "{option} {time:?}");
        }
        let missing = parse("Absolute", None).map_err(|error| error.code);
        assert_eq!(missing, Err(Code::MissingRequiredHeader));
    }
}
