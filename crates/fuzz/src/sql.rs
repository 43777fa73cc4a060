//! Queries: statements of any text over a small blob, and blobs of any bytes under a few statements.

use std::io;
use std::ops::Range;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt as _, pin_mut};
use holdfast_sql::{
    Delimited, InputFormat, JsonText, LikePattern, OutputFormat, Query, QueryRequest, Source,
};
use tokio::runtime::Runtime;

const DELIMITED: &[u8] = b"id,name,when\n1,Ada,1815-12-10T00:00:00Z\n-2.5,\"Gr\"\"ace\",\n,,\n";
const JSON: &[u8] = br#"{"id":1,"name":"Ada","in":{"a":[1,{"b":null}]}}
{"id":"2","name":true}
"#;
/// More pieces of an answer for a few kilobytes of a blob count as endless.
const PIECES_MAX: usize = 100_000;

struct Bytewise {
    content: Bytes,
    given: bool,
}

#[async_trait]
impl Source for Bytewise {
    fn length(&self) -> u64 {
        self.content.len() as u64
    }

    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let first = !std::mem::replace(&mut self.given, true);
        Ok((first && !self.content.is_empty()).then(|| self.content.clone()))
    }

    async fn read(&mut self, range: Range<u64>) -> io::Result<Bytes> {
        Ok(self.content.slice(range.start as usize..range.end as usize))
    }
}

thread_local! {
    static RUNTIME: Runtime =
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
}

/// Whether the request was valid; its answer is read to the end.
fn answer(request: QueryRequest, content: &[u8]) -> bool {
    let Ok(query) = Query::new(request) else { return false };
    let source = Bytewise { content: Bytes::copy_from_slice(content), given: false };
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    RUNTIME.with(|runtime| {
        runtime.block_on(async {
            let pieces = query.run(Box::new(source), now);
            pin_mut!(pieces);
            let mut count = 0;
            while let Some(piece) = pieces.next().await {
                // The source never fails, so an error is a step that has panicked.
                piece.expect("a step of the query does not panic");
                count += 1;
                assert!(count < PIECES_MAX, "the answer has an end");
            }
        });
    });
    true
}

fn headed() -> Delimited {
    Delimited { has_headers: true, ..Delimited::default() }
}

/// A statement, over delimited text and over JSON.
pub fn sql(bytes: &[u8]) -> bool {
    let Ok(expression) = std::str::from_utf8(bytes) else { return false };
    let request = |input| QueryRequest {
        expression: expression.to_owned(),
        input: Some(input),
        output: Some(OutputFormat::Json(JsonText::default())),
    };
    answer(request(InputFormat::Delimited(headed())), DELIMITED)
        | answer(request(InputFormat::Json(JsonText::default())), JSON)
}

/// A blob of text, read as delimited and as JSON.
pub fn text(bytes: &[u8]) -> bool {
    for (input, expression) in [
        (InputFormat::Delimited(headed()), "SELECT * FROM BlobStorage WHERE id > 0"),
        (InputFormat::Delimited(Delimited::default()), "SELECT _1, COUNT(*) FROM BlobStorage"),
        (InputFormat::Delimited(Delimited::default()), "SELECT _2, _1 FROM BlobStorage"),
        (InputFormat::Json(JsonText::default()), "SELECT id, in.a[1].b FROM BlobStorage"),
        (InputFormat::Json(JsonText::default()), "SELECT * FROM BlobStorage[*].in"),
    ] {
        answer(
            QueryRequest { expression: expression.to_owned(), input: Some(input), output: None },
            bytes,
        );
    }
    !bytes.is_empty()
}

/// A pattern of LIKE in the first line, and a text in the others. The first `!` in the pattern is
/// the escape character.
pub fn like(bytes: &[u8]) -> bool {
    let Ok(input) = std::str::from_utf8(bytes) else { return false };
    let Some((pattern, text)) = input.split_once('\n') else { return false };
    let escape = pattern.contains('!').then_some('!');
    let found = LikePattern::new(pattern, escape).matches(text);
    // The naive comparison takes text times pattern, so only for short ones.
    if pattern.len() * text.len() < COMPARED_MAX {
        assert_eq!(found, is_like(text, pattern, escape), "{text:?} LIKE {pattern:?}");
    }
    true
}

const COMPARED_MAX: usize = 1 << 20;

/// By definition: which prefixes of the text match the pattern so far.
fn is_like(text: &str, pattern: &str, escape: Option<char>) -> bool {
    let text: Vec<char> = text.chars().collect();
    let mut ends = vec![false; text.len() + 1];
    ends[0] = true;
    let mut signs = pattern.chars();
    while let Some(sign) = signs.next() {
        if sign == '%' && escape != Some('%') {
            let first = ends.iter().position(|end| *end).unwrap_or(ends.len());
            ends[first..].fill(true);
            continue;
        }
        let letter = match sign {
            _ if escape == Some(sign) => Some(signs.next().unwrap_or(sign)),
            '_' => None,
            _ => Some(sign),
        };
        for end in (1..ends.len()).rev() {
            ends[end] = ends[end - 1] && letter.is_none_or(|letter| letter == text[end - 1]);
        }
        ends[0] = false;
    }
    ends[text.len()]
}

/// A blob queried as Parquet.
pub fn parquet(bytes: &[u8]) -> bool {
    answer(
        QueryRequest {
            expression: "SELECT * FROM BlobStorage".to_owned(),
            input: Some(InputFormat::Parquet),
            output: Some(OutputFormat::Json(JsonText::default())),
        },
        bytes,
    );
    bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1")
}
