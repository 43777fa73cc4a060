//! Every cell of the condition tables; a failure names it.

use std::time::Duration;

use super::*;

const CURRENT: ETag = ETag::from_ticks(0x8DC_0000_0000_0001);
const OTHER: ETag = ETag::from_ticks(0x8DC_0000_0000_0002);

/// Half a second after the second that a client sees as Last-Modified.
fn modified() -> Timestamp {
    Timestamp::parse_iso8601("2024-01-31T12:34:56.5Z").expect("a time")
}

fn same_second() -> Option<Timestamp> {
    Some(modified().whole_seconds())
}

fn second_before() -> Option<Timestamp> {
    Some(Timestamp::from_ticks(modified().whole_seconds().ticks() - 10_000_000))
}

fn second_after() -> Option<Timestamp> {
    Some(modified().whole_seconds().plus(Duration::from_secs(1)))
}

fn tags() -> TagSet {
    TagSet::parse_header("state=done").expect("tags")
}

fn list(text: &str) -> Option<ETagList> {
    Some(ETagList::parse(text).expect("a list"))
}

fn predicate(text: &str) -> Option<TagPredicate> {
    Some(TagPredicate::parse(text).expect("a predicate"))
}

fn if_match(text: &str) -> Conditions {
    Conditions { if_match: list(text), ..Default::default() }
}

fn if_none_match(text: &str) -> Conditions {
    Conditions { if_none_match: list(text), ..Default::default() }
}

fn if_modified_since(date: Option<Timestamp>) -> Conditions {
    Conditions { if_modified_since: date, ..Default::default() }
}

fn if_unmodified_since(date: Option<Timestamp>) -> Conditions {
    Conditions { if_unmodified_since: date, ..Default::default() }
}

fn if_tags(text: &str) -> Conditions {
    Conditions { if_tags: predicate(text), ..Default::default() }
}

fn read(conditions: &Conditions) -> Result<(), ReadRefusal> {
    let tags = tags();
    let subject = Subject { etag: CURRENT, last_modified: modified(), tags: &tags };
    check_read(conditions, Some(&subject))
}

fn read_by_pairs(conditions: &Conditions) -> Result<(), ReadRefusal> {
    let tags = tags();
    let subject = Subject { etag: CURRENT, last_modified: modified(), tags: &tags };
    check_read_by_pairs(conditions, Some(&subject))
}

fn write(conditions: &Conditions, kind: WriteKind) -> Result<(), WriteRefusal> {
    let tags = tags();
    let subject = Subject { etag: CURRENT, last_modified: modified(), tags: &tags };
    check_write(conditions, kind, Some(&subject))
}

fn source(conditions: &Conditions) -> Result<(), SourceRefusal> {
    let tags = tags();
    let subject = Subject { etag: CURRENT, last_modified: modified(), tags: &tags };
    check_source(conditions, &subject)
}

/// Each condition alone, as text that passes and text that fails.
fn single_conditions() -> Vec<(&'static str, Conditions, bool)> {
    let (current, other) = (CURRENT.to_string(), OTHER.to_string());
    vec![
        ("If-Match / equal", if_match(&current), true),
        ("If-Match / equal, unquoted", if_match(&CURRENT.unquoted().to_string()), true),
        ("If-Match / differs", if_match(&other), false),
        ("If-Match / text of no ETag", if_match("\"abc\""), false),
        ("If-Match / * and exists", if_match("*"), true),
        ("If-None-Match / equal", if_none_match(&current), false),
        ("If-None-Match / equal, unquoted", if_none_match(&CURRENT.unquoted().to_string()), false),
        ("If-None-Match / differs", if_none_match(&other), true),
        ("If-None-Match / text of no ETag", if_none_match("\"abc\""), true),
        ("If-Modified-Since / later", if_modified_since(second_before()), true),
        ("If-Modified-Since / the same second", if_modified_since(same_second()), false),
        ("If-Modified-Since / earlier", if_modified_since(second_after()), false),
        ("If-Unmodified-Since / later", if_unmodified_since(second_before()), false),
        ("If-Unmodified-Since / the same second", if_unmodified_since(same_second()), true),
        ("If-Unmodified-Since / earlier", if_unmodified_since(second_after()), true),
        ("x-ms-if-tags / true", if_tags("state = 'done'"), true),
        ("x-ms-if-tags / false", if_tags("state = 'open'"), false),
    ]
}

