//! LIKE: `%` matches any text, `_` one character.
//!
//! A pattern is split once, at its `%`. The first part must begin the text and the last must end it;
//! those between are searched one after the other, each after the end of the one before, which finds a
//! match if there is one. A part of letters only takes time linear in the text. One with `_` takes a
//! step for each character of the text and each 64 of the part: one bit for each prefix of the part
//! says whether it ends at this character.

use std::collections::HashMap;

use memchr::memmem::{self, Finder};

/// Longer patterns match nothing useful (the maximum is that of Transact-SQL).
pub const PATTERN_BYTES_MAX: usize = 8000;

const SHORT_BYTES_MAX: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    One,
    Letter(char),
}

/// A pattern, ready to be compared with any number of texts.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// As written.
    text: String,
    escape: Option<char>,
    /// The whole of it if it has no `%`.
    first: Vec<Sign>,
    rest: Option<Rest>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, self.escape) == (&other.text, other.escape)
    }
}

/// What follows the first `%`.
#[derive(Clone, Debug)]
struct Rest {
    between: Vec<Part>,
    last: Vec<Sign>,
}

#[derive(Clone, Debug)]
enum Part {
    /// So short that a finder would take a hundred times its room.
    Short(Box<str>),
    Letters(Box<Finder<'static>>),
    WithGaps(Gapped),
}

impl Pattern {
    pub fn new(pattern: &str, escape: Option<char>) -> Self {
        let mut parts = vec![Vec::new()];
        let mut letters = pattern.chars();
        while let Some(letter) = letters.next() {
            let sign = match letter {
                _ if Some(letter) == escape => Sign::Letter(letters.next().unwrap_or(letter)),
                '%' => {
                    parts.push(Vec::new());
                    continue;
                }
                '_' => Sign::One,
                _ => Sign::Letter(letter),
            };
            parts.last_mut().expect("there is at least one").push(sign);
        }
        let mut parts = parts.into_iter();
        let first = parts.next().unwrap_or_default();
        let rest = parts.next_back().map(|last| {
            // An empty part between two `%` matches anywhere.
            let between = parts.filter(|part| !part.is_empty()).map(|part| Part::new(&part));
            Rest { between: between.collect(), last }
        });
        Self { text: pattern.to_owned(), escape, first, rest }
    }

    pub fn matches(&self, text: &str) -> bool {
        let Some(text) = behind(text, &self.first) else { return false };
        let Some(Rest { between, last }) = &self.rest else { return text.is_empty() };
        let Some(mut text) = before(text, last) else { return false };
        for part in between {
            let Some(end) = part.end_of_first_in(text) else { return false };
            text = &text[end..];
        }
        true
    }

    /// How many steps a character of the text may take.
    pub fn steps_for_each_character(&self) -> u64 {
        let between = self.rest.iter().flat_map(|rest| &rest.between);
        between.map(Part::steps).max().unwrap_or(1)
    }
}

/// The rest of the text after these signs, if it begins with them.
fn behind<'t>(text: &'t str, signs: &[Sign]) -> Option<&'t str> {
    let mut letters = text.chars();
    signs.iter().all(|sign| letters.next().is_some_and(|it| fits(*sign, it))).then_some(())?;
    Some(letters.as_str())
}

/// The text before these signs, if it ends with them.
fn before<'t>(text: &'t str, signs: &[Sign]) -> Option<&'t str> {
    let mut letters = text.chars();
    let mut signs = signs.iter().rev();
    signs.all(|sign| letters.next_back().is_some_and(|it| fits(*sign, it))).then_some(())?;
    Some(letters.as_str())
}

fn fits(sign: Sign, letter: char) -> bool {
    match sign {
        Sign::One => true,
        Sign::Letter(expected) => expected == letter,
    }
}

impl Part {
    fn new(signs: &[Sign]) -> Self {
        let letter = |sign: &Sign| match sign {
            Sign::One => None,
            Sign::Letter(letter) => Some(*letter),
        };
        match signs.iter().map(letter).collect::<Option<String>>() {
            Some(letters) if letters.len() <= SHORT_BYTES_MAX => Self::Short(letters.into()),
            Some(letters) => Self::Letters(Box::new(Finder::new(&letters).into_owned())),
            None => Self::WithGaps(Gapped::new(signs)),
        }
    }

    /// The end of the first occurrence of the part.
    fn end_of_first_in(&self, text: &str) -> Option<usize> {
        match self {
            Self::Short(letters) => {
                let start = memmem::find(text.as_bytes(), letters.as_bytes())?;
                Some(start + letters.len())
            }
            Self::Letters(finder) => {
                let start = finder.find(text.as_bytes())?;
                Some(start + finder.needle().len())
            }
            Self::WithGaps(gapped) => gapped.end_of_first_in(text),
        }
    }

