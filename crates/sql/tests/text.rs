//! Delimited text and JSON, in and out. Where a case says so, the expected answer is the one that
//! the tests of the official SDKs recorded from the service.

mod support;

use std::time::{Duration, Instant};

use holdfast_sql::{Delimited, InputFormat, JsonText, OutputFormat};
use support::{Answer, Frame, request, run};

fn delimited(settings: Delimited) -> Option<InputFormat> {
    Some(InputFormat::Delimited(settings))
}

fn with_headers() -> Option<InputFormat> {
    delimited(Delimited { has_headers: true, ..Delimited::default() })
}

fn json() -> Option<InputFormat> {
    Some(InputFormat::Json(JsonText::default()))
}

fn to_json() -> Option<OutputFormat> {
    Some(OutputFormat::Json(JsonText::default()))
}

fn to_delimited() -> Option<OutputFormat> {
    Some(OutputFormat::Delimited(Delimited::default()))
}

/// Checks that the answer is the same however the bytes arrive.
async fn ask(
    expression: &str,
    input: Option<InputFormat>,
    output: Option<OutputFormat>,
    blob: &str,
) -> Answer {
    let whole =
        run(request(expression, input.clone(), output.clone()), blob.as_bytes(), 1 << 20).await;
    for piece in [1, 2, 3, 7] {
        let request = request(expression, input.clone(), output.clone());
        let divided = run(request, blob.as_bytes(), piece).await;
        assert_eq!(divided.data(), whole.data(), "in pieces of {piece}");
        assert_eq!(divided.errors(), whole.errors(), "in pieces of {piece}");
    }
    whole
}

const NUMBERS: &str = "100,200,300,400\n300,400,500,600\n";

#[tokio::test]
async fn columns_are_selected_by_ordinal_and_filtered_by_number() {
    let answer = ask("SELECT _2 from BlobStorage WHERE _1 > 250;", None, None, NUMBERS).await;
    assert_eq!(
        answer.frames,
        [
            Frame::Data(b"400\n".to_vec()),
            Frame::Progress { scanned: 32, total: 32 },
            Frame::End { total: 32 },
        ]
    );
}

/// Recorded: a carriage return before a line feed is not part of the last field, and a record may
/// have fewer fields than others.
#[tokio::test]
async fn everything_is_selected_with_line_feeds_between() {
    let blob = "Service,Package\r\nEvent Hubs\r\na,\"b,c\"\r\n";
    let answer = ask("SELECT * from BlobStorage", None, None, blob).await;
    assert_eq!(answer.text(), "Service,Package\nEvent Hubs\na,\"b,c\"\n");
    assert_eq!(answer.errors(), []);
}

/// Recorded: fields that contain the separator of the answer are quoted.
#[tokio::test]
async fn the_answer_has_its_own_separators() {
    let output = Delimited {
        column_separator: ";".into(),
        field_quote: "'".into(),
        record_separator: ".".into(),
        escape: "\\".into(),
        has_headers: false,
    };
    let blob = "Identity,azure-identity,1.1.0-beta.1,FALSE\r\nA,1\r\n";
    let answer =
        ask("SELECT * from BlobStorage", None, Some(OutputFormat::Delimited(output)), blob).await;
    assert_eq!(answer.text(), "Identity;azure-identity;'1.1.0-beta.1';FALSE.A;1.");
}

/// Recorded by the Java SDK: with headers in and out the blob comes back unchanged; with headers in
/// only, without its first line.
#[tokio::test]
async fn headers_are_left_out_unless_asked_for() {
    let blob = "rn1,rn2,rn3,rn4\n100,200,300,400\n";
    let settings = Delimited { has_headers: true, ..Delimited::default() };
    let output = Some(OutputFormat::Delimited(settings));
    let both = ask("SELECT * from BlobStorage", with_headers(), output.clone(), blob).await;
    assert_eq!(both.text(), blob);
    let none = ask("SELECT * from BlobStorage", with_headers(), to_delimited(), blob).await;
    assert_eq!(none.text(), "100,200,300,400\n");
    let some = ask("SELECT rn3, _1 AS one, 1 FROM BlobStorage", with_headers(), output, blob).await;
    assert_eq!(some.text(), "rn3,one,_3\n300,100,1\n");
}

