//! Values of cells of Arrow arrays.

use std::borrow::Cow;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, Time32MillisecondType, Time64MicrosecondType,
    Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use chrono::{DateTime, NaiveTime, Utc};

use crate::output::put_escaped;
use crate::sql::Segment;
use crate::value::Value;

/// The value at a path from a cell.
pub fn follow(array: &dyn Array, row: usize, path: &[Segment]) -> Value<'static> {
    let Some((segment, rest)) = path.split_first() else { return value(array, row).into_owned() };
    if array.is_null(row) {
        return Value::Missing;
    }
    match (segment, array.data_type()) {
        (Segment::Key { .. }, DataType::Struct(fields)) => {
            let found = fields.iter().position(|field| segment.matches(field.name().as_bytes()));
            found.map_or(Value::Missing, |column| {
                follow(array.as_struct().column(column), row, rest)
            })
        }
        (Segment::Index(index), DataType::List(_)) => {
            let elements = array.as_list::<i32>().value(row);
            if *index < elements.len() { follow(&elements, *index, rest) } else { Value::Missing }
        }
        _ => Value::Missing,
    }
}

#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "Parquet is not read into the other types of Arrow"
)]
pub fn value(array: &dyn Array, row: usize) -> Value<'_> {
    if array.is_null(row) {
        return Value::Null;
    }
    macro_rules! at {
        ($kind:ty) => {
            array.as_primitive::<$kind>().value(row)
        };
    }
    match array.data_type() {
        DataType::Boolean => Value::Boolean(array.as_boolean().value(row)),
        DataType::Int8 => Value::Integer(at!(Int8Type).into()),
        DataType::Int16 => Value::Integer(at!(Int16Type).into()),
        DataType::Int32 => Value::Integer(at!(Int32Type).into()),
        DataType::Int64 => Value::Integer(at!(Int64Type)),
        DataType::UInt8 => Value::Integer(at!(UInt8Type).into()),
        DataType::UInt16 => Value::Integer(at!(UInt16Type).into()),
        DataType::UInt32 => Value::Integer(at!(UInt32Type).into()),
        DataType::UInt64 => digits(at!(UInt64Type).to_string()),
        DataType::Float32 => {
            // By its decimal digits, so that 0.1 stays 0.1.
            let number = at!(Float32Type);
            Value::Float(number.to_string().parse().unwrap_or_else(|_| f64::from(number)))
        }
        DataType::Float64 => Value::Float(at!(Float64Type)),
        DataType::Decimal128(..) => {
            digits(array.as_primitive::<Decimal128Type>().value_as_string(row))
        }
        DataType::Decimal256(..) => {
            digits(array.as_primitive::<Decimal256Type>().value_as_string(row))
        }
        DataType::Utf8 => text(array.as_string::<i32>().value(row).as_bytes()),
        DataType::LargeUtf8 => text(array.as_string::<i64>().value(row).as_bytes()),
        DataType::Binary => text(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => text(array.as_binary::<i64>().value(row)),
        DataType::FixedSizeBinary(_) => text(array.as_fixed_size_binary().value(row)),
        DataType::Date32 => date(i64::from(at!(Date32Type)) * 86_400_000),
        DataType::Date64 => date(at!(Date64Type)),
        DataType::Time32(TimeUnit::Millisecond) => {
            time(i64::from(at!(Time32MillisecondType)) * 1_000_000)
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            time(at!(Time64MicrosecondType).saturating_mul(1000))
        }
        DataType::Time64(TimeUnit::Nanosecond) => time(at!(Time64NanosecondType)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            instant(DateTime::from_timestamp_millis(at!(TimestampMillisecondType)))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            instant(DateTime::from_timestamp_micros(at!(TimestampMicrosecondType)))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            instant(Some(DateTime::from_timestamp_nanos(at!(TimestampNanosecondType))))
        }
        DataType::Struct(_) | DataType::List(_) | DataType::Map(..) => {
            let mut bytes = Vec::new();
            put_json(&mut bytes, array, row);
            Value::Json(Cow::Owned(bytes))
        }
        _ => Value::Null,
    }
}

fn text(bytes: &[u8]) -> Value<'_> {
    Value::Text(Cow::Borrowed(bytes))
}

fn digits(text: String) -> Value<'static> {
    Value::Json(Cow::Owned(text.into_bytes()))
}

fn instant(time: Option<DateTime<Utc>>) -> Value<'static> {
    time.map_or(Value::Null, |time| Value::Timestamp(time.fixed_offset()))
}

fn date(milliseconds: i64) -> Value<'static> {
    DateTime::from_timestamp_millis(milliseconds)
        .map_or(Value::Null, |time| Value::text(time.format("%Y-%m-%d").to_string()))
}

fn time(nanoseconds: i64) -> Value<'static> {
    let seconds = u32::try_from(nanoseconds / 1_000_000_000).ok();
    let rest = u32::try_from(nanoseconds % 1_000_000_000).ok();
    seconds
        .zip(rest)
        .and_then(|(seconds, rest)| NaiveTime::from_num_seconds_from_midnight_opt(seconds, rest))
        .map_or(Value::Null, |time| Value::text(time.format("%H:%M:%S%.f").to_string()))
}

/// A cell as JSON. The depth is that of the schema, which Parquet bounds.
fn put_json(bytes: &mut Vec<u8>, array: &dyn Array, row: usize) {
    if array.is_null(row) {
        bytes.extend_from_slice(b"null");
        return;
    }
    if let Some(list) = array.as_list_opt::<i32>() {
        let elements = list.value(row);
        bytes.push(b'[');
        for element in 0..elements.len() {
            comma(bytes, element);
            put_json(bytes, &elements, element);
        }
        bytes.push(b']');
    } else if let Some(fields) = array.as_struct_opt() {
        bytes.push(b'{');
        for (place, (name, column)) in
            fields.column_names().iter().zip(fields.columns()).enumerate()
        {
            comma(bytes, place);
            put_text(bytes, name);
            bytes.push(b':');
            put_json(bytes, column, row);
        }
        bytes.push(b'}');
    } else if let Some(map) = array.as_map_opt() {
        let entries = map.value(row);
        let (keys, values): (&ArrayRef, &ArrayRef) = (entries.column(0), entries.column(1));
        bytes.push(b'{');
        for entry in 0..entries.len() {
            comma(bytes, entry);
            put_text(bytes, &String::from_utf8_lossy(&value(keys, entry).to_text()));
            bytes.push(b':');
            put_json(bytes, values, entry);
        }
        bytes.push(b'}');
    } else {
        match value(array, row) {
            value @ (Value::Text(_) | Value::Timestamp(_)) => {
                put_text(bytes, &String::from_utf8_lossy(&value.to_text()));
            }
            value @ (Value::Boolean(_) | Value::Integer(_) | Value::Json(_)) => {
                bytes.extend_from_slice(&value.to_text());
            }
            Value::Float(number) if number.is_finite() => {
                bytes.extend_from_slice(&Value::Float(number).to_text());
            }
            Value::Float(_) | Value::Missing | Value::Null => bytes.extend_from_slice(b"null"),
        }
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(b'"');
    put_escaped(bytes, text);
    bytes.push(b'"');
}

fn comma(bytes: &mut Vec<u8>, place: usize) {
    if place > 0 {
        bytes.push(b',');
    }
}
