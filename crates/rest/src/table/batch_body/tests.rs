//! The forms of batches that clients send, and invalid ones.

use super::*;

fn parsed(body: &str) -> Result<BatchBody<'_>, BatchRefusal> {
    parse(body.as_bytes(), "batch_1", 3)
}

fn changes(body: &str) -> Vec<PartRequest<'_>> {
    match parsed(body) {
        Ok(BatchBody::Changes(changes)) => changes,
        other => panic!("no changes: {other:?}"),
    }
}

const PYTHON: &str = "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_2\r\n\r\n\
    --changeset_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\
    Content-ID: 0\r\n\r\nPOST http://host:1/acct/T HTTP/1.1\r\nContent-Type: application/json\r\n\
    Accept: application/json;odata=minimalmetadata\r\nPrefer: return-no-content\r\n\
    Content-Length: 7\r\n\r\n{\"a\":1}\r\n--changeset_2\r\nContent-Type: application/http\r\n\
    Content-ID: 1\r\n\r\nDELETE http://host:1/acct/T(PartitionKey='p',RowKey='r') HTTP/1.1\r\n\
    If-Match: *\r\n\r\n\r\n--changeset_2--\r\n\r\n--batch_1--\r\n";

#[test]
fn the_form_of_the_python_sdk_is_read() {
    let changes = changes(PYTHON);
    assert_eq!(changes.len(), 2);
    assert_eq!((changes[0].method, changes[0].target), ("POST", "http://host:1/acct/T"));
    assert_eq!(changes[0].header("prefer"), Some("return-no-content"));
    assert_eq!(changes[0].content_id, Some("0"));
    assert_eq!(changes[0].body.trim_ascii(), b"{\"a\":1}");
    assert_eq!(changes[1].header("IF-MATCH"), Some("*"));
    assert_eq!(changes[1].header("content-type"), None, "that of the envelope stays with it");
    assert_eq!(changes[1].body.trim_ascii(), b"");
}

#[test]
fn the_form_of_the_javascript_sdk_is_read() {
    let body = "--batch_1\r\ncontent-type: multipart/mixed; boundary=changeset_2\r\n\r\n\r\n\
        --changeset_2\r\ncontent-type: application/http\r\ncontent-transfer-encoding: binary\r\n\r\n\
        PUT https://host/T(PartitionKey='a b',RowKey='1') HTTP/1.1\r\n\
        content-type: application/json\r\n\r\n\r\n{\"name\":\"x\"}\r\n--changeset_2--\r\n--batch_1";
    for end in ["--\r\n", "--", "\r\n", "\r\n\r\n", ""] {
        let body = format!("{body}{end}");
        let changes = changes(&body);
        assert_eq!(changes[0].target, "https://host/T(PartitionKey='a b',RowKey='1')", "{end:?}");
        assert_eq!(changes[0].body.trim_ascii(), b"{\"name\":\"x\"}", "{end:?}");
        assert_eq!(changes[0].content_id, None, "{end:?}");
    }
}

#[test]
fn lines_may_end_in_lf_alone_and_a_content_id_may_stand_with_the_request() {
    let body = PYTHON.replace("\r\n", "\n").replace("Content-ID: 0\n", "");
    let body = body.replace("Accept:", "Content-ID: x\nAccept:");
    let changes = changes(&body);
    assert_eq!((changes.len(), changes[0].content_id), (2, Some("x")));
}

#[test]
fn a_boundary_within_a_value_or_at_the_beginning_of_another_is_none() {
    let tricky = PYTHON.replace("{\"a\":1}", "{\"a\":\"--changeset_2\"}");
    assert_eq!(changes(&tricky).len(), 2);
    let longer = PYTHON.replace("{\"a\":1}", "{\r\n--changeset_22\r\n}");
    assert_eq!(changes(&longer)[0].body.trim_ascii(), b"{\r\n--changeset_22\r\n}");
}

#[test]
fn a_query_stands_alone_outside_of_a_change_set() {
    let query = "--batch_1\r\nContent-Type: application/http\r\n\r\n\
        GET http://host/acct/T(PartitionKey='p',RowKey='r')?$select=a HTTP/1.1\r\n\
        Accept: application/json\r\n\r\n";
    let alone = format!("{query}\r\n--batch_1--\r\n");
    let Ok(BatchBody::Query(part)) = parsed(&alone) else { panic!("no query") };
    assert_eq!((part.method, part.header("accept")), ("GET", Some("application/json")));
    let twice = format!("{query}{query}\r\n--batch_1--\r\n");
    assert!(matches!(parsed(&twice), Err(BatchRefusal::Unreadable(_))), "4.6 a single GET");
}

#[test]
fn bodies_of_another_form_are_refused() {
    let one =
        "--changeset_2\r\nContent-Type: application/http\r\n\r\nPOST /a/T HTTP/1.1\r\n\r\n{}\r\n";
    let set = |parts: &str| {
        format!(
            "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_2\r\n\r\n{parts}\
             --changeset_2--\r\n"
        )
    };
    let batch = |sets: &str| format!("{sets}--batch_1--\r\n");
    assert_eq!(changes(&batch(&set(&one.repeat(3)))).len(), 3);
    for (case, body) in [
        ("4.6 a second change set", batch(&set(one).repeat(2))),
        ("4.6 too many operations", batch(&set(&one.repeat(4)))),
        ("nothing", String::new()),
        ("another boundary", PYTHON.replace("batch_1", "batch_2")),
        ("no end", set(one)[..100].to_owned()),
        ("no end of the change set", batch(&set(one).replace("--changeset_2--", ""))),
        ("no parts at all", "--batch_1--\r\n".to_owned()),
        ("not http", PYTHON.replace("application/http", "text/plain")),
        ("no request line", PYTHON.replace("POST http://host:1/acct/T HTTP/1.1", "POST")),
        ("another protocol", PYTHON.replace("T HTTP/1.1", "T HTTP/2")),
        ("a header without a colon", PYTHON.replace("Prefer:", "Prefer")),
    ] {
        assert!(parsed(&body).is_err(), "{case}");
    }
    let body = PYTHON.replace("Prefer", "Pref\u{fffd}r").into_bytes();
    let body: Vec<u8> = body.into_iter().filter(|byte| *byte != 0xBF).collect();
    assert!(parse(&body, "batch_1", 3).is_err(), "bytes that are no text");
}
