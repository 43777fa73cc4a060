//! The properties that NFS clients see, as a request sends them.

use holdfast_domain::share::FromSource;

use crate::error::Error;
use crate::request::Call;
use crate::version::Version;

const MODE: &str = "x-ms-mode";
const OWNER: &str = "x-ms-owner";
const GROUP: &str = "x-ms-group";

/// Permissions, and the three bits above them.
const MODE_MAX: u16 = 0o7777;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentPosix {
    pub mode: Option<u16>,
    pub owner: Option<u32>,
    pub group: Option<u32>,
}

pub fn read(call: &Call<'_>) -> Result<SentPosix, Error> {
    if call.version < Version::V2025_05_05 {
        return Ok(SentPosix::default());
    }
    let number = |name: &'static str| -> Result<Option<u32>, Error> {
        let Some(text) = call.header(name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| Error::invalid_header(name, text))
    };
    let mode = match call.header(MODE)? {
        None => None,
        Some(text) => Some(parse_mode(text).ok_or_else(|| Error::invalid_header(MODE, text))?),
    };
    Ok(SentPosix { mode, owner: number(OWNER)?, group: number(GROUP)? })
}

/// Up to four octal digits, or nine letters as `ls` writes them.
fn parse_mode(text: &str) -> Option<u16> {
    if (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return u16::from_str_radix(text, 8).ok().filter(|mode| *mode <= MODE_MAX);
    }
    let letters = text.as_bytes();
    if letters.len() != 9 {
        return None;
    }
    let mut mode = 0;
    for (at, letter) in letters.iter().enumerate() {
        let bit = 1 << (8 - at);
        let special = 1 << (11 - at / 3);
        let expected = b"rwx"[at % 3];
        let last = at % 3 == 2;
        // The third letter of a group can also mean a special bit.
        let (lower, upper) = if at == 8 { (b't', b'T') } else { (b's', b'S') };
        mode |= match letter {
            b'-' => 0,
            letter if *letter == expected => bit,
            letter if last && *letter == lower => bit | special,
            letter if last && *letter == upper => special,
            _ => return None,
        };
    }
    Some(mode)
}

/// Reads a header that says whether a copy uses the value of its source or the one sent.
pub fn copied<T>(
    call: &Call<'_>,
    name: &'static str,
    sent: Option<T>,
) -> Result<FromSource<T>, Error> {
    let mode = match call.version >= Version::V2025_05_05 {
        true => call.header(name)?,
        false => None,
    };
    match mode {
        Some(text) if text.eq_ignore_ascii_case("source") => Ok(FromSource::Source),
        Some(text) if !text.eq_ignore_ascii_case("override") => {
            Err(Error::invalid_header(name, text))
        }
        Some(_) | None => Ok(sent.map_or(FromSource::New, FromSource::Given)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_digits_or_letters() {
        for (text, expected) in [
            ("0644", Some(0o644)),
            ("644", Some(0o644)),
            ("7777", Some(0o7777)),
            ("0", Some(0)),
            ("8", None),
            ("10000", None),
            ("-1", None),
            ("rw-r--r--", Some(0o644)),
            ("rwxrwxrwx", Some(0o777)),
            ("rwsr-sr-t", Some(0o7755)),
            ("rwSr-Sr-T", Some(0o7644)),
            ("---------", Some(0)),
            ("rwxrwxrw", None),
            ("xwrrwxrwx", None),
            ("", None),
        ] {
            assert_eq!(parse_mode(text), expected, "{text}");
        }
    }
}
