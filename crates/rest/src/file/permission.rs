//! Create and Get Permission, and security descriptors as clients write them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use holdfast_domain::share::PermissionKey;
use holdfast_domain::share::security::{Descriptor, SddlRefusal};
use hyper::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::parameters;
use crate::answer::{Answer, AnswerBody};
use crate::body::RequestBody;
use crate::error::{Code, Error};
use crate::request::Call;
use crate::version::Version;

pub const KEY: &str = "x-ms-file-permission-key";
const FORMAT: &str = "x-ms-file-permission-format";

/// A descriptor of 64 KiB in base64, and the JSON around it.
const BODY_BYTES_MAX: u64 = 96 * 1024;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Sddl,
    /// Self-relative, in base64.
    Binary,
}

const FORMATS: [(&str, Format); 2] = [("Sddl", Format::Sddl), ("Binary", Format::Binary)];

#[derive(Deserialize)]
struct Body {
    permission: String,
    format: Option<String>,
}

pub async fn create(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let body = body.whole(call, BODY_BYTES_MAX).await?;
    let unreadable = |_| Error::from(Code::InvalidInput).detail("Reason", "It is not the JSON.");
    let Body { permission, format } = serde_json::from_slice(&body).map_err(unreadable)?;
    let format = match format.as_deref() {
        None => Format::default(),
        Some(name) => {
            let known = FORMATS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            known.map(|(_, format)| *format).ok_or(Code::InvalidInput)?
        }
    };
    if format == Format::Binary && call.version < Version::V2024_11_04 {
        return Err(Code::InvalidInput.into());
    }
    let descriptor = parse(&permission, format)?;
    let key = call.frontend.domain().permission_key(&call.share_path()?, &descriptor).await?;
    let mut answer = Answer::new(StatusCode::CREATED);
    answer.header(KEY, key.to_string());
    Ok(answer)
}

/// The form of the descriptor in the request or the answer.
pub fn format(call: &Call<'_>) -> Result<Option<Format>, Error> {
    parameters::choice(call, FORMAT, &FORMATS)
}

pub async fn get(call: &Call<'_>) -> Result<Answer, Error> {
    let key = parse_key(call.required_header(KEY)?)?;
    let format = format(call)?;
    let descriptor = call.frontend.domain().descriptor(&call.share_path()?, key).await?;
    let mut body = json!({ "permission": text(&descriptor, format.unwrap_or_default())? });
    if let Some(format) = format {
        body["format"] = parameters::choice_name(&FORMATS, &format).to_lowercase().into();
    }
    let mut answer = Answer::new(StatusCode::OK);
    answer.header("content-type", "application/json");
    answer.body = AnswerBody::Whole(Bytes::from(body.to_string()));
    Ok(answer)
}

/// A descriptor that a file can have.
pub fn parse(text: &str, format: Format) -> Result<Descriptor, Error> {
    let descriptor = match format {
        Format::Sddl => Descriptor::parse_sddl(text)?,
        Format::Binary => {
            let bytes = STANDARD.decode(text).map_err(|_| SddlRefusal::Malformed)?;
            Descriptor::from_bytes(&bytes).ok_or(SddlRefusal::Malformed)?
        }
    };
    descriptor.check_complete()?;
    Ok(descriptor)
}

pub fn text(descriptor: &Descriptor, format: Format) -> Result<String, Error> {
    match format {
        Format::Sddl => {
            let custom = |_| Code::CannotConvertToSddlDueToCustomAce;
            Ok(descriptor.to_sddl().map_err(custom)?)
        }
        Format::Binary => Ok(STANDARD.encode(descriptor.to_bytes())),
    }
}

pub fn parse_key(text: &str) -> Result<PermissionKey, Error> {
    PermissionKey::parse(text).ok_or_else(|| Code::FileInvalidPermissionKey.into())
}
