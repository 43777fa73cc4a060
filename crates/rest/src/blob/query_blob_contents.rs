//! Query Blob Contents: the request as a document, the answer as a stream of Avro records.

use std::io;
use std::ops::Range;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use holdfast_domain::blob::{BlobRefusal, Download, Kind};
use holdfast_domain::content::ContentReader;
use holdfast_domain::time::Timestamp;
use holdfast_sql::{
    ArrowField, ArrowKind, Delimited, InputFormat, JsonText, OutputFormat, Query, QueryRequest,
    Source,
};
use hyper::StatusCode;

use super::{get_blob, headers};
use crate::answer::{Answer, AnswerBody};
use crate::body::RequestBody;
use crate::error::{Code, Error};
use crate::request::Call;
use crate::version::Version;
use crate::xml::document::{self, DocumentRefusal, Element, Fields, value};

/// Accepts every precision and scale; the query checks which are valid.
const DIGITS_MAX: u32 = 100;

pub async fn query(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let request = parse(&body.document(call).await?, call.version)?;
    let query = Query::new(request)?.of_owner(call.address.account);
    let command = get_blob::command(call)?;
    // The service does not query blobs that are encrypted with a customer-provided key.
    if command.key.is_some() {
        return Err(
            Error::from(Code::InvalidHeaderValue).detail("HeaderName", "x-ms-encryption-key")
        );
    }
    let download = call.frontend.domain().get_blob(&command, None).await?;
    let Download { read, reader, .. } = download;
    if !matches!(read.blob.kind, Kind::Block) {
        return Err(BlobRefusal::WrongKind.into());
    }
    // The documentation says 202, the specification 200 or 206; every SDK accepts the latter two,
    // and the answer is not a range.
    let mut answer = Answer::new(StatusCode::OK);
    headers::blob_properties(&mut answer, call, &read);
    answer.header("accept-ranges", "bytes");
    // The stored content type, encoding and MD5 are those of the blob, not of the answer.
    answer.header("content-type", "avro/binary");
    let source = ContentSource::open(reader).await?;
    answer.body = AnswerBody::Stream(None, Box::pin(query.run(Box::new(source), time(read.now))));
    Ok(answer)
}

fn time(now: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + now.since(Timestamp::from_unix(Duration::ZERO))
}

/// The content of the blob at the start of the query.
struct ContentSource {
    whole: ContentReader,
    first: Option<Bytes>,
    rest: ContentReader,
}

impl ContentSource {
    /// Reads the first bytes, so that bytes that cannot be read are an error of the request and not
    /// a broken connection.
    async fn open(whole: ContentReader) -> Result<Self, Error> {
        let mut rest = whole.clone();
        let first = rest.next().await?;
        Ok(Self { whole, first, rest })
    }
}

#[async_trait]
impl Source for ContentSource {
    fn length(&self) -> u64 {
        self.whole.remaining()
    }

    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.rest.next().await.map_err(broken_off),
        }
    }

    async fn read(&mut self, range: Range<u64>) -> io::Result<Bytes> {
        let mut part = self.whole.part(range);
        let first = part.next().await.map_err(broken_off)?.unwrap_or_default();
        if part.remaining() == 0 {
            return Ok(first);
        }
        let mut bytes = BytesMut::from(&first[..]);
        while let Some(next) = part.next().await.map_err(broken_off)? {
            bytes.extend_from_slice(&next);
        }
        Ok(bytes.freeze())
    }
}

fn broken_off(fault: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    tracing::error!(?fault, "a query was broken off");
    io::Error::other(fault)
}

pub fn can_be_request(bytes: &[u8]) -> bool {
    parse(bytes, Version::V2027_03_07).is_ok_and(|request| Query::new(request).is_ok())
}

/// The document `QueryRequest`.
fn parse(bytes: &[u8], version: Version) -> Result<QueryRequest, DocumentRefusal> {
    let root = document::parse(bytes, "QueryRequest")?;
    let fields =
        root.fields(&["QueryType", "Expression", "InputSerialization", "OutputSerialization"])?;
    let query_type = fields.required_text("QueryType")?;
    if !query_type.eq_ignore_ascii_case("SQL") {
        return Err(value("QueryType", query_type));
    }
    let expression = fields.required_text("Expression")?.to_owned();
    let input = fields.get("InputSerialization").map(|element| input(element, version));
    let output = fields.get("OutputSerialization").map(|element| output(element, version));
    Ok(QueryRequest { expression, input: input.transpose()?, output: output.transpose()? })
}

