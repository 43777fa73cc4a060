//! An Arrow IPC stream: the requested schema, then batches of records. The columns of the answer
//! are the fields of the schema in order.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Decimal128Builder, Float64Builder, Int64Builder, StringBuilder,
    TimestampMillisecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::request::{ArrowField, ArrowKind};
use crate::value::{Number, Problem, Value};

/// The most records in a batch.
const BATCH_RECORDS: usize = 8192;
/// The approximate size of a cell in a batch besides its text.
const CELL_BYTES: usize = 16;

pub struct ArrowWriter {
    kinds: Vec<ArrowKind>,
    columns: Vec<Column>,
    schema: SchemaRef,
    /// The current record; fields beyond the schema are left out.
    record: Vec<Cell>,
    records: usize,
    batch_bytes: usize,
    /// `None` after the end was written.
    stream: Option<StreamWriter<Vec<u8>>>,
}

enum Column {
    Integer(Int64Builder),
    Boolean(BooleanBuilder),
    Timestamp(TimestampMillisecondBuilder),
    Text(StringBuilder),
    Double(Float64Builder),
    Decimal(Decimal128Builder),
}

enum Cell {
    Null,
    Integer(i64),
    Boolean(bool),
    Text(String),
    Double(f64),
    Decimal(i128),
}

impl ArrowWriter {
    pub fn new(fields: &[ArrowField]) -> Self {
        let kinds: Vec<ArrowKind> = fields.iter().map(|field| field.kind).collect();
        let schema = Arc::new(Schema::new(
            fields
                .iter()
                .map(|field| Field::new(&field.name, data_type(field.kind), true))
                .collect::<Vec<_>>(),
        ));
        let stream = StreamWriter::try_new(Vec::new(), &schema).ok();
        let columns = kinds.iter().map(|kind| Column::new(*kind)).collect();
        Self { kinds, columns, schema, record: Vec::new(), records: 0, batch_bytes: 0, stream }
    }

    pub fn field(&mut self, value: &Value<'_>) -> Result<(), Problem> {
        if let Some(kind) = self.kinds.get(self.record.len()) {
            self.record.push(cell(*kind, value)?);
        }
        Ok(())
    }

    pub fn end_record(&mut self) {
        for cell in &self.record {
            self.batch_bytes += CELL_BYTES;
            if let Cell::Text(text) = cell {
                self.batch_bytes += text.len();
            }
        }
        let mut cells = std::mem::take(&mut self.record).into_iter();
        for column in &mut self.columns {
            column.push(cells.next().unwrap_or(Cell::Null));
        }
        self.records += 1;
        if self.records == BATCH_RECORDS {
            self.end_batch();
        }
    }

    pub fn drop_record(&mut self) {
        self.record.clear();
    }

    pub fn written(&self) -> usize {
        self.batch_bytes + self.stream.as_ref().map_or(0, |stream| stream.get_ref().len())
    }

    pub fn take(&mut self, last: bool) -> Vec<u8> {
        self.end_batch();
        if !last {
            return self
                .stream
                .as_mut()
                .map(|stream| std::mem::take(stream.get_mut()))
                .unwrap_or_default();
        }
        // Writing to a vector does not fail.
        self.stream.take().and_then(|stream| stream.into_inner().ok()).unwrap_or_default()
    }

    fn end_batch(&mut self) {
        if self.records == 0 {
            return;
        }
        self.records = 0;
        self.batch_bytes = 0;
        let arrays: Vec<ArrayRef> = self
            .columns
            .iter_mut()
            .zip(&self.kinds)
            .map(|(column, kind)| std::mem::replace(column, Column::new(*kind)).finish())
            .collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays);
        if let (Ok(batch), Some(stream)) = (batch, &mut self.stream) {
            let written = stream.write(&batch);
            debug_assert!(written.is_ok(), "a batch of this schema is written to a vector");
        }
    }
}

fn data_type(kind: ArrowKind) -> DataType {
    match kind {
        ArrowKind::Integer => DataType::Int64,
        ArrowKind::Boolean => DataType::Boolean,
        ArrowKind::Timestamp => DataType::Timestamp(TimeUnit::Millisecond, None),
        ArrowKind::Text => DataType::Utf8,
        ArrowKind::Double => DataType::Float64,
        ArrowKind::Decimal { precision, scale } => DataType::Decimal128(precision, scale),
    }
}

fn cell(kind: ArrowKind, value: &Value<'_>) -> Result<Cell, Problem> {
    if value.is_null() {
        return Ok(Cell::Null);
    }
    Ok(match kind {
        ArrowKind::Integer => Cell::Integer(value.to_integer()?),
        ArrowKind::Boolean => Cell::Boolean(value.to_boolean()?),
        ArrowKind::Timestamp => Cell::Integer(value.to_timestamp()?.timestamp_millis()),
        ArrowKind::Text => Cell::Text(String::from_utf8_lossy(&value.to_text()).into_owned()),
        ArrowKind::Double => Cell::Double(value.to_number()?.float()),
        ArrowKind::Decimal { scale, .. } => Cell::Decimal(decimal(value, scale)?),
    })
}

/// The number in units of the scale. One with more digits than the precision is kept: the samples
/// of the SDKs ask for 4 digits, 2 of them fractional, and select 400.
fn decimal(value: &Value<'_>, scale: i8) -> Result<i128, Problem> {
    let invalid = Problem::InvalidTypeConversion;
    let digits = u32::from(scale.unsigned_abs());
    if let Number::Integer(number) = value.to_number()? {
        return i128::from(number).checked_mul(10_i128.pow(digits)).ok_or(invalid);
    }
    let text = value.to_text();
    let text = std::str::from_utf8(text.trim_ascii()).map_err(|_| invalid)?;
    if text.contains(['e', 'E']) {
        let text = format!("{:.*}", digits as usize, value.to_number()?.float());
        return scaled(&text, digits as usize).ok_or(invalid);
    }
    scaled(text, digits as usize).ok_or(invalid)
}

