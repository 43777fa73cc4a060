//! How values of each type compare.

use uuid::Uuid;

use super::*;
use crate::time::Timestamp;

const GUID: &str = "c9da6455-213d-42c9-9a79-3e9149a57833";

fn row() -> Sample {
    let time = Timestamp::parse_iso8601("2008-07-10T12:30:00.1234567Z").expect("a time");
    Sample(vec![
        ("Text", text("it's")),
        ("Empty", text("")),
        ("Small", Value::Int32(5)),
        ("Negative", Value::Int32(i32::MIN)),
        ("Long", Value::Int64(5)),
        ("Longest", Value::Int64(i64::MIN)),
        ("Double", Value::Double(5.0)),
        ("Fraction", Value::Double(2.5)),
        ("Zero", Value::Double(-0.0)),
        ("Nothing", Value::Double(f64::NAN)),
        ("Infinite", Value::Double(f64::NEG_INFINITY)),
        ("Yes", Value::Boolean(true)),
        ("No", Value::Boolean(false)),
        ("Time", Value::DateTime(time)),
        ("Guid", Value::Guid(Uuid::try_parse(GUID).expect("a guid"))),
        ("Bytes", Value::Binary(vec![0x00, 0xAB, 0xff].into())),
        ("NoBytes", Value::Binary(Vec::new().into())),
    ])
}

fn assert_matches(expected: bool, filters: &[&str]) {
    let row = row();
    for filter in filters {
        assert_eq!(matches(filter, &row), expected, "{filter}");
    }
}

#[test]
fn constants_of_every_type_are_read() {
    assert_matches(
        true,
        &[
            "Text eq 'it''s'",
            "Empty eq ''",
            "Small eq 5",
            "Small eq 005",
            "Negative eq -2147483648",
            "Long eq 5L",
            "Long eq 5l",
            "Longest eq -9223372036854775808L",
            "Double eq 5.0",
            "Double eq 5D",
            "Double eq 5.000d",
            "Double eq 0.5e1",
            "Double eq 50e-1",
            "Double eq 5E0",
            "Double eq 5e+0",
            "Fraction eq 2.5",
            "Zero eq 0.0",
            "Zero eq -0.0",
            "Infinite eq -INF",
            "Infinite lt INF",
            "Yes eq true",
            "No eq false",
            "No lt true",
            "Time eq datetime'2008-07-10T12:30:00.1234567Z'",
            "Time eq datetime'2008-07-10T12:30:00.1234567'",
            "Time eq datetime'2008-07-10T14:30:00.1234567+02:00'",
            "Time gt datetime'2008-07-10T12:30:00Z'",
            "Time gt datetime'2008-07-10T12:30Z'",
            "Time gt datetime'2008-07-10'",
            "Guid eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'",
            "Guid eq GUID'C9DA6455-213D-42C9-9A79-3E9149A57833'",
            "Bytes eq X'00ABff'",
            "Bytes eq x'00abFF'",
            "Bytes eq binary'00abff'",
            "NoBytes eq X''",
        ],
    );
}

#[test]
fn constants_that_are_none_are_refused() {
    for filter in [
        // The service has no integers of its own between Int32 and Int64.
        "Small eq 2147483648",
        "Small eq -2147483649",
        "Small eq 5454161346626",
        "Long eq 9223372036854775808L",
        "Double eq 1e999",
        "Double eq 5.",
        "Double eq .5",
        "Double eq 5.5.5",
        "Double eq 5e",
        "Double eq 5e+",
        "Double eq 5e1.5",
        "Double eq 5.5f",
        "Double eq 5.5m",
        "Double eq 5.5L",
        "Double eq 5LL",
        "Double eq +5",
        "Double eq --5",
        "Double eq - 5",
        "Double eq -",
        "Double eq 0x10",
        "Double eq 1_000",
        "Double eq -NaN",
        "Double eq nan",
        "Double eq inf",
        "Time eq datetime'2008'",
        "Time eq datetime'2008-02-30T00:00:00Z'",
        "Time eq datetime'2008-07-10 00:00:00'",
        "Time eq datetime''",
        "Time eq datetime '2008-07-10'",
        "Time eq datetimeoffset'2008-07-10T00:00:00Z'",
        "Time eq time'13:20:00'",
        "Guid eq guid''",
        "Guid eq guid'c9da6455213d42c99a793e9149a57833'",
        "Guid eq guid'{c9da6455-213d-42c9-9a79-3e9149a57833}'",
        "Guid eq guid'g9da6455-213d-42c9-9a79-3e9149a57833'",
        "Bytes eq X'0'",
        "Bytes eq X'0g'",
        "Bytes eq X'+1'",
        "Bytes eq X'äb'",
    ] {
        assert!(Filter::parse(filter).is_err(), "{filter}");
    }
}

