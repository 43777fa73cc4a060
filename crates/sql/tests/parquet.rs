//! Parquet in, Arrow out.

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Int64Array, ListArray,
    RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, Field};
use holdfast_sql::{ArrowField, ArrowKind, InputFormat, JsonText, OutputFormat};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;
use support::{Answer, request, run};

fn written(batch: &RecordBatch, compression: Compression) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(300))
        .build();
    let mut bytes = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).expect("a writer");
    writer.write(batch).expect("a batch is written");
    writer.close().expect("the file is closed");
    bytes
}

fn many(rows: i64) -> RecordBatch {
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let name: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("name {row}"))));
    RecordBatch::try_from_iter([("id", id), ("name", name)]).expect("a batch")
}

async fn ask(expression: &str, output: Option<OutputFormat>, blob: &[u8]) -> Answer {
    run(request(expression, Some(InputFormat::Parquet), output), blob, 1 << 20).await
}

#[tokio::test]
async fn every_usual_compression_is_read() {
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
    ] {
        let blob = written(&many(1000), compression);
        let answer = ask("select * from blobstorage where id < 2;", None, &blob).await;
        assert_eq!(answer.text(), "0,name 0\n1,name 1\n", "{compression}");
        let total = i64::try_from(blob.len()).expect("a length");
        assert_eq!(answer.progress(), [total]);
    }
}

#[tokio::test]
async fn columns_have_names_places_and_numbers_of_rows() {
    let blob = written(&many(1000), Compression::SNAPPY);
    for (expression, expected) in [
        ("SELECT COUNT(*) FROM BlobStorage", "1000\n"),
        ("SELECT SUM(id) FROM BlobStorage WHERE id < 10", "45\n"),
        ("SELECT _2, ID FROM BlobStorage WHERE \"name\" LIKE '%999'", "name 999,999\n"),
        ("SELECT name FROM BlobStorage LIMIT 1", "name 0\n"),
    ] {
        assert_eq!(ask(expression, None, &blob).await.text(), expected, "{expression}");
    }
    let answer = ask("SELECT nothing FROM BlobStorage", None, &blob).await;
    assert_eq!(answer.errors(), [(true, "InvalidColumnName", 0)]);
}

#[tokio::test]
async fn every_kind_of_column_has_a_text() {
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1), None])]);
    let inner: ArrayRef = Arc::new(StringArray::from(vec!["a\"b"]));
    let record = StructArray::from(vec![(Arc::new(Field::new("x", DataType::Utf8, true)), inner)]);
    let decimal =
        Decimal128Array::from(vec![-12345]).with_precision_and_scale(10, 2).expect("a decimal");
    let columns: [(&str, ArrayRef); 8] = [
        ("flag", Arc::new(BooleanArray::from(vec![true]))),
        ("small", Arc::new(Float32Array::from(vec![0.1]))),
        ("day", Arc::new(Date32Array::from(vec![18262]))),
        ("moment", Arc::new(TimestampMicrosecondArray::from(vec![1_577_836_800_500_000]))),
        ("money", Arc::new(decimal)),
        ("list", Arc::new(list)),
        ("record", Arc::new(record)),
        ("nothing", Arc::new(StringArray::from(vec![None::<&str>]))),
    ];
    let blob = written(&RecordBatch::try_from_iter(columns).expect("a batch"), Compression::SNAPPY);
    let output = Some(OutputFormat::Json(JsonText::default()));
    let answer = ask("SELECT * FROM BlobStorage", output.clone(), &blob).await;
    assert_eq!(
        answer.text(),
        "{\"flag\":true,\"small\":0.1,\"day\":\"2020-01-01\",\
         \"moment\":\"2020-01-01T00:00:00.500Z\",\"money\":-123.45,\"list\":[1,null],\
         \"record\":{\"x\":\"a\\\"b\"},\"nothing\":null}\n"
    );
    let expression = "SELECT record.x, list[0], list[5], money + 1 AS more FROM BlobStorage \
                      WHERE day < moment AND money < 0 AND nothing IS NULL";
    let answer = ask(expression, output, &blob).await;
    assert_eq!(answer.text(), "{\"x\":\"a\\\"b\",\"_2\":1,\"more\":-122.45}\n");
}