#[test]
fn each_condition_alone_passes_or_fails_as_its_operation_answers() {
    for (cell, conditions, passes) in single_conditions() {
        let changed = conditions.if_none_match.is_some() || conditions.if_modified_since.is_some();
        let read_failure = if changed { ReadRefusal::NotModified } else { ReadRefusal::NotMet };
        let expected = |refusal| if passes { Ok(()) } else { Err(refusal) };
        assert_eq!(read(&conditions), expected(read_failure), "1.1, 1.3 read / {cell}");
        for kind in [WriteKind::Create, WriteKind::InPlace] {
            let outcome = write(&conditions, kind);
            let not_met = if passes { Ok(()) } else { Err(WriteRefusal::NotMet) };
            assert_eq!(outcome, not_met, "1.1, 1.3 {kind:?} / {cell}");
        }
        let copy = if passes { Ok(()) } else { Err(WriteRefusal::TargetNotMet) };
        assert_eq!(write(&conditions, WriteKind::Copy), copy, "1.3 copy destination / {cell}");
        let refusal = match conditions.if_tags {
            Some(_) => SourceRefusal::TagsNotMet,
            None => SourceRefusal::NotMet,
        };
        let from = if passes { Ok(()) } else { Err(refusal) };
        assert_eq!(source(&conditions), from, "1.1, 1.3 copy source / {cell}");
    }
}

#[test]
fn lists_of_etags_match_any_of_them() {
    use ReadRefusal::{NotMet, NotModified};
    let (current, other) = (CURRENT.to_string(), OTHER.to_string());
    for (cell, conditions, expected) in [
        ("If-Match, one equal", if_match(&format!("{other}, {current}")), Ok(())),
        ("If-Match, first equal", if_match(&format!("{current},{other}")), Ok(())),
        ("If-Match, none equal", if_match(&format!("{other},\"abc\"")), Err(NotMet)),
        ("If-Match, * among others", if_match(&format!("{other},*")), Err(NotMet)),
        (
            "If-None-Match, one equal",
            if_none_match(&format!("{other},{current}")),
            Err(NotModified),
        ),
        ("If-None-Match, none equal", if_none_match(&format!("{other},\"abc\"")), Ok(())),
    ] {
        assert_eq!(read(&conditions), expected, "1.2 several ETags / {cell}");
    }
}

#[test]
fn etag_headers_are_split_at_commas_outside_quotes() {
    let ours = ETagText::Ours(CURRENT);
    let current = CURRENT.to_string();
    for (text, expected) in [
        ("*".to_owned(), Some(ETagList::Any)),
        (" * ".to_owned(), Some(ETagList::Any)),
        (String::new(), None),
        (" , ".to_owned(), None),
        (current.clone(), Some(CURRENT.into())),
        ("\"a,b\"".to_owned(), Some(ETagList::Listed(vec![ETagText::Foreign]))),
        (format!("\"a,b\" ,{current}"), Some(ETagList::Listed(vec![ETagText::Foreign, ours]))),
        ("\"*\"".to_owned(), Some(ETagList::Listed(vec![ETagText::Foreign]))),
    ] {
        assert_eq!(ETagList::parse(&text), expected, "{text}");
    }
}