#[test]
fn each_operator_compares() {
    for (value, constant, holding) in [
        (1, 2, ["ne", "lt", "le"].as_slice()),
        (2, 2, ["eq", "ge", "le"].as_slice()),
        (3, 2, ["ne", "gt", "ge"].as_slice()),
    ] {
        let row = Sample(vec![("n", Value::Int32(value))]);
        for operator in ["eq", "ne", "gt", "ge", "lt", "le"] {
            let expected = holding.contains(&operator);
            let filter = format!("n {operator} {constant}");
            assert_eq!(matches(&filter, &row), expected, "{value}: {filter}");
        }
    }
}

#[test]
fn a_constant_on_the_left_mirrors_the_operator() {
    assert_matches(true, &["5 eq Small", "4 lt Small", "5 le Small", "6 gt Small", "5 ge Small"]);
    assert_matches(false, &["4 gt Small", "6 lt Small", "5 lt Small", "5 gt Small", "5 ne Small"]);
    assert_matches(true, &["'it''s' eq Text", "X'00' lt Bytes", "false ne Yes"]);
}

#[test]
fn an_int32_constant_is_any_number_and_other_constants_find_their_own_type_only() {
    assert_matches(
        true,
        &["Small eq 5", "Long eq 5", "Double eq 5", "Fraction gt 2", "Fraction lt 3", "Long lt 6"],
    );
    for filter in ["Small # 5L", "Small # 5.0", "Long # 5.0", "Double # 5L", "Fraction # 2L"] {
        for operator in ["eq", "ne", "gt", "ge", "lt", "le"] {
            assert_matches(false, &[&filter.replace('#', operator)]);
        }
    }
}

#[test]
fn a_value_of_another_type_matches_no_comparison() {
    for constant in [
        "'5'",
        "true",
        "datetime'2008-07-10T00:00:00Z'",
        "guid'c9da6455-213d-42c9-9a79-3e9149a57833'",
        "X'05'",
    ] {
        for operator in ["eq", "ne", "gt", "ge", "lt", "le"] {
            assert_matches(false, &[&format!("Small {operator} {constant}")]);
        }
        assert_matches(true, &[&format!("not (Small eq {constant})")]);
    }
    // A property alone asks whether it is true.
    assert_matches(true, &["Yes", "not No"]);
    assert_matches(false, &["No", "not Yes", "Small", "Text"]);
}

/// Comparisons with a missing property are false, including `ne`; `not` negates that, which is how
/// such entities are found.
#[test]
fn a_property_that_is_not_there_matches_no_comparison() {
    for operator in ["eq", "ne", "gt", "ge", "lt", "le"] {
        for constant in ["''", "5", "true", "5L", "5.0"] {
            assert_matches(false, &[&format!("Missing {operator} {constant}")]);
            assert_matches(true, &[&format!("not (Missing {operator} {constant})")]);
        }
    }
    assert_matches(false, &["Missing"]);
    assert_matches(true, &["not Missing", "Missing eq 1 or Small eq 5"]);
}

#[test]
fn nan_differs_from_everything_and_has_no_place() {
    assert_matches(true, &["Nothing ne NaN", "Nothing ne 1.0", "Small ne 6", "Fraction ne NaN"]);
    assert_matches(
        false,
        &["Nothing eq NaN", "Nothing gt 0.0", "Nothing le 0", "Fraction le NaN", "Fraction ge NaN"],
    );
}

#[test]
fn text_is_compared_by_its_characters_not_by_a_language() {
    let row = Sample(vec![("t", text("Straße"))]);
    for (filter, expected) in [
        ("t eq 'straße'", false),
        ("t eq 'Strasse'", false),
        ("t lt 'a'", true),
        ("t gt 'Strasse'", true),
        ("t ge 'Stra' and t lt 'Strb'", true),
        ("t lt 'Straß\u{10000}'", true),
    ] {
        assert_eq!(matches(filter, &row), expected, "{filter}");
    }
}

/// As in .NET.
#[test]
fn text_is_in_the_order_of_its_utf16_units() {
    let row = Sample(vec![("t", text("\u{10000}"))]);
    assert!(matches("t lt '\u{FB00}' and t gt '\u{D7FF}'", &row));
}

#[test]
fn guids_and_bytes_are_ordered_as_they_are_written() {
    assert_matches(
        true,
        &[
            "Guid gt guid'c9da6454-ffff-ffff-ffff-ffffffffffff'",
            "Guid lt guid'c9da6456-0000-0000-0000-000000000000'",
            "Guid lt guid'd0000000-0000-0000-0000-000000000000'",
            "Bytes gt X'00ab'",
            "Bytes lt X'00abff00'",
            "Bytes lt X'01'",
            "NoBytes lt X'00'",
        ],
    );
}
