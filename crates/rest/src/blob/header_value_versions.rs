//! Values of headers that only later versions know. The first version of operations is in the
//! operation table, that of listing options beside the listings.

use crate::error::Error;
use crate::request::Call;
use crate::version::Version;

/// Header values and their first versions.
const VALUES: [(&str, &str, Version); 4] = [
    ("x-ms-access-tier", "Cold", Version::V2021_12_02),
    ("x-ms-access-tier", "Smart", Version::V2026_06_06),
    ("x-ms-rehydrate-priority", "High", Version::V2019_02_02),
    ("x-ms-rehydrate-priority", "Standard", Version::V2019_02_02),
];

pub fn check(call: &Call<'_>) -> Result<(), Error> {
    for name in ["x-ms-access-tier", "x-ms-rehydrate-priority"] {
        if let Some(value) = call.header(name)?
            && !is_known(name, value, call.version)
        {
            return Err(Error::invalid_header(name, value));
        }
    }
    Ok(())
}

/// The operation checks values that are not in the table.
fn is_known(name: &str, value: &str, version: Version) -> bool {
    let same = |(named, known, _): &&(&str, &str, Version)| {
        *named == name && known.eq_ignore_ascii_case(value)
    };
    VALUES.iter().find(same).is_none_or(|(_, _, since)| *since <= version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_known_from_its_version_on() {
        for (cell, name, value, version, known) in [
            ("13 Cold tier", "x-ms-access-tier", "Cold", Version::V2021_10_04, false),
            ("13 Cold tier", "x-ms-access-tier", "cold", Version::V2021_12_02, true),
            ("13 Smart tier", "x-ms-access-tier", "Smart", Version::V2026_04_06, false),
            ("13 Smart tier", "x-ms-access-tier", "Smart", Version::V2026_06_06, true),
            ("3.10 Hot", "x-ms-access-tier", "Hot", Version::V2017_04_17, true),
            ("3.10 priority", "x-ms-rehydrate-priority", "High", Version::V2018_11_09, false),
            ("3.10 priority", "x-ms-rehydrate-priority", "High", Version::V2019_02_02, true),
        ] {
            assert_eq!(is_known(name, value, version), known, "{cell} at {version}");
        }
    }
}
