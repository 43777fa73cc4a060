//! Which keys a filter can match.

use super::*;

/// A span as text: partitions and rows between `/`, cuts as brackets around them.
fn written(span: &KeySpan<'_>) -> String {
    let cut = |cut: KeyCut<'_>| match cut {
        KeyCut::First => "first".to_owned(),
        KeyCut::Last => "last".to_owned(),
        KeyCut::At(Key(partition), Cut::First) => format!("<{partition}"),
        KeyCut::At(Key(partition), Cut::Last) => format!("{partition}>"),
        KeyCut::At(Key(partition), Cut::At(Key(row), Side::Before)) => {
            format!("<{partition}/{row}")
        }
        KeyCut::At(Key(partition), Cut::At(Key(row), Side::After)) => format!("{partition}/{row}>"),
    };
    match span.single() {
        Some((partition, row)) => format!("{partition}/{row}"),
        None => format!("{} {}", cut(span.start), cut(span.end)),
    }
}

fn assert_spans(filter: &str, expected: &[&str]) {
    let filter_read = parsed(filter);
    let spans: Vec<_> = filter_read.key_spans().iter().map(written).collect();
    assert_eq!(spans, expected, "{filter}");
}

#[test]
fn without_conditions_on_the_partition_everything_is_scanned() {
    for filter in ["", "n eq 1", "RowKey eq '1'", "RowKey gt 'a'", "true", "not false"] {
        assert_spans(filter, &["first last"]);
    }
    assert_spans("PartitionKey eq 'p' or n eq 1", &["first last"]);
    assert_spans("PartitionKey eq 'p' or RowKey eq '1'", &["first last"]);
}

#[test]
fn one_partition_is_one_span() {
    for filter in [
        "PartitionKey eq 'p'",
        "'p' eq PartitionKey",
        "PartitionKey eq 'p' and n gt 5",
        "n gt 5 and PartitionKey eq 'p'",
        "(n gt 5 or m) and (PartitionKey eq 'p')",
        "not (PartitionKey ne 'p')",
        "not (PartitionKey ne 'p' or n eq 3)",
        "not not (PartitionKey eq 'p')",
        "PartitionKey ge 'p' and PartitionKey le 'p'",
        "PartitionKey eq 'p' and PartitionKey gt 'a'",
        "PartitionKey eq 'p' and n eq 1 or PartitionKey eq 'p' and n eq 2",
        "PartitionKey eq 'p' and (n eq 1 or RowKey eq '1')",
    ] {
        assert_spans(filter, &["<p p>"]);
    }
}

#[test]
fn both_keys_are_one_row() {
    for filter in [
        "PartitionKey eq 'p' and RowKey eq '1'",
        "RowKey eq '1' and PartitionKey eq 'p'",
        "PartitionKey eq 'p' and RowKey eq '1' and n eq 5",
        "(PartitionKey eq 'p' and n eq 5) and (RowKey eq '1' and m)",
        "not (PartitionKey ne 'p' or RowKey ne '1')",
        "PartitionKey eq 'p' and RowKey ge '1' and RowKey le '1'",
    ] {
        assert_spans(filter, &["p/1"]);
    }
    assert_spans("PartitionKey eq '' and RowKey eq ''", &["/"]);
}

#[test]
fn ranges_of_rows_are_ranges_within_their_partition() {
    for (filter, expected) in [
        ("PartitionKey eq 'p' and RowKey gt '1'", "p/1> p>"),
        ("PartitionKey eq 'p' and RowKey ge '1'", "<p/1 p>"),
        ("PartitionKey eq 'p' and RowKey lt '1'", "<p <p/1"),
        ("PartitionKey eq 'p' and RowKey le '1'", "<p p/1>"),
        ("PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b'", "<p/a <p/b"),
        ("PartitionKey eq 'p' and 'a' le RowKey and 'b' gt RowKey", "<p/a <p/b"),
        ("PartitionKey eq 'p' and not (RowKey lt 'a' or RowKey ge 'b')", "<p/a <p/b"),
    ] {
        assert_spans(filter, &[expected]);
    }
}