#[tokio::test]
async fn what_is_no_parquet_ends_the_query() {
    let good = written(&many(1000), Compression::SNAPPY);
    for blob in [&b""[..], b"PAR1", b"a,b\n1,2\n", &good[..good.len() / 2]] {
        let answer = ask("SELECT * FROM BlobStorage", None, blob).await;
        assert_eq!(answer.errors(), [(true, "ParseError", 0)]);
    }
    // Any byte may be wrong; the answer still ends.
    for at in (0..good.len()).step_by(97) {
        let mut bad = good.clone();
        bad[at] ^= 0xA5;
        ask("SELECT * FROM BlobStorage", None, &bad).await;
    }
}

/// An unknown field: a list with the largest declared number of elements, but no bytes. An element
/// that takes no bytes must take no time either.
fn endless_list(element: u8) -> [u8; 7] {
    const FIELD_OF_LIST: u8 = 0xF9;
    const LONG_LIST_OF: u8 = 0xF0;
    [FIELD_OF_LIST, LONG_LIST_OF | element, 0xFF, 0xFF, 0xFF, 0xFF, 0x07]
}

#[tokio::test]
async fn lists_of_nothing_end_the_query_soon() {
    const BOOLEAN: u8 = 1;
    const DOUBLE: u8 = 7;
    const UUID: u8 = 13;
    let file = written(&many(3), Compression::UNCOMPRESSED);
    for element in [DOUBLE, UUID, BOOLEAN] {
        let list = endless_list(element);
        let mut in_page = file.clone();
        in_page[4..11].copy_from_slice(&list);

        let (rest, length) = file.split_at(file.len() - 8);
        let length = u32::from_le_bytes(*length.first_chunk().expect("four bytes"));
        let longer = (length + 7).to_le_bytes();
        let (content, description) = rest.split_at(rest.len() - length as usize);
        let (fields, stop) = description.split_at(description.len() - 1);
        let in_description = [content, fields, &list, stop, &longer, b"PAR1"].concat();
        // The version, a number, sent as a double: the decoder reads its first byte only.
        let hidden = [content, &[0x17, 2], &list, &fields[2..], stop, &longer, b"PAR1"].concat();

        for blob in [in_page, in_description, hidden] {
            let began = Instant::now();
            let answer = ask("select * from blobstorage;", None, &blob).await;
            assert_eq!(answer.errors(), [(true, "ParseError", 0)], "{element}");
            assert!(began.elapsed() < Duration::from_secs(5), "{element}");
        }
    }
}

#[tokio::test]
async fn an_answer_in_arrow_is_read_by_arrow() {
    let fields = vec![
        ArrowField { name: "id".to_owned(), kind: ArrowKind::Integer },
        ArrowField { name: "name".to_owned(), kind: ArrowKind::Text },
    ];
    let output = Some(OutputFormat::Arrow(fields));
    let blob = written(&many(20_000), Compression::SNAPPY);
    let answer = ask("SELECT id, name FROM BlobStorage WHERE id >= 5", output.clone(), &blob).await;
    let data = answer.data();
    let reader = StreamReader::try_new(data.as_slice(), None).expect("a stream");
    let mut next = 5;
    for batch in reader {
        let batch = batch.expect("a batch");
        for row in 0..batch.num_rows() {
            assert_eq!(batch.column(0).as_primitive::<Int64Type>().value(row), next);
            assert_eq!(batch.column(1).as_string::<i32>().value(row), format!("name {next}"));
            next += 1;
        }
    }
    assert_eq!(next, 20_000);

    let text = run(request("SELECT _2, _1 FROM BlobStorage", None, output), b"a,1\nb,x\n", 3).await;
    let data = text.data();
    let mut reader = StreamReader::try_new(data.as_slice(), None).expect("a stream");
    let batch = reader.next().expect("a batch").expect("that can be read");
    assert_eq!(batch.num_rows(), 1);
    assert_eq!(text.errors(), [(false, "InvalidTypeConversion", 4)]);
}
