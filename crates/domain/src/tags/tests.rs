//! The two tag languages, element by element.

use holdfast_random::Random;

use super::*;

fn tags() -> TagSet {
    TagSet::parse_header("a=1&b=2&state=done&my%20key=x+y&empty=").expect("tags")
}

#[test]
fn predicates_compare_and_combine() {
    for (cell, text, expected) in [
        ("=", "a = '1'", true),
        ("= / other", "a = '2'", false),
        ("= / case of the value", "state = 'Done'", false),
        ("= / case of the name", "State = 'done'", false),
        ("= / empty value", "empty = ''", true),
        ("<>", "a <> '2'", true),
        ("<> / equal", "a <> '1'", false),
        (">", "b > '1'", true),
        ("> / equal", "b > '2'", false),
        (">=", "b >= '2'", true),
        (">= / below", "b >= '3'", false),
        ("<", "b < '3'", true),
        ("< / equal", "b < '2'", false),
        ("<=", "b <= '2'", true),
        ("<= / above", "b <= '1'", false),
        ("lexicographic, not numeric", "b < '10'", false),
        ("lexicographic, a prefix is less", "state > 'don'", true),
        ("absent tag / =", "none = ''", false),
        ("absent tag / <>", "none <> 'x'", false),
        ("absent tag / <", "none < 'x'", false),
        ("AND / both", "a = '1' AND b = '2'", true),
        ("AND / first", "a = '1' AND b = '3'", false),
        ("AND / second", "a = '3' AND b = '2'", false),
        ("OR / both", "a = '1' OR b = '2'", true),
        ("OR / first", "a = '1' OR b = '3'", true),
        ("OR / second", "a = '3' OR b = '2'", true),
        ("OR / none", "a = '3' OR b = '3'", false),
        ("AND before OR", "a = '1' OR a = '9' AND b = '9'", true),
        ("( )", "(a = '1' OR a = '9') AND b = '9'", false),
        ("keywords in any case", "a = '1' and (b = '9' oR b = '2')", true),
        ("double-quoted name", "\"my key\" = 'x y'", true),
        ("double-quoted keyword", "\"AND\" = 'x' OR a = '1'", true),
        ("no spaces", "a='1'AND(b='2')", true),
        ("spaces and tabs", "\t a  =\t'1'  ", true),
        ("ten operators", &["a='1'"; 11].join(" AND "), true),
        ("a name that is too long for a tag", &format!("{} <> 'v'", "n".repeat(129)), false),
        ("a value that is too long for a tag", &format!("a <> '{}'", "v".repeat(257)), true),
        ("redundant parentheses", &format!("{}a='1'{}", "(".repeat(32), ")".repeat(32)), true),
    ] {
        let predicate = TagPredicate::parse(text);
        assert_eq!(predicate.map(|p| p.matches(&tags())), Ok(expected), "1.9 if-tags {cell}");
    }
}

#[test]
fn predicates_that_are_not_well_formed_are_refused() {
    use TagPredicateInvalid::{
        Characters, Empty, OperatorNotAllowed, Syntax, TooDeep, TooManyOperators,
    };
    for (cell, text, expected) in [
        ("empty", "", Empty),
        ("spaces", "  ", Empty),
        ("name alone", "a", Syntax),
        ("no value", "a =", Syntax),
        ("no operator", "a '1'", Syntax),
        ("value first", "'1' = a", Syntax),
        ("bare value", "a = 1", Syntax),
        ("double-quoted value", "a = \"1\"", Syntax),
        ("open string", "a = '1", Syntax),
        ("open name", "\"a = '1'", Syntax),
        ("empty name", "\"\" = '1'", Syntax),
        ("digit first in a bare name", "1a = '1'", Syntax),
        ("dash in a bare name", "a-b = '1'", Syntax),
        ("two comparisons", "a = '1' b = '2'", Syntax),
        ("AND at the end", "a = '1' AND", Syntax),
        ("AND at the start", "AND a = '1'", Syntax),
        ("open parenthesis", "(a = '1'", Syntax),
        ("closed parenthesis", "a = '1')", Syntax),
        ("empty parentheses", "()", Syntax),
        ("unknown operator", "a == '1'", Syntax),
        ("unknown sign", "a = '1' & b = '2'", Syntax),
        ("other at-name", "@tag = '1'", Syntax),
        ("@container", "@container = 'c'", OperatorNotAllowed),
        ("a value with a character of no tag", "a <> '1@'", Characters),
        ("a name with a character of no tag", "\"a#\" <> '1'", Characters),
        ("eleven operators", &["a='1'"; 12].join(" OR "), TooManyOperators),
        ("too deep", &format!("{}a='1'{}", "(".repeat(33), ")".repeat(33)), TooDeep),
        ("very deep", &"(".repeat(100_000), TooDeep),
    ] {
        assert_eq!(TagPredicate::parse(text), Err(expected), "1.9 if-tags {cell}");
    }
}

