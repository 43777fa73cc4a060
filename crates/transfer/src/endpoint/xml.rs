//! The XML of answers as a tree, and texts as XML.

use quick_xml::Reader;
use quick_xml::events::Event;

/// No answer of the services is nested deeper.
const DEPTH_MAX: usize = 16;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Element {
    pub name: String,
    /// Of `Encoded="true"`: the text is percent-encoded.
    pub is_encoded: bool,
    pub text: String,
    pub children: Vec<Element>,
}

impl Element {
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The elements of a list.
    pub fn children_of(&self, name: &str) -> impl Iterator<Item = &Self> {
        self.child(name).into_iter().flat_map(|list| &list.children)
    }

    /// Of a child; empty if there is none.
    pub fn text_of(&self, name: &str) -> &str {
        self.child(name).map_or("", |child| &child.text)
    }

    /// The same, decoded where the answer says that it is encoded.
    pub fn name_of(&self, name: &str) -> String {
        let Some(child) = self.child(name) else { return String::new() };
        if child.is_encoded {
            percent_encoding::percent_decode_str(&child.text).decode_utf8_lossy().into_owned()
        } else {
            child.text.clone()
        }
    }
}

/// The root element, unless it is no XML that a service would answer.
pub fn parse(bytes: &[u8]) -> Option<Element> {
    let text = std::str::from_utf8(bytes).ok()?.trim_start_matches('\u{feff}');
    let mut reader = Reader::from_str(text);
    let mut open = vec![Element::default()];
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) => {
                if open.len() > DEPTH_MAX {
                    return None;
                }
                open.push(element(&start)?);
            }
            Event::Empty(start) => open.last_mut()?.children.push(element(&start)?),
            Event::End(_) => {
                let closed = open.pop()?;
                open.last_mut()?.children.push(closed);
            }
            Event::Text(piece) => open.last_mut()?.text.push_str(&piece.decode().ok()?),
            Event::CData(piece) => open.last_mut()?.text.push_str(&piece.decode().ok()?),
            Event::GeneralRef(name) => {
                let name = name.decode().ok()?;
                let text = &mut open.last_mut()?.text;
                match name.strip_prefix('#') {
                    Some(number) => {
                        let code = match number.strip_prefix('x') {
                            Some(digits) => u32::from_str_radix(digits, 16),
                            None => number.parse(),
                        };
                        text.push(char::from_u32(code.ok()?)?);
                    }
                    None => text.push_str(quick_xml::escape::resolve_xml_entity(&name)?),
                }
            }
            Event::Eof => break,
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) | Event::DocType(_) => {}
        }
    }
    let document = if open.len() == 1 { open.pop()? } else { return None };
    document.children.into_iter().next()
}

fn element(start: &quick_xml::events::BytesStart<'_>) -> Option<Element> {
    let name = std::str::from_utf8(start.local_name().into_inner()).ok()?.to_owned();
    let is_encoded = start.attributes().flatten().any(|attribute| {
        attribute.key.as_ref() == b"Encoded" && attribute.value.as_ref() == b"true"
    });
    Some(Element { name, is_encoded, ..Element::default() })
}

pub fn escape(text: &str) -> String {
    // A carriage return would be read as the end of a line.
    quick_xml::escape::escape(text).replace('\r', "&#13;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_becomes_a_tree() {
        let list = "\u{feff}<?xml version=\"1.0\"?><L><Bs><B><Name Encoded=\"true\">a%EF%BF%BE</Name>\
                    <M><k>1 &lt; 2 &#x41;</k><e/></M></B><B><Name>b</Name></B></Bs><NextMarker /></L>";
        let list = parse(list.as_bytes()).expect("it is XML");
        let blobs: Vec<_> = list.children_of("Bs").collect();
        assert_eq!(blobs[0].name_of("Name"), "a\u{fffe}");
        assert_eq!(blobs[0].child("M").expect("it is there").text_of("k"), "1 < 2 A");
        assert_eq!(blobs[1].name_of("Name"), "b");
        assert_eq!(list.text_of("NextMarker"), "");
    }

    #[test]
    fn what_is_no_answer_is_none() {
        let deep = "<a>".repeat(100);
        for text in ["", "text", "<a>", "<a></b>", "<a>&unknown;</a>", &deep] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn text_survives_its_way_through_xml() {
        let text = "<a href='x'>&amp; \"q\"\r\n\u{1f600}</a>";
        let wrapped = format!("<T>{}</T>", escape(text));
        assert_eq!(parse(wrapped.as_bytes()).expect("it is XML").text, text);
    }
}
