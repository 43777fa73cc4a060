//! Parquet: read page by page, of the columns that the statement names. Reading and decoding run on
//! a thread that may block, a few batches at a time and no longer than a batch takes.

use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::{Buf as _, Bytes};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};
use tokio::runtime::Handle;
use tokio::sync::Mutex;

use super::cell;
use super::description;
use super::fatal;
use super::thrift::{self, Flaw};
use crate::evaluate::Record;
use crate::frames::QueryError;
use crate::output::Name;
use crate::pipeline::{Fields, Pipeline};
use crate::run::Source;
use crate::sql::{Projection, Reference, Segment};
use crate::value::{Problem, Value};

/// The maximum length of a page or of the metadata of the file.
const READ_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How much is read to find the length of a page: the maximum length of a page header.
const HEADER_BYTES: u64 = 4096;
const HEADER_BYTES_MAX: u64 = HEADER_BYTES << 12;
/// A dictionary may have so many values of any length; with more each must have at least four
/// bytes.
const SHORT_VALUES_MAX: i64 = 1 << 20;
/// At the end of a file: the length of its metadata, and a magic number.
const FOOTER_BYTES: u64 = 8;
/// The approximate size of a batch, by the average of the file.
const BATCH_BYTES: i64 = 4 * 1024 * 1024;
const BATCH_RECORDS_MAX: i64 = 8192;

/// The blob, read from threads that may block.
#[derive(Clone)]
struct BlockingSource {
    shared: Arc<Mutex<Shared>>,
    length: u64,
    runtime: Handle,
}

struct Shared {
    source: Box<dyn Source>,
    /// The error of reading the source, which is not an error of the query.
    fault: Option<io::Error>,
}

impl BlockingSource {
    /// The start of a page with its complete header.
    fn page_header(&self, start: u64) -> ParquetResult<Bytes> {
        let mut length = HEADER_BYTES;
        loop {
            let end = start.saturating_add(length).min(self.length);
            let header = self.read(start.min(end)..end)?;
            match thrift::check_struct(&header, &description::PAGE) {
                Ok(()) if has_room_for_its_values(&header) => return Ok(header),
                Ok(()) => return Err(ParquetError::General("a page is too long".to_owned())),
                Err(Flaw::Cut) if end < self.length && length < HEADER_BYTES_MAX => length *= 8,
                Err(_) => return Err(ParquetError::General("a page has no header".to_owned())),
            }
        }
    }

    fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        self.runtime.block_on(async {
            let mut shared = self.shared.lock().await;
            shared.source.read(range).await.map_err(|fault| {
                shared.fault = Some(fault);
                io::Error::other("the source cannot be read")
            })
        })
    }
}

impl Length for BlockingSource {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for BlockingSource {
    type T = SourceReader;

    fn get_read(&self, start: u64) -> ParquetResult<SourceReader> {
        let is_footer = start.checked_add(FOOTER_BYTES) == Some(self.length);
        let buffer = if is_footer { Bytes::new() } else { self.page_header(start)? };
        Ok(SourceReader { source: self.clone(), at: start + buffer.len() as u64, buffer })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.length);
        let Some(end) = end else {
            return Err(ParquetError::EOF("a part lies beyond the end".to_owned()));
        };
        if length > READ_BYTES_MAX {
            return Err(ParquetError::General("a page is longer than 64 MiB".to_owned()));
        }
        let bytes = self.read(start..end)?;
        let describes_the_file = end.checked_add(FOOTER_BYTES) == Some(self.length);
        if describes_the_file && thrift::check_struct(&bytes, &description::FILE).is_err() {
            return Err(ParquetError::General("what describes the file is damaged".to_owned()));
        }
        Ok(bytes)
    }
}

/// The decoder allocates for as many values as a dictionary declares, before it reads them.
fn has_room_for_its_values(header: &[u8]) -> bool {
    let page_bytes = thrift::number_at(header, description::PAGE_BYTES).unwrap_or(0);
    let values = thrift::number_at(header, description::DICTIONARY_VALUES).unwrap_or(0);
    let values_max = (page_bytes / 4).max(SHORT_VALUES_MAX);
    page_bytes <= READ_BYTES_MAX as i64 && (0..=values_max).contains(&values)
}

struct SourceReader {
    source: BlockingSource,
    at: u64,
    buffer: Bytes,
}

impl Read for SourceReader {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.buffer.is_empty() {
            let end = self.at.saturating_add(HEADER_BYTES).min(self.source.length);
            // Not the end: the decoder ignores it and would keep skipping.
            if self.at >= end {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.buffer = self.source.read(self.at..end)?;
            self.at = end;
        }
        let length = target.len().min(self.buffer.len());
        self.buffer.copy_to_slice(&mut target[..length]);
        Ok(length)
    }
}

pub struct ParquetScanner {
    shared: Arc<Mutex<Shared>>,
    length: u64,
    open: Option<Open>,
}

struct Open {
    reader: ParquetRecordBatchReader,
    /// For each reference, the column of a batch and what follows its name.
    columns: Vec<(usize, Vec<Segment>)>,
    names: Vec<String>,
}

impl ParquetScanner {
    pub fn new(source: Box<dyn Source>) -> Self {
        let length = source.length();
        let shared = Arc::new(Mutex::new(Shared { source, fault: None }));
        Self { shared, length, open: None }
    }