#[test]
fn ranges_of_partitions_end_where_their_rows_can() {
    for (filter, expected) in [
        ("PartitionKey gt 'p'", "p> last"),
        ("PartitionKey ge 'p'", "<p last"),
        ("PartitionKey lt 'p'", "first <p"),
        ("PartitionKey le 'p'", "first p>"),
        ("PartitionKey ge 'p' and PartitionKey lt 'q'", "<p <q"),
        ("PartitionKey ge 'p' and PartitionKey le 'q' and RowKey ge '1'", "<p/1 q>"),
        ("PartitionKey ge 'p' and PartitionKey le 'q' and RowKey lt '1'", "<p <q/1"),
        ("PartitionKey gt 'p' and PartitionKey lt 'q' and RowKey eq '1'", "p> <q"),
    ] {
        assert_spans(filter, &[expected]);
    }
}

#[test]
fn alternatives_are_several_spans_in_order_each_once() {
    for (filter, expected) in [
        (
            "(PartitionKey eq 'b' and RowKey eq '2') or (PartitionKey eq 'a' and RowKey eq '1')",
            ["a/1", "b/2"].as_slice(),
        ),
        (
            "PartitionKey eq 'p' and (RowKey eq '3' or RowKey eq '1' or RowKey eq '1')",
            ["p/1", "p/3"].as_slice(),
        ),
        (
            "(PartitionKey eq 'a' or PartitionKey eq 'b') and (RowKey eq '1' or RowKey eq '2')",
            ["a/1", "a/2", "b/1", "b/2"].as_slice(),
        ),
        ("PartitionKey eq 'b' or PartitionKey eq 'a'", ["<a a>", "<b b>"].as_slice()),
        ("PartitionKey ne 'p'", ["first <p", "p> last"].as_slice()),
        (
            "PartitionKey eq 'a' or PartitionKey eq 'a' and RowKey eq '1' or PartitionKey eq 'c'",
            ["<a a>", "<c c>"].as_slice(),
        ),
        ("PartitionKey lt 'm' or PartitionKey ge 'm'", ["first last"].as_slice()),
        ("PartitionKey lt 'm' or PartitionKey ge 'g'", ["first last"].as_slice()),
        ("PartitionKey eq 'p' and RowKey ne '5'", ["<p <p/5", "p/5> p>"].as_slice()),
        ("PartitionKey eq 'p' and (RowKey lt '5' or RowKey ge '5')", ["<p p>"].as_slice()),
    ] {
        assert_spans(filter, expected);
    }
}

#[test]
fn what_cannot_match_is_not_scanned() {
    for filter in [
        "false",
        "not true",
        "PartitionKey eq 'a' and PartitionKey eq 'b'",
        "PartitionKey gt 'b' and PartitionKey lt 'a'",
        "PartitionKey gt 'a' and PartitionKey lt 'a'",
        "PartitionKey eq 5",
        "PartitionKey ne 5",
        "RowKey eq true",
        "PartitionKey",
        "PartitionKey eq 'a' and false",
        "PartitionKey eq 'a\0b'",
    ] {
        assert_spans(filter, &[]);
    }
    for filter in ["not (PartitionKey eq 5)", "not RowKey", "PartitionKey eq 'p' or true"] {
        assert_spans(filter, &["first last"]);
    }
}

#[test]
fn a_zero_character_is_behind_what_precedes_it() {
    assert_spans("PartitionKey lt 'a\0b'", &["first a>"]);
    assert_spans("PartitionKey ge 'a\0b'", &["a> last"]);
    assert_spans("PartitionKey eq 'a' and RowKey le '1\0'", &["<a a/1>"]);
}

#[test]
fn many_alternatives_stay_bounded_and_narrow() {
    let rows: Vec<_> = (0..400).map(|at| format!("RowKey eq '{at:03}'")).collect();
    let filter = format!("PartitionKey eq 'p' and ({})", rows.join(" or "));
    assert_eq!(parsed(&filter).key_spans().len(), 400);

    let partitions: Vec<_> = (0..100).map(|at| format!("PartitionKey eq '{at:03}'")).collect();
    let filter = format!("({}) and ({})", rows.join(" or "), partitions.join(" or "));
    let filter = parsed(&filter);
    let spans = filter.key_spans();
    assert_eq!(spans.len(), 100, "the partitions, because their rows would be too many");
    assert_eq!(written(&spans[0]), "<000 000>");

    let doubling: Vec<_> = (0..100).map(|_| "(RowKey ne 'a' or PartitionKey ne 'b')").collect();
    assert!(parsed(&doubling.join(" and ")).key_spans().len() <= 5);
}