#[tokio::test]
async fn columns_are_selected_by_the_names_of_the_header() {
    let blob = "Name,Price\nmouse,12.5\nkeyboard,30\n";
    let select = async |expression: &str| ask(expression, with_headers(), None, blob).await;
    let input_has_headers = select("SELECT name FROM BlobStorage WHERE PRICE < 20").await;
    assert_eq!(input_has_headers.text(), "Name\nmouse\n");
    let quoted = select("SELECT \"name\" FROM BlobStorage").await;
    assert_eq!(quoted.errors(), [(true, "InvalidColumnName", 0)]);
}

#[tokio::test]
async fn a_name_without_a_header_ends_the_query() {
    let answer = ask("SELECT Name FROM BlobStorage", None, None, NUMBERS).await;
    assert_eq!(answer.errors(), [(true, "InvalidColumnName", 0)]);
    assert_eq!(answer.text(), "");
}

/// Recorded: the record is left out, the error is not fatal and has the offset of the record.
#[tokio::test]
async fn a_record_without_the_column_is_a_problem_of_that_record() {
    let blob = "a,b\n1,2\n3\n4,5\n";
    let answer = ask("SELECT b FROM BlobStorage", with_headers(), to_delimited(), blob).await;
    assert_eq!(answer.text(), "2\n5\n");
    assert_eq!(answer.errors(), [(false, "InvalidColumnOrdinal", 8)]);
}

/// Recorded by the .NET SDK, with this name, this description and this position. The first record
/// is not the error: the Python SDK cannot read such an answer.
#[tokio::test]
async fn a_text_that_is_no_number_is_a_problem_of_its_record() {
    let blob = "100,pizza,300,400\n300,400,500,600\n";
    let answer = ask("SELECT _1 from BlobStorage WHERE _2 > 250;", None, None, blob).await;
    let error = Frame::Error {
        fatal: false,
        name: "InvalidTypeConversion".to_owned(),
        description: "Invalid type conversion.".to_owned(),
        position: 0,
    };
    assert_eq!(answer.frames[..2], [Frame::Data(b"300\n".to_vec()), error.clone()]);
    let alone = ask("SELECT _1 from BlobStorage WHERE _2 > 250;", None, None, "1,pizza\n").await;
    assert_eq!(alone.frames[1], error);
    assert!(matches!(alone.frames[0], Frame::Progress { .. }));
}

#[tokio::test]
async fn a_quote_that_stays_open_ends_the_query() {
    let answer = ask("SELECT * FROM BlobStorage", None, None, "a,b\nc,\"d\ne").await;
    assert_eq!(answer.text(), "a,b\n");
    assert_eq!(answer.errors(), [(true, "ParseError", 4)]);
}

#[tokio::test]
async fn a_record_that_is_too_long_ends_the_query() {
    let blob = format!("a\n\"{}", "x".repeat(5 << 20));
    let answer =
        run(request("SELECT * FROM BlobStorage", None, None), blob.as_bytes(), 64 << 10).await;
    assert_eq!(answer.errors(), [(true, "ParseError", 2)]);
    assert_eq!(answer.text(), "a\n");
}

/// Recorded: columns without a name are named by their place in the answer.
#[tokio::test]
async fn delimited_text_becomes_json_of_texts() {
    let all = ask("SELECT * from BlobStorage", None, to_json(), "100,200\n").await;
    assert_eq!(all.text(), "{\"_1\":\"100\",\"_2\":\"200\"}\n");
    let one = ask("SELECT _2 from BlobStorage WHERE _1 > 250;", None, to_json(), NUMBERS).await;
    assert_eq!(one.text(), "{\"_1\":\"400\"}\n");
    let blob = "Name,Price\nmouse,12.5\n";
    let expression = "SELECT name, CAST(price AS FLOAT) AS p FROM BlobStorage";
    let named = ask(expression, with_headers(), to_json(), blob).await;
    assert_eq!(named.text(), "{\"Name\":\"mouse\",\"p\":12.5}\n");
}

