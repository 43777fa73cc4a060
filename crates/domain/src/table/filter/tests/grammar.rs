//! What the filter language accepts, and what it refuses.

use super::*;

/// `a` and `b` are true, `c` and `d` are false.
fn letters() -> Sample {
    let of = |name, boolean| (name, Value::Boolean(boolean));
    Sample(vec![of("a", true), of("b", true), of("c", false), of("d", false)])
}

#[test]
fn not_binds_before_and_and_and_before_or() {
    for (filter, expected) in [
        ("a", true),
        ("c", false),
        ("not a", false),
        ("not c", true),
        ("not not a", true),
        ("a and b", true),
        ("a and c", false),
        ("c or a", true),
        ("c or d", false),
        // (a or b) and c would be false, a or (b and c) is true.
        ("a or b and c", true),
        ("c and b or a", true),
        ("(a or b) and c", false),
        ("c and (b or a)", false),
        ("not c and not d", true),
        ("not (c or d)", true),
        ("not (a and b)", false),
        ("not (a and c) and not (not a)", true),
        ("a and (b and (a and (c or not d)))", true),
        ("(((a)))", true),
        ("not(c)and(b)or(d)", true),
        ("c and a or c and b or a and b", true),
        ("c and a or (c or d) and b or d", false),
        ("not a eq false", true),
        ("a eq true and b ne false", true),
        ("true", true),
        ("false", false),
        ("not false", true),
        ("a eq TRUE and c eq False", true),
        ("True", true),
        ("FALSE", false),
        ("false or a", true),
        ("(true) and a", true),
        ("", true),
        ("  \t ", true),
        ("\r\n a \n and\tb ", true),
    ] {
        assert_eq!(matches(filter, &letters()), expected, "{filter}");
    }
}

#[test]
fn what_is_not_a_filter_is_refused() {
    for filter in [
        "a b",
        "aaa bbb ccc",
        "a and",
        "and a",
        "a or or b",
        "not",
        "a not b",
        "()",
        "(a",
        "a)",
        "(a))",
        "((a)",
        "a (b)",
        "(a) (b)",
        "(",
        ")",
        "a eq",
        "eq 1",
        "a eq b",
        "1 eq 1",
        "'a' eq 'a'",
        "true eq true",
        "a eq 1 eq 2",
        "a eq null",
        "null eq a",
        "null",
        "a eq not b",
        "a eq (1)",
        "5",
        "'text'",
        "guid'00000000-0000-0000-0000-000000000000'",
        // Operators are case-sensitive.
        "a EQ 1",
        "a AND b",
        "NOT a",
        // Neither functions nor arithmetic nor other operators.
        "startswith(a,'x')",
        "a add 1 eq 2",
        "a = 1",
        "a == 1",
        "a > 1",
        "a && b",
        "a, b",
        "a/b eq 1",
        "a.b eq 1",
        "$a eq 1",
        "a eq \"text\"",
        "a eq 'text",
        "a eq '",
        "a eq 'it's'",
        "a eq 'x' 'y'",
        "a-b eq 1",
        "1a eq 1",
        "?",
        "\0",
        "a eq 'x'\0",
        "@a eq 1",
    ] {
        assert!(Filter::parse(filter).is_err(), "{filter:?}");
    }
}

#[test]
fn a_refusal_says_where() {
    for (filter, at) in [("a eq", 4), ("a eq 'x", 5), ("a eq 1 b", 7), ("a) ", 1), ("(a", 2)] {
        assert_eq!(Filter::parse(filter).map_err(|refusal| refusal.at).err(), Some(at), "{filter}");
    }
}

#[test]
fn a_word_is_a_property_unless_its_place_makes_it_something_else() {
    let row = Sample(vec![
        ("eq", Value::Int32(1)),
        ("binary", text("x")),
        ("guid", text("x")),
        ("X", text("x")),
        ("_1", text("x")),
        ("größe", text("x")),
        ("Truest", text("x")),
        ("nothing", text("x")),
    ]);
    for filter in [
        "eq eq 1",
        "1 eq eq",
        "binary eq 'x'",
        "guid eq 'x'",
        "X eq 'x'",
        "_1 eq 'x'",
        "größe eq 'x'",
        "Truest eq 'x'",
        "nothing eq 'x'",
        "not (nothing ne 'x')",
    ] {
        assert!(matches(filter, &row), "{filter}");
    }
}

#[test]
fn names_of_properties_have_their_case() {
    let row = Sample(vec![("Name", text("x"))]);
    assert!(matches("Name eq 'x'", &row));
    assert!(!matches("name eq 'x'", &row));
}

#[test]
fn no_depth_overflows_the_stack() {
    let row = letters();
    let deep = 200_000;
    let parentheses = format!("{}a{}", "(".repeat(deep), ")".repeat(deep));
    assert!(matches(&parentheses, &row));
    assert!(!matches(&format!("{}a", "not ".repeat(deep + 1)), &row));
    // As client libraries nest conditions when they add them one by one.
    let mut nested = "(a)".to_owned();
    for at in 1..COMPARISONS_MAX {
        let operator = ["and", "or"][at % 2];
        nested = format!("({nested} {operator} (b))");
    }
    assert!(matches(&nested, &row));
    assert_eq!(parsed(&nested).key_spans(), [KeySpan::ALL]);
    assert!(Filter::parse(&"(".repeat(deep)).is_err());
}

#[test]
fn more_than_fifteen_comparisons_are_taken_but_not_any_number() {
    let of = |count: usize| vec!["c"; count].join(" or ");
    for count in [15, 16, 100, COMPARISONS_MAX] {
        assert!(!matches(&of(count), &letters()), "{count}");
    }
    assert!(Filter::parse(&of(COMPARISONS_MAX + 1)).is_err());
}