    fn steps(&self) -> u64 {
        match self {
            Self::Short(_) | Self::Letters(_) => 1,
            Self::WithGaps(gapped) => gapped.words() as u64,
        }
    }
}

/// A part with `_`. The places of each letter in the part are a set.
#[derive(Clone, Debug)]
struct Gapped {
    length: usize,
    /// The places of `_`.
    gaps: Vec<u64>,
    letters: HashMap<char, Places>,
}

/// Whichever takes less time and memory: a letter has many places only if others have few, so all
/// together take no more memory than the pattern.
#[derive(Clone, Debug)]
enum Places {
    Few(Vec<usize>),
    Many(Vec<u64>),
}

fn set(bits: &mut [u64], place: usize) {
    bits[place / 64] |= 1 << (place % 64);
}

fn is_set(bits: &[u64], place: usize) -> bool {
    bits[place / 64] & 1 << (place % 64) != 0
}

impl Gapped {
    fn new(signs: &[Sign]) -> Self {
        let words = signs.len().div_ceil(64);
        let mut gaps = vec![0; words];
        let mut few: HashMap<char, Vec<usize>> = HashMap::new();
        for (place, sign) in signs.iter().enumerate() {
            match sign {
                Sign::One => set(&mut gaps, place),
                Sign::Letter(letter) => few.entry(*letter).or_default().push(place),
            }
        }
        let places = |few: Vec<usize>| {
            if few.len() <= words {
                return Places::Few(few);
            }
            let mut many = vec![0; words];
            few.into_iter().for_each(|place| set(&mut many, place));
            Places::Many(many)
        };
        let letters = few.into_iter().map(|(letter, few)| (letter, places(few))).collect();
        Self { length: signs.len(), gaps, letters }
    }

    fn words(&self) -> usize {
        self.gaps.len()
    }

