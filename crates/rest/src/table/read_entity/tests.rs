//! Every type in every form that it can be sent in, and every refusal.

use holdfast_domain::table::Value;

use super::*;

fn body(members: &str) -> String {
    format!(r#"{{"PartitionKey":"p","RowKey":"r"{members}}}"#)
}

fn properties(json: &str) -> Result<Vec<(String, Value)>, EntityBodyRefusal> {
    let mut sent = read(json.as_bytes())?;
    let key = EntityKey::new("p", "r").expect("a key");
    sent.check_key(&key)?;
    sent.key()?;
    let entity =
        holdfast_domain::table::EntityView::written(&key, Timestamp::default(), &sent.properties);
    Ok(entity.own_properties().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// The value of the property `v`, whose annotation is given if it has one.
fn value(edm: Option<&str>, json: &str) -> Result<Option<Value>, EntityBodyRefusal> {
    let annotation = edm.map(|edm| format!(r#","v@odata.type":"{edm}""#)).unwrap_or_default();
    let before = properties(&body(&format!(r#"{annotation},"v":{json}"#)));
    let behind = properties(&body(&format!(r#","v":{json}{annotation}"#)));
    // By their texts, since NaN is not equal to itself.
    let (one, other) = (format!("{before:?}"), format!("{behind:?}"));
    assert_eq!(one, other, "an annotation may stand before or behind: {edm:?} {json}");
    Ok(before?.pop().map(|(_, value)| value))
}

fn time(text: &str) -> Value {
    Value::DateTime(Timestamp::parse_iso8601(text).expect("a time"))
}

#[test]
fn every_type_is_read_in_every_form() {
    let guid = Uuid::parse_str("c9da6455-213d-42c9-9a79-3e9149a57833").expect("a guid");
    let text = |text: &str| Value::String(text.to_owned());
    let bytes = |bytes: &'static [u8]| Value::Binary(bytes.into());
    for (edm, json, expected) in [
        (None, "true", Value::Boolean(true)),
        (None, "false", Value::Boolean(false)),
        (None, "5", Value::Int32(5)),
        (None, "-2147483648", Value::Int32(i32::MIN)),
        (None, "2147483648", Value::Double(2_147_483_648.0)),
        (None, "18446744073709551616", Value::Double(18_446_744_073_709_551_616.0)),
        (None, "5.0", Value::Double(5.0)),
        (None, "-0.0", Value::Double(-0.0)),
        (None, "1e3", Value::Double(1000.0)),
        (None, "0.1", Value::Double(0.1)),
        (None, "123456789.12345679", Value::Double(123_456_789.123_456_79)),
        (None, "\"\"", text("")),
        (None, "\"5\"", text("5")),
        (None, r#""a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00 é""#, text("a\"\\/\u{8}\u{c}\n\r\té😀 é")),
        (Some("Edm.Binary"), "\"AQID\"", bytes(b"\x01\x02\x03")),
        (Some("Edm.Binary"), "\"\"", bytes(b"")),
        (Some("Edm.Binary"), "\"/+8=\"", bytes(b"\xff\xef")),
        (Some("Edm.Boolean"), "true", Value::Boolean(true)),
        (Some("Edm.Boolean"), "\"false\"", Value::Boolean(false)),
        (Some("Edm.Boolean"), "\"False\"", Value::Boolean(false)),
        (Some("Edm.Boolean"), "\"True\"", Value::Boolean(true)),
        (Some("Edm.Boolean"), "\"TRUE\"", Value::Boolean(true)),
        (
            Some("Edm.DateTime"),
            "\"2024-01-31T12:34:56.1234567Z\"",
            time("2024-01-31T12:34:56.1234567Z"),
        ),
        (Some("Edm.DateTime"), "\"2024-01-31T12:34:56\"", time("2024-01-31T12:34:56Z")),
        (Some("Edm.DateTime"), "\"2024-01-31T14:34:56+02:00\"", time("2024-01-31T12:34:56Z")),
        (Some("Edm.DateTime"), "\"1601-01-01T00:00:00Z\"", time("1601-01-01T00:00:00Z")),
        (Some("Edm.DateTime"), "\"9999-12-31T23:59:59.9999999Z\"", Value::DateTime(Timestamp::MAX)),
        (Some("Edm.Double"), "1.5", Value::Double(1.5)),
        (Some("Edm.Double"), "1", Value::Double(1.0)),
        (Some("Edm.Double"), "\"1.5\"", Value::Double(1.5)),
        (Some("Edm.Double"), "\"Infinity\"", Value::Double(f64::INFINITY)),
        (Some("Edm.Double"), "\"-Infinity\"", Value::Double(f64::NEG_INFINITY)),
        (Some("Edm.Guid"), "\"c9da6455-213d-42c9-9a79-3e9149a57833\"", Value::Guid(guid)),
        (Some("Edm.Guid"), "\"C9DA6455-213D-42C9-9A79-3E9149A57833\"", Value::Guid(guid)),
        (Some("Edm.Int32"), "5", Value::Int32(5)),
        (Some("Edm.Int32"), "\"5\"", Value::Int32(5)),
        (Some("Edm.Int64"), "\"9223372036854775807\"", Value::Int64(i64::MAX)),
        (Some("Edm.Int64"), "\"-9223372036854775808\"", Value::Int64(i64::MIN)),
        (Some("Edm.Int64"), "5", Value::Int64(5)),
        (Some("Edm.String"), "\"x\"", text("x")),
    ] {
        assert_eq!(value(edm, json), Ok(Some(expected)), "4.2 {edm:?} {json}");
    }
    let nan = value(Some("Edm.Double"), "\"NaN\"");
    assert!(matches!(nan, Ok(Some(Value::Double(number))) if number.is_nan()), "4.2 NaN");
}

#[test]
fn null_is_the_same_as_absent_whatever_its_type() {
    for edm in [None, Some("Edm.String"), Some("Edm.Int64"), Some("Edm.Binary")] {
        assert_eq!(value(edm, "null"), Ok(None), "4.2 Null {edm:?}");
    }
}

#[test]
fn values_that_are_not_of_their_type_are_refused() {
    use EntityBodyRefusal::{UnknownType, Unreadable, Value as Wrong};
    for (edm, json, expected) in [
        ("Edm.Binary", "\"A\"", Wrong),
        ("Edm.Binary", "\"*\"", Wrong),
        ("Edm.Binary", "\"AQ\"", Wrong),
        ("Edm.Binary", "\"AR==\"", Wrong),
        ("Edm.Binary", "\"AQ==AQ==\"", Wrong),
        ("Edm.Binary", "\"AQI D\"", Wrong),
        ("Edm.Binary", "\"AQ-_\"", Wrong),
        ("Edm.Binary", "5", Wrong),
        ("Edm.Boolean", "\"yes\"", Wrong),
        ("Edm.Boolean", "1", Wrong),
        ("Edm.DateTime", "\"yesterday\"", Wrong),
        ("Edm.DateTime", "5", Wrong),
        ("Edm.Double", "\"inf\"", Wrong),
        ("Edm.Double", "\"nan\"", Wrong),
        ("Edm.Double", "\"1e999\"", Wrong),
        ("Edm.Double", "true", Wrong),
        ("Edm.Guid", "\"c9da6455\"", Wrong),
        ("Edm.Guid", "5", Wrong),
        ("Edm.Int32", "2147483648", Wrong),
        ("Edm.Int32", "5.0", Wrong),
        ("Edm.Int32", "\"x\"", Wrong),
        ("Edm.Int64", "\"9223372036854775808\"", Wrong),
        ("Edm.Int64", "5.5", Wrong),
        ("Edm.String", "5", Wrong),
        ("Edm.Int16", "5", UnknownType),
        ("Edm.Decimal", "\"5\"", UnknownType),
        ("String", "\"5\"", UnknownType),
        ("", "\"5\"", UnknownType),
        ("Edm.String", "{}", Unreadable),
        ("Edm.String", "[1]", Unreadable),
    ] {
        assert_eq!(value(Some(edm), json), Err(expected), "4.2 {edm} {json}");
    }
    let early = value(Some("Edm.DateTime"), "\"1600-12-31T23:59:59Z\"");
    assert_eq!(early, Err(PropertyRefusal::DateOutOfRange.into()), "4.2 DateTime");
}

#[test]
fn bodies_that_are_no_object_of_plain_values_are_refused() {
    for json in [
        "",
        "{",
        "[]",
        "null",
        "\"text\"",
        "5",
        "{}x",
        "{}{}",
        "{'a':1}",
        "{a:1}",
        "{\"a\":1,}",
        "{\"a\":01}",
        "{\"a\":NaN}",
        "{\"a\":undefined}",
        "{\"a\":{}}",
        "{\"a\":[]}",
        "{\"a\":\"\u{1}\"}",
        r#"{"a":"\ud800"}"#,
        r#"{"a@odata.type":5}"#,
        r#"{"a@odata.type":null}"#,
    ] {
        assert_eq!(read(json.as_bytes()).err(), Some(EntityBodyRefusal::Unreadable), "{json}");
    }
    assert_eq!(read(b"{\"a\":\"\xff\"}").err(), Some(EntityBodyRefusal::Unreadable));
    let deep = "[".repeat(100_000);
    let nested = format!("{{\"odata.x\":{deep}}}");
    assert_eq!(read(nested.as_bytes()).err(), Some(EntityBodyRefusal::Unreadable));
}

#[test]
fn keys_are_texts_that_are_there_once() {
    use EntityBodyRefusal::{KeyMissing, KeyNotText, OtherKey};
    let duplicate = PropertyRefusal::Duplicate.into();
    let typed_partition =
        r#"{"PartitionKey@odata.type":"Edm.DateTime","PartitionKey":"p","RowKey":"r"}"#;
    let typed_row = r#"{"PartitionKey":"p","RowKey":"r","RowKey@odata.type":"Edm.Guid"}"#;
    for (json, expected) in [
        (r#"{"PartitionKey":"p","RowKey":"r"}"#, Ok(())),
        (r#"{"RowKey":"r","PartitionKey":"p"}"#, Ok(())),
        (r#"{"PartitionKey":"p","PartitionKey@odata.type":"Edm.String","RowKey":"r"}"#, Ok(())),
        (r#"{"PartitionKey":"p"}"#, Err(KeyMissing)),
        (r#"{"RowKey":"r"}"#, Err(KeyMissing)),
        (r#"{"PartitionKey":null,"RowKey":"r"}"#, Err(KeyMissing)),
        (r#"{"PartitionKey":"p","RowKey":null}"#, Err(KeyMissing)),
        (r#"{"PartitionKey":5,"RowKey":"r"}"#, Err(KeyNotText)),
        (r#"{"PartitionKey":"p","RowKey":true}"#, Err(KeyNotText)),
        (typed_partition, Err(KeyNotText)),
        (typed_row, Err(KeyNotText)),
        (r#"{"PartitionKey":"p","RowKey":"other"}"#, Err(OtherKey)),
        (r#"{"PartitionKey":"P","RowKey":"r"}"#, Err(OtherKey)),
        (r#"{"PartitionKey":"p","RowKey":"r","PartitionKey":"p"}"#, Err(duplicate)),
    ] {
        assert_eq!(properties(json).map(drop), expected, "4.2 {json}");
    }
}

#[test]
fn the_types_of_keys_do_not_matter_where_the_address_names_the_entity() {
    let key = EntityKey::new("p", "r").expect("a key");
    let json = r#"{"PartitionKey":"p","PartitionKey@odata.type":"Edm.Binary","RowKey":"r","a":1}"#;
    let sent = read(json.as_bytes()).expect("a body");
    assert_eq!(sent.check_key(&key), Ok(()));
}

#[test]
fn what_the_server_says_of_an_entity_can_be_sent_back() {
    let json = body(
        r#","odata.metadata":"m","odata.type":"t","odata.id":"i","odata.etag":"e",
           "odata.editLink":"l","Timestamp@odata.type":"Edm.DateTime","Timestamp":"never",
           "a@odata.navigationLinkUrl":"u","a":1,"b@odata.type":"Edm.Int64""#,
    );
    let found = properties(&json).expect("an entity");
    assert_eq!(found, [("a".to_owned(), Value::Int32(1))]);
}

#[test]
fn names_and_numbers_of_properties_have_limits() {
    let (at_255, at_256) = ("n".repeat(255), "n".repeat(256));
    for (name, expected) in [
        ("a", Ok(())),
        ("_a1", Ok(())),
        ("Größe", Ok(())),
        ("e\\u0301", Ok(())),
        (&at_255, Ok(())),
        (&at_256, Err(PropertyRefusal::NameTooLong)),
        ("", Err(PropertyRefusal::NameInvalid)),
        ("1a", Err(PropertyRefusal::NameInvalid)),
        ("a-b", Err(PropertyRefusal::NameInvalid)),
        ("a b", Err(PropertyRefusal::NameInvalid)),
        ("a.b", Err(PropertyRefusal::NameInvalid)),
        ("a:b", Err(PropertyRefusal::NameInvalid)),
    ] {
        let read = properties(&body(&format!(r#","{name}":1"#))).map(drop);
        assert_eq!(read, expected.map_err(EntityBodyRefusal::from), "4.2 {name}");
    }
    let twice = properties(&body(r#","a":1,"a":2"#));
    assert_eq!(twice, Err(PropertyRefusal::Duplicate.into()), "4.2 Duplicate property");
    assert!(properties(&body(r#","a":1,"A":2"#)).is_ok(), "4.2 names are case-sensitive");
    let many = |count: usize| {
        let members: String = (0..count).map(|at| format!(r#","p{at}":{at}"#)).collect();
        properties(&body(&members)).map(|properties| properties.len())
    };
    assert_eq!(many(252), Ok(252), "4.2 Properties per entity");
    assert_eq!(many(253), Err(PropertyRefusal::TooMany.into()), "4.2 Properties per entity");
    assert_eq!(many(5000), Err(EntityBodyRefusal::Unreadable));
}

#[test]
fn values_have_limits() {
    let text = |units: usize| format!(r#","v":"{}""#, "x".repeat(units));
    assert!(properties(&body(&text(32 * 1024))).is_ok(), "4.2 String");
    let long = properties(&body(&text(32 * 1024 + 1)));
    assert_eq!(long, Err(PropertyRefusal::ValueTooLarge.into()), "4.2 String");
    let emoji = |count: usize| format!(r#","v":"{}""#, "😀".repeat(count));
    assert!(properties(&body(&emoji(16 * 1024))).is_ok(), "4.2 String, in UTF-16 units");
    assert!(properties(&body(&emoji(16 * 1024 + 1))).is_err(), "4.2 String, in UTF-16 units");
    let binary = |length: usize| {
        let text = STANDARD.encode_to_string(vec![0; length]);
        properties(&body(&format!(r#","v@odata.type":"Edm.Binary","v":"{text}""#))).map(drop)
    };
    assert_eq!(binary(64 * 1024), Ok(()), "4.2 Binary");
    assert_eq!(binary(64 * 1024 + 1), Err(PropertyRefusal::ValueTooLarge.into()), "4.2 Binary");
}
