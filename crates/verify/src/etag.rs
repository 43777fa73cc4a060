//! ETags as clients see them: opaque, only compared.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::report::Violation;

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ETag(pub Arc<str>);

impl ETag {
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for ETag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The condition on the ETag of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    None,
    /// `If-Match`
    Is(ETag),
    /// `If-Match: *`
    Exists,
    /// `If-None-Match: *`
    Absent,
}

impl Condition {
    /// The header of the condition.
    pub fn header(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::None => None,
            Self::Is(etag) => Some(("if-match", &etag.0)),
            Self::Exists => Some(("if-match", "*")),
            Self::Absent => Some(("if-none-match", "*")),
        }
    }
}

/// The ETag of an object in a model: `None` if it is unknown, since the request that made it was
/// not answered.
pub type KnownETag = Option<ETag>;

/// Finds ETags of one object that were used for two contents, from the ETags in answers and their
/// contents.
pub fn find_reused<Content: PartialEq + fmt::Debug>(
    seen: impl Iterator<Item = (ETag, Content, String)>,
) -> Vec<Violation> {
    let mut first: HashMap<ETag, (Content, String)> = HashMap::new();
    let mut violations = Vec::new();
    for (etag, content, line) in seen {
        match first.get(&etag) {
            Some((other, other_line)) if *other != content => violations.push(Violation {
                checker: "ETags",
                what: format!(
                    "the ETag {etag:?} stands for two contents, {other:?} and {content:?}"
                ),
                history: vec![other_line.clone(), line],
            }),
            Some(_) => {}
            None => {
                first.insert(etag, (content, line));
            }
        }
    }
    violations.truncate(1);
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_of_two_contents_is_found_and_one_seen_twice_is_not() {
        let seen = |contents: [u64; 3]| {
            let tags = ["a", "b", "a"].map(ETag::new);
            let seen = tags.into_iter().zip(contents);
            find_reused(seen.map(|(tag, content)| (tag, content, format!("{content}"))))
        };
        assert_eq!(seen([1, 2, 1]), []);
        assert_eq!(seen([1, 2, 3])[0].history, ["1", "3"]);
    }
}