    /// A bit of `ends` is set if the prefix of the part up to that place ends at the current
    /// character. At the next character each of them must grow by one place, and a new one may
    /// begin.
    fn end_of_first_in(&self, text: &str) -> Option<usize> {
        let nowhere = vec![0; self.words()];
        let mut ends = nowhere.clone();
        let mut grown = Vec::new();
        for (start, letter) in text.char_indices() {
            let many = match self.letters.get(&letter) {
                Some(Places::Many(many)) => many,
                Some(Places::Few(few)) => {
                    let grows = |at: &usize| *at == 0 || is_set(&ends, at - 1);
                    grown.extend(few.iter().copied().filter(grows));
                    &nowhere
                }
                None => &nowhere,
            };
            let mut carried = 1;
            for ((end, gaps), many) in ends.iter_mut().zip(&self.gaps).zip(many) {
                let before = *end;
                *end = (before << 1 | carried) & (gaps | many);
                carried = before >> 63;
            }
            grown.drain(..).for_each(|at| set(&mut ends, at));
            if is_set(&ends, self.length - 1) {
                return Some(start + letter.len_utf8());
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use holdfast_random::Random;

    use super::*;

    fn matches(text: &str, pattern: &str, escape: Option<char>) -> bool {
        Pattern::new(pattern, escape).matches(text)
    }

    /// By definition: tries every way to divide the text among the signs.
    fn matches_naively(text: &[char], pattern: &[char], escape: Option<char>) -> bool {
        let Some((sign, rest)) = pattern.split_first() else { return text.is_empty() };
        let one = |expected: Option<char>, rest: &[char]| {
            let fits = text.first().is_some_and(|it| expected.is_none_or(|letter| letter == *it));
            fits && matches_naively(&text[1..], rest, escape)
        };
        match sign {
            _ if Some(*sign) == escape => match rest.split_first() {
                Some((letter, rest)) => one(Some(*letter), rest),
                None => one(Some(*sign), rest),
            },
            '%' => (0..=text.len()).any(|from| matches_naively(&text[from..], rest, escape)),
            '_' => one(None, rest),
            _ => one(Some(*sign), rest),
        }
    }

    #[test]
    fn percent_stands_for_any_text_and_underscore_for_one_character() {
        for (text, pattern, expected) in [
            ("", "", true),
            ("", "%", true),
            ("", "%%", true),
            ("", "_", false),
            ("", "a", false),
            ("abc", "", false),
            ("abc", "abc", true),
            ("abc", "ABC", false),
            ("abc", "ab", false),
            ("abc", "bc", false),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "%b%", true),
            ("abc", "%abc%", true),
            ("abc", "a%c", true),
            ("abc", "ab%bc", false),
            ("abc", "%a%b%c%", true),
            ("abc", "%c%b%", false),
            ("abc", "a_c", true),
            ("aüc", "a_c", true),
            ("a😀c", "%_c", true),
            ("abc", "___", true),
            ("abc", "____", false),
            ("abc", "%___%", true),
            ("abc", "%____%", false),
            ("abc", "a_", false),
            ("aXbXc", "a%X_", true),
            ("abababc", "%abc", true),
            ("abababd", "%abc", false),
            ("abxaby", "%a_y%", true),
            ("abxabz", "%a_y%", false),
            ("[a]", "[a]", true),
            ("a", "[a]", false),
        ] {
            assert_eq!(matches(text, pattern, None), expected, "{text} {pattern}");
        }
    }

    #[test]
    fn an_escaped_sign_stands_for_itself() {
        assert!(matches("50%", "50!%", Some('!')));
        assert!(!matches("500", "50!%", Some('!')));
        assert!(matches("a!", "a!!", Some('!')));
        assert!(matches("a!", "a!", Some('!')), "with nothing to escape");
        assert!(matches("x_y%z", "%!_%!%%", Some('!')));
        assert!(!matches("xy%z", "%!_%!%%", Some('!')));
    }

    /// Every short pattern against every short text, and many longer ones.
    #[test]
    fn it_agrees_with_its_definition() {
        let grow = |all: &[String], signs: &str| -> Vec<String> {
            let longer = |text: &String| -> Vec<String> {
                signs.chars().map(|sign| format!("{text}{sign}")).collect()
            };
            all.iter().flat_map(longer).collect()
        };
        let mut texts = vec![String::new()];
        let mut newest = texts.clone();
        for _ in 0..5 {
            newest = grow(&newest, "aü");
            texts.extend(newest.iter().cloned());
        }
        let mut all = vec![String::new()];
        for _ in 0..5 {
            let newest = grow(&all, "aü_%!");
            let patterns: Vec<Vec<char>> = newest.iter().map(|it| it.chars().collect()).collect();
            for (pattern, signs) in newest.iter().zip(&patterns) {
                let ready = Pattern::new(pattern, Some('!'));
                for text in &texts {
                    let letters: Vec<char> = text.chars().collect();
                    let expected = matches_naively(&letters, signs, Some('!'));
                    assert_eq!(ready.matches(text), expected, "{text:?} LIKE {pattern:?}");
                }
            }
            all = newest;
        }
    }

    #[test]
    fn long_parts_agree_with_their_definition() {
        let mut random = Random::new(1);
        let mut pick = |signs: &str, length: usize| -> String {
            let signs: Vec<char> = signs.chars().collect();
            (0..length).map(|_| signs[random.within(0..signs.len())]).collect()
        };
        let mut found = 0;
        for round in 0..400 {
            let text = pick("aaab", 300);
            let part: String = text.chars().skip(round % 90).take(150 + round % 60).collect();
            let gaps = pick("....____x", part.len());
            let part = part.chars().zip(gaps.chars()).map(|(letter, gap)| match gap {
                '_' => '_',
                'x' if round.is_multiple_of(2) => 'b',
                _ => letter,
            });
            let pattern = format!("%{}%", part.collect::<String>());
            let (letters, signs): (Vec<char>, Vec<char>) =
                (text.chars().collect(), pattern.chars().collect());
            let expected = matches_naively(&letters, &signs, None);
            found += usize::from(expected);
            assert_eq!(matches(&text, &pattern, None), expected, "{text} {pattern}");
        }
        assert!((50..350).contains(&found), "{found} of 400 match: they say little");
    }

    /// An algorithm that takes text times pattern would need minutes here.
    #[test]
    fn the_worst_patterns_take_little_time() {
        let text = "a".repeat(512 * 1024);
        let half = "a".repeat(3900);
        let short = "%a_b".repeat(1900);
        let begun = Instant::now();
        for pattern in [
            format!("%{half}b{half}%"),
            format!("%{half}_{half}b%"),
            format!("%{}b%", "_a".repeat(3900)),
            format!("{short}%"),
            format!("%{}b", "a%".repeat(3900)),
        ] {
            let pattern = Pattern::new(&pattern, None);
            assert!(!pattern.matches(&text), "{}", &pattern.text[..10]);
            assert!(pattern.steps_for_each_character() <= (PATTERN_BYTES_MAX as u64).div_ceil(64));
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }
}