#[test]
fn only_two_pairs_may_be_combined_where_pairs_rule() {
    let conditions = |parts: [bool; 4]| Conditions {
        if_match: list("*").filter(|_| parts[0]),
        if_none_match: list("\"a\"").filter(|_| parts[1]),
        if_modified_since: same_second().filter(|_| parts[2]),
        if_unmodified_since: same_second().filter(|_| parts[3]),
        if_tags: None,
    };
    let (refused, y, n) = (Err(CombinationRefused), true, false);
    for (cell, parts, expected) in [
        ("none", [n, n, n, n], Ok(())),
        ("If-Match", [y, n, n, n], Ok(())),
        ("If-None-Match", [n, y, n, n], Ok(())),
        ("If-Modified-Since", [n, n, y, n], Ok(())),
        ("If-Unmodified-Since", [n, n, n, y], Ok(())),
        ("If-None-Match + If-Modified-Since", [n, y, y, n], Ok(())),
        ("If-Match + If-Unmodified-Since", [y, n, n, y], Ok(())),
        ("If-Match + If-None-Match", [y, y, n, n], refused),
        ("If-Match + If-Modified-Since", [y, n, y, n], refused),
        ("If-None-Match + If-Unmodified-Since", [n, y, n, y], refused),
        ("If-Modified-Since + If-Unmodified-Since", [n, n, y, y], refused),
        ("all but If-Match", [n, y, y, y], refused),
        ("all but If-None-Match", [y, n, y, y], refused),
        ("all but If-Modified-Since", [y, y, n, y], refused),
        ("all but If-Unmodified-Since", [y, y, y, n], refused),
        ("all four", [y, y, y, y], refused),
    ] {
        let mut conditions = conditions(parts);
        let outcome = validate_combination(&conditions, CombinationRule::Pairs);
        assert_eq!(outcome, expected, "1.2 pairs / {cell}");
        conditions.if_tags = predicate("a = 'b'");
        let outcome = validate_combination(&conditions, CombinationRule::Pairs);
        assert_eq!(outcome, expected, "1.2 pairs / {cell}, with tags");
        let outcome = validate_combination(&conditions, CombinationRule::Free);
        assert_eq!(outcome, Ok(()), "1.2 reads since 2013-08-15 / {cell}");
    }
    for several in [if_match("\"a\",\"b\""), if_none_match("\"a\",\"b\"")] {
        let outcome = validate_combination(&several, CombinationRule::Pairs);
        assert_eq!(outcome, refused, "1.2 writes, more than one ETag");
        let outcome = validate_combination(&several, CombinationRule::Free);
        assert_eq!(outcome, Ok(()), "1.2 reads, more than one ETag");
    }
}

#[test]
fn a_read_goes_on_if_either_of_none_match_and_modified_since_passes() {
    let not_modified = Err(ReadRefusal::NotModified);
    for (cell, none_match, modified_since, free, pairs) in [
        ("pass / pass", OTHER, second_before(), Ok(()), Ok(())),
        ("pass / fail", OTHER, same_second(), Ok(()), Ok(())),
        ("fail / pass", CURRENT, second_before(), Ok(()), not_modified),
        ("fail / fail", CURRENT, same_second(), not_modified, not_modified),
    ] {
        let conditions = Conditions {
            if_none_match: Some(none_match.into()),
            if_modified_since: modified_since,
            ..Default::default()
        };
        assert_eq!(read(&conditions), free, "1.2 truth table, INM / IMS: {cell}");
        assert_eq!(read_by_pairs(&conditions), pairs, "1.2 reads before 2013-08-15: {cell}");
        // A write is decided by If-None-Match alone, as an old read is.
        let written = pairs.map_err(|_| WriteRefusal::NotMet);
        assert_eq!(write(&conditions, WriteKind::InPlace), written, "1.2 writes: {cell}");
    }
}

#[test]
fn if_match_decides_alone_where_pairs_rule() {
    for (cell, matched, unmodified_since, free, pairs) in [
        ("pass / pass", CURRENT, same_second(), true, true),
        ("pass / fail", CURRENT, second_before(), false, true),
        ("fail / pass", OTHER, same_second(), false, false),
        ("fail / fail", OTHER, second_before(), false, false),
    ] {
        let conditions = Conditions {
            if_match: Some(matched.into()),
            if_unmodified_since: unmodified_since,
            ..Default::default()
        };
        let expected = |passes| if passes { Ok(()) } else { Err(ReadRefusal::NotMet) };
        assert_eq!(read(&conditions), expected(free), "1.2 reads, IM / IUS: {cell}");
        assert_eq!(read_by_pairs(&conditions), expected(pairs), "1.2 old reads, IM / IUS: {cell}");
        let written = if pairs { Ok(()) } else { Err(WriteRefusal::NotMet) };
        assert_eq!(write(&conditions, WriteKind::InPlace), written, "1.2 writes: {cell}");
    }
}