/// Recorded: a field that is missing stays missing, and no separator is needed between objects.
#[tokio::test]
async fn json_is_read_with_and_without_separators() {
    let first = "{\"name\": \"owner\", \"id\": 1}";
    let second = "{\"name2\": \"owner2\"}";
    let output = Some(OutputFormat::Json(JsonText { record_separator: ";".into() }));
    for between in ["\n", "", " \r\n"] {
        let blob = format!("{first}{between}{second}{between}{first}");
        let answer = ask("SELECT name from BlobStorage", json(), output.clone(), &blob).await;
        assert_eq!(answer.text(), "{\"name\":\"owner\"};{};{\"name\":\"owner\"};");
        assert_eq!(answer.errors(), []);
    }
    let semicolons = Some(InputFormat::Json(JsonText { record_separator: ";;".into() }));
    let blob = format!("{first};;{second};;");
    let answer = ask("SELECT name from BlobStorage", semicolons, output, &blob).await;
    assert_eq!(answer.text(), "{\"name\":\"owner\"};{};");
}

/// Recorded: all fields in order, without the space between them.
#[tokio::test]
async fn json_comes_back_compact_and_as_it_is() {
    let blob = "{\"a\": 1.10, \"b\": [1, {\"c\": null}], \"d\\n\": \"e\\u00fc\"}";
    let answer = ask("SELECT * from BlobStorage", json(), None, blob).await;
    assert_eq!(answer.text(), "{\"a\":1.10,\"b\":[1,{\"c\":null}],\"d\\n\":\"eü\"}\n");
}

#[tokio::test]
async fn json_becomes_delimited_text() {
    let blob = "{\"a\": \"x,y\", \"b\": 2, \"c\": {\"d\": [1]}, \"e\": null, \"f\": true}\n";
    let answer = ask("SELECT * from BlobStorage", json(), to_delimited(), blob).await;
    assert_eq!(answer.text(), "\"x,y\",2,\"{\"\"d\"\":[1]}\",,true\n");
    let headers = Delimited { has_headers: true, ..Delimited::default() };
    let output = Some(OutputFormat::Delimited(headers));
    let answer = ask("SELECT * from BlobStorage", json(), output, blob).await;
    assert!(answer.text().starts_with("a,b,c,e,f\n"), "{}", answer.text());
}

const WAREHOUSE: &str = r#"{ "id": 1, "name": "mouse", "price": 12.5,
  "tags": [ "wireless", "accessory" ],
  "dimensions": { "length": 3, "width": 2 },
  "weight": 0.2,
  "warehouses": [ { "latitude": 41.8, "longitude": -87.6 }, { "latitude": 1 } ] }"#;

/// The examples of the language reference.
#[tokio::test]
async fn paths_lead_into_json() {
    for (expression, expected) in [
        ("SELECT latitude FROM BlobStorage[*].warehouses[*]", "41.8\n1\n"),
        ("SELECT length FROM BlobStorage[*].dimensions", "3\n"),
        (
            "SELECT weight,warehouses[0].longitude,id,tags[1] FROM BlobStorage[*]",
            "0.2,-87.6,1,accessory\n",
        ),
        ("SELECT * FROM BlobStorage[*].tags[*]", "wireless\naccessory\n"),
        (
            "SELECT name FROM BlobStorage WHERE nothing IS MISSING AND dimensions.width = 2",
            "mouse\n",
        ),
        ("SELECT tags[9], Name FROM BlobStorage", ",mouse\n"),
        ("SELECT * FROM BlobStorage[*].nothing[*]", ""),
    ] {
        let answer = ask(expression, json(), to_delimited(), WAREHOUSE).await;
        assert_eq!(answer.text(), expected, "{expression}");
    }
}

#[tokio::test]
async fn the_elements_of_an_array_are_records() {
    let blob = "[{\"a\":1},\n{\"a\":2} , {\"b\":3}]\n";
    let answer = ask("SELECT a FROM BlobStorage WHERE a > 1", json(), None, blob).await;
    assert_eq!(answer.text(), "{\"a\":2}\n");
    assert_eq!(answer.errors(), []);
}

