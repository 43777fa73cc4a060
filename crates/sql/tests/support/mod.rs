//! A blob in memory, and a reader of the frames of an answer.

#![allow(dead_code, reason = "each suite uses a part")]

use std::io;
use std::ops::Range;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use holdfast_sql::{InputFormat, OutputFormat, Query, QueryRequest, Source};

/// A source that returns its bytes in pieces of this length.
pub struct Memory {
    pub bytes: Bytes,
    pub piece: usize,
    pub at: usize,
}

#[async_trait]
impl Source for Memory {
    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let start = self.at;
        self.at = (start + self.piece).min(self.bytes.len());
        Ok((start < self.at).then(|| self.bytes.slice(start..self.at)))
    }

    async fn read(&mut self, range: Range<u64>) -> io::Result<Bytes> {
        let place = |offset| usize::try_from(offset).map_err(io::Error::other);
        Ok(self.bytes.slice(place(range.start)?..place(range.end)?))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    Data(Vec<u8>),
    Error { fatal: bool, name: String, description: String, position: i64 },
    Progress { scanned: i64, total: i64 },
    End { total: i64 },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub frames: Vec<Frame>,
}

impl Answer {
    pub fn data(&self) -> Vec<u8> {
        let data = self.frames.iter().filter_map(|frame| match frame {
            Frame::Data(data) => Some(data.as_slice()),
            Frame::Error { .. } | Frame::Progress { .. } | Frame::End { .. } => None,
        });
        data.collect::<Vec<_>>().concat()
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.data()).expect("the answer is UTF-8")
    }

    /// Fatal or not, name, position.
    pub fn errors(&self) -> Vec<(bool, &str, i64)> {
        let errors = self.frames.iter().filter_map(|frame| match frame {
            Frame::Error { fatal, name, position, .. } => Some((*fatal, name.as_str(), *position)),
            Frame::Data(_) | Frame::Progress { .. } | Frame::End { .. } => None,
        });
        errors.collect()
    }

    pub fn progress(&self) -> Vec<i64> {
        let progress = self.frames.iter().filter_map(|frame| match frame {
            Frame::Progress { scanned, .. } => Some(*scanned),
            Frame::Data(_) | Frame::Error { .. } | Frame::End { .. } => None,
        });
        progress.collect()
    }
}

pub fn request(
    expression: &str,
    input: Option<InputFormat>,
    output: Option<OutputFormat>,
) -> QueryRequest {
    QueryRequest { expression: expression.to_owned(), input, output }
}

pub async fn run(request: QueryRequest, blob: &[u8], piece: usize) -> Answer {
    let query = Query::new(request).expect("a query");
    let source = Memory { bytes: Bytes::copy_from_slice(blob), piece, at: 0 };
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    let mut stream = std::pin::pin!(query.run(Box::new(source), now));
    let mut bytes = Vec::new();
    while let Some(piece) = stream.next().await {
        bytes.extend_from_slice(&piece.expect("memory does not fail"));
    }
    let answer = Reader { rest: &bytes }.container();
    assert!(matches!(answer.frames.last(), Some(Frame::End { .. })), "the answer has an end");
    answer
}

/// Runs a query of an owner to its end.
pub async fn of_owner(owner: &str, expression: &str, blob: &[u8]) {
    let query = Query::new(request(expression, None, None)).expect("a query").of_owner(owner);
    let source = Memory { bytes: Bytes::copy_from_slice(blob), piece: 1 << 20, at: 0 };
    let mut stream = std::pin::pin!(query.run(Box::new(source), SystemTime::UNIX_EPOCH));
    while let Some(piece) = stream.next().await {
        piece.expect("memory does not fail");
    }
}

/// Reads an Avro object container strictly by its specification.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn container(mut self) -> Answer {
        assert_eq!(self.take(4), b"Obj\x01");
        let mut schema = Vec::new();
        loop {
            let entries = self.long();
            if entries == 0 {
                break;
            }
            for _ in 0..entries {
                let key = self.bytes();
                let value = self.bytes();
                if key == b"avro.schema" {
                    schema = value.to_vec();
                }
            }
        }
        let schema = String::from_utf8(schema).expect("UTF-8");
        let place = |name: &str| {
            schema.find(&format!("queryBlobContents.{name}\"")).expect("a record of the schema")
        };
        assert!(place("resultData") < place("error") && place("error") < place("progress"));
        assert!(place("progress") < place("end"));
        let sync = self.take(16);
        let mut answer = Answer::default();
        while !self.rest.is_empty() {
            let records = self.long();
            let length = usize::try_from(self.long()).expect("a length");
            let before = self.rest.len();
            for _ in 0..records {
                let frame = self.frame();
                answer.frames.push(frame);
            }
            assert_eq!(before - self.rest.len(), length, "the length of a block");
            assert_eq!(self.take(16), sync);
        }
        answer
    }

    fn frame(&mut self) -> Frame {
        match self.long() {
            0 => Frame::Data(self.bytes().to_vec()),
            1 => Frame::Error {
                fatal: self.take(1) == [1],
                name: self.text(),
                description: self.text(),
                position: self.long(),
            },
            2 => Frame::Progress { scanned: self.long(), total: self.long() },
            3 => Frame::End { total: self.long() },
            other => panic!("no record has the number {other}"),
        }
    }

    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn long(&mut self) -> i64 {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let byte = self.take(1)[0];
            number |= u64::from(byte & 0x7F) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
        }
        (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
    }

    fn bytes(&mut self) -> &'a [u8] {
        let length = usize::try_from(self.long()).expect("a length");
        self.take(length)
    }

    fn text(&mut self) -> String {
        String::from_utf8(self.bytes().to_vec()).expect("UTF-8")
    }
}
