//! Put, get, peek, update, delete and clear messages.

use bytes::Bytes;
use holdfast_domain::queue::{
    DeleteMessage, GetMessages, MessageId, MessageState, PeekMessages, PutMessage, TextMessage,
    UpdateMessage,
};
use hyper::StatusCode;

use super::{parameters, queue_of};
use crate::address::Resource;
use crate::answer::Answer;
use crate::body::RequestBody;
use crate::error::{Code, Error};
use crate::request::Call;
use crate::version::Version;
use crate::xml::document::{self, DocumentRefusal, invalid};
use crate::xml::{self, Writer};

const ROOT: &str = "QueueMessage";
const TEXT: &str = "MessageText";
const LIST: &str = "QueueMessagesList";

const TEXT_BYTES_MAX: usize = 64 * 1024;
const TEXT_BYTES_MAX_OLD: usize = 8 * 1024;
/// The longest text with every character escaped in the longest way, and the elements around it.
const BODY_BYTES_MAX: u64 = 6 * TEXT_BYTES_MAX as u64 + 1024;

pub async fn put(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let (delay, time_to_live) = parameters::times_of_put(call.query, call.version)?;
    let text = parse_text(&body.whole(call, BODY_BYTES_MAX).await?, call.version)?;
    let command = PutMessage { path: queue_of(call)?, text, delay, time_to_live };
    let state = call.frontend.domain().put_message(command).await?;
    if call.version < Version::V2016_05_31 {
        return Ok(Answer::new(StatusCode::CREATED));
    }
    let mut xml = Writer::document();
    xml.open(LIST);
    xml.open(ROOT);
    write_identity(&mut xml, &state);
    write_receipt(&mut xml, &state);
    xml.close(ROOT);
    xml.close(LIST);
    Ok(Answer::xml(StatusCode::CREATED, xml.finish()))
}

pub async fn get(call: &Call<'_>) -> Result<Answer, Error> {
    // It is a GET, but it changes the messages.
    if call.address.secondary {
        return Err(Error::secondary_is_read_only());
    }
    // Any other value must not count as `false`.
    call.query.boolean("peekonly")?;
    let command = GetMessages {
        path: queue_of(call)?,
        count: parameters::message_count(call.query)?,
        visibility_timeout: parameters::visibility_of_got(call.query, call.version)?,
    };
    let messages = call.frontend.domain().get_messages(command).await?;
    Ok(list(&messages, write_receipt))
}

pub async fn peek(call: &Call<'_>) -> Result<Answer, Error> {
    let command =
        PeekMessages { path: queue_of(call)?, count: parameters::message_count(call.query)? };
    let messages = call.frontend.domain().peek_messages(command).await?;
    Ok(list(&messages, |_, _| {}))
}

pub async fn clear(call: &Call<'_>) -> Result<Answer, Error> {
    call.frontend.domain().clear_messages(&queue_of(call)?).await?;
    Ok(Answer::new(StatusCode::NO_CONTENT))
}

pub async fn update(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let receipt = parameters::pop_receipt(call.query)?;
    let visibility_timeout = parameters::visibility_of_updated(call.query)?;
    let body = body.whole(call, BODY_BYTES_MAX).await?;
    // Without a body the text stays unchanged.
    let text = if body.is_empty() { None } else { Some(parse_text(&body, call.version)?) };
    let (path, id) = (queue_of(call)?, message_id(call));
    let command = UpdateMessage { path, id, receipt, visibility_timeout, text };
    let state = call.frontend.domain().update_message(command).await?;
    let mut answer = Answer::new(StatusCode::NO_CONTENT);
    answer.header("x-ms-popreceipt", parameters::pop_receipt_text(state.receipt));
    answer.show("x-ms-time-next-visible", state.next_visible.rfc1123());
    Ok(answer)
}

pub async fn delete(call: &Call<'_>) -> Result<Answer, Error> {
    let command = DeleteMessage {
        path: queue_of(call)?,
        id: message_id(call),
        receipt: parameters::pop_receipt(call.query)?,
    };
    call.frontend.domain().delete_message(command).await?;
    Ok(Answer::new(StatusCode::NO_CONTENT))
}

/// `None` for a text that never was the id of a message.
fn message_id(call: &Call<'_>) -> Option<MessageId> {
    let Resource::Message { message, .. } = &call.address.resource else { return None };
    MessageId::parse(message)
}

