//! Delimited text: records and their fields, quotes and escapes.

use std::borrow::Cow;

use super::{Pending, fatal};
use crate::evaluate::Record;
use crate::frames::QueryError;
use crate::output::Name;
use crate::pipeline::{Fields, Pipeline};
use crate::request::Delimited;
use crate::sql::Projection;
use crate::value::{Problem, Value};

pub struct DelimitedScanner {
    splitter: Splitter,
    has_headers: bool,
    /// The names in the header, once it has been read.
    header: Option<Vec<String>>,
    /// The column of each reference of the statement.
    columns: Vec<usize>,
    pending: Pending,
    /// Where the batch of `sys.split` begins.
    batch: u64,
}

impl DelimitedScanner {
    pub fn new(settings: &Delimited) -> Self {
        Self {
            splitter: Splitter::new(settings),
            has_headers: settings.has_headers,
            header: None,
            columns: Vec::new(),
            pending: Pending::default(),
            batch: 0,
        }
    }

    /// Processes the next bytes of the blob, or its end.
    pub fn push(
        &mut self,
        bytes: &[u8],
        last: bool,
        pipeline: &mut Pipeline,
    ) -> Result<(), QueryError> {
        self.pending.extend(bytes);
        if !self.pending.skip_mark(last) {
            return Ok(());
        }
        if self.header.is_none() && !self.has_headers {
            self.bind(Vec::new(), pipeline)?;
        }
        while !pipeline.is_done()
            && !pipeline.turn_is_over()
            && !self.pending.bytes().is_empty()
            && self.pending.is_worth_a_look(last)
        {
            match self.splitter.split(self.pending.bytes(), last) {
                Split::Record { next } => self.record(next, pipeline)?,
                Split::More => {
                    self.pending.want_more()?;
                    break;
                }
                Split::Unclosed => {
                    let position = self.pending.position();
                    return Err(fatal("ParseError", "A quoted field is not closed.", position));
                }
            }
        }
        if last && !pipeline.turn_is_over() {
            self.end(pipeline);
        }
        Ok(())
    }

    fn record(&mut self, length: usize, pipeline: &mut Pipeline) -> Result<(), QueryError> {
        let bytes = self.pending.bytes();
        if !self.splitter.is_blank() {
            match &self.header {
                None => {
                    let names = (0..self.splitter.fields.len())
                        .map(|column| {
                            String::from_utf8_lossy(&self.splitter.text(bytes, column)).into_owned()
                        })
                        .collect();
                    self.bind(names, pipeline)?;
                }
                Some(header) => {
                    let record = DelimitedRecord {
                        bytes,
                        splitter: &self.splitter,
                        header,
                        columns: &self.columns,
                    };
                    pipeline.record(&record, self.pending.position());
                }
            }
        }
        self.pending.consume(length);
        if let Projection::Split(size) = pipeline.projection
            && self.pending.position() - self.batch >= size
        {
            self.end_batch(pipeline);
        }
        Ok(())
    }

    /// Finds the column of each reference.
    fn bind(&mut self, header: Vec<String>, pipeline: &mut Pipeline) -> Result<(), QueryError> {
        let mut names = Vec::new();
        for reference in &pipeline.references {
            let named = match reference.path.as_slice() {
                [key] => header.iter().position(|name| key.matches(name.as_bytes())),
                _ => None,
            };
            let Some(column) = named.or_else(|| reference.ordinal()) else {
                let name = reference.name().unwrap_or_default();
                let description = format!("There is no column of the name {name:?}.");
                return Err(fatal("InvalidColumnName", description, 0));
            };
            self.columns.push(column);
            names.push(header.get(column).cloned());
        }
        let all = self.has_headers.then_some(header.as_slice());
        pipeline.name_columns(&names, all);
        self.header = Some(header);
        Ok(())
    }

    fn end(&mut self, pipeline: &mut Pipeline) {
        if self.header.is_none() {
            pipeline.name_columns(&[], None);
            self.header = Some(Vec::new());
        }
        let is_split = matches!(pipeline.projection, Projection::Split(_));
        if is_split && self.pending.position() > self.batch {
            self.end_batch(pipeline);
        }
    }

    fn end_batch(&mut self, pipeline: &mut Pipeline) {
        let size = self.pending.position() - self.batch;
        self.batch = self.pending.position();
        pipeline.single(&Value::Integer(i64::try_from(size).unwrap_or(i64::MAX)));
    }
}

struct DelimitedRecord<'a> {
    bytes: &'a [u8],
    splitter: &'a Splitter,
    header: &'a [String],
    columns: &'a [usize],
}

impl Record for DelimitedRecord<'_> {
    fn column(&self, reference: usize) -> Result<Value<'_>, Problem> {
        let column = self.columns[reference];
        if column >= self.splitter.fields.len() {
            return Err(Problem::InvalidColumnOrdinal);
        }
        Ok(Value::Text(self.splitter.text(self.bytes, column)))
    }
}

