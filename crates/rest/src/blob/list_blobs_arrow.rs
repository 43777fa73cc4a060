//! List Blobs, with the answer as an Apache Arrow stream: a column for each element that the answer
//! in XML has. The marker of the next page is in the schema, before everything else, so a whole
//! page is held in memory.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Int64Builder, MapBuilder, StringBuilder, TimestampSecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Field, Schema};
use holdfast_domain::blob::Listed;
use holdfast_domain::failure::Fault;
use hyper::StatusCode;

use super::list_blobs::{self, Include};
use super::listed_blob::{self, Entry, Type, Value};
use crate::answer::{Answer, AnswerBody};
use crate::error::Error;
use crate::lanes::lane_share::leave_lane_for;
use crate::request::Call;

const CONTENT_TYPE: &str = "application/vnd.apache.arrow.stream";

type Column = (&'static str, ArrayRef);

pub async fn list(call: &Call<'_>) -> Result<Answer, Error> {
    let (command, include) = list_blobs::command(call)?;
    let mut listing = call.frontend.domain().list_blobs(command).await?;
    let now = listing.now;
    let (mut batches, mut rows_count) = (Vec::new(), 0);
    loop {
        let listed = listing.next().await?;
        let rows: Vec<ListedRow<'_>> = listed
            .iter()
            .map(|listed| match listed {
                Listed::Blob(name, listed) => {
                    let version = call.version;
                    ListedRow::Blob(name, Entry { listed, include, version, now })
                }
                Listed::Uncommitted(name) => ListedRow::Uncommitted(name),
                Listed::Prefix(name) => ListedRow::Prefix(name),
            })
            .collect();
        // A page without entries has columns, too.
        if rows.is_empty() && !batches.is_empty() {
            break;
        }
        rows_count += rows.len();
        batches.push(columns(&rows, include));
        if rows.is_empty() {
            break;
        }
    }
    leave_lane_for(rows_count).await;
    let marker = listing.next_marker().map(list_blobs::write_marker).unwrap_or_default();
    let body = encode(batches, marker)
        .map_err(|error| Fault::because("a listing could not be encoded", error))?;
    let mut answer = Answer::new(StatusCode::OK);
    answer.header("content-type", CONTENT_TYPE);
    answer.body = AnswerBody::Whole(body.into());
    Ok(answer)
}

enum ListedRow<'a> {
    Blob(&'a str, Entry<'a>),
    Uncommitted(&'a str),
    Prefix(&'a str),
}

impl<'a> ListedRow<'a> {
    fn name(&self) -> &'a str {
        match self {
            Self::Blob(name, _) | Self::Uncommitted(name) | Self::Prefix(name) => name,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Blob(..) | Self::Uncommitted(_) => "blob",
            Self::Prefix(_) => "blobprefix",
        }
    }

    fn entry(&self) -> Option<&Entry<'a>> {
        match self {
            Self::Blob(_, entry) => Some(entry),
            Self::Uncommitted(_) | Self::Prefix(_) => None,
        }
    }
}

fn columns(rows: &[ListedRow<'_>], include: Include) -> Vec<Column> {
    let mut columns = vec![
        ("Name", texts(rows.iter().map(|row| Some(row.name().to_owned())))),
        ("ResourceType", texts(rows.iter().map(|row| Some(row.kind().to_owned())))),
    ];
    for (name, kind, value) in listed_blob::IDENTITY.iter().chain(listed_blob::PROPERTIES) {
        let values = rows.iter().map(|row| match row {
            ListedRow::Blob(_, entry) => value(entry),
            ListedRow::Uncommitted(_) => listed_blob::of_uncommitted(name),
            ListedRow::Prefix(_) => Value::None,
        });
        // XML and Arrow have different names for this one.
        let name = match *name {
            "DestinationSnapshot" => "CopyDestinationSnapshot",
            name => name,
        };
        columns.push((name, column(*kind, values)));
    }
    if include.metadata {
        // A blob without metadata has an empty map; only a prefix has none.
        let metadata = |row: &ListedRow<'_>| match row {
            ListedRow::Blob(_, entry) => {
                Some(entry.metadata().map_or_else(Vec::new, |metadata| owned(metadata.iter())))
            }
            ListedRow::Uncommitted(_) => Some(Vec::new()),
            ListedRow::Prefix(_) => None,
        };
        columns.push(("Metadata", maps(rows.iter().map(metadata))));
    }
    if include.tags {
        let tags = |row: &ListedRow<'_>| {
            let tags = row.entry().and_then(|entry| entry.tags());
            tags.map(|tags| owned(tags.iter()))
        };
        columns.push(("Tags", maps(rows.iter().map(tags))));
    }
    columns
}