/// All 3^5 ways to send each condition passing, failing or not, against the formula of the
/// reference written out once more.
#[test]
fn every_combination_of_a_read_follows_the_formula() {
    let choices = [None, Some(true), Some(false)];
    let mut seen = [0; 3];
    for number in 0..243_usize {
        let part = |place: u32| choices[number / 3_usize.pow(place) % 3];
        let (matched, unmodified, none_match, modified_since, tagged) =
            (part(0), part(1), part(2), part(3), part(4));
        let etag = |pass: bool| Some(if pass { CURRENT } else { OTHER }.into());
        let conditions = Conditions {
            if_match: matched.and_then(etag),
            if_unmodified_since: unmodified
                .and_then(|pass| if pass { same_second() } else { second_before() }),
            if_none_match: none_match.and_then(|pass| etag(!pass)),
            if_modified_since: modified_since
                .and_then(|pass| if pass { second_before() } else { same_second() }),
            if_tags: tagged
                .and_then(|pass| predicate(if pass { "state='done'" } else { "state='x'" })),
        };
        let failed = |part: Option<bool>| part == Some(false);
        let either_sent = none_match.is_some() || modified_since.is_some();
        let either_passes = none_match == Some(true) || modified_since == Some(true);
        let expected = if failed(matched) || failed(unmodified) || failed(tagged) {
            Err(ReadRefusal::NotMet)
        } else if either_sent && !either_passes {
            Err(ReadRefusal::NotModified)
        } else {
            Ok(())
        };
        assert_eq!(read(&conditions), expected, "1.2 formula / {conditions:?}");
        seen[match expected {
            Ok(()) => 0,
            Err(ReadRefusal::NotMet) => 1,
            Err(ReadRefusal::NotModified | ReadRefusal::Unsatisfiable) => 2,
        }] += 1;
        let others = failed(matched) || failed(unmodified) || (either_sent && !either_passes);
        let source_expected = match (others, failed(tagged)) {
            (true, _) => Err(SourceRefusal::NotMet),
            (false, true) => Err(SourceRefusal::TagsNotMet),
            (false, false) => Ok(()),
        };
        assert_eq!(source(&conditions), source_expected, "1.3 source / {conditions:?}");
    }
    assert!(seen.iter().all(|count| *count > 10), "all three outcomes occur: {seen:?}");
}

#[test]
fn a_failed_match_wins_over_not_modified() {
    let stale = Some(ETagList::from(OTHER));
    for (cell, conditions) in [
        (
            "If-Match with If-None-Match",
            Conditions { if_match: stale.clone(), ..if_none_match(&CURRENT.to_string()) },
        ),
        (
            "If-Match with If-Modified-Since",
            Conditions { if_match: stale, ..if_modified_since(same_second()) },
        ),
        (
            "If-Unmodified-Since with If-None-Match",
            Conditions {
                if_unmodified_since: second_before(),
                ..if_none_match(&CURRENT.to_string())
            },
        ),
    ] {
        assert_eq!(read(&conditions), Err(ReadRefusal::NotMet), "1.2 which failure wins / {cell}");
    }
}

#[test]
fn none_match_any_means_another_thing_to_each_operation() {
    let any = if_none_match("*");
    let unsatisfiable = Err(ReadRefusal::Unsatisfiable);
    assert_eq!(read(&any), unsatisfiable, "1.4 Get Blob / exists");
    assert_eq!(check_read(&any, None), unsatisfiable, "1.4 Get Blob / absent");
    let exists = Err(WriteRefusal::AlreadyExists);
    for (cell, kind, present) in [
        ("Put Blob, Put Block List, Put Blob From URL", WriteKind::Create, exists),
        ("Copy Blob, Copy Blob From URL", WriteKind::Copy, exists),
        ("Set Blob Properties and other in-place writes", WriteKind::InPlace, Ok(())),
        ("dfs Path Create", WriteKind::Create, exists),
    ] {
        assert_eq!(write(&any, kind), present, "1.4 {cell} / exists");
        assert_eq!(check_write(&any, kind, None), Ok(()), "1.4 {cell} / absent");
    }
    assert_eq!(source(&any), Err(SourceRefusal::NotMet), "1.4 copy source / exists");
    let both = Conditions { if_modified_since: same_second(), ..any };
    assert_eq!(write(&both, WriteKind::InPlace), Ok(()), "1.2 If-None-Match: * decides alone");
}

