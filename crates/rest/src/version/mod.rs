//! Versions of the service: dates that requests name in `x-ms-version`, `sv` and `api-version`.

pub(crate) mod negotiation;

use std::fmt;

/// A date `YYYY-MM-DD`. Any real date is a version: one newer than all known ones comes from a
/// newer SDK and is served as the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a version of the form YYYY-MM-DD")]
pub struct InvalidVersion;

impl Version {
    const fn of(year: u32, month: u32, day: u32) -> Self {
        Self(year * 10_000 + month * 100 + day)
    }

    pub fn parse(text: &str) -> Result<Self, InvalidVersion> {
        let bytes = text.as_bytes();
        if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
            return Err(InvalidVersion);
        }
        let number = |from: usize, to: usize| {
            bytes[from..to].iter().try_fold(0, |number: u32, byte| {
                byte.is_ascii_digit().then(|| number * 10 + u32::from(byte - b'0'))
            })
        };
        let (Some(year), Some(month), Some(day)) = (number(0, 4), number(5, 7), number(8, 10))
        else {
            return Err(InvalidVersion);
        };
        let leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            4 | 6 | 9 | 11 => 30,
            2 => 28 + u32::from(leap),
            1..=12 => 31,
            _ => return Err(InvalidVersion),
        };
        if year == 0 || day == 0 || day > days {
            return Err(InvalidVersion);
        }
        Ok(Self::of(year, month, day))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = *b"YYYY-MM-DD";
        let mut rest = self.0;
        for digit in text.iter_mut().rev().filter(|byte| **byte != b'-') {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        formatter.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

macro_rules! known_versions {
    ($($name:ident = $year:literal, $month:literal, $day:literal;)*) => {
        impl Version {
            $(pub const $name: Self = Self::of($year, $month, $day);)*

            /// Every version that changed something, oldest first.
            pub const KNOWN: &[Self] = &[$(Self::$name),*];
        }
    };
}

known_versions! {
    V2008_10_27 = 2008, 10, 27;
    V2009_04_14 = 2009, 4, 14;
    V2009_07_17 = 2009, 7, 17;
    V2009_09_19 = 2009, 9, 19;
    V2011_08_18 = 2011, 8, 18;
    V2012_02_12 = 2012, 2, 12;
    V2013_08_15 = 2013, 8, 15;
    V2014_02_14 = 2014, 2, 14;
    V2015_02_21 = 2015, 2, 21;
    V2015_04_05 = 2015, 4, 5;
    V2015_07_08 = 2015, 7, 8;
    V2015_12_11 = 2015, 12, 11;
    V2016_05_31 = 2016, 5, 31;
    V2017_04_17 = 2017, 4, 17;
    V2017_07_29 = 2017, 7, 29;
    V2017_11_09 = 2017, 11, 9;
    V2018_03_28 = 2018, 3, 28;
    V2018_11_09 = 2018, 11, 9;
    V2019_02_02 = 2019, 2, 2;
    V2019_07_07 = 2019, 7, 7;
    V2019_10_10 = 2019, 10, 10;
    V2019_12_12 = 2019, 12, 12;
    V2020_02_10 = 2020, 2, 10;
    V2020_04_08 = 2020, 4, 8;
    V2020_06_12 = 2020, 6, 12;
    V2020_08_04 = 2020, 8, 4;
    V2020_10_02 = 2020, 10, 2;
    V2020_12_06 = 2020, 12, 6;
    V2021_02_12 = 2021, 2, 12;
    V2021_04_10 = 2021, 4, 10;
    V2021_06_08 = 2021, 6, 8;
    V2021_08_06 = 2021, 8, 6;
    V2021_10_04 = 2021, 10, 4;
    V2021_12_02 = 2021, 12, 2;
    V2022_11_02 = 2022, 11, 2;
    V2023_01_03 = 2023, 1, 3;
    V2023_05_03 = 2023, 5, 3;
    V2023_08_03 = 2023, 8, 3;
    V2023_11_03 = 2023, 11, 3;
    V2024_05_04 = 2024, 5, 4;
    V2024_08_04 = 2024, 8, 4;
    V2024_11_04 = 2024, 11, 4;
    V2025_01_05 = 2025, 1, 5;
    V2025_05_05 = 2025, 5, 5;
    V2025_07_05 = 2025, 7, 5;
    V2025_11_05 = 2025, 11, 5;
    V2026_02_06 = 2026, 2, 6;
    V2026_04_06 = 2026, 4, 6;
    V2026_06_06 = 2026, 6, 6;
    V2026_10_06 = 2026, 10, 6;
    V2026_12_06 = 2026, 12, 6;
    V2027_03_07 = 2027, 3, 7;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_versions_are_dates_in_order_and_come_back_as_written() {
        assert!(Version::KNOWN.is_sorted());
        for version in Version::KNOWN {
            assert_eq!(Version::parse(&version.to_string()), Ok(*version));
        }
        assert_eq!(Version::V2009_09_19.to_string(), "2009-09-19");
    }

    #[test]
    fn a_version_later_than_every_known_one_is_served() {
        let later = Version::parse("2031-01-01").expect("a date");
        assert!(Version::KNOWN.iter().all(|known| *known < later));
    }

    #[test]
    fn text_that_is_no_date_is_refused() {
        for text in [
            "",
            "2019",
            "2019-1-1",
            "2019-13-01",
            "2019-00-10",
            "2019-02-29",
            "2020-02-30",
            "2019/02/02",
            "2019-02-02 ",
            "+019-02-02",
            "0000-01-01",
            "2019-02-00",
            "２０１９-02-02",
        ] {
            assert_eq!(Version::parse(text), Err(InvalidVersion), "{text}");
        }
    }
}