/// Recorded by the .NET and Python SDKs: fatal, with the byte in the description, nothing else.
#[tokio::test]
async fn what_is_no_json_ends_the_query() {
    let answer = ask("SELECT * from BlobStorage;", json(), None, NUMBERS).await;
    let Frame::Error { description, .. } = &answer.frames[1] else { panic!("{answer:?}") };
    assert_eq!(description, "Unexpected token ',' at [byte: 3]. Expecting tokens '{', or '['.");
    assert_eq!(answer.errors(), [(true, "ParseError", 0)]);
    for (blob, position) in [
        ("{name: owner}\n{name2: owner2}", 0),
        ("{\"a\":1}\n{\"a\":", 8),
        ("[{\"a\":1} {\"a\":2}]", 9),
        ("{\"a\":1}}", 7),
    ] {
        let answer = ask("SELECT * from BlobStorage", json(), None, blob).await;
        assert_eq!(answer.errors(), [(true, "ParseError", position)], "{blob}");
    }
}

#[tokio::test]
async fn an_aggregate_is_one_record() {
    let blob = "Item,Price\na,10\nb,x\nc,2.5\nd,4\n";
    for (expression, expected, errors) in [
        ("SELECT COUNT(*) FROM BlobStorage", "4\n", 0),
        ("SELECT COUNT(*) FROM BlobStorage WHERE item <> 'b'", "3\n", 0),
        ("SELECT SUM(price) FROM BlobStorage", "16.5\n", 1),
        ("SELECT AVG(CAST(price AS FLOAT)) FROM BlobStorage", "5.5\n", 1),
        ("SELECT MIN(item) FROM BlobStorage", "a\n", 0),
        ("SELECT MAX(CAST(price AS FLOAT)) AS m FROM BlobStorage", "10\n", 1),
        ("SELECT MAX(price) FROM BlobStorage WHERE item = 'z'", "\n", 0),
    ] {
        let answer = ask(expression, with_headers(), to_delimited(), blob).await;
        assert_eq!(answer.text(), expected, "{expression}");
        assert_eq!(answer.errors().len(), errors, "{expression}");
    }
}

#[tokio::test]
async fn a_limit_ends_the_reading() {
    let blob = "1,2\n".repeat(1 << 20);
    let request = request("SELECT _1 FROM BlobStorage LIMIT 3", None, None);
    let answer = run(request, blob.as_bytes(), 1 << 20).await;
    assert_eq!(answer.text(), "1\n1\n1\n");
    assert_eq!(answer.progress().len(), 1);
    assert!(answer.progress()[0] < 1 << 20);
    let none = ask("SELECT _1 FROM BlobStorage LIMIT 0", None, None, NUMBERS).await;
    assert_eq!(none.text(), "");
}

/// Recorded by the .NET SDK: progress after each 4 MiB, and the end.
#[tokio::test]
async fn progress_is_told_every_four_mebibytes() {
    let blob = NUMBERS.repeat((16 << 20) / NUMBERS.len());
    let request = request("SELECT * from BlobStorage", None, None);
    let answer = run(request, blob.as_bytes(), 1_000_003).await;
    let mebibytes: Vec<_> = answer.progress().iter().map(|bytes| bytes >> 20).collect();
    assert_eq!(mebibytes, [4, 8, 12, 16]);
    assert_eq!(answer.data(), blob.as_bytes());
}

#[tokio::test]
async fn an_empty_blob_has_an_end() {
    for input in [None, with_headers(), json()] {
        let answer = ask("SELECT * FROM BlobStorage", input, to_delimited(), "").await;
        assert_eq!(
            answer.frames,
            [Frame::Progress { scanned: 0, total: 0 }, Frame::End { total: 0 }]
        );
    }
}

#[tokio::test]
async fn marks_and_empty_lines_are_no_records() {
    let answer = ask("SELECT _1 FROM BlobStorage", None, None, "\u{FEFF}a\n\n\r\n\"\"\nb").await;
    assert_eq!(answer.text(), "a\n\nb\n");
    let answer = ask("SELECT a FROM BlobStorage", json(), None, "\u{FEFF}{\"a\":1}").await;
    assert_eq!(answer.text(), "{\"a\":1}\n");
}