#[test]
fn queries_find_by_ranges_of_tags() {
    for (cell, text, expected) in [
        ("=", "a = '1'", true),
        ("= / other", "a = '2'", false),
        (">", "b > '1'", true),
        (">=", "b >= '3'", false),
        ("<", "b < '3'", true),
        ("<=", "b <= '1'", false),
        ("AND", "a = '1' AND b = '2'", true),
        ("AND / one fails", "a = '1' AND b = '3'", false),
        ("a range", "b >= '1' AND b < '3'", true),
        ("outside the range", "b > '2' AND b < '3'", false),
        ("absent tag", "none >= ''", false),
        ("double-quoted name", "\"my key\" = 'x y'", true),
        ("@container", "@container = 'photos'", true),
        ("@container / other", "@container = 'other'", false),
        ("@container and tag", "@container = 'photos' AND a = '1'", true),
        ("tag and @container", "a = '1' and @Container = 'other'", false),
    ] {
        let query = TagQuery::parse(text, QueryScope::Account);
        let found = query.map(|query| query.matches("photos", &tags()));
        assert_eq!(found, Ok(expected), "1.9 where {cell}");
    }
    let query = TagQuery::parse("a = '1' AND @container = 'c'", QueryScope::Account);
    assert_eq!(query.as_ref().map(TagQuery::container), Ok(Some("c")));
}

#[test]
fn queries_that_are_not_well_formed_are_refused() {
    use TagPredicateInvalid::{
        Characters, Empty, NotARange, OperatorNotAllowed, Syntax, TooLong, TooManyOperators,
        TwoContainers,
    };
    let many: Vec<_> = (0..11).map(|n| format!("k{n}='v'")).collect();
    for (cell, text, expected) in [
        ("empty", "", Empty),
        ("<>", "a <> '1'", OperatorNotAllowed),
        ("OR", "a = '1' OR b = '2'", OperatorNotAllowed),
        ("( )", "(a = '1')", OperatorNotAllowed),
        ("@container >", "@container > 'c'", OperatorNotAllowed),
        ("two containers", "@container = 'c' AND @container = 'd'", NotARange),
        ("two values", "a = '1' AND a = '2'", NotARange),
        ("a value and a bound", "a = '1' AND a > '0'", NotARange),
        ("two lower bounds", "a > '1' AND a >= '0'", NotARange),
        ("two upper bounds", "a < '1' AND a <= '0'", NotARange),
        ("three bounds", "a > '0' AND a < '9' AND a < '8'", NotARange),
        ("eleven tags", &many.join(" AND "), TooManyOperators),
        ("a long name", &format!("{} = 'v'", "n".repeat(129)), TooLong),
        ("a long value", &format!("a = '{}'", "v".repeat(257)), TooLong),
        ("a value with a character of no tag", "a = '1 @'", Characters),
        ("a name with a character of no tag", "\"a#\" = '1'", Characters),
        ("no operator", "a '1'", Syntax),
        ("AND at the end", "a = '1' AND", Syntax),
        ("no AND", "a = '1' b = '2'", Syntax),
    ] {
        let query = TagQuery::parse(text, QueryScope::Account);
        assert_eq!(query, Err(expected), "1.9 where {cell}");
    }
    let inside = TagQuery::parse("@container = 'c'", QueryScope::Container);
    assert_eq!(inside, Err(TwoContainers), "1.9 where @container in a container");
    let longest = format!("{} = '{}'", "n".repeat(128), "v".repeat(256));
    assert!(TagQuery::parse(&longest, QueryScope::Account).is_ok());
    assert!(TagQuery::parse(&many[..10].join(" AND "), QueryScope::Container).is_ok());
}

#[test]
fn no_text_breaks_the_readers() {
    let pieces =
        ["a", "'v'", "\"n\"", "=", "<>", ">=", "(", ")", "AND", "OR", "@container", "'", "é", " "];
    let mut random = Random::new(1);
    let mut understood = 0;
    for _ in 0..20_000 {
        let mut text = String::new();
        // Short ones are valid more often.
        for _ in 0..3 + random.below(6) {
            text.push_str(pieces[random.within(0..pieces.len())]);
            text.push(' ');
        }
        understood += usize::from(TagPredicate::parse(&text).is_ok());
        understood += usize::from(TagQuery::parse(&text, QueryScope::Account).is_ok());
        let _ = TagSet::parse_header(&text);
    }
    assert!(understood > 0, "some of the texts make sense");
}