const DELIMITED: &str = "DelimitedTextConfiguration";
const JSON: &str = "JsonTextConfiguration";
const ARROW: &str = "ArrowConfiguration";
const PARQUET: &str = "ParquetTextConfiguration";

fn format(serialization: &Element) -> Result<Fields<'_>, DocumentRefusal> {
    let fields = serialization.fields(&["Format"])?;
    fields.required("Format")?.fields(&["Type", DELIMITED, JSON, ARROW, PARQUET])
}

fn input(serialization: &Element, version: Version) -> Result<InputFormat, DocumentRefusal> {
    let format = format(serialization)?;
    match format.required_text("Type")? {
        "delimited" => delimited(format).map(InputFormat::Delimited),
        "json" => json(format).map(InputFormat::Json),
        "parquet" if version >= Version::V2020_08_04 => Ok(InputFormat::Parquet),
        other => Err(value("Type", other)),
    }
}

fn output(serialization: &Element, version: Version) -> Result<OutputFormat, DocumentRefusal> {
    let format = format(serialization)?;
    match format.required_text("Type")? {
        "delimited" => delimited(format).map(OutputFormat::Delimited),
        "json" => json(format).map(OutputFormat::Json),
        "arrow" if version >= Version::V2020_02_10 => arrow(format).map(OutputFormat::Arrow),
        other => Err(value("Type", other)),
    }
}

/// Text as it is: it may be only white space, or empty.
fn or_default(fields: Fields<'_>, name: &str, default: String) -> String {
    fields.get(name).map_or(default, |element| element.text.clone())
}

/// An empty separator means the default; the JavaScript SDK sends a line feed so.
fn separator(fields: Fields<'_>, name: &str, default: String) -> String {
    let sent = fields.get(name).map(|element| element.text.clone());
    sent.filter(|text| !text.is_empty()).unwrap_or(default)
}

fn delimited(format: Fields<'_>) -> Result<Delimited, DocumentRefusal> {
    let default = Delimited::default();
    let Some(element) = format.get(DELIMITED) else { return Ok(default) };
    let fields = element.fields(&[
        "ColumnSeparator",
        "FieldQuote",
        "RecordSeparator",
        "EscapeChar",
        "HasHeaders",
    ])?;
    Ok(Delimited {
        column_separator: separator(fields, "ColumnSeparator", default.column_separator),
        field_quote: or_default(fields, "FieldQuote", default.field_quote),
        record_separator: separator(fields, "RecordSeparator", default.record_separator),
        escape: or_default(fields, "EscapeChar", default.escape),
        has_headers: fields.boolean("HasHeaders")?.unwrap_or(default.has_headers),
    })
}

fn json(format: Fields<'_>) -> Result<JsonText, DocumentRefusal> {
    let default = JsonText::default();
    let Some(element) = format.get(JSON) else { return Ok(default) };
    let fields = element.fields(&["RecordSeparator"])?;
    let record_separator = separator(fields, "RecordSeparator", default.record_separator);
    Ok(JsonText { record_separator })
}

fn arrow(format: Fields<'_>) -> Result<Vec<ArrowField>, DocumentRefusal> {
    let schema = format.required(ARROW)?.fields(&["Schema"])?.required("Schema")?;
    schema.children.iter().map(arrow_field).collect()
}

