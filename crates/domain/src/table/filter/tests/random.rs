//! Random filters over random entities: entities outside of the spans must not match.

use holdfast_random::Random;

use super::*;

fn one_of<T: Copy>(choices: &[T], random: &mut Random) -> T {
    choices[random.within(0..choices.len())]
}

/// Few, and some of them prefixes of others, so that keys are often equal or neighbours.
const KEYS: [&str; 8] = ["", "a", "a\0", "a ", "aa", "b", "\u{10000}", "\u{FB00}"];
const OPERATORS: [&str; 6] = ["eq", "ne", "gt", "ge", "lt", "le"];

fn filter(random: &mut Random, depth: usize) -> String {
    if depth == 0 || random.below(4) == 0 {
        return comparison(random);
    }
    let (left, right) = (filter(random, depth - 1), filter(random, depth - 1));
    match random.below(6) {
        0 => format!("not ({left})"),
        1 | 2 => format!("({left}) and ({right})"),
        3 => format!("{left} and {right}"),
        4 => format!("({left}) or ({right})"),
        _ => format!("{left} or {right}"),
    }
}

fn comparison(random: &mut Random) -> String {
    let (property, constant) = match random.below(12) {
        0..=4 => ("PartitionKey", format!("'{}'", one_of(&KEYS, random))),
        5..=8 => ("RowKey", format!("'{}'", one_of(&KEYS, random))),
        9 => ("RowKey", one_of(&["5", "true", "X'00'"], random).to_owned()),
        10 => ("n", one_of(&["1", "2", "'a'"], random).to_owned()),
        _ => return one_of(&["true", "false", "flag", "not flag"], random).to_owned(),
    };
    let operator = one_of(&OPERATORS, random);
    match random.below(3) {
        0 => format!("{constant} {operator} {property}"),
        _ => format!("{property} {operator} {constant}"),
    }
}

fn entity(random: &mut Random, partition: &str, row: &str) -> Sample {
    let mut properties = vec![("PartitionKey", text(partition)), ("RowKey", text(row))];
    match random.below(3) {
        0 => properties.push(("n", Value::Int32(random.below(3) as i32))),
        1 => properties.push(("n", text("a"))),
        _ => {}
    }
    if random.below(2) == 0 {
        properties.push(("flag", Value::Boolean(random.below(2) == 0)));
    }
    Sample(properties)
}

fn contains(span: &KeySpan<'_>, partition: &str, row: &str) -> bool {
    let place = |side| KeyCut::At(Key(partition), Cut::At(Key(row), side));
    span.start <= place(Side::Before) && place(Side::After) <= span.end
}

#[test]
fn spans_hold_every_match_in_order_and_once() {
    let mut random = Random::new(20_240_131);
    let (mut matched, mut left_out) = (0, 0);
    for _ in 0..20_000 {
        let depth = random.within(0..5);
        let text = filter(&mut random, depth);
        let filter = parsed(&text);
        let spans = filter.key_spans();
        assert!(spans.iter().all(|span| !span.is_empty()), "{text}: {spans:?}");
        assert!(spans.is_sorted_by(|one, next| one.end < next.start), "{text}: {spans:?}");
        for partition in KEYS {
            // No key has a zero character, though filters may.
            for row in KEYS.into_iter().filter(|row| !row.contains('\0')) {
                if partition.contains('\0') {
                    continue;
                }
                let entity = entity(&mut random, partition, row);
                let within = spans.iter().any(|span| contains(span, partition, row));
                let matches = filter.matches(&entity);
                assert!(within || !matches, "{text} leaves out {partition:?}/{row:?}: {spans:?}");
                matched += usize::from(matches);
                left_out += usize::from(!within);
            }
        }
    }
    // Otherwise the test would prove nothing.
    assert!(matched > 100_000 && left_out > 100_000, "{matched} matched, {left_out} left out");
}

#[test]
fn no_text_makes_it_panic() {
    const PIECES: [&str; 32] = [
        " ",
        " ",
        " ",
        "(",
        ")",
        "'",
        "''",
        "'a'",
        "not ",
        " and ",
        " or ",
        " eq ",
        " ne ",
        " gt ",
        "PartitionKey",
        "RowKey",
        "a",
        "true",
        "null",
        "5",
        "-",
        "5L",
        "1e9",
        ".",
        "NaN",
        "-INF",
        "guid'",
        "datetime'",
        "X'",
        "é",
        "\u{1F600}",
        "\0",
    ];
    let mut random = Random::new(3);
    let mut valid = 0;
    for _ in 0..200_000 {
        let length = random.within(0..12);
        let text: String = (0..length).map(|_| one_of(&PIECES, &mut random)).collect();
        if let Ok(filter) = Filter::parse(&text) {
            let row = entity(&mut random, "a", "a");
            filter.matches(&row);
            filter.key_spans();
            valid += 1;
        }
    }
    assert!(valid > 1000, "{valid}");
}

/// A filter evaluated in the simplest way: by the grammar, one function per rule.
mod plain {
    use holdfast_random::Random;

    use super::*;

    struct Reader<'a>(&'a str);

    impl<'a> Reader<'a> {
        fn take(&mut self, word: &str) -> bool {
            let rest = self.0.trim_start();
            let Some(behind) = rest.strip_prefix(word) else { return false };
            self.0 = behind;
            true
        }

        fn or(&mut self, row: &Sample) -> bool {
            let mut value = self.and(row);
            while self.take("or ") {
                value |= self.and(row);
            }
            value
        }

        fn and(&mut self, row: &Sample) -> bool {
            let mut value = self.unary(row);
            while self.take("and ") {
                value &= self.unary(row);
            }
            value
        }

        fn unary(&mut self, row: &Sample) -> bool {
            if self.take("not ") {
                return !self.unary(row);
            }
            if self.take("(") {
                let value = self.or(row);
                assert!(self.take(")"));
                return value;
            }
            let rest = self.0.trim_start();
            let joined = [" and ", " or ", ")"].iter().filter_map(|end| rest.find(end)).min();
            let (test, behind) = rest.split_at(joined.unwrap_or(rest.len()));
            self.0 = behind;
            matches(test, row)
        }
    }

    #[test]
    fn a_filter_means_what_its_grammar_says() {
        let mut random = Random::new(7);
        for _ in 0..20_000 {
            let depth = random.within(0..6);
            let text = filter(&mut random, depth);
            let (partition, row) = (one_of(&KEYS, &mut random), one_of(&KEYS, &mut random));
            let entity = entity(&mut random, partition, row);
            let mut reader = Reader(&text);
            let expected = reader.or(&entity);
            assert_eq!(reader.0, "", "{text}");
            assert_eq!(matches(&text, &entity), expected, "{text}");
        }
    }
}