#[test]
fn on_nothing_only_if_match_fails() {
    let etag = CURRENT.to_string();
    for (cell, conditions, fails) in [
        ("If-Match: *", if_match("*"), true),
        ("If-Match with an ETag", if_match(&etag), true),
        ("If-None-Match with an ETag", if_none_match(&etag), false),
        ("If-Modified-Since", if_modified_since(second_after()), false),
        ("If-Unmodified-Since", if_unmodified_since(second_before()), false),
        ("x-ms-if-tags", if_tags("a = 'b'"), false),
        ("none", Conditions::default(), false),
    ] {
        let expected = |refusal| if fails { Err(refusal) } else { Ok(()) };
        for (kind, refusal) in [
            (WriteKind::Create, WriteRefusal::NotMet),
            (WriteKind::InPlace, WriteRefusal::NotMet),
            (WriteKind::Copy, WriteRefusal::TargetNotMet),
        ] {
            let outcome = check_write(&conditions, kind, None);
            assert_eq!(outcome, expected(refusal), "1.5 absent or uncommitted, {kind:?} / {cell}");
        }
        let outcome = check_read(&conditions, None);
        let expected = if fails { Err(ReadRefusal::NotMet) } else { Ok(()) };
        assert_eq!(outcome, expected, "1.5 absent, read / {cell}");
    }
}

#[test]
fn containers_and_tiers_take_the_two_dates() {
    let dates = |since, unmodified| DateConditions {
        if_modified_since: since,
        if_unmodified_since: unmodified,
    };
    for (cell, conditions, met) in [
        ("none", DateConditions::default(), true),
        ("If-Modified-Since / later", dates(second_before(), None), true),
        ("If-Modified-Since / the same second", dates(same_second(), None), false),
        ("If-Modified-Since / earlier", dates(second_after(), None), false),
        ("If-Unmodified-Since / later", dates(None, second_before()), false),
        ("If-Unmodified-Since / the same second", dates(None, same_second()), true),
        ("If-Unmodified-Since / earlier", dates(None, second_after()), true),
    ] {
        let expected = if met { Ok(()) } else { Err(DateConditionNotMet) };
        assert_eq!(conditions.check(modified()), expected, "1.3 containers, 1.1 tier / {cell}");
        assert_eq!(conditions.validate_combination(), Ok(()), "1.2 containers / {cell}");
    }
    let both = dates(same_second(), same_second());
    assert_eq!(both.validate_combination(), Err(CombinationRefused), "1.2 containers / both");
    let picked = DateConditions::from(&Conditions {
        if_modified_since: second_before(),
        if_unmodified_since: second_after(),
        ..if_match("*")
    });
    assert_eq!(picked, dates(second_before(), second_after()));
}

#[test]
fn fractions_of_a_second_count_on_neither_side() {
    // Dates from headers have no fraction, but the rule must not depend on that.
    let sharp = Some(Timestamp::from_ticks(modified().ticks() - 1));
    assert_eq!(read(&if_unmodified_since(sharp)), Ok(()), "1.1 one-second resolution");
    let refused = Err(ReadRefusal::NotModified);
    assert_eq!(read(&if_modified_since(sharp)), refused, "1.1 one-second resolution");
}

#[test]
fn a_header_with_two_dates_is_no_date() {
    let date = modified().rfc1123().to_string();
    assert_eq!(Timestamp::parse_rfc1123(&date), same_second(), "1.2 one date in a header");
    let two = format!("{date}, {date}");
    assert_eq!(Timestamp::parse_rfc1123(&two), None, "1.2 several dates in one header");
}
