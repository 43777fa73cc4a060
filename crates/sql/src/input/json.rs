//! JSON: a sequence of values, or the values of one array.

use std::borrow::Cow;

use super::document::{Document, Token, Unexpected, compact, decode};
use super::{Pending, fatal};
use crate::evaluate::Record;
use crate::frames::QueryError;
use crate::output::Name;
use crate::pipeline::{Fields, Pipeline};
use crate::request::JsonText;
use crate::sql::{Reference, Segment};
use crate::value::{Problem, Value};

pub struct JsonScanner {
    separator: Vec<u8>,
    from: Vec<Segment>,
    document: Document,
    place: Place,
    pending: Pending,
    /// The offset after the last record.
    behind: u64,
    named: bool,
}

/// What may come next outside of all records.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    /// In an array that holds the records, before one of them or the end.
    BeforeElement,
    /// After one of them.
    BehindElement,
}

impl JsonScanner {
    pub fn new(settings: &JsonText, from: &[Segment]) -> Self {
        Self {
            separator: settings.record_separator.clone().into_bytes(),
            from: from.to_vec(),
            document: Document::default(),
            place: Place::Outside,
            pending: Pending::default(),
            behind: 0,
            named: false,
        }
    }

    /// Processes the next bytes of the blob, or its end.
    pub fn push(
        &mut self,
        bytes: &[u8],
        last: bool,
        pipeline: &mut Pipeline,
    ) -> Result<(), QueryError> {
        if !self.named {
            self.named = true;
            let names: Vec<_> = pipeline
                .references
                .iter()
                .map(|reference| reference.name().map(str::to_owned))
                .collect();
            pipeline.name_columns(&names, None);
        }
        self.pending.extend(bytes);
        if !self.pending.skip_mark(last) {
            return Ok(());
        }
        while !pipeline.is_done() && !pipeline.turn_is_over() && self.pending.is_worth_a_look(last)
        {
            if !self.skip_between(last)? {
                break;
            }
            match self.document.read(self.pending.bytes(), last) {
                Ok(Some(length)) => self.record(length, pipeline),
                Ok(None) if last => {
                    let end = self.pending.position() + self.pending.bytes().len() as u64;
                    let description = format!("Unexpected end of the blob at [byte: {end}].");
                    return Err(fatal("ParseError", description, self.pending.position()));
                }
                Ok(None) => {
                    self.pending.want_more()?;
                    break;
                }
                Err(error) => return Err(self.unexpected(&error)),
            }
        }
        Ok(())
    }

