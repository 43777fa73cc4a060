//! The tokens of a filter.

use super::{InvalidFilter, literal};
use crate::table::Value;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A property or a keyword, depending on its place.
    Word(&'a str),
    Constant(Value),
    Open,
    Close,
    End,
}

pub(super) struct Lexer<'a> {
    text: &'a str,
    /// Where the token after `peeked` begins.
    at: usize,
    peeked: Token<'a>,
    /// Where `peeked` begins.
    peeked_at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, InvalidFilter> {
        let mut lexer = Self { text, at: 0, peeked: Token::End, peeked_at: 0 };
        lexer.advance()?;
        Ok(lexer)
    }

    pub(super) fn peek(&self) -> &Token<'a> {
        &self.peeked
    }

    /// An error at the next token.
    pub(super) fn invalid(&self, why: &'static str) -> InvalidFilter {
        InvalidFilter { at: self.peeked_at, why }
    }

    /// The next token, taken.
    pub(super) fn advance(&mut self) -> Result<Token<'a>, InvalidFilter> {
        let rest = &self.text[self.at..];
        let token = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        self.peeked_at = self.text.len() - token.len();
        let (following, length) =
            token_of(token).map_err(|why| InvalidFilter { at: self.peeked_at, why })?;
        self.at = self.peeked_at + length;
        Ok(std::mem::replace(&mut self.peeked, following))
    }
}

/// The token that `text` begins with, and its length.
fn token_of(text: &str) -> Result<(Token<'_>, usize), &'static str> {
    let Some(first) = text.chars().next() else { return Ok((Token::End, 0)) };
    match first {
        '(' => Ok((Token::Open, 1)),
        ')' => Ok((Token::Close, 1)),
        '\'' => {
            let (content, length) = quoted(text).ok_or(UNCLOSED)?;
            Ok((Token::Constant(Value::String(content)), length))
        }
        '-' | '0'..='9' => number(text),
        _ if begins_word(first) => word(text),
        _ => Err("a filter has no such character"),
    }
}

const UNCLOSED: &str = "a text is not closed";

fn begins_word(character: char) -> bool {
    character == '_' || character.is_alphabetic()
}

fn continues_word(character: char) -> bool {
    // The characters that names of properties have, see `Properties`.
    character == '_'
        || character.is_alphanumeric()
        || matches!(
            character,
            '\u{300}'..='\u{36F}' | '\u{200C}' | '\u{200D}' | '\u{203F}' | '\u{2040}'
        )
}

fn word(text: &str) -> Result<(Token<'_>, usize), &'static str> {
    let length = text.find(|character| !continues_word(character)).unwrap_or(text.len());
    let (word, rest) = text.split_at(length);
    if rest.starts_with('\'') {
        let (content, quoted_length) = quoted(rest).ok_or(UNCLOSED)?;
        let constant = literal::prefixed(word, &content)?;
        return Ok((Token::Constant(constant), length + quoted_length));
    }
    let token = match literal::named(word) {
        Some(constant) => Token::Constant(constant),
        None => Token::Word(word),
    };
    Ok((token, length))
}

/// Everything up to a space or a parenthesis has to be one number.
fn number(text: &str) -> Result<(Token<'_>, usize), &'static str> {
    let ends = |character: char| character.is_whitespace() || matches!(character, '(' | ')' | '\'');
    let length = text.find(ends).unwrap_or(text.len());
    Ok((Token::Constant(literal::number(&text[..length])?), length))
}

/// The content of the text in quotes that `text` begins with, and its length with them. A quote
/// is doubled within.
fn quoted(text: &str) -> Option<(String, usize)> {
    let mut content = String::new();
    let mut at = 1;
    loop {
        let quote = at + text.get(at..)?.find('\'')?;
        content.push_str(&text[at..quote]);
        if !text[quote + 1..].starts_with('\'') {
            return Some((content, quote + 1));
        }
        content.push('\'');
        at = quote + 2;
    }
}
