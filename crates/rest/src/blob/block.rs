//! Put Block and Put Block From URL.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_domain::blob::{BlockId, PutBlock};
use holdfast_domain::content::Received;
use hyper::StatusCode;

use super::encryption::{self, Chosen};
use super::{headers, put_blob};
use crate::answer::Answer;
use crate::body::RequestBody;
use crate::error::{Code, Error};
use crate::request::Call;
use crate::source::SourceRequest;
use crate::url_query::QueryRefusal;
use crate::version::Version;

const MIB: u64 = 1024 * 1024;

pub async fn put(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let id = id(call)?;
    let chosen = Chosen::read(call)?;
    let mut body = body.open_part(call, block_bytes_max(call.version))?;
    let sealing = chosen.sealing();
    let content = call.frontend.domain().receive_part(&mut body, sealing.as_ref()).await?;
    if content.length() == 0 {
        return Err(Error::invalid_header("Content-Length", "0"));
    }
    let mut answer = stage(call, id, content, &chosen).await?;
    headers::digests(&mut answer, call, &body);
    Ok(answer)
}

pub async fn put_from_url(call: &Call<'_>) -> Result<Answer, Error> {
    put_blob::check_bodiless(call)?;
    let (id, source) = (id(call)?, SourceRequest::parse(call)?);
    let chosen = Chosen::read(call)?;
    let mut opened = source.open(call, source_bytes_max(call.version)).await?;
    let sealing = chosen.sealing();
    let domain = call.frontend.domain();
    let content = domain.receive_part(&mut opened.body, sealing.as_ref()).await?;
    if content.length() == 0 {
        return Err(Code::InvalidInput.into());
    }
    let mut answer = stage(call, id, content, &chosen).await?;
    headers::source_digests(&mut answer, call, opened.body.finished());
    Ok(answer)
}

async fn stage(
    call: &Call<'_>,
    id: BlockId,
    content: Received,
    chosen: &Chosen,
) -> Result<Answer, Error> {
    let (path, lease_id, encryption) = (call.blob_path()?, call.lease_id()?, chosen.encryption());
    let create_only = call.granted.create_only;
    let command =
        PutBlock { path, id, content, encryption: encryption.clone(), lease_id, create_only };
    call.frontend.domain().put_block(command).await?;

    let mut answer = Answer::new(StatusCode::CREATED);
    encryption::describe(&mut answer, &encryption);
    answer.header("x-ms-request-server-encrypted", "true");
    Ok(answer)
}

/// The block of the request.
fn id(call: &Call<'_>) -> Result<BlockId, Error> {
    const NAME: &str = "blockid";
    let id = call.query.get_nonempty(NAME).ok_or(QueryRefusal::Missing { name: NAME })?;
    parse_id(id)
}

/// The id of a block as in requests.
pub fn parse_id(text: &str) -> Result<BlockId, Error> {
    let id = STANDARD.decode(text).ok().and_then(BlockId::new);
    id.ok_or_else(|| Code::InvalidBlockId.into())
}

pub fn encode_id(id: &BlockId) -> String {
    STANDARD.encode(id.as_bytes())
}

/// The largest block, by version.
pub fn block_bytes_max(version: Version) -> u64 {
    if version >= Version::V2019_12_12 {
        4000 * MIB
    } else if version >= Version::V2016_05_31 {
        100 * MIB
    } else {
        4 * MIB
    }
}

/// The largest block read from a source, by version.
fn source_bytes_max(version: Version) -> u64 {
    if version >= Version::V2020_04_08 { 4000 * MIB } else { 100 * MIB }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_base64_of_1_to_64_bytes() {
        for (cell, text, valid) in [
            ("3.2 Base64", "YQ==".to_owned(), true),
            ("3.2 64 bytes before encoding", STANDARD.encode([7; 64]), true),
            ("3.2 65 bytes before encoding", STANDARD.encode([7; 65]), false),
            ("3.2 not Base64", "a!b".to_owned(), false),
            ("3.2 not padded", "YQ".to_owned(), false),
            ("3.2 empty", String::new(), false),
        ] {
            let parsed = parse_id(&text);
            assert_eq!(parsed.is_ok(), valid, "{cell}");
            if let Ok(id) = parsed {
                assert_eq!(encode_id(&id), text, "{cell}");
            }
        }
    }

    #[test]
    fn blocks_grew_with_the_versions() {
        for (cell, version, mib) in [
            ("12 Block, before", Version::V2015_02_21, 4),
            ("12 Block, from 2016-05-31", Version::V2016_05_31, 100),
            ("12 Block, until 2019-07-07", Version::V2019_07_07, 100),
            ("12 Block, from 2019-12-12", Version::V2019_12_12, 4000),
        ] {
            assert_eq!(block_bytes_max(version), mib * MIB, "{cell}");
        }
        for (cell, version, mib) in [
            ("3.8 Put Block From URL, before 2020-04-08", Version::V2020_02_10, 100),
            ("3.8 Put Block From URL, after", Version::V2020_04_08, 4000),
        ] {
            assert_eq!(source_bytes_max(version), mib * MIB, "{cell}");
        }
    }
}