    /// Skips to the next record; `false` if the bytes end before it.
    fn skip_between(&mut self, last: bool) -> Result<bool, QueryError> {
        loop {
            let bytes = self.pending.bytes();
            let Some(byte) = bytes.first().copied() else { return Ok(false) };
            let (place, length) = match (self.place, byte) {
                (place, b' ' | b'\t' | b'\r' | b'\n') => (place, 1),
                (place @ Place::Outside, _) if bytes.starts_with(&self.separator) => {
                    (place, self.separator.len())
                }
                (Place::Outside, _) if !last && self.separator.starts_with(bytes) => {
                    return Ok(false);
                }
                (Place::Outside, b'[') => (Place::BeforeElement, 1),
                (Place::BeforeElement | Place::BehindElement, b']') => (Place::Outside, 1),
                (Place::BehindElement, b',') => (Place::BeforeElement, 1),
                (Place::BehindElement, _) => {
                    return Err(self.unexpected(&Unexpected { at: 0, expected: "',', or ']'" }));
                }
                (Place::Outside, b'{' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n')
                | (Place::BeforeElement, _) => return Ok(true),
                (Place::Outside, _) => {
                    let error = self.unexpected(&Unexpected { at: 0, expected: "'{', or '['" });
                    return Err(QueryError { position: self.behind, ..error });
                }
            };
            self.place = place;
            self.pending.consume(length);
        }
    }

    fn unexpected(&self, error: &Unexpected) -> QueryError {
        let rest = &self.pending.bytes()[error.at..];
        let end = rest.len().min(4);
        let found = String::from_utf8_lossy(&rest[..end]).chars().next().unwrap_or_default();
        let at = self.pending.position() + error.at as u64;
        let expected = error.expected;
        let description =
            format!("Unexpected token '{found}' at [byte: {at}]. Expecting tokens {expected}.");
        fatal("ParseError", description, self.pending.position())
    }

    fn record(&mut self, length: usize, pipeline: &mut Pipeline) {
        if self.place == Place::BeforeElement {
            self.place = Place::BehindElement;
        }
        let bytes = self.pending.bytes();
        let position = self.pending.position();
        // Only objects and arrays are records.
        if !matches!(self.document.node(0).token, Token::Object | Token::Array) {
            self.pending.consume(length);
            return;
        }
        let mut roots = vec![0];
        for segment in &self.from {
            roots = step(&self.document, bytes, &roots, segment);
        }
        let references = std::mem::take(&mut pipeline.references);
        for root in roots {
            if pipeline.is_done() {
                break;
            }
            let document = &self.document;
            let record = JsonRecord { bytes, document, root, references: &references };
            pipeline.record(&record, position);
        }
        pipeline.references = references;
        self.pending.consume(length);
        self.behind = self.pending.position();
    }
}

/// The nodes that one segment of a path selects from these nodes.
fn step(document: &Document, bytes: &[u8], from: &[usize], segment: &Segment) -> Vec<usize> {
    let mut found = Vec::new();
    for node in from {
        match (segment, document.node(*node).token) {
            (Segment::Each, Token::Array) => found.extend(document.children(*node)),
            (Segment::Key { .. } | Segment::Index(_), _) => {
                found.extend(child(document, bytes, *node, segment));
            }
            (Segment::Each, _) => {}
        }
    }
    found
}

fn child(document: &Document, bytes: &[u8], node: usize, segment: &Segment) -> Option<usize> {
    match (segment, document.node(node).token) {
        (Segment::Key { .. }, Token::Object) => document
            .children(node)
            .find(|child| segment.matches(&decode(document.node(*child).key(bytes)))),
        (Segment::Index(index), Token::Array) => document.children(node).nth(*index),
        _ => None,
    }
}

struct JsonRecord<'a> {
    bytes: &'a [u8],
    document: &'a Document,
    root: usize,
    references: &'a [Reference],
}

impl JsonRecord<'_> {
    fn value(&self, node: usize) -> Value<'_> {
        let node = self.document.node(node);
        let raw = node.raw(self.bytes);
        match node.token {
            Token::Object | Token::Array => Value::Json(compact(raw)),
            Token::Number => Value::Json(Cow::Borrowed(raw)),
            Token::Text => Value::Text(decode(raw)),
            Token::True => Value::Boolean(true),
            Token::False => Value::Boolean(false),
            Token::Null => Value::Null,
        }
    }
}

impl Record for JsonRecord<'_> {
    fn column(&self, reference: usize) -> Result<Value<'_>, Problem> {
        let mut node = self.root;
        for segment in &self.references[reference].path {
            match child(self.document, self.bytes, node, segment) {
                Some(child) => node = child,
                None => return Ok(Value::Missing),
            }
        }
        Ok(self.value(node))
    }

    fn column_steps(&self) -> u64 {
        self.document.len() as u64
    }
}

impl Fields for JsonRecord<'_> {
    fn each(
        &self,
        visit: &mut dyn FnMut(Name<'_>, Value<'_>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        match self.document.node(self.root).token {
            Token::Object => {
                for child in self.document.children(self.root) {
                    let key = self.document.node(child).key(self.bytes);
                    visit(Name::Json(key), self.value(child))?;
                }
                Ok(())
            }
            Token::Array => {
                for (place, child) in self.document.children(self.root).enumerate() {
                    visit(Name::Place(place), self.value(child))?;
                }
                Ok(())
            }
            Token::Text | Token::Number | Token::True | Token::False | Token::Null => {
                visit(Name::Place(0), self.value(self.root))
            }
        }
    }
}
