//! XML documents that requests carry, read whole into a tree. Bounded in size, depth and number of
//! elements; a document type declaration is refused, so no entity can be defined.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::events::Event;

/// Twice the depth of the deepest document of the services.
const DEPTH_MAX: usize = 12;
/// Far more than properties and policies need.
const LIMITS: Limits = Limits { bytes: 1024 * 1024, elements: 2000 };

/// How large a document may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub bytes: usize,
    pub elements: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    pub name: String,
    /// The text of the element itself, without that of its children.
    pub text: String,
    pub children: Vec<Self>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentRefusal {
    /// 400 `InvalidXmlDocument`
    #[error("the XML is not one of the expected form: {reason}")]
    InvalidDocument { reason: &'static str },
    /// 400 `InvalidXmlNodeValue`, with XmlNodeName and XmlNodeValue
    #[error("the XML node {name} cannot be {value:?}")]
    InvalidNodeValue { name: &'static str, value: String },
    /// 400 `MissingRequiredXmlNode`, with XmlNodeName
    #[error("the XML node {name} is missing")]
    MissingNode { name: &'static str },
    /// 400 `UnsupportedXmlNode`, with XmlNodeName
    #[error("the XML node {name:?} is not supported here")]
    UnsupportedNode { name: String },
}

pub(crate) const fn invalid(reason: &'static str) -> DocumentRefusal {
    DocumentRefusal::InvalidDocument { reason }
}

/// The tree of a document whose root has this name.
pub fn parse(bytes: &[u8], root: &str) -> Result<Element, DocumentRefusal> {
    parse_within(bytes, root, LIMITS)
}

/// As [`parse`], for documents that may be larger than others.
pub fn parse_within(bytes: &[u8], root: &str, limits: Limits) -> Result<Element, DocumentRefusal> {
    if bytes.len() > limits.bytes {
        return Err(invalid("it is too long"));
    }
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|_| invalid("it is not UTF-8"))?;
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;

    let mut open: Vec<Element> = Vec::new();
    let mut elements = 0;
    let mut complete: Option<Element> = None;
    loop {
        match reader.read_event().map_err(|_| invalid("it is not well-formed"))? {
            Event::Start(start) => {
                elements += 1;
                if elements > limits.elements || open.len() == DEPTH_MAX || complete.is_some() {
                    return Err(invalid("it has too many or too deeply nested elements"));
                }
                let name = String::from_utf8_lossy(start.local_name().as_ref()).into_owned();
                open.push(Element { name, text: String::new(), children: Vec::new() });
            }
            Event::End(_) => {
                let element = open.pop().ok_or(invalid("it is not well-formed"))?;
                match open.last_mut() {
                    Some(parent) => parent.children.push(element),
                    None => complete = Some(element),
                }
            }
            Event::Text(text) => {
                let text = text.decode().map_err(|_| invalid("it is not UTF-8"))?;
                append(&mut open, &line_ends(&text))?;
            }
            Event::CData(text) => {
                let text = text.decode().map_err(|_| invalid("it is not UTF-8"))?;
                append(&mut open, &line_ends(&text))?;
            }
            Event::GeneralRef(reference) => {
                let name = reference.decode().map_err(|_| invalid("it is not UTF-8"))?;
                let value = match reference.resolve_char_ref() {
                    Ok(Some(letter)) => Cow::Owned(letter.to_string()),
                    Ok(None) => Cow::Borrowed(
                        quick_xml::escape::resolve_xml_entity(&name)
                            .ok_or(invalid("it uses an entity that is not defined"))?,
                    ),
                    Err(_) => return Err(invalid("it is not well-formed")),
                };
                append(&mut open, &value)?;
            }
            Event::DocType(_) => return Err(invalid("it has a document type declaration")),
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) | Event::Empty(_) => {}
            Event::Eof => break,
        }
    }
    match complete {
        Some(element) if open.is_empty() && element.name == root => Ok(element),
        _ => Err(invalid("its root is not the expected one")),
    }
}

/// XML normalizes all three kinds of line ends; a literal carriage return is written as a
/// reference.
fn line_ends(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Adds to the text of the innermost open element; outside of all only white space is allowed.
fn append(open: &mut [Element], text: &str) -> Result<(), DocumentRefusal> {
    match open.last_mut() {
        Some(element) => element.text.push_str(text),
        None if text.trim().is_empty() => {}
        None => return Err(invalid("text stands outside its root")),
    }
    Ok(())
}

impl Element {
    /// The children, none of them twice and all of them named in `allowed`.
    pub fn fields(&self, allowed: &[&str]) -> Result<Fields<'_>, DocumentRefusal> {
        for (at, child) in self.children.iter().enumerate() {
            if !allowed.contains(&child.name.as_str()) {
                return Err(DocumentRefusal::UnsupportedNode { name: child.name.clone() });
            }
            if self.children[..at].iter().any(|earlier| earlier.name == child.name) {
                return Err(invalid("an element stands twice"));
            }
        }
        Ok(Fields { element: self })
    }
}

/// The children of an element, each of which occurs once.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    element: &'a Element,
}