impl Fields for DelimitedRecord<'_> {
    fn each(
        &self,
        visit: &mut dyn FnMut(Name<'_>, Value<'_>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        for column in 0..self.splitter.fields.len() {
            let name = self.header.get(column).map_or(Name::Place(column), |name| Name::Text(name));
            visit(name, Value::Text(self.splitter.text(self.bytes, column)))?;
        }
        Ok(())
    }
}

/// Finds the fields of one record.
struct Splitter {
    column: Vec<u8>,
    record: Vec<u8>,
    quote: Option<u8>,
    escape: Option<u8>,
    fields: Vec<Field>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    start: usize,
    end: usize,
    /// Quotes or escapes must be removed.
    encoded: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Split {
    /// The length of the record with its separator.
    Record { next: usize },
    /// The bytes end before the record does.
    More,
    /// The blob ends within quotes.
    Unclosed,
}

/// What ends a field, and at which byte.
enum Stop {
    Column(usize),
    Record(usize),
    End,
    More,
}

impl Splitter {
    fn new(settings: &Delimited) -> Self {
        Self {
            column: settings.column_separator.clone().into_bytes(),
            record: settings.record_separator.clone().into_bytes(),
            quote: settings.field_quote.bytes().next(),
            escape: settings.escape.bytes().next(),
            fields: Vec::new(),
        }
    }

    /// An empty line is not a record.
    fn is_blank(&self) -> bool {
        matches!(self.fields.as_slice(), [field] if field.end == 0)
    }

    /// Splits the record at the start of `bytes`, which are the rest of the blob if `last`.
    fn split(&mut self, bytes: &[u8], last: bool) -> Split {
        self.fields.clear();
        let mut start = 0;
        loop {
            let (field, stop) = match self.quote {
                Some(quote) if bytes.get(start) == Some(&quote) => {
                    match self.quoted_end(bytes, start + 1, quote, last) {
                        Some((close, encoded)) => {
                            self.behind_quotes(bytes, start, close, encoded, last)
                        }
                        None if last => return Split::Unclosed,
                        None => return Split::More,
                    }
                }
                _ => {
                    let (stop, escaped) = self.stop(bytes, start, last);
                    let end = self.field_end(bytes, start, &stop);
                    (Field { start, end, encoded: escaped }, stop)
                }
            };
            self.fields.push(field);
            match stop {
                Stop::Column(at) => start = at + self.column.len(),
                Stop::Record(at) => return Split::Record { next: at + self.record.len() },
                Stop::End => return Split::Record { next: bytes.len() },
                Stop::More => return Split::More,
            }
        }
    }

    /// Where the unquoted field that begins at `start` ends; a carriage return before a line feed
    /// belongs to neither.
    fn field_end(&self, bytes: &[u8], start: usize, stop: &Stop) -> usize {
        let end = match *stop {
            Stop::Column(at) => return at,
            Stop::Record(at) => at,
            Stop::End | Stop::More => bytes.len(),
        };
        let has_return = self.record == b"\n" && end > start && bytes[end - 1] == b'\r';
        end - usize::from(has_return)
    }

    /// The place of the closing quote, and whether quotes or escapes come before it.
    fn quoted_end(
        &self,
        bytes: &[u8],
        from: usize,
        quote: u8,
        last: bool,
    ) -> Option<(usize, bool)> {
        let escape = self.escape.unwrap_or(quote);
        let mut encoded = false;
        let mut at = from;
        loop {
            at += memchr::memchr2(quote, escape, bytes.get(at..)?)?;
            let next = bytes.get(at + 1);
            if next.is_none() && !last {
                return None;
            }
            if bytes[at] == quote && next != Some(&quote) {
                return Some((at, encoded));
            }
            encoded = true;
            at += 2;
        }
    }

    /// The text between a closing quote and the separator is part of the field.
    fn behind_quotes(
        &self,
        bytes: &[u8],
        start: usize,
        close: usize,
        encoded: bool,
        last: bool,
    ) -> (Field, Stop) {
        let (stop, _) = self.stop(bytes, close + 1, last);
        let end = self.field_end(bytes, close + 1, &stop);
        let field = if encoded || end > close + 1 {
            Field { start, end, encoded: true }
        } else {
            Field { start: start + 1, end: close, encoded: false }
        };
        (field, stop)
    }

    /// The first separator from `from` on, and whether an escape comes before it.
    fn stop(&self, bytes: &[u8], from: usize, last: bool) -> (Stop, bool) {
        let (column, record) = (self.column[0], self.record[0]);
        let mut escaped = false;
        let mut at = from;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let found = match self.escape {
                Some(escape) => memchr::memchr3(column, record, escape, rest),
                None => memchr::memchr2(column, record, rest),
            };
            let Some(found) = found else {
                return (if last { Stop::End } else { Stop::More }, escaped);
            };
            at += found;
            let rest = &bytes[at..];
            if Some(bytes[at]) == self.escape {
                escaped = true;
                at += 2;
            } else if rest.starts_with(&self.record) {
                return (Stop::Record(at), escaped);
            } else if rest.starts_with(&self.column) {
                return (Stop::Column(at), escaped);
            } else if !last && (self.record.starts_with(rest) || self.column.starts_with(rest)) {
                return (Stop::More, escaped);
            } else {
                at += 1;
            }
        }
    }