fn arrow_field(element: &Element) -> Result<ArrowField, DocumentRefusal> {
    if element.name != "Field" {
        return Err(DocumentRefusal::UnsupportedNode { name: element.name.clone() });
    }
    let fields = element.fields(&["Type", "Name", "Precision", "Scale"])?;
    let digits = |name| -> Result<u8, DocumentRefusal> {
        let number = fields.integer(name, 0..=DIGITS_MAX)?.unwrap_or(0);
        u8::try_from(number).map_err(|_| value(name, &number.to_string()))
    };
    let kind = match fields.required_text("Type")? {
        "int64" => ArrowKind::Integer,
        "bool" => ArrowKind::Boolean,
        "timestamp[ms]" => ArrowKind::Timestamp,
        "string" => ArrowKind::Text,
        "double" => ArrowKind::Double,
        "decimal" => {
            let scale = digits("Scale")?;
            let scale = i8::try_from(scale).map_err(|_| value("Scale", &scale.to_string()))?;
            ArrowKind::Decimal { precision: digits("Precision")?, scale }
        }
        other => return Err(value("Type", other)),
    };
    Ok(ArrowField { name: or_default(fields, "Name", String::new()), kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEWEST: Version = Version::V2026_10_06;

    fn request(formats: &str) -> Result<QueryRequest, DocumentRefusal> {
        let text = format!(
            "<QueryRequest><QueryType>SQL</QueryType><Expression>SELECT * FROM BlobStorage \
             </Expression>{formats}</QueryRequest>"
        );
        parse(text.as_bytes(), NEWEST)
    }

    fn input_of(format: &str) -> Result<Option<InputFormat>, DocumentRefusal> {
        let text = format!("<InputSerialization><Format>{format}</Format></InputSerialization>");
        request(&text).map(|request| request.input)
    }

    fn output_of(format: &str) -> Result<Option<OutputFormat>, DocumentRefusal> {
        let text = format!("<OutputSerialization><Format>{format}</Format></OutputSerialization>");
        request(&text).map(|request| request.output)
    }

    #[test]
    fn formats_may_be_absent_and_settings_too() {
        let plain = request("").expect("a request");
        assert_eq!(plain.expression, "SELECT * FROM BlobStorage");
        assert_eq!((plain.input, plain.output), (None, None));
        let delimited = Some(InputFormat::Delimited(Delimited::default()));
        assert_eq!(input_of("<Type>delimited</Type>"), Ok(delimited));
        let json = Some(InputFormat::Json(JsonText::default()));
        assert_eq!(input_of("<Type>json</Type>"), Ok(json));
        let parquet = input_of("<Type>parquet</Type><ParquetTextConfiguration/>");
        assert_eq!(parquet, Ok(Some(InputFormat::Parquet)));
    }

    #[test]
    fn separators_are_taken_as_they_stand() {
        let format = "<Type>delimited</Type><DelimitedTextConfiguration>\
                      <ColumnSeparator>\t</ColumnSeparator><FieldQuote/>\
                      <RecordSeparator>\n</RecordSeparator><EscapeChar>\\</EscapeChar>\
                      <HasHeaders>true</HasHeaders></DelimitedTextConfiguration>";
        let expected = Delimited {
            column_separator: "\t".to_owned(),
            field_quote: String::new(),
            record_separator: "\n".to_owned(),
            escape: "\\".to_owned(),
            has_headers: true,
        };
        assert_eq!(input_of(format), Ok(Some(InputFormat::Delimited(expected))));
        let nothing = "<Type>json</Type><JsonTextConfiguration><RecordSeparator/>\
                       </JsonTextConfiguration>";
        assert_eq!(input_of(nothing), Ok(Some(InputFormat::Json(JsonText::default()))));
    }

    #[test]
    fn an_arrow_schema_has_fields() {
        let format = "<Type>arrow</Type><ArrowConfiguration><Schema>\
                      <Field><Type>int64</Type><Name>a b</Name></Field>\
                      <Field><Type>decimal</Type><Precision>4</Precision><Scale>2</Scale></Field>\
                      </Schema></ArrowConfiguration>";
        let fields = vec![
            ArrowField { name: "a b".to_owned(), kind: ArrowKind::Integer },
            ArrowField { name: String::new(), kind: ArrowKind::Decimal { precision: 4, scale: 2 } },
        ];
        assert_eq!(output_of(format), Ok(Some(OutputFormat::Arrow(fields))));
    }

    #[test]
    fn what_makes_no_request_is_refused() {
        assert!(request("<Unknown/>").is_err());
        assert!(parse(b"<QueryRequest><QueryType>SQL</QueryType></QueryRequest>", NEWEST).is_err());
        let other =
            "<QueryRequest><QueryType>X</QueryType><Expression>y</Expression></QueryRequest>";
        assert!(parse(other.as_bytes(), NEWEST).is_err());
        for format in ["<Type>xml</Type>", "<Type>arrow</Type>", ""] {
            assert!(input_of(format).is_err(), "{format}");
        }
        for format in ["<Type>parquet</Type>", "<Type>arrow</Type>"] {
            assert!(output_of(format).is_err(), "{format}");
        }
    }

    #[test]
    fn formats_have_their_first_versions() {
        let request = |side: &str, kind: &str| {
            format!(
                "<QueryRequest><QueryType>SQL</QueryType><Expression>x</Expression><{side}>\
                 <Format><Type>{kind}</Type><ArrowConfiguration><Schema/></ArrowConfiguration>\
                 </Format></{side}></QueryRequest>"
            )
        };
        for (side, kind, first) in [
            ("InputSerialization", "parquet", Version::V2020_08_04),
            ("OutputSerialization", "arrow", Version::V2020_02_10),
        ] {
            let request = request(side, kind);
            assert!(parse(request.as_bytes(), first).is_ok(), "{kind}");
            assert!(parse(request.as_bytes(), Version::V2019_12_12).is_err(), "{kind}");
        }
    }
}