/// Digits beyond the scale are cut off.
fn scaled(text: &str, digits: usize) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: String = fraction.chars().chain(std::iter::repeat('0')).take(digits).collect();
    format!("{whole}{fraction}").parse().ok()
}

impl Column {
    fn new(kind: ArrowKind) -> Self {
        match kind {
            ArrowKind::Integer => Self::Integer(Int64Builder::new()),
            ArrowKind::Boolean => Self::Boolean(BooleanBuilder::new()),
            ArrowKind::Timestamp => Self::Timestamp(TimestampMillisecondBuilder::new()),
            ArrowKind::Text => Self::Text(StringBuilder::new()),
            ArrowKind::Double => Self::Double(Float64Builder::new()),
            ArrowKind::Decimal { .. } => {
                Self::Decimal(Decimal128Builder::new().with_data_type(data_type(kind)))
            }
        }
    }

    fn push(&mut self, cell: Cell) {
        match (self, cell) {
            (Self::Integer(builder), Cell::Integer(number)) => builder.append_value(number),
            (Self::Timestamp(builder), Cell::Integer(number)) => builder.append_value(number),
            (Self::Boolean(builder), Cell::Boolean(value)) => builder.append_value(value),
            (Self::Text(builder), Cell::Text(text)) => builder.append_value(text),
            (Self::Double(builder), Cell::Double(number)) => builder.append_value(number),
            (Self::Decimal(builder), Cell::Decimal(number)) => builder.append_value(number),
            (Self::Integer(builder), _) => builder.append_null(),
            (Self::Timestamp(builder), _) => builder.append_null(),
            (Self::Boolean(builder), _) => builder.append_null(),
            (Self::Text(builder), _) => builder.append_null(),
            (Self::Double(builder), _) => builder.append_null(),
            (Self::Decimal(builder), _) => builder.append_null(),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Integer(mut builder) => Arc::new(builder.finish()),
            Self::Boolean(mut builder) => Arc::new(builder.finish()),
            Self::Timestamp(mut builder) => Arc::new(builder.finish()),
            Self::Text(mut builder) => Arc::new(builder.finish()),
            Self::Double(mut builder) => Arc::new(builder.finish()),
            Self::Decimal(mut builder) => Arc::new(builder.finish()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array as _;
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{Decimal128Type, Float64Type, Int64Type, TimestampMillisecondType};
    use arrow_ipc::reader::StreamReader;
    use std::borrow::Cow;

    fn text(text: &'static str) -> Value<'static> {
        Value::Text(Cow::Borrowed(text.as_bytes()))
    }

    fn read(bytes: &[u8]) -> Vec<RecordBatch> {
        let reader = StreamReader::try_new(bytes, None).expect("a stream");
        reader.map(|batch| batch.expect("a batch")).collect()
    }

    #[test]
    fn each_kind_is_read_back_by_arrow() {
        let field = |name: &str, kind| ArrowField { name: name.to_owned(), kind };
        let mut writer = ArrowWriter::new(&[
            field("i", ArrowKind::Integer),
            field("b", ArrowKind::Boolean),
            field("t", ArrowKind::Timestamp),
            field("s", ArrowKind::Text),
            field("f", ArrowKind::Double),
            field("d", ArrowKind::Decimal { precision: 4, scale: 2 }),
        ]);
        for value in ["12", "true", "1970-01-01T00:00:01.5Z", "ü", "2.5", "400"] {
            writer.field(&text(value)).expect("a value of its kind");
        }
        writer.end_record();
        writer.field(&text("7")).expect("a number");
        assert_eq!(writer.field(&text("maybe")), Err(Problem::InvalidTypeConversion));
        writer.drop_record();
        writer.field(&Value::Null).expect("NULL is of every kind");
        writer.end_record();
        let mut bytes = writer.take(false);
        bytes.extend(writer.take(true));

        let batches = read(&bytes);
        assert_eq!(batches.len(), 1);
        let batch = &batches[0];
        assert_eq!(batch.num_rows(), 2);
        assert_eq!(batch.schema().field(0).name(), "i");
        assert_eq!(batch.column(0).as_primitive::<Int64Type>().value(0), 12);
        assert!(batch.column(1).as_boolean().value(0));
        assert_eq!(batch.column(2).as_primitive::<TimestampMillisecondType>().value(0), 1500);
        assert_eq!(batch.column(3).as_string::<i32>().value(0), "ü");
        assert!((batch.column(4).as_primitive::<Float64Type>().value(0) - 2.5).abs() < 1e-9);
        assert_eq!(batch.column(5).as_primitive::<Decimal128Type>().value(0), 40000);
        assert!((0..6).all(|column| batch.column(column).is_null(1)));
    }

    #[test]
    fn an_answer_without_records_has_a_schema() {
        let field = ArrowField { name: "a".to_owned(), kind: ArrowKind::Integer };
        let bytes = ArrowWriter::new(&[field]).take(true);
        assert_eq!(read(&bytes).len(), 0);
    }

    #[test]
    fn decimals_are_scaled_from_their_digits() {
        for (value, expected) in [
            (text("123.45"), Some(12345)),
            (text("-0.5"), Some(-50)),
            (text("1.239"), Some(123)),
            (text("1e2"), Some(10000)),
            (Value::Float(2.5), Some(250)),
            (text("x"), None),
            (text("1.5.5"), None),
        ] {
            assert_eq!(decimal(&value, 2).ok(), expected, "{value:?}");
        }
    }
}