    fn text<'b>(&self, bytes: &'b [u8], column: usize) -> Cow<'b, [u8]> {
        let field = self.fields[column];
        let text = &bytes[field.start..field.end];
        if field.encoded { Cow::Owned(self.decode(text)) } else { Cow::Borrowed(text) }
    }

    fn decode(&self, text: &[u8]) -> Vec<u8> {
        let mut decoded = Vec::with_capacity(text.len());
        let mut bytes = text.iter().copied().peekable();
        let mut within =
            self.quote.is_some() && bytes.next_if(|byte| Some(*byte) == self.quote).is_some();
        while let Some(byte) = bytes.next() {
            if within && Some(byte) == self.quote {
                match bytes.next_if(|next| Some(*next) == self.quote) {
                    Some(quote) => decoded.push(quote),
                    None => within = false,
                }
            } else if Some(byte) == self.escape {
                decoded.push(bytes.next().unwrap_or(byte));
            } else {
                decoded.push(byte);
            }
        }
        decoded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(settings: &Delimited, text: &str) -> Result<Vec<Vec<String>>, Split> {
        let mut splitter = Splitter::new(settings);
        let mut rest = text.as_bytes();
        let mut records = Vec::new();
        while !rest.is_empty() {
            match splitter.split(rest, true) {
                Split::Record { next } => {
                    let fields = (0..splitter.fields.len()).map(|column| {
                        String::from_utf8_lossy(&splitter.text(rest, column)).into_owned()
                    });
                    records.push(fields.collect());
                    rest = &rest[next..];
                }
                split @ (Split::More | Split::Unclosed) => return Err(split),
            }
        }
        Ok(records)
    }

    fn fields(settings: &Delimited, text: &str) -> Vec<String> {
        records(settings, text).expect("records").remove(0)
    }

    #[test]
    fn fields_are_split_and_decoded() {
        let plain = Delimited::default();
        for (text, expected) in [
            ("a,b,c\n", &["a", "b", "c"][..]),
            ("a,b,c", &["a", "b", "c"]),
            ("a,,\n", &["a", "", ""]),
            ("a,", &["a", ""]),
            ("\"a,b\",c\r\n", &["a,b", "c"]),
            ("a,\"b\"\r\n", &["a", "b"]),
            ("\"a\nb\",c\n", &["a\nb", "c"]),
            ("\"a\"\"b\",\"\"\n", &["a\"b", ""]),
            ("a\"b,c\n", &["a\"b", "c"]),
            ("\"a\"b,c\n", &["ab", "c"]),
            ("\"\"\"\"\n", &["\""]),
            ("\r\n", &[""]),
        ] {
            assert_eq!(fields(&plain, text), expected, "{text:?}");
        }
    }

    #[test]
    fn an_escape_takes_the_meaning_of_the_next_character() {
        let escape = Delimited { escape: "\\".into(), ..Delimited::default() };
        assert_eq!(fields(&escape, "a\\,b,\"c\\\"d\",\\\\\n"), ["a,b", "c\"d", "\\"]);
        let none = Delimited { field_quote: String::new(), ..Delimited::default() };
        assert_eq!(fields(&none, "\"a,b\"\n"), ["\"a", "b\""]);
    }

    #[test]
    fn separators_may_be_any_text() {
        let settings = Delimited {
            column_separator: "::".into(),
            record_separator: "\r\n".into(),
            ..Delimited::default()
        };
        let all = records(&settings, "a:b::c\nd\r\ne::f\r\n").expect("records");
        assert_eq!(all, [vec!["a:b", "c\nd"], vec!["e", "f"]]);
        for separator in ["\t", "\r", "<", ">", "&", "\\", "."] {
            let settings = Delimited { record_separator: separator.into(), ..Delimited::default() };
            let text = format!("1,2{separator}3,4{separator}");
            assert_eq!(records(&settings, &text).expect("records").len(), 2, "{separator:?}");
        }
    }

    #[test]
    fn a_quote_that_stays_open_is_found_out() {
        assert_eq!(records(&Delimited::default(), "a,\"b\nc"), Err(Split::Unclosed));
    }

    /// However the bytes are cut in two, the first part asks for more or gives the same record.
    #[test]
    fn a_record_that_is_not_there_yet_is_waited_for() {
        let settings = Delimited {
            column_separator: "::".into(),
            record_separator: "\r\n".into(),
            escape: "\\".into(),
            ..Delimited::default()
        };
        let text = b"a\\::b::\"c\"\"d\\\"\r\n\"::e\r\n".as_slice();
        let mut splitter = Splitter::new(&settings);
        let whole = splitter.split(text, true);
        assert_eq!(whole, Split::Record { next: text.len() });
        for length in 1..text.len() {
            assert_eq!(splitter.split(&text[..length], false), Split::More, "{length}");
        }
        assert_eq!(splitter.split(text, false), whole);
    }
}
