//! How fast one thread filters a blob: `cargo run --release -p holdfast-sql --example scan_rate`.

use std::io;
use std::ops::Range;
use std::time::{Instant, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use holdfast_sql::{Delimited, InputFormat, JsonText, OutputFormat, Query, QueryRequest, Source};

const BLOB_BYTES: usize = 256 << 20;
const PIECE_BYTES: usize = 1 << 20;

/// A source that repeats the same bytes.
struct Repeated {
    piece: Bytes,
    remaining: usize,
}

#[async_trait]
impl Source for Repeated {
    fn length(&self) -> u64 {
        self.remaining as u64
    }

    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        if self.remaining == 0 {
            return Ok(None);
        }
        self.remaining = self.remaining.saturating_sub(self.piece.len());
        Ok(Some(self.piece.clone()))
    }

    async fn read(&mut self, _: Range<u64>) -> io::Result<Bytes> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Whole records, about [`PIECE_BYTES`] of them.
fn records(record: impl Fn(usize) -> String) -> Bytes {
    let mut text = String::new();
    for number in 0.. {
        if text.len() >= PIECE_BYTES {
            break;
        }
        text.push_str(&record(number));
    }
    text.into()
}

async fn measure(what: &str, request: QueryRequest, piece: &Bytes) {
    let query = Query::new(request).expect("a query");
    let source = Repeated { piece: piece.clone(), remaining: BLOB_BYTES };
    let started = Instant::now();
    let mut answer = std::pin::pin!(query.run(Box::new(source), SystemTime::now()));
    let mut sent = 0;
    while let Some(bytes) = answer.next().await {
        sent += bytes.expect("memory does not fail").len();
    }
    let seconds = started.elapsed().as_secs_f64();
    let mebibytes = (BLOB_BYTES >> 20) as f64;
    println!("{what}: {:.0} MiB/s in, {:.1} MiB out", mebibytes / seconds, sent as f64 / 1e6);
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let delimited = records(|number| {
        format!(
            "{number},Item {number},{}.5,2020-01-02T03:04:05Z,\"a text, with commas\"\n",
            number % 100
        )
    });
    let json = records(|number| {
        format!("{{\"id\":{number},\"name\":\"Item {number}\",\"price\":{}.5}}\n", number % 100)
    });
    let input = Some(InputFormat::Delimited(Delimited::default()));
    let request = |expression: &str, input: &Option<InputFormat>| QueryRequest {
        expression: expression.to_owned(),
        input: input.clone(),
        output: Some(OutputFormat::Delimited(Delimited::default())),
    };
    for expression in [
        "SELECT _2 FROM BlobStorage WHERE _3 > 98",
        "SELECT _1 FROM BlobStorage WHERE _2 LIKE '%99'",
        "SELECT SUM(_3) FROM BlobStorage",
        "SELECT * FROM BlobStorage",
    ] {
        measure(&format!("delimited, {expression}"), request(expression, &input), &delimited).await;
    }
    let input = Some(InputFormat::Json(JsonText::default()));
    for expression in ["SELECT name FROM BlobStorage WHERE price > 98", "SELECT * FROM BlobStorage"]
    {
        measure(&format!("JSON, {expression}"), request(expression, &input), &json).await;
    }
}
