//! The tokens of the tag languages.

use super::TagPredicateInvalid;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A bare or double-quoted name. Only a bare one can be a keyword.
    Name {
        text: String,
        bare: bool,
    },
    /// A single-quoted string.
    Value(String),
    /// `@container`
    Container,
    Compare(Comparator),
    Open,
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Comparator {
    /// Text is compared byte by byte. A missing tag is neither equal to a value nor different from
    /// it, like NULL in SQL (and in Azurite).
    pub(super) fn holds(self, tag: Option<&str>, value: &str) -> bool {
        tag.is_some_and(|tag| match self {
            Self::Equal => tag == value,
            Self::NotEqual => tag != value,
            Self::Greater => tag > value,
            Self::GreaterOrEqual => tag >= value,
            Self::Less => tag < value,
            Self::LessOrEqual => tag <= value,
        })
    }
}

/// The token at the beginning of `text` and what follows it; `None` at the end.
pub(super) fn next(text: &str) -> Result<Option<(Token, &str)>, TagPredicateInvalid> {
    let text = text.trim_start_matches([' ', '\t', '\r', '\n']);
    for (sign, token) in [
        ("<>", Token::Compare(Comparator::NotEqual)),
        (">=", Token::Compare(Comparator::GreaterOrEqual)),
        ("<=", Token::Compare(Comparator::LessOrEqual)),
        ("=", Token::Compare(Comparator::Equal)),
        (">", Token::Compare(Comparator::Greater)),
        ("<", Token::Compare(Comparator::Less)),
        ("(", Token::Open),
        (")", Token::Close),
    ] {
        if let Some(rest) = text.strip_prefix(sign) {
            return Ok(Some((token, rest)));
        }
    }
    if let Some(quoted) = text.strip_prefix('\'') {
        let (value, rest) = quoted.split_once('\'').ok_or(TagPredicateInvalid::Syntax)?;
        return Ok(Some((Token::Value(value.to_owned()), rest)));
    }
    if let Some(quoted) = text.strip_prefix('"') {
        let (name, rest) = quoted.split_once('"').ok_or(TagPredicateInvalid::Syntax)?;
        let token = Token::Name { text: name.to_owned(), bare: false };
        return if name.is_empty() {
            Err(TagPredicateInvalid::Syntax)
        } else {
            Ok(Some((token, rest)))
        };
    }
    let (at, word) = match text.strip_prefix('@') {
        Some(word) => (true, word),
        None => (false, text),
    };
    let length = word
        .find(|character: char| !character.is_ascii_alphanumeric() && character != '_')
        .unwrap_or(word.len());
    let (word, rest) = word.split_at(length);
    match (at, word) {
        (false, "") if rest.is_empty() => Ok(None),
        (_, "") => Err(TagPredicateInvalid::Syntax),
        (true, word) if word.eq_ignore_ascii_case("container") => {
            Ok(Some((Token::Container, rest)))
        }
        (true, _) => Err(TagPredicateInvalid::Syntax),
        (false, word) if word.starts_with(|first: char| first.is_ascii_digit()) => {
            Err(TagPredicateInvalid::Syntax)
        }
        (false, word) => Ok(Some((Token::Name { text: word.to_owned(), bare: true }, rest))),
    }
}

/// Reads tokens one ahead.
pub(super) struct Lexer<'a> {
    rest: &'a str,
    peeked: Option<Token>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, TagPredicateInvalid> {
        let mut lexer = Self { rest: text, peeked: None };
        lexer.advance()?;
        Ok(lexer)
    }

    pub(super) fn peek(&self) -> Option<&Token> {
        self.peeked.as_ref()
    }

    /// Takes the next token; `None` at the end.
    pub(super) fn advance(&mut self) -> Result<Option<Token>, TagPredicateInvalid> {
        let following = match next(self.rest)? {
            Some((token, rest)) => {
                self.rest = rest;
                Some(token)
            }
            None => None,
        };
        Ok(std::mem::replace(&mut self.peeked, following))
    }

    /// Takes the next token if it is this keyword.
    pub(super) fn keyword(&mut self, keyword: &str) -> Result<bool, TagPredicateInvalid> {
        let found = matches!(
            self.peek(),
            Some(Token::Name { text, bare: true }) if text.eq_ignore_ascii_case(keyword)
        );
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(super) fn comparator(&mut self) -> Result<Comparator, TagPredicateInvalid> {
        match self.advance()? {
            Some(Token::Compare(comparator)) => Ok(comparator),
            _ => Err(TagPredicateInvalid::Syntax),
        }
    }

    pub(super) fn value(&mut self) -> Result<String, TagPredicateInvalid> {
        match self.advance()? {
            Some(Token::Value(value)) => Ok(value),
            _ => Err(TagPredicateInvalid::Syntax),
        }
    }
}
