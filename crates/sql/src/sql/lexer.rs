//! The tokens of an expression.

use super::SyntaxError;

#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// A keyword or an unquoted name.
    Word(String),
    /// A name in double quotes.
    Name(String),
    Text(String),
    Integer(i64),
    Float(f64),
    Sign(&'static str),
    End,
}

/// Longer ones first, so that `<=` is not read as `<`.
const SIGNS: [&str; 19] = [
    "<=", ">=", "<>", "!=", "(", ")", "[", "]", ",", ".", ";", "*", "+", "-", "/", "%", "=", "<",
    ">",
];

/// Each token with the byte it begins at; the last is [`Token::End`].
pub fn tokens(text: &str) -> Result<Vec<(Token, usize)>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        if letter.is_whitespace() {
            at += letter.len_utf8();
            continue;
        }
        let (token, length) = token(&text[at..], letter)
            .map_err(|reason| SyntaxError { reason: reason.to_owned(), at })?;
        tokens.push((token, at));
        at += length;
    }
    tokens.push((Token::End, text.len()));
    Ok(tokens)
}

/// The first token of `rest`, which begins with `letter`, and its length.
fn token(rest: &str, letter: char) -> Result<(Token, usize), &'static str> {
    match letter {
        '\'' => {
            let (text, length) = quoted(rest, '\'').ok_or("a text is not closed")?;
            Ok((Token::Text(text), length))
        }
        '"' => {
            let (name, length) = quoted(rest, '"').ok_or("a name is not closed")?;
            Ok((Token::Name(name), length))
        }
        _ if letter.is_ascii_digit() => number(rest),
        _ if letter == '_' || letter.is_alphabetic() => {
            let end = rest
                .find(|letter: char| letter != '_' && !letter.is_alphanumeric())
                .unwrap_or(rest.len());
            Ok((Token::Word(rest[..end].to_owned()), end))
        }
        _ => {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            sign.map(|sign| (Token::Sign(sign), sign.len())).ok_or("an unknown sign stands")
        }
    }
}

/// The text between quotes, where a doubled quote means one; with its length including the quotes.
fn quoted(rest: &str, quote: char) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut letters = rest.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        if letter != quote {
            text.push(letter);
        } else if letters.next_if(|(_, next)| *next == quote).is_some() {
            text.push(quote);
        } else {
            return Some((text, at + 1));
        }
    }
    None
}

fn number(rest: &str) -> Result<(Token, usize), &'static str> {
    let digits = |from: usize| {
        rest[from..].bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len() - from)
    };
    let mut end = digits(0);
    let mut whole = true;
    if rest[end..].starts_with('.') && digits(end + 1) > 0 {
        whole = false;
        end += 1 + digits(end + 1);
    }
    if rest[end..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            whole = false;
            end += 1 + sign + exponent;
        }
    }
    if rest[end..].starts_with(|letter: char| letter == '_' || letter.is_alphanumeric()) {
        return Err("a name begins with a digit");
    }
    let number = &rest[..end];
    match number.parse() {
        Ok(integer) if whole => Ok((Token::Integer(integer), end)),
        _ => number
            .parse()
            .map(|float| (Token::Float(float), end))
            .map_err(|_| "a number cannot be read"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Token> {
        tokens(text).expect("tokens").into_iter().map(|(token, _)| token).collect()
    }

    #[test]
    fn words_numbers_texts_names_and_signs_are_told_apart() {
        assert_eq!(
            read("a _1 \"A \"\"b\"\"\" 'it''s' 1 1.5 2e3<=<;"),
            [
                Token::Word("a".into()),
                Token::Word("_1".into()),
                Token::Name("A \"b\"".into()),
                Token::Text("it's".into()),
                Token::Integer(1),
                Token::Float(1.5),
                Token::Float(2000.0),
                Token::Sign("<="),
                Token::Sign("<"),
                Token::Sign(";"),
                Token::End,
            ]
        );
    }

    #[test]
    fn what_is_no_token_is_refused_where_it_stands() {
        for (text, at) in [("a 'b", 2), ("\"a", 0), ("a # b", 2), ("1a", 0), ("a ? b", 2)] {
            assert_eq!(tokens(text).map_err(|error| error.at), Err(at), "{text}");
        }
    }

    #[test]
    fn a_number_beyond_64_bits_is_a_float() {
        assert_eq!(read("9223372036854775808")[0], Token::Float(9_223_372_036_854_775_808.0));
    }
}