fn column(kind: Type, values: impl Iterator<Item = Value>) -> ArrayRef {
    match kind {
        Type::Text => texts(values.map(|value| match value {
            Value::Text(text) => Some(text).filter(|text| !text.is_empty()),
            Value::None | Value::Flag(_) | Value::Number(_) | Value::Time(_) => None,
        })),
        Type::Flag => {
            let mut builder = BooleanBuilder::new();
            values.for_each(|value| builder.append_option(flag(value)));
            Arc::new(builder.finish())
        }
        Type::Number => {
            let mut builder = Int64Builder::new();
            values.for_each(|value| builder.append_option(number(value)));
            Arc::new(builder.finish())
        }
        Type::Time => {
            let mut builder = TimestampSecondBuilder::new();
            values.for_each(|value| builder.append_option(seconds(value)));
            Arc::new(builder.finish())
        }
    }
}

fn flag(value: Value) -> Option<bool> {
    if let Value::Flag(flag) = value { Some(flag) } else { None }
}

fn number(value: Value) -> Option<i64> {
    if let Value::Number(number) = value { i64::try_from(number).ok() } else { None }
}

fn seconds(value: Value) -> Option<i64> {
    if let Value::Time(time) = value { Some(time.unix_seconds()) } else { None }
}

fn texts(values: impl Iterator<Item = Option<String>>) -> ArrayRef {
    let mut builder = StringBuilder::new();
    for value in values {
        builder.append_option(value);
    }
    Arc::new(builder.finish())
}

type Pairs = Vec<(String, String)>;

fn owned<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Pairs {
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn maps(values: impl Iterator<Item = Option<Pairs>>) -> ArrayRef {
    let mut builder = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for pairs in values {
        let there = pairs.is_some();
        for (name, value) in pairs.unwrap_or_default() {
            builder.keys().append_value(name);
            builder.values().append_value(value);
        }
        // It only fails if a name has no value, and each name above has one.
        let _ = builder.append(there);
    }
    Arc::new(builder.finish())
}

fn encode(batches: Vec<Vec<Column>>, marker: String) -> Result<Vec<u8>, ArrowError> {
    let fields = batches.first().into_iter().flatten();
    let fields: Vec<Field> = fields
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), *name != "Name"))
        .collect();
    let metadata = HashMap::from([("NextMarker".to_owned(), marker)]);
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
    for columns in batches {
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        writer.write(&RecordBatch::try_new(Arc::clone(&schema), arrays)?)?;
    }
    writer.finish()?;
    writer.into_inner()
}

#[cfg(test)]
mod tests {
    use arrow_array::Array as _;
    use arrow_array::cast::AsArray as _;
    use arrow_ipc::reader::StreamReader;

    use super::*;

    #[test]
    fn a_page_comes_back_out_of_the_stream_with_its_marker() {
        let rows = [
            ListedRow::Prefix("folder/"),
            ListedRow::Prefix("other/"),
            ListedRow::Uncommitted("u"),
        ];
        let include = Include { metadata: true, tags: true, ..Include::default() };
        let batches = vec![columns(&rows, include)];
        let encoded = encode(batches, "next".to_owned()).expect("encoded");
        let mut reader = StreamReader::try_new(encoded.as_slice(), None).expect("a stream");
        let schema = reader.schema();
        assert_eq!(schema.metadata().get("NextMarker").map(String::as_str), Some("next"));
        let batch = reader.next().expect("a batch").expect("readable");
        let column = |name| batch.column_by_name(name).expect("a column");
        assert_eq!(column("Name").as_string::<i32>().value(1), "other/");
        assert_eq!(column("ResourceType").as_string::<i32>().value(0), "blobprefix");
        assert!(column("Metadata").is_null(0) && column("Tags").is_null(1));
        let metadata = column("Metadata").as_map();
        assert!(metadata.is_valid(2) && metadata.value_length(2) == 0, "an empty map");
        assert_eq!(column("BlobType").as_string::<i32>().value(2), "BlockBlob");
        assert!(column("BlobType").is_null(0));
        assert!(reader.next().is_none());
    }

    #[test]
    fn a_page_without_entries_has_a_schema() {
        let batches = vec![columns(&[], Include::default())];
        let encoded = encode(batches, String::new()).expect("encoded");
        let reader = StreamReader::try_new(encoded.as_slice(), None).expect("a stream");
        assert!(reader.schema().field_with_name("Last-Modified").is_ok());
    }
}
