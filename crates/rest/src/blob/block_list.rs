//! Put Block List and Get Block List.

use holdfast_domain::Failure;
use holdfast_domain::blob::{
    BlobRefusal, BlockList, BlockListEntry, BlockSource, BlockTypes, GetBlockList, ListedBlock,
    NewBlob,
};
use hyper::StatusCode;

use super::block::{encode_id, parse_id};
use super::encryption::Chosen;
use super::{headers, parameters, put_blob};
use crate::answer::Answer;
use crate::body::RequestBody;
use crate::error::{Code, Error};
use crate::lanes::lane_share::leave_lane_for;
use crate::request::Call;
use crate::url_query::QueryRefusal;
use crate::version::Version;
use crate::xml::Writer;
use crate::xml::document::{self, DocumentRefusal, Limits};

/// Room for 50,000 of the longest entries, one per line. More entries are read so that the error
/// says so.
const DOCUMENT: Limits = Limits { bytes: 8 * 1024 * 1024, elements: 100_000 };

/// The largest block that versions before 2019-12-12 know.
const EARLIER_BLOCK_BYTES_MAX: u64 = 100 * 1024 * 1024;

pub async fn put(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let chosen = Chosen::read(call)?;
    let command = put_blob::command(call, &chosen)?;
    let headers = headers::content_headers(call, false)?;
    let mut body = body.open(call, DOCUMENT.bytes as u64, None)?;
    let list = parse(&body.whole().await?)?;
    let command = command(NewBlob::BlockList(list), headers);
    let committed = call.frontend.domain().put_blob(command).await;
    let blob = match committed {
        // Unlike all other operations.
        Err(Failure::Refused(BlobRefusal::WrongKind)) => {
            return Err(Error::from(Code::InvalidBlobType).with_status(StatusCode::BAD_REQUEST));
        }
        committed => committed?,
    };

    let mut answer = put_blob::created(call, &blob);
    headers::digests(&mut answer, call, &body);
    Ok(answer)
}

pub fn can_be_list(bytes: &[u8]) -> bool {
    parse(bytes).is_ok()
}

fn parse(bytes: &[u8]) -> Result<Vec<BlockListEntry>, Error> {
    let root = document::parse_within(bytes, "BlockList", DOCUMENT)?;
    let entry = |element: &document::Element| {
        let source = match element.name.as_str() {
            "Committed" => BlockSource::Committed,
            "Uncommitted" => BlockSource::Uncommitted,
            "Latest" => BlockSource::Latest,
            _ => return Err(DocumentRefusal::UnsupportedNode { name: element.name.clone() }.into()),
        };
        Ok(BlockListEntry { id: parse_id(element.text.trim())?, source })
    };
    root.children.iter().map(entry).collect()
}

pub async fn get(call: &Call<'_>) -> Result<Answer, Error> {
    let (conditions, _) = headers::read_conditions(call)?;
    let command = GetBlockList {
        path: call.blob_path()?,
        which: parameters::which(call)?,
        types: types(call)?,
        conditions,
        lease_id: call.lease_id()?,
    };
    let list = call.frontend.domain().get_block_list(&command).await?;
    check_lengths(&list, call.version)?;

    leave_lane_for(list.committed.len() + list.uncommitted.len()).await;
    let mut xml = Writer::document();
    xml.open("BlockList");
    let BlockList { blob, length, committed, mut uncommitted } = list;
    if command.types != BlockTypes::Uncommitted {
        write_blocks(&mut xml, "CommittedBlocks", &committed);
    }
    if command.types != BlockTypes::Committed {
        uncommitted.sort_by_cached_key(|block| encode_id(&block.id));
        write_blocks(&mut xml, "UncommittedBlocks", &uncommitted);
    }
    xml.close("BlockList");
    let mut answer = Answer::xml(StatusCode::OK, xml.finish());
    if let Some((etag, last_modified)) = blob {
        headers::identity(&mut answer, etag, last_modified, call.version);
    }
    answer.show("x-ms-blob-content-length", length);
    Ok(answer)
}

