//! The configured accounts and their keys.

use std::fmt;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

pub const DEVELOPMENT_ACCOUNT: &str = "devstoreaccount1";
/// Public: every storage emulator and SDK has it built in, for `UseDevelopmentStorage=true`. It
/// protects nothing.
pub const WELL_KNOWN_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

pub const ACCOUNT_FORM: &str = "NAME:KEY or NAME:KEY:KEY2, with a NAME of 3 to 24 lowercase \
                                letters and digits and KEYs in Base64";

/// SDKs differ in padding printed keys.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    pub keys: Vec<Key>,
    /// Its data is kept, but its requests are refused.
    pub disabled: bool,
}

/// The bytes of an account key. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Vec<u8>);

impl Key {
    fn from_base64(text: &str) -> Option<Self> {
        BASE64.decode(text).ok().filter(|bytes| !bytes.is_empty()).map(Self)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(hidden)")
    }
}

impl Account {
    pub fn development() -> Self {
        let key = Key::from_base64(WELL_KNOWN_KEY).expect("the well-known key is Base64");
        Self { name: DEVELOPMENT_ACCOUNT.to_owned(), keys: vec![key], disabled: false }
    }

    /// `NAME:KEY[:KEY2]`
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let name = parts.next().filter(|name| is_account_name(name))?;
        let keys: Option<Vec<Key>> = parts.map(Key::from_base64).collect();
        let keys = keys.filter(|keys| matches!(keys.len(), 1 | 2))?;
        Some(Self { name: name.to_owned(), keys, disabled: false })
    }

    pub fn has_well_known_key(&self) -> bool {
        let well_known = Key::from_base64(WELL_KNOWN_KEY);
        self.keys.iter().any(|key| Some(key) == well_known.as_ref())
    }
}

/// What a message may show of a text that was meant to be an account: the part before the first
/// colon if it can be a name, so that a misplaced key is never echoed.
pub fn without_keys(text: &str) -> String {
    match text.split_once(':') {
        Some((name, _)) if name.len() <= 24 => format!("{name}:(hidden)"),
        Some(_) | None => "(hidden)".to_owned(),
    }
}

fn is_account_name(name: &str) -> bool {
    (3..=24).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_have_one_or_two_base64_keys() {
        for (text, keys) in [("abc:a2V5", 1), ("abc:a2V5:a2V5Mg==", 2), ("a1b:a2V5Mg", 1)] {
            let account = Account::parse(text).expect(text);
            assert_eq!(account.keys.len(), keys, "{text}");
            assert!(account.keys[0].bytes().starts_with(b"key"), "{text}");
        }
        for text in [
            "",
            "abc",
            "abc:",
            ":a2V5",
            "ab:a2V5",
            "Abc:a2V5",
            "a-c:a2V5",
            "abc:a2V5:",
            "abc:***",
            "abc:a2V5:a2V5:a2V5",
            "abcdefghijklmnopqrstuvwxy:a2V5",
        ] {
            assert_eq!(Account::parse(text), None, "{text}");
        }
    }

    #[test]
    fn no_key_is_ever_shown() {
        let account = Account::parse("abc:c2VjcmV0").expect("an account");
        let shown = format!("{account:?}");
        assert!(shown.contains("abc") && !shown.contains("115"), "{shown}");
        assert_eq!(without_keys("abc:c2VjcmV0:more"), "abc:(hidden)");
        assert_eq!(without_keys("c2VjcmV0"), "(hidden)");
        assert_eq!(without_keys(&format!("{WELL_KNOWN_KEY}:abc")), "(hidden)");
    }

    #[test]
    fn the_well_known_key_is_known_under_any_name() {
        assert!(Account::development().has_well_known_key());
        let second = Account::parse(&format!("other:a2V5:{WELL_KNOWN_KEY}")).expect("an account");
        assert!(second.has_well_known_key());
        assert!(!Account::parse("abc:a2V5").expect("an account").has_well_known_key());
    }
}
