//! Which conditional headers and which lease headers an operation takes.

use std::fmt;

use bitflags::bitflags;

bitflags! {
    /// A set of conditional headers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Conditions: u16 {
        const IF_MATCH = 1;
        const IF_NONE_MATCH = 1 << 1;
        const IF_MODIFIED_SINCE = 1 << 2;
        const IF_UNMODIFIED_SINCE = 1 << 3;
        /// `x-ms-if-tags`
        const TAGS = 1 << 4;
        /// `x-ms-if-sequence-number-le`, `-lt`, `-eq`
        const SEQUENCE_NUMBER = 1 << 5;
        /// `x-ms-blob-condition-appendpos`
        const APPEND_POSITION = 1 << 6;
        /// `x-ms-blob-condition-maxsize`
        const MAX_SIZE = 1 << 7;
        /// The four `x-ms-source-if-*` on the source of a copy.
        const SOURCE = 1 << 8;
        /// `x-ms-source-if-tags`
        const SOURCE_TAGS = 1 << 9;
        /// The four `x-ms-blob-if-*` of the calls on tags.
        const BLOB = 1 << 10;
        /// `x-ms-access-tier-if-modified-since`, `-unmodified-since`
        const ACCESS_TIER = 1 << 11;
        /// `x-ms-source-if-match-crc64`, `-none-match-crc64`
        const SOURCE_CRC64 = 1 << 12;
    }
}

impl Conditions {
    pub const DATES: Self = Self::IF_MODIFIED_SINCE.union(Self::IF_UNMODIFIED_SINCE);
    pub const ALL_FOUR: Self = Self::IF_MATCH.union(Self::IF_NONE_MATCH).union(Self::DATES);
    pub const FOUR_AND_TAGS: Self = Self::ALL_FOUR.union(Self::TAGS);
}

/// The header names, in the order of the reference.
impl fmt::Display for Conditions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Conditions, &[&str]); 13] = [
            (Conditions::IF_MATCH, &["If-Match"]),
            (Conditions::IF_NONE_MATCH, &["If-None-Match"]),
            (Conditions::IF_MODIFIED_SINCE, &["If-Modified-Since"]),
            (Conditions::IF_UNMODIFIED_SINCE, &["If-Unmodified-Since"]),
            (Conditions::TAGS, &["x-ms-if-tags"]),
            (
                Conditions::SEQUENCE_NUMBER,
                &[
                    "x-ms-if-sequence-number-le",
                    "x-ms-if-sequence-number-lt",
                    "x-ms-if-sequence-number-eq",
                ],
            ),
            (Conditions::APPEND_POSITION, &["x-ms-blob-condition-appendpos"]),
            (Conditions::MAX_SIZE, &["x-ms-blob-condition-maxsize"]),
            (
                Conditions::SOURCE,
                &[
                    "x-ms-source-if-match",
                    "x-ms-source-if-none-match",
                    "x-ms-source-if-modified-since",
                    "x-ms-source-if-unmodified-since",
                ],
            ),
            (Conditions::SOURCE_TAGS, &["x-ms-source-if-tags"]),
            (
                Conditions::BLOB,
                &[
                    "x-ms-blob-if-match",
                    "x-ms-blob-if-none-match",
                    "x-ms-blob-if-modified-since",
                    "x-ms-blob-if-unmodified-since",
                ],
            ),
            (
                Conditions::ACCESS_TIER,
                &["x-ms-access-tier-if-modified-since", "x-ms-access-tier-if-unmodified-since"],
            ),
            (
                Conditions::SOURCE_CRC64,
                &["x-ms-source-if-match-crc64", "x-ms-source-if-none-match-crc64"],
            ),
        ];
        let taken = NAMES.iter().filter(|(bit, _)| self.contains(*bit));
        for (at, name) in taken.flat_map(|(_, names)| names.iter()).enumerate() {
            if at > 0 {
                formatter.write_str(", ")?;
            }
            formatter.write_str(name)?;
        }
        Ok(())
    }
}

/// Which of `x-ms-lease-id` and its relatives an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseHeaders {
    None,
    /// The id, required only if the resource is leased.
    Id,
    IdRequired,
    ProposedId,
    /// To change a lease.
    IdAndProposedIdRequired,
    /// To change the lease of a file or share.
    IdRequiredAndProposedId,
    SourceId,
    SourceIdAndDestinationId,
}
