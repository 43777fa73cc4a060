//! The attributes of a file or directory as headers and listings write them.

use holdfast_domain::share::Attributes;

const NAMES: [(Attributes, &str); 8] = [
    (Attributes::READ_ONLY, "ReadOnly"),
    (Attributes::HIDDEN, "Hidden"),
    (Attributes::SYSTEM, "System"),
    (Attributes::ARCHIVE, "Archive"),
    (Attributes::TEMPORARY, "Temporary"),
    (Attributes::OFFLINE, "Offline"),
    (Attributes::NOT_CONTENT_INDEXED, "NotContentIndexed"),
    (Attributes::NO_SCRUB_DATA, "NoScrubData"),
];

const DIRECTORY: &str = "Directory";
const NONE: &str = "None";

/// Names in any case, joined with `|`. `None` must be alone; `Directory` is redundant on
/// directories and invalid on files; `Temporary` is invalid on directories.
pub fn parse(text: &str, is_directory: bool) -> Option<Attributes> {
    if text.trim().eq_ignore_ascii_case(NONE) {
        return Some(Attributes::default());
    }
    let mut attributes = Attributes::default();
    for name in text.split('|').map(str::trim) {
        if is_directory && name.eq_ignore_ascii_case(DIRECTORY) {
            continue;
        }
        let (attribute, _) = NAMES.iter().find(|(_, known)| known.eq_ignore_ascii_case(name))?;
        if is_directory && *attribute == Attributes::TEMPORARY {
            return None;
        }
        attributes = attributes.union(*attribute);
    }
    Some(attributes)
}

pub fn text(attributes: Attributes, is_directory: bool) -> String {
    let mut names = Vec::new();
    for (attribute, name) in NAMES {
        // In the order of their bits, where Directory is below Archive.
        if is_directory && attribute == Attributes::ARCHIVE {
            names.push(DIRECTORY);
        }
        if attributes.contains(attribute) {
            names.push(name);
        }
    }
    if names.is_empty() { NONE.to_owned() } else { names.join(" | ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_come_back_as_they_were_written() {
        for (sent, is_directory, expected) in [
            ("None", false, Some("None")),
            ("none", true, Some("Directory")),
            ("ReadOnly", false, Some("ReadOnly")),
            ("Archive|readonly", false, Some("ReadOnly | Archive")),
            ("ReadOnly | Hidden | System", true, Some("ReadOnly | Hidden | System | Directory")),
            ("Directory", true, Some("Directory")),
            ("Directory|Archive", true, Some("Directory | Archive")),
            ("Directory", false, None),
            ("Temporary", false, Some("Temporary")),
            ("Temporary", true, None),
            (
                "Offline|NotContentIndexed|NoScrubData",
                false,
                Some("Offline | NotContentIndexed | NoScrubData"),
            ),
            ("None|ReadOnly", false, None),
            ("ReadOnly|", false, None),
            ("ReadOnly,Hidden", false, None),
            ("", false, None),
            ("Compressed", false, None),
        ] {
            let parsed = parse(sent, is_directory).map(|known| text(known, is_directory));
            assert_eq!(parsed.as_deref(), expected, "{sent} {is_directory}");
        }
    }
}