pub fn parse_text(body: &Bytes, version: Version) -> Result<String, Error> {
    let mut root = document::parse(body, ROOT)?;
    root.fields(&[TEXT])?;
    let element = root.children.pop().ok_or(DocumentRefusal::MissingNode { name: TEXT })?;
    if !element.children.is_empty() {
        return Err(invalid("markup in a message must be escaped").into());
    }
    let text = element.text;
    if !text.chars().all(xml::is_character) {
        return Err(invalid("it has a character that XML cannot have").into());
    }
    if text.len() > TEXT_BYTES_MAX {
        // No version allows longer bodies.
        return Err(
            Error::from(Code::RequestBodyTooLarge).detail("MaxLimit", TEXT_BYTES_MAX.to_string())
        );
    }
    if version < Version::V2011_08_18 && text.len() > TEXT_BYTES_MAX_OLD {
        return Err(Code::MessageTooLarge.into());
    }
    Ok(text)
}

fn list(messages: &[TextMessage], write_receipt: fn(&mut Writer, &MessageState)) -> Answer {
    let mut xml = Writer::document();
    xml.open(LIST);
    for TextMessage { state, text } in messages {
        xml.open(ROOT);
        write_identity(&mut xml, state);
        write_receipt(&mut xml, state);
        xml.element("DequeueCount", &state.dequeue_count.to_string());
        xml.element(TEXT, text);
        xml.close(ROOT);
    }
    xml.close(LIST);
    Answer::xml(StatusCode::OK, xml.finish())
}

fn write_identity(xml: &mut Writer, state: &MessageState) {
    xml.element("MessageId", &state.id.to_string());
    xml.element("InsertionTime", &state.inserted.rfc1123().to_string());
    xml.element("ExpirationTime", &state.expires.rfc1123().to_string());
}

/// Not written by Peek Messages.
fn write_receipt(xml: &mut Writer, state: &MessageState) {
    xml.element("PopReceipt", &parameters::pop_receipt_text(state.receipt));
    xml.element("TimeNextVisible", &state.next_visible.rfc1123().to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(content: &str, version: Version) -> Result<String, Code> {
        let body = Bytes::from(format!("<QueueMessage>{content}</QueueMessage>"));
        parse_text(&body, version).map_err(|error| error.code)
    }

    #[test]
    fn texts_are_taken_as_they_are() {
        for (content, text) in [
            ("<MessageText>plain</MessageText>", "plain"),
            ("<MessageText></MessageText>", ""),
            ("<MessageText/>", ""),
            ("<MessageText> a\r\n&#xD;b </MessageText>", " a\n\rb "),
            ("<MessageText>&lt;a&gt;&amp;&#x1F600;</MessageText>", "<a>&😀"),
            ("<MessageText><![CDATA[<a>]]></MessageText>", "<a>"),
        ] {
            assert_eq!(parsed(content, Version::V2019_02_02).as_deref(), Ok(text), "{content}");
        }
    }

    #[test]
    fn other_documents_are_refused() {
        for (content, code) in [
            ("", Code::MissingRequiredXmlNode),
            ("<Text>a</Text>", Code::UnsupportedXmlNode),
            ("<MessageText>a</MessageText><More/>", Code::UnsupportedXmlNode),
            ("<MessageText>a</MessageText><MessageText/>", Code::InvalidXmlDocument),
            ("<MessageText>a<b/></MessageText>", Code::InvalidXmlDocument),
            ("<MessageText>&#1;</MessageText>", Code::InvalidXmlDocument),
            ("<MessageText>", Code::InvalidXmlDocument),
        ] {
            assert_eq!(parsed(content, Version::V2019_02_02), Err(code), "{content}");
        }
    }

    #[test]
    fn a_text_is_as_long_as_its_version_lets_it() {
        let old = Version::V2009_09_19;
        let new = Version::V2011_08_18;
        for (cell, version, length, refusal) in [
            ("5 64 KiB", new, 64 * 1024, None),
            ("5 and a byte", new, 64 * 1024 + 1, Some(Code::RequestBodyTooLarge)),
            ("5 8 KiB before 2011-08-18", old, 8 * 1024, None),
            ("5 and a byte, old", old, 8 * 1024 + 1, Some(Code::MessageTooLarge)),
            ("5 64 KiB, old", old, 64 * 1024 + 1, Some(Code::RequestBodyTooLarge)),
        ] {
            let content = format!("<MessageText>{}</MessageText>", "a".repeat(length));
            let expected = refusal.map_or(Ok(length), Err);
            assert_eq!(parsed(&content, version).map(|text| text.len()), expected, "{cell}");
        }
    }
}
