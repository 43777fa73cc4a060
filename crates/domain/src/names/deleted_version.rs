//! Versions of what was deleted.

/// Distinguishes containers, or shares, that were deleted under the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeletedVersion(pub(crate) u64);

impl DeletedVersion {
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        u64::from_str_radix(text, 16).ok().filter(|_| digits).map(Self)
    }
}

impl std::fmt::Display for DeletedVersion {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:016X}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_back_as_written_and_nothing_else_is_one() {
        let version = DeletedVersion(0x08DE_0123_4567_89AB);
        assert_eq!(version.to_string(), "08DE0123456789AB");
        assert_eq!(DeletedVersion::parse("08de0123456789ab"), Some(version));
        for text in ["", "8DE0123456789AB", "+8DE0123456789AB", "08DE0123456789AG", "version"] {
            assert_eq!(DeletedVersion::parse(text), None, "{text}");
        }
    }
}
