//! Every type at every level of metadata.

use holdfast_domain::table::{EntityKey, Properties};
use holdfast_domain::time::Timestamp;
use uuid::Uuid;

use super::*;

fn timestamp() -> Timestamp {
    Timestamp::parse_iso8601("2024-01-31T12:34:56.1234567Z").expect("a time")
}

fn written(level: Level, select: Option<&[&str]>, properties: &[(&str, ValueRef<'_>)]) -> String {
    let key = EntityKey::new("it's", "r /".replace('/', "&")).expect("a key");
    let mut own = Properties::default();
    for (name, value) in properties {
        own.push(name, *value).expect("a property");
    }
    let entity = EntityView::written(&key, timestamp(), &own);
    let writer =
        EntityWriter { level, endpoint: &"http://host/acct", account: "acct", table: "T", select };
    let mut body = Vec::new();
    writer.element(&mut body, &entity);
    String::from_utf8(body).expect("text")
}

#[test]
fn each_level_says_as_much_of_itself_as_the_table_says() {
    let own = [("n", ValueRef::Int64(5)), ("t", ValueRef::String("x"))];
    assert_eq!(
        written(Level::None, None, &own),
        r#"{"PartitionKey":"it's","RowKey":"r &","Timestamp":"2024-01-31T12:34:56.1234567Z","n":"5","t":"x"}"#
    );
    assert_eq!(
        written(Level::Minimal, None, &own),
        concat!(
            r##"{"odata.metadata":"http://host/acct/$metadata#T/@Element","##,
            r#""odata.etag":"W/\"datetime'2024-01-31T12%3A34%3A56.1234567Z'\"","#,
            r#""PartitionKey":"it's","RowKey":"r &","Timestamp":"2024-01-31T12:34:56.1234567Z","#,
            r#""n@odata.type":"Edm.Int64","n":"5","t":"x"}"#,
        )
    );
    assert_eq!(
        written(Level::Full, None, &own),
        concat!(
            r##"{"odata.metadata":"http://host/acct/$metadata#T/@Element","##,
            r#""odata.type":"acct.T","#,
            r#""odata.id":"http://host/acct/T(PartitionKey='it%27%27s',RowKey='r%20%26')","#,
            r#""odata.etag":"W/\"datetime'2024-01-31T12%3A34%3A56.1234567Z'\"","#,
            r#""odata.editLink":"T(PartitionKey='it%27%27s',RowKey='r%20%26')","#,
            r#""PartitionKey":"it's","RowKey":"r &","#,
            r#""Timestamp@odata.type":"Edm.DateTime","Timestamp":"2024-01-31T12:34:56.1234567Z","#,
            r#""n@odata.type":"Edm.Int64","n":"5","t":"x"}"#,
        )
    );
}

#[test]
fn every_type_has_its_form_and_the_annotation_that_it_needs() {
    let guid = Uuid::parse_str("C9DA6455-213D-42C9-9A79-3E9149A57833").expect("a guid");
    let day = Timestamp::parse_iso8601("2024-01-31").expect("a day");
    for (value, json, annotation) in [
        (ValueRef::Binary(b"\xff\xef"), "\"/+8=\"", Some("Edm.Binary")),
        (ValueRef::Binary(b""), "\"\"", Some("Edm.Binary")),
        (ValueRef::Boolean(true), "true", None),
        (ValueRef::Boolean(false), "false", None),
        (ValueRef::DateTime(timestamp()), "\"2024-01-31T12:34:56.1234567Z\"", Some("Edm.DateTime")),
        (ValueRef::DateTime(day), "\"2024-01-31T00:00:00Z\"", Some("Edm.DateTime")),
        (ValueRef::Double(5.0), "5.0", None),
        (ValueRef::Double(0.1), "0.1", None),
        (ValueRef::Double(-0.0), "-0.0", None),
        (ValueRef::Double(1e300), "1e300", None),
        (ValueRef::Double(f64::NAN), "\"NaN\"", Some("Edm.Double")),
        (ValueRef::Double(f64::INFINITY), "\"Infinity\"", Some("Edm.Double")),
        (ValueRef::Double(f64::NEG_INFINITY), "\"-Infinity\"", Some("Edm.Double")),
        (ValueRef::Guid(guid), "\"c9da6455-213d-42c9-9a79-3e9149a57833\"", Some("Edm.Guid")),
        (ValueRef::Int32(i32::MIN), "-2147483648", None),
        (ValueRef::Int64(i64::MAX), "\"9223372036854775807\"", Some("Edm.Int64")),
        (ValueRef::String(""), "\"\"", None),
        (
            ValueRef::String("\"\\\n\r\t\u{1}\u{7f} é😀/"),
            "\"\\\"\\\\\\n\\r\\t\\u0001\u{7f} é😀/\"",
            None,
        ),
    ] {
        for level in [Level::None, Level::Minimal, Level::Full] {
            let annotation = match annotation {
                Some(edm) if level != Level::None => format!(r#""v@odata.type":"{edm}","#),
                Some(_) | None => String::new(),
            };
            let expected = format!(r#"{annotation}"v":{json}}}"#);
            let json = written(level, Some(&["v"]), &[("v", value)]);
            assert!(json.ends_with(&expected), "4.2, 4.3 {value:?} at {level:?}: {json}");
            if level == Level::None {
                assert_eq!(json, format!("{{{expected}"), "4.3 nometadata");
            }
        }
    }
}

#[test]
fn a_selection_has_its_own_order_and_null_for_what_is_not_there() {
    let own = [("a", ValueRef::Int32(1)), ("b", ValueRef::Int32(2))];
    let select = |names: &[&str]| written(Level::None, Some(names), &own);
    assert_eq!(select(&["b", "a"]), r#"{"b":2,"a":1}"#);
    assert_eq!(select(&["RowKey", "none"]), r#"{"RowKey":"r &","none":null}"#, "4.5 $select");
    assert_eq!(select(&["Timestamp"]), r#"{"Timestamp":"2024-01-31T12:34:56.1234567Z"}"#);
    assert_eq!(select(&[]), "{}");
}