fn types(call: &Call<'_>) -> Result<BlockTypes, Error> {
    const NAME: &str = "blocklisttype";
    match call.query.get_nonempty(NAME) {
        None => Ok(BlockTypes::Committed),
        Some(text) if text.eq_ignore_ascii_case("committed") => Ok(BlockTypes::Committed),
        Some(text) if text.eq_ignore_ascii_case("uncommitted") => Ok(BlockTypes::Uncommitted),
        Some(text) if text.eq_ignore_ascii_case("all") => Ok(BlockTypes::All),
        Some(text) => Err(QueryRefusal::InvalidValue { name: NAME, value: text.to_owned() }.into()),
    }
}

/// Older versions are not shown blocks that are too long for them.
fn check_lengths(list: &BlockList, version: Version) -> Result<(), Error> {
    let mut blocks = list.committed.iter().chain(&list.uncommitted);
    let unknown = |block: &ListedBlock| block.length > EARLIER_BLOCK_BYTES_MAX;
    if version < Version::V2019_12_12 && blocks.any(unknown) {
        return Err(Code::FeatureVersionMismatch.into());
    }
    Ok(())
}

fn write_blocks(xml: &mut Writer, element: &str, blocks: &[ListedBlock]) {
    xml.open(element);
    for block in blocks {
        xml.open("Block");
        xml.element("Name", &encode_id(&block.id));
        xml.element("Size", &block.length.to_string());
        xml.close("Block");
    }
    xml.close(element);
}

#[cfg(test)]
mod tests {
    use holdfast_domain::blob::BlockId;

    use super::*;

    fn id(text: &str) -> BlockId {
        BlockId::new(text.as_bytes().to_vec()).expect("an id")
    }

    #[test]
    fn a_list_is_read_in_its_order() {
        let document = b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<BlockList>\n\
            <Latest>YQ==</Latest> <Committed>Yg==</Committed>\n<Uncommitted>\nYw==\n\
            </Uncommitted><Latest>YQ==</Latest></BlockList>";
        let expected = [
            ("a", BlockSource::Latest),
            ("b", BlockSource::Committed),
            ("c", BlockSource::Uncommitted),
            ("a", BlockSource::Latest),
        ]
        .map(|(text, source)| BlockListEntry { id: id(text), source });
        assert_eq!(parse(document).expect("a list"), expected);
        assert_eq!(parse(b"<BlockList/>").expect("an empty list"), []);
    }

    #[test]
    fn a_list_that_is_not_one_is_refused() {
        for (cell, document, code) in [
            ("no document", "", Code::InvalidXmlDocument),
            ("another root", "<Blocks/>", Code::InvalidXmlDocument),
            ("not closed", "<BlockList><Latest>YQ==</Latest>", Code::InvalidXmlDocument),
            (
                "another element",
                "<BlockList><Block>YQ==</Block></BlockList>",
                Code::UnsupportedXmlNode,
            ),
            ("3.2 not Base64", "<BlockList><Latest>a</Latest></BlockList>", Code::InvalidBlockId),
            ("3.2 no id", "<BlockList><Latest/></BlockList>", Code::InvalidBlockId),
        ] {
            let refused = parse(document.as_bytes()).map_err(|error| error.code);
            assert_eq!(refused, Err(code), "{cell}");
        }
    }

    #[test]
    fn more_entries_than_a_blob_may_have_are_still_read() {
        let entries = "<Latest>YQ==</Latest>".repeat(50_001);
        let list = parse(format!("<BlockList>{entries}</BlockList>").as_bytes());
        assert_eq!(list.expect("a list").len(), 50_001);
        let longest =
            format!("    <Uncommitted>{}</Uncommitted>\r\n", encode_id(&id(&"x".repeat(64))));
        assert!(longest.len() * 50_000 < DOCUMENT.bytes);
    }

    #[test]
    fn earlier_versions_do_not_see_blocks_over_100_mib() {
        let list = |length| BlockList {
            blob: None,
            length: 0,
            committed: vec![ListedBlock { id: id("a"), length: 1 }],
            uncommitted: vec![ListedBlock { id: id("b"), length }],
        };
        let most = EARLIER_BLOCK_BYTES_MAX;
        for (cell, length, version, shown) in [
            ("3.2 100 MiB, before 2019-12-12", most, Version::V2019_07_07, true),
            ("3.2 over 100 MiB, before 2019-12-12", most + 1, Version::V2019_07_07, false),
            ("3.2 over 100 MiB, 2019-12-12", most + 1, Version::V2019_12_12, true),
        ] {
            assert_eq!(check_lengths(&list(length), version).is_ok(), shown, "{cell}");
        }
    }
}
