//! Get and Set Blob Tags.

use holdfast_domain::blob::{GetBlobTags, SetBlobTags};
use holdfast_domain::tags::TagSet;
use hyper::StatusCode;

use super::{headers, parameters};
use crate::answer::Answer;
use crate::body::RequestBody;
use crate::error::Error;
use crate::request::Call;
use crate::xml::Writer;
use crate::xml::document::{self, DocumentRefusal, Element, invalid};

pub async fn get(call: &Call<'_>) -> Result<Answer, Error> {
    let command = GetBlobTags {
        path: call.blob_path()?,
        which: parameters::which(call)?,
        conditions: headers::tag_call_conditions(call)?,
        lease_id: call.lease_id()?,
    };
    let tags = call.frontend.domain().get_blob_tags(command).await?;
    let mut xml = Writer::document();
    write(&mut xml, tags.iter());
    Ok(Answer::xml(StatusCode::OK, xml.finish()))
}

pub async fn set(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let mut command = SetBlobTags {
        path: call.blob_path()?,
        which: parameters::which(call)?,
        tags: TagSet::default(),
        conditions: headers::tag_call_conditions(call)?,
        lease_id: call.lease_id()?,
    };
    let document = body.document(call).await?;
    command.tags = TagSet::new(parse(&document)?)?;
    call.frontend.domain().set_blob_tags(command).await?;
    Ok(Answer::new(StatusCode::NO_CONTENT))
}

pub fn write<'a>(xml: &mut Writer, tags: impl Iterator<Item = (&'a str, &'a str)>) {
    xml.open("Tags");
    xml.open("TagSet");
    for (key, value) in tags {
        xml.open("Tag");
        xml.element("Key", key);
        xml.element("Value", value);
        xml.close("Tag");
    }
    xml.close("TagSet");
    xml.close("Tags");
}

/// The tags in a document of Get or Set Blob Tags, not checked yet.
pub fn parse(document: &[u8]) -> Result<Vec<(String, String)>, DocumentRefusal> {
    let root = document::parse(document, "Tags")?;
    let set = root.fields(&["TagSet"])?.required("TagSet")?;
    set.children.iter().map(parse_tag).collect()
}

fn parse_tag(element: &Element) -> Result<(String, String), DocumentRefusal> {
    if element.name != "Tag" {
        return Err(DocumentRefusal::UnsupportedNode { name: element.name.clone() });
    }
    let fields = element.fields(&["Key", "Value"])?;
    let text = |name| fields.required(name).and_then(plain_text);
    Ok((text("Key")?, text("Value")?))
}

/// Without trimming: a space at the end of a value belongs to the value.
fn plain_text(element: &Element) -> Result<String, DocumentRefusal> {
    if !element.children.is_empty() {
        return Err(invalid("a tag has elements where text is expected"));
    }
    Ok(element.text.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_of_tags_is_read_and_written_back() {
        let text = "<?xml version=\"1.0\" encoding=\"utf-8\"?><Tags><TagSet>\
                    <Tag><Key>a</Key><Value></Value></Tag>\
                    <Tag><Key>b c</Key><Value> d=e </Value></Tag></TagSet></Tags>";
        let parsed = parse(text.as_bytes()).expect("a document of tags");
        let mut xml = Writer::document();
        write(&mut xml, parsed.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        assert_eq!(xml.finish(), text);
    }

    #[test]
    fn a_document_that_is_not_of_tags_is_refused() {
        for text in [
            "",
            "<Tags/>",
            "<TagSet/>",
            "<Tags><TagSet><Key>a</Key></TagSet></Tags>",
            "<Tags><TagSet><Tag><Key>a</Key></Tag></TagSet></Tags>",
            "<Tags><TagSet><Tag><Value>a</Value></Tag></TagSet></Tags>",
            "<Tags><TagSet><Tag><Key><b/></Key><Value>a</Value></Tag></TagSet></Tags>",
            "<Tags><TagSet><Tag><Key>a</Key><Key>a</Key><Value>a</Value></Tag></TagSet></Tags>",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