#[tokio::test]
async fn a_blob_is_split_between_records() {
    let record = format!("{}\n", "x".repeat(999));
    let blob = record.repeat(25_000);
    let request = request("SELECT sys.split(10485760) FROM BlobStorage", None, None);
    let answer = run(request, blob.as_bytes(), 300_000).await;
    assert_eq!(answer.text(), "10486000\n10486000\n4028000\n");
}

#[tokio::test]
async fn bytes_that_are_no_text_come_back_as_they_are() {
    let request = request("SELECT * FROM BlobStorage", None, None);
    let answer = run(request, b"\xFF\xFE,\x80\n", 2).await;
    assert_eq!(answer.data(), b"\xFF\xFE,\x80\n");
}

/// Each LIKE takes a step for each character and each 64 places of its pattern.
#[tokio::test]
async fn a_record_that_costs_too_much_ends_the_query() {
    let pattern = format!("'%{}b%'", "_a".repeat(3900));
    let like = format!("_1 LIKE {pattern}");
    let filter = vec![like; 12].join(" OR ");
    let blob = format!("short\n{}\nnever\n", "a".repeat(4_000_000));
    let expression = format!("SELECT _1 FROM BlobStorage WHERE _1 = 'short' OR {filter}");
    let answer = run(request(&expression, None, None), blob.as_bytes(), 1 << 20).await;
    assert_eq!(answer.text(), "short\n");
    assert_eq!(answer.errors(), [(true, "QueryTooComplex", 6)]);
}

/// No record costs much, but there are many in a short blob.
#[tokio::test]
async fn records_that_cost_too_much_together_end_the_query() {
    let text = "a".repeat(50_000);
    let pattern = format!("'%{}b%'", "_a".repeat(3900));
    let blob = "b\n".repeat(4000);
    let expression = format!("SELECT _1 FROM BlobStorage WHERE '{text}' LIKE {pattern}");
    let answer = run(request(&expression, None, None), blob.as_bytes(), 1 << 20).await;
    let [(true, "QueryTooComplex", at)] = answer.errors()[..] else {
        panic!("{:?}", answer.errors())
    };
    assert!((1..8000).contains(&at), "after some records: {at}");
}

/// However much work the records of one step need, other queries of the same owner run in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_of_many_records_give_way_between_them() {
    let text = "a".repeat(20_000);
    let pattern = format!("'%{}b%'", "_a".repeat(3900));
    let expression = format!("SELECT _1 FROM BlobStorage WHERE '{text}' LIKE {pattern}");
    let blob = "b\n".repeat(100_000);
    let slow: Vec<_> = (0..8)
        .map(|_| {
            let (expression, blob) = (expression.clone(), blob.clone());
            tokio::spawn(async move {
                support::of_owner("busy", &expression, blob.as_bytes()).await;
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let begun = Instant::now();
    support::of_owner("busy", "SELECT _1 FROM BlobStorage", b"a\n").await;
    let took = begun.elapsed();
    assert!(slow.iter().all(|query| !query.is_finished()), "they were quick after all");
    slow.iter().for_each(tokio::task::JoinHandle::abort);
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// The thread of a query is released soon after its client is gone.
#[tokio::test]
async fn a_query_that_is_dropped_leaves_its_threads() {
    let pattern = format!("'%{}b%'", "_a".repeat(3900));
    let filter = vec![format!("_1 LIKE {pattern}"); 32].join(" OR ");
    let blob = format!("{}\n", "a".repeat(100_000));
    let expression = format!("SELECT _1 FROM BlobStorage WHERE {filter}");
    let begun = Instant::now();
    support::of_owner("greedy", &expression, blob.as_bytes()).await;
    let to_its_end = begun.elapsed();
    for _ in 0..8 {
        let slow = support::of_owner("greedy", &expression, blob.as_bytes());
        let waited = tokio::time::timeout(to_its_end / 10, slow).await;
        assert!(waited.is_err(), "it is quick after all");
    }
    let begun = Instant::now();
    support::of_owner("greedy", "SELECT _1 FROM BlobStorage", b"a\n").await;
    assert!(begun.elapsed() < to_its_end, "{:?} of {to_its_end:?}", begun.elapsed());
}
