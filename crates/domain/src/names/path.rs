//! Names of files and directories, and paths made of them.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use super::{NameRefusal, length};

const COMPONENT_CHARS_MAX: usize = 255;
const PATH_CHARS_MAX: usize = 2048;
const DEPTH_MAX: usize = 250;

/// What happens to dots at the end of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrailingDots {
    /// They are removed, as Windows does; the default of the service.
    Removed,
    /// `x-ms-allow-trailing-dot: true`
    Kept,
}

/// The name of one file or directory. Case is kept, but not compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PathComponent(String);

impl PathComponent {
    pub fn new(name: &str, dots: TrailingDots) -> Result<Self, NameRefusal> {
        // Before dots are removed: these are never valid names.
        if matches!(name, "." | "..") {
            return Err(NameRefusal::Reserved);
        }
        let name = match dots {
            TrailingDots::Removed => name.trim_end_matches('.'),
            TrailingDots::Kept => name,
        };
        if !(1..=COMPONENT_CHARS_MAX).contains(&length(name)) {
            return Err(NameRefusal::Length);
        }
        let forbidden =
            |character: char| character.is_control() || "\"\\/:|<>*?".contains(character);
        if name.contains(forbidden) {
            return Err(NameRefusal::Characters);
        }
        if is_device(name) { Err(NameRefusal::Reserved) } else { Ok(Self(name.to_owned())) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text that is equal for equal names. Letters are folded one by one, as Windows file
    /// systems do: `ß` stays itself and is not `SS`.
    pub fn key(&self) -> String {
        fold_text(&self.0)
    }
}

/// A part of a name as [`PathComponent::key`] has it.
pub fn fold_text(text: &str) -> String {
    text.chars().map(fold).collect()
}

fn fold(character: char) -> char {
    let mut upper = character.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(single), None) => single,
        (_, _) => character,
    }
}

/// Names that Windows gives to devices, in any case.
fn is_device(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let port = ["LPT", "COM"].iter().find_map(|port| name.strip_prefix(port));
    match port {
        Some(number) => matches!(number.as_bytes(), [b'1'..=b'9']),
        None => matches!(name.as_str(), "PRN" | "AUX" | "NUL" | "CON" | "CLOCK$"),
    }
}

impl fmt::Display for PathComponent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl PartialEq for PathComponent {
    fn eq(&self, other: &Self) -> bool {
        self.0.chars().map(fold).eq(other.0.chars().map(fold))
    }
}

impl Eq for PathComponent {}

impl Hash for PathComponent {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl TryFrom<String> for PathComponent {
    type Error = NameRefusal;

    fn try_from(name: String) -> Result<Self, NameRefusal> {
        Self::new(&name, TrailingDots::Kept)
    }
}

impl From<PathComponent> for String {
    fn from(component: PathComponent) -> Self {
        component.0
    }
}

/// Where a file or directory is in its share. The root directory has no components.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FilePath(Vec<PathComponent>);

impl FilePath {
    /// A slash at the end is removed.
    pub fn directory(path: &str, dots: TrailingDots) -> Result<Self, NameRefusal> {
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() { Ok(Self::default()) } else { Self::parse(path, dots) }
    }

    pub fn file(path: &str, dots: TrailingDots) -> Result<Self, NameRefusal> {
        if path.ends_with('/') { Err(NameRefusal::Address) } else { Self::parse(path, dots) }
    }

    pub fn components(&self) -> &[PathComponent] {
        &self.0
    }

    /// The name and the directory that it is in; `None` for the root.
    pub fn split_last(&self) -> Option<(&PathComponent, &[PathComponent])> {
        self.0.split_last()
    }

    /// The same path with another spelling of its last name.
    #[must_use]
    pub fn with_last(&self, name: Option<&PathComponent>) -> Self {
        let mut path = self.clone();
        if let (Some(last), Some(name)) = (path.0.last_mut(), name) {
            *last = name.clone();
        }
        path
    }

    /// The directory that it is in; the root is in itself.
    #[must_use]
    pub fn parent(&self) -> Self {
        let above = self.split_last().map_or(&[][..], |(_, above)| above);
        Self(above.to_vec())
    }

