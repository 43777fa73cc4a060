//! Append Block, Append Block From URL and Append Blob Seal.

use holdfast_domain::blob::{AppendBlock, SealAppendBlob};
use holdfast_domain::condition::AppendConditions;
use holdfast_domain::content::Received;
use hyper::StatusCode;

use super::encryption::{self, Chosen};
use super::{headers, put_blob};
use crate::answer::Answer;
use crate::body::RequestBody;
use crate::error::{Code, Error};
use crate::request::Call;
use crate::source::{SourceRequest, condition_as_refusal};
use crate::version::Version;

const MIB: u64 = 1024 * 1024;

pub async fn append(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let chosen = Chosen::read(call)?;
    let mut body = body.open_part(call, append_bytes_max(call.version))?;
    let sealing = chosen.sealing();
    let content = call.frontend.domain().receive_part(&mut body, sealing.as_ref()).await?;
    if content.length() == 0 {
        return Err(Error::invalid_header("Content-Length", "0"));
    }
    let mut answer = write(call, content, chosen).await?;
    headers::digests(&mut answer, call, &body);
    Ok(answer)
}

pub async fn append_from_url(call: &Call<'_>) -> Result<Answer, Error> {
    put_blob::check_bodiless(call)?;
    let (chosen, source) = (Chosen::read(call)?, SourceRequest::parse(call)?);
    let opened = source.open(call, append_bytes_max(call.version)).await;
    let mut opened = opened.map_err(condition_as_refusal)?;
    let sealing = chosen.sealing();
    let domain = call.frontend.domain();
    let content = domain.receive_part(&mut opened.body, sealing.as_ref()).await?;
    if content.length() == 0 {
        return Err(Code::InvalidInput.into());
    }
    let mut answer = write(call, content, chosen).await?;
    headers::source_digests(&mut answer, call, opened.body.finished());
    Ok(answer)
}

async fn write(call: &Call<'_>, content: Received, chosen: Chosen) -> Result<Answer, Error> {
    let command = AppendBlock {
        path: call.blob_path()?,
        content,
        conditions: headers::write_conditions(call)?,
        append_conditions: append_conditions(call)?,
        lease_id: call.lease_id()?,
        encryption: chosen.encryption(),
    };
    let appended = call.frontend.domain().append_block(command).await?;

    let blob = &appended.blob;
    let mut answer = Answer::new(StatusCode::CREATED);
    headers::identity(&mut answer, blob.etag, blob.last_modified, call.version);
    encryption::describe(&mut answer, &blob.encryption);
    answer.show("x-ms-blob-append-offset", appended.offset);
    answer.show("x-ms-blob-committed-block-count", appended.blocks);
    answer.header("x-ms-request-server-encrypted", "true");
    Ok(answer)
}

pub async fn seal(call: &Call<'_>) -> Result<Answer, Error> {
    let command = SealAppendBlob {
        path: call.blob_path()?,
        conditions: headers::write_conditions(call)?,
        append_conditions: append_conditions(call)?,
        lease_id: call.lease_id()?,
    };
    let blob = call.frontend.domain().seal_append_blob(command).await?;
    let mut answer = Answer::new(StatusCode::OK);
    headers::identity(&mut answer, blob.etag, blob.last_modified, call.version);
    answer.header("x-ms-blob-sealed", "true");
    Ok(answer)
}

fn append_conditions(call: &Call<'_>) -> Result<AppendConditions, Error> {
    Ok(AppendConditions {
        position: number(call, "x-ms-blob-condition-appendpos")?,
        size_bytes_max: number(call, "x-ms-blob-condition-maxsize")?,
    })
}

fn number(call: &Call<'_>, name: &'static str) -> Result<Option<u64>, Error> {
    let Some(text) = call.header(name)? else { return Ok(None) };
    text.parse().map(Some).map_err(|_| Error::invalid_header(name, text))
}

/// The largest block that can be appended, by version.
fn append_bytes_max(version: Version) -> u64 {
    if version >= Version::V2022_11_02 { 100 * MIB } else { 4 * MIB }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appended_blocks_grew_with_the_versions() {
        for (cell, version, mib) in [
            ("3.4 before 2022-11-02", Version::V2021_12_02, 4),
            ("3.4 from 2022-11-02", Version::V2022_11_02, 100),
        ] {
            assert_eq!(append_bytes_max(version), mib * MIB, "{cell}");
        }
    }
}
