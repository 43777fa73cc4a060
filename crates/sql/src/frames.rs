//! The Avro object container that an answer is: a header with the schema, then a block for each
//! record. A record is `resultData`, `error`, `progress` or `end`.

use bytes::{BufMut as _, Bytes, BytesMut};

/// The names and fields that the SDKs expect; a record is written as its index here and its fields.
const SCHEMA: &str = r#"[{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.resultData","doc":"Result data in the format asked for.","fields":[{"name":"data","type":"bytes"}]},{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.error","doc":"An error that occurred while the query ran.","fields":[{"name":"fatal","type":"boolean","doc":"Whether the error ended the query."},{"name":"name","type":"string"},{"name":"description","type":"string"},{"name":"position","type":"long","doc":"The offset in the blob at which the error occurred."}]},{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.progress","doc":"How much has been read.","fields":[{"name":"bytesScanned","type":"long"},{"name":"totalBytes","type":"long"}]},{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.end","doc":"The last record.","fields":[{"name":"totalBytes","type":"long"}]}]"#;
const RESULT_DATA: u64 = 0;
const ERROR: u64 = 1;
const PROGRESS: u64 = 2;
const END: u64 = 3;

/// Follows every block. Readers compare it with the one in the header; it can be the same in all
/// answers, because nobody seeks in a stream.
const SYNC: [u8; 16] = *b"holdfast query\r\n";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    pub fatal: bool,
    pub name: &'static str,
    pub description: String,
    /// The offset in the blob.
    pub position: u64,
}

/// Records that are to be sent, in order.
pub struct Frames {
    bytes: BytesMut,
    total: u64,
    /// Whether any record has been written. The reader of the Python SDK cannot take an error as
    /// the first one.
    begun: bool,
    progress: Option<u64>,
}

impl Frames {
    pub fn new(total: u64) -> Self {
        let mut bytes = BytesMut::new();
        bytes.put_slice(b"Obj\x01");
        put_long(&mut bytes, 2);
        put_bytes(&mut bytes, b"avro.schema");
        put_bytes(&mut bytes, SCHEMA.as_bytes());
        put_bytes(&mut bytes, b"avro.codec");
        put_bytes(&mut bytes, b"null");
        put_long(&mut bytes, 0);
        bytes.put_slice(&SYNC);
        Self { bytes, total, begun: false, progress: None }
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    pub fn data(&mut self, data: &[u8]) {
        let mut head = BytesMut::new();
        put_long(&mut head, RESULT_DATA);
        put_long(&mut head, data.len() as u64);
        self.block(&head, data);
    }

    pub fn error(&mut self, error: &QueryError, scanned: u64) {
        if !self.begun {
            self.progress(scanned);
        }
        let mut record = BytesMut::new();
        put_long(&mut record, ERROR);
        record.put_u8(u8::from(error.fatal));
        put_bytes(&mut record, error.name.as_bytes());
        put_bytes(&mut record, error.description.as_bytes());
        put_long(&mut record, error.position);
        self.block(&record, b"");
    }

    /// Reports how much of the blob has been read; once for each amount.
    pub fn progress(&mut self, scanned: u64) {
        if self.progress == Some(scanned) {
            return;
        }
        self.progress = Some(scanned);
        let mut record = BytesMut::new();
        put_long(&mut record, PROGRESS);
        put_long(&mut record, scanned);
        put_long(&mut record, self.total);
        self.block(&record, b"");
    }

    pub fn end(&mut self) {
        let mut record = BytesMut::new();
        put_long(&mut record, END);
        put_long(&mut record, self.total);
        self.block(&record, b"");
    }

    /// What has been written since the last call.
    pub fn take(&mut self) -> Option<Bytes> {
        (!self.bytes.is_empty()).then(|| self.bytes.split().freeze())
    }

    fn block(&mut self, head: &[u8], tail: &[u8]) {
        self.begun = true;
        put_long(&mut self.bytes, 1);
        put_long(&mut self.bytes, (head.len() + tail.len()) as u64);
        self.bytes.put_slice(head);
        self.bytes.put_slice(tail);
        self.bytes.put_slice(&SYNC);
    }
}

fn put_bytes(bytes: &mut BytesMut, value: &[u8]) {
    put_long(bytes, value.len() as u64);
    bytes.put_slice(value);
}

/// Avro's long: the sign in the lowest bit, seven bits per byte, lowest first. Nothing here is
/// negative or needs the highest bit.
fn put_long(bytes: &mut BytesMut, number: u64) {
    let mut rest = number << 1;
    while rest > 0x7F {
        bytes.put_u8((rest & 0x7F) as u8 | 0x80);
        rest >>= 7;
    }
    bytes.put_u8((rest & 0x7F) as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longs_are_written_as_avro_does() {
        for (number, expected) in [
            (0, &b"\x00"[..]),
            (1, b"\x02"),
            (63, b"\x7E"),
            (64, b"\x80\x01"),
            (8191, b"\xFE\x7F"),
            (8192, b"\x80\x80\x01"),
        ] {
            let mut bytes = BytesMut::new();
            put_long(&mut bytes, number);
            assert_eq!(bytes, expected, "{number}");
        }
    }

    #[test]
    fn an_error_is_never_the_first_record_and_progress_is_not_repeated() {
        let mut frames = Frames::new(7);
        frames.take();
        let error = QueryError { fatal: true, name: "N", description: "D".to_owned(), position: 3 };
        frames.error(&error, 0);
        frames.progress(0);
        frames.progress(7);
        frames.progress(7);
        frames.end();
        let bytes = frames.take().expect("records");
        let expected = [
            &b"\x02\x06\x04\x00\x0E"[..],
            &SYNC,
            b"\x02\x0E\x02\x01\x02N\x02D\x06",
            &SYNC,
            b"\x02\x06\x04\x0E\x0E",
            &SYNC,
            b"\x02\x04\x06\x0E",
            &SYNC,
        ]
        .concat();
        assert_eq!(bytes, expected);
        assert_eq!(frames.take(), None);
    }
}