    fn parse(path: &str, dots: TrailingDots) -> Result<Self, NameRefusal> {
        let deep = path.split('/').count() > DEPTH_MAX;
        if deep || length(path) > PATH_CHARS_MAX || path.split('/').any(str::is_empty) {
            return Err(NameRefusal::Address);
        }
        path.split('/')
            .map(|name| PathComponent::new(name, dots))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, component) in self.0.iter().enumerate() {
            let slash = if index == 0 { "" } else { "/" };
            write!(formatter, "{slash}{component}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use NameRefusal::{Address, Characters, Length, Reserved};
    use TrailingDots::{Kept, Removed};

    #[test]
    fn file_names_are_those_that_windows_can_have() {
        let (at_255, at_256) = ("n".repeat(255), "n".repeat(256));
        let dotted = format!("{at_255}...");
        for (name, dots, expected) in [
            ("a.txt", Removed, Ok("a.txt")),
            ("Ünï côdé 😀", Removed, Ok("Ünï côdé 😀")),
            (at_255.as_str(), Removed, Ok(at_255.as_str())),
            (&at_256, Removed, Err(Length)),
            (&dotted, Removed, Ok(&at_255)),
            (&dotted, Kept, Err(Length)),
            ("", Removed, Err(Length)),
            ("a..", Removed, Ok("a")),
            ("a..", Kept, Ok("a..")),
            ("...", Removed, Err(Length)),
            ("...", Kept, Ok("...")),
            (".", Kept, Err(Reserved)),
            ("..", Removed, Err(Reserved)),
            ("..a", Removed, Ok("..a")),
            ("a\"", Removed, Err(Characters)),
            ("a\\b", Removed, Err(Characters)),
            ("a/b", Removed, Err(Characters)),
            ("a:b", Removed, Err(Characters)),
            ("a|b", Removed, Err(Characters)),
            ("a<b", Removed, Err(Characters)),
            ("a>b", Removed, Err(Characters)),
            ("a*b", Removed, Err(Characters)),
            ("a?b", Removed, Err(Characters)),
            ("a\tb", Removed, Err(Characters)),
            ("a\u{7F}b", Removed, Err(Characters)),
            ("LPT1", Removed, Err(Reserved)),
            ("lpt9", Removed, Err(Reserved)),
            ("LPT0", Removed, Ok("LPT0")),
            ("LPT10", Removed, Ok("LPT10")),
            ("COM1", Removed, Err(Reserved)),
            ("com9.", Removed, Err(Reserved)),
            ("COM", Removed, Ok("COM")),
            ("PRN", Removed, Err(Reserved)),
            ("Aux", Removed, Err(Reserved)),
            ("nul", Removed, Err(Reserved)),
            ("CON", Removed, Err(Reserved)),
            ("CLOCK$", Removed, Err(Reserved)),
            ("CLOCK", Removed, Ok("CLOCK")),
        ] {
            let component = PathComponent::new(name, dots);
            let text = component.as_ref().map(PathComponent::as_str).map_err(|refusal| *refusal);
            assert_eq!(text, expected, "6.1 {name:?} {dots:?}");
        }
    }

    #[test]
    fn case_does_not_tell_two_files_apart() {
        let name = |text| PathComponent::new(text, Removed).expect("a name");
        assert_eq!(name("Straße.TXT"), name("straße.txt"));
        assert_eq!(name("ÄÖ").key(), name("äö").key());
        assert_ne!(name("strasse"), name("straße"));
        assert_eq!(name("Kept").to_string(), "Kept");
    }

    #[test]
    fn paths_have_a_length_a_depth_and_an_end() {
        let deep = |depth: usize| vec!["d"; depth].join("/");
        let long = |chars: usize| {
            let mut path = vec!["n".repeat(200); 10].join("/");
            path.push('/');
            path.push_str(&"n".repeat(chars - path.len()));
            path
        };
        for (cell, path, file, directory) in [
            ("6.1 one name", "a".to_owned(), Ok(1), Ok(1)),
            ("6.1 trailing slash", "a/b/".to_owned(), Err(Address), Ok(2)),
            ("6.1 two trailing slashes", "a//".to_owned(), Err(Address), Err(Address)),
            ("6.1 the root", String::new(), Err(Address), Ok(0)),
            ("6.1 empty component", "a//b".to_owned(), Err(Address), Err(Address)),
            ("6.1 leading slash", "/a".to_owned(), Err(Address), Err(Address)),
            ("6.1 upwards", "a/../b".to_owned(), Err(Reserved), Err(Reserved)),
            ("6.1 depth 250", deep(250), Ok(250), Ok(250)),
            ("6.1 depth 251", deep(251), Err(Address), Err(Address)),
            ("6.1 path of 2048", long(2048), Ok(11), Ok(11)),
            ("6.1 path of 2049", long(2049), Err(Address), Err(Address)),
        ] {
            let count = |path: FilePath| path.components().len();
            assert_eq!(FilePath::file(&path, Removed).map(count), file, "{cell}: file");
            assert_eq!(FilePath::directory(&path, Removed).map(count), directory, "{cell}: folder");
        }
        let path = FilePath::file("A./b", Removed).expect("a path");
        assert_eq!(path.to_string(), "A/b");
        assert_eq!(Some(path), FilePath::directory("a/B/", Removed).ok());
    }
}
