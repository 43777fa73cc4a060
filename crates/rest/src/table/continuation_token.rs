//! Continuation tokens of queries: opaque to clients, and in the form of the service,
//! `1!<length>!<Base64>` with `-` for `=`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Longer than any key is when it is encoded.
const TEXT_BYTES_MAX: usize = 4096;

pub fn encode(key: &str) -> String {
    let text = STANDARD.encode(key).replace('=', "-");
    format!("1!{}!{text}", text.len())
}

/// The text given to [`encode`]; `None` if it cannot have made this token.
pub fn decode(token: &str) -> Option<String> {
    let (length, text) = token.strip_prefix("1!")?.split_once('!')?;
    if text.len() > TEXT_BYTES_MAX || length.parse() != Ok(text.len()) || text.contains('=') {
        return None;
    }
    // Some clients put the token into an address as it is, where a plus sign is a space.
    let text = text.replace('-', "=").replace(' ', "+");
    String::from_utf8(STANDARD.decode(text).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_out_of_their_tokens() {
        // The first is the one of the reference.
        for (key, token) in [
            ("Smith", "1!8!U21pdGg-"),
            ("", "1!0!"),
            ("a", "1!4!YQ--"),
            ("abc", "1!4!YWJj"),
            ("it's ~~~???>>>", "1!20!aXQncyB+fn4/Pz8+Pj4-"),
            ("größe\u{1F600}", "1!16!Z3LDtsOfZfCfmIA-"),
        ] {
            assert_eq!(encode(key), token);
            assert_eq!(decode(token).as_deref(), Some(key), "{token}");
            assert_eq!(decode(&token.replace('+', " ")).as_deref(), Some(key), "{token}");
        }
        let longest = "\u{FFFD}".repeat(512);
        assert_eq!(decode(&encode(&longest)), Some(longest));
    }

    #[test]
    fn what_is_no_token_is_not_read() {
        for token in [
            "",
            "1",
            "1!",
            "1!!",
            "Smith",
            "2!8!U21pdGg-",
            "1!7!U21pdGg-",
            "1!9!U21pdGg-",
            "1!x!U21pdGg-",
            "1!-8!U21pdGg-",
            "1!8!U21pdGg=",
            "1!8!U21pdGg*",
            "1!4!YQ-",
            "1!3!YQ-",
            "1!4!/w--",
            "1!8!U21p!Gg-",
        ] {
            assert_eq!(decode(token), None, "{token}");
        }
        let long = "YWJj".repeat(2000);
        assert_eq!(decode(&format!("1!8000!{long}")), None);
    }
}