    /// Opens the file or processes the next batch; `false` if there is none. Blocks.
    pub fn step(&mut self, runtime: Handle, pipeline: &mut Pipeline) -> Result<bool, QueryError> {
        if let Some(open) = &mut self.open {
            return open.step(pipeline);
        }
        let shared = Arc::clone(&self.shared);
        let source = BlockingSource { shared, length: self.length, runtime };
        self.open = Some(Open::new(source, pipeline)?);
        Ok(true)
    }

    pub fn take_fault(&self) -> Option<io::Error> {
        self.shared.try_lock().ok()?.fault.take()
    }
}

impl Open {
    /// Reads the metadata of the file. Blocks.
    fn new(source: BlockingSource, pipeline: &mut Pipeline) -> Result<Self, QueryError> {
        // The Arrow types noted by a writer are not needed; Parquet has few types.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(source, options)
            .map_err(|error| failed(&error))?;
        let all: Vec<String> =
            builder.schema().fields().iter().map(|field| field.name().clone()).collect();
        let roots = pipeline
            .references
            .iter()
            .map(|reference| root(reference, &all))
            .collect::<Result<Vec<_>, _>>()?;

        let is_star = matches!(pipeline.projection, Projection::Star);
        let mut read: Vec<usize> = if is_star {
            (0..all.len()).collect()
        } else {
            roots.iter().map(|(root, _)| *root).collect()
        };
        read.sort_unstable();
        read.dedup();
        let names: Vec<String> = read.iter().map(|column| all[*column].clone()).collect();
        let called: Vec<_> = pipeline
            .references
            .iter()
            .zip(&roots)
            .map(|(reference, (root, _))| {
                let is_ordinal = reference.ordinal().is_some();
                if is_ordinal {
                    Some(all[*root].clone())
                } else {
                    reference.name().map(str::to_owned)
                }
            })
            .collect();
        pipeline.name_columns(&called, Some(&names));

        let columns = roots
            .into_iter()
            .map(|(root, path)| (read.partition_point(|column| *column < root), path))
            .collect();
        let mask = ProjectionMask::roots(builder.parquet_schema(), read);
        let batch = batch_records(builder.metadata());
        let reader = builder
            .with_projection(mask)
            .with_batch_size(batch)
            .build()
            .map_err(|error| failed(&error))?;
        Ok(Self { reader, columns, names })
    }

    fn step(&mut self, pipeline: &mut Pipeline) -> Result<bool, QueryError> {
        if pipeline.is_done() {
            return Ok(false);
        }
        let Some(batch) = self.reader.next() else { return Ok(false) };
        let batch = batch.map_err(|error| failed(&error))?;
        for row in 0..batch.num_rows() {
            let record =
                ParquetRecord { batch: &batch, row, columns: &self.columns, names: &self.names };
            pipeline.record(&record, 0);
            if pipeline.is_done() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn failed(error: &impl std::fmt::Display) -> QueryError {
    fatal("ParseError", error.to_string(), 0)
}

/// The column that a reference begins with, and what follows.
fn root(reference: &Reference, names: &[String]) -> Result<(usize, Vec<Segment>), QueryError> {
    let named = reference.path.split_first().and_then(|(first, rest)| {
        let column = names.iter().position(|name| first.matches(name.as_bytes()))?;
        Some((column, rest.to_vec()))
    });
    let ordinal = reference.ordinal().filter(|column| *column < names.len());
    named.or_else(|| ordinal.map(|column| (column, Vec::new()))).ok_or_else(|| {
        let name = reference.name().unwrap_or("_");
        fatal("InvalidColumnName", format!("There is no column of the name {name:?}."), 0)
    })
}

fn batch_records(metadata: &parquet::file::metadata::ParquetMetaData) -> usize {
    let bytes: i64 = metadata.row_groups().iter().map(|group| group.total_byte_size().max(0)).sum();
    let records = metadata.file_metadata().num_rows().max(1);
    let batch = BATCH_BYTES / (bytes / records).max(1);
    usize::try_from(batch.clamp(1, BATCH_RECORDS_MAX)).unwrap_or(1)
}

struct ParquetRecord<'a> {
    batch: &'a RecordBatch,
    row: usize,
    columns: &'a [(usize, Vec<Segment>)],
    names: &'a [String],
}

impl Record for ParquetRecord<'_> {
    fn column(&self, reference: usize) -> Result<Value<'_>, Problem> {
        let (column, path) = &self.columns[reference];
        let array = self.batch.column(*column);
        Ok(if path.is_empty() {
            cell::value(array, self.row)
        } else {
            cell::follow(array, self.row, path)
        })
    }
}

impl Fields for ParquetRecord<'_> {
    fn each(
        &self,
        visit: &mut dyn FnMut(Name<'_>, Value<'_>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        for (name, array) in self.names.iter().zip(self.batch.columns()) {
            visit(Name::Text(name), cell::value(array, self.row))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::has_room_for_its_values;

    #[test]
    fn dictionaries_have_no_more_values_than_bytes() {
        const HUNDRED_MILLION: [u8; 4] = [0x80, 0x84, 0xAF, 0x5F];
        let header = |bytes: &[u8], values: &[u8]| {
            [&[0x25][..], bytes, &[0x5C, 0x15], values, &[0, 0]].concat()
        };
        assert!(has_room_for_its_values(&header(&[0x50], &[0x14])), "10 values in 40 bytes");
        assert!(!has_room_for_its_values(&header(&[0x50], &HUNDRED_MILLION)));
        assert!(!has_room_for_its_values(&header(&HUNDRED_MILLION, &[0x14])), "a page too long");
        assert!(has_room_for_its_values(&[0]), "a page without a dictionary");
    }
}