impl<'a> Fields<'a> {
    pub fn get(&self, name: &str) -> Option<&'a Element> {
        self.element.children.iter().find(|child| child.name == name)
    }

    pub fn required(&self, name: &'static str) -> Result<&'a Element, DocumentRefusal> {
        self.get(name).ok_or(DocumentRefusal::MissingNode { name })
    }

    /// The text of that child, if it is present and not blank.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.get(name).map(|child| child.text.trim()).filter(|text| !text.is_empty())
    }

    pub fn required_text(&self, name: &'static str) -> Result<&'a str, DocumentRefusal> {
        let text = self.required(name)?.text.trim();
        if text.is_empty() { Err(value(name, text)) } else { Ok(text) }
    }

    pub fn boolean(&self, name: &'static str) -> Result<Option<bool>, DocumentRefusal> {
        match self.text(name) {
            None => Ok(None),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(text) => Err(value(name, text)),
        }
    }

    pub fn required_boolean(&self, name: &'static str) -> Result<bool, DocumentRefusal> {
        self.boolean(name)?.ok_or(DocumentRefusal::MissingNode { name })
    }

    pub fn integer(
        &self,
        name: &'static str,
        range: std::ops::RangeInclusive<u32>,
    ) -> Result<Option<u32>, DocumentRefusal> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(value(name, text)),
        }
    }
}

pub(crate) fn value(name: &'static str, value: &str) -> DocumentRefusal {
    DocumentRefusal::InvalidNodeValue { name, value: value.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> bool {
        matches!(parse(text.as_bytes(), "R"), Err(DocumentRefusal::InvalidDocument { .. }))
    }

    #[test]
    fn elements_text_and_references_are_read() {
        let text = "\u{feff}<?xml version=\"1.0\"?> <!-- x --><R a='1'>\
                    <A>a&amp;b&#x20AC;<![CDATA[<c>]]></A><B/><C xmlns=\"x\"> y </C>\
                    <L>1\r\n2\r3\n4&#xD;5<![CDATA[\r\n]]></L></R>\n";
        let root = parse(text.as_bytes(), "R").expect("a document");
        let fields = root.fields(&["A", "B", "C", "L"]).expect("its fields");
        assert_eq!(fields.text("A"), Some("a&b€<c>"));
        assert_eq!(fields.text("B"), None);
        assert_eq!(fields.text("C"), Some("y"));
        assert!(fields.get("D").is_none());
        let lines = fields.get("L").map(|lines| lines.text.as_str());
        assert_eq!(lines, Some("1\n2\n3\n4\r5\n"));
    }

    #[test]
    fn anything_but_one_well_formed_root_of_that_name_is_refused() {
        for text in [
            "",
            "R",
            "<R>",
            "<R></S>",
            "</R>",
            "<S/>",
            "<R/><R/>",
            "<R/>x",
            "x<R/>",
            "<R>&unknown;</R>",
            "<R>&#0;</R>",
            "<R><A></R></A>",
        ] {
            assert!(refused(text), "{text}");
        }
        let invalid_utf8 = parse(b"<R>\xFF</R>", "R");
        assert!(matches!(invalid_utf8, Err(DocumentRefusal::InvalidDocument { .. })));
    }

    #[test]
    fn a_document_type_is_refused() {
        assert!(refused("<!DOCTYPE R><R/>"));
        assert!(refused("<!DOCTYPE R [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><R>&b;</R>"));
        assert!(refused("<!DOCTYPE R SYSTEM \"file:///etc/passwd\"><R/>"));
    }

    #[test]
    fn depth_number_and_size_are_bounded() {
        let nested = |depth: usize| {
            format!("<R>{}{}</R>", "<a>".repeat(depth - 1), "</a>".repeat(depth - 1))
        };
        assert!(!refused(&nested(DEPTH_MAX)));
        assert!(refused(&nested(DEPTH_MAX + 1)));
        let wide = |elements: usize| format!("<R>{}</R>", "<a/>".repeat(elements - 1));
        assert!(!refused(&wide(LIMITS.elements)));
        assert!(refused(&wide(LIMITS.elements + 1)));
        assert!(refused(&format!("<R>{}</R>", "x".repeat(LIMITS.bytes))));
    }

    #[test]
    fn unknown_and_repeated_children_are_refused() {
        let root = |text: &str| parse(text.as_bytes(), "R").expect("a document");
        let unknown = DocumentRefusal::UnsupportedNode { name: "B".to_owned() };
        assert_eq!(root("<R><A/><B/></R>").fields(&["A"]).err(), Some(unknown));
        assert!(root("<R><A/><A/></R>").fields(&["A"]).is_err());
    }
}
