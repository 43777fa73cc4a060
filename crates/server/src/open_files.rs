//! How many files the process may have open, and for what. At the limit the next open fails, of a
//! connection or of the store. So the store has its share, and connections are limited to the rest.

use std::io;

use holdfast_places::LEAVING_MAX;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files of the store besides those it keeps open for reading: the log, folders, tables being merged,
/// segments being filled.
const STORE_AT_WORK: usize = 128;
/// Standard streams, listeners, event queues of threads, connections of the admin listener and
/// copies in the background.
const OTHERS: usize = 192;

/// The parts of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Tables of rows that are open at once.
    pub tables: usize,
    /// Segments of contents that are open for reading at once, with two descriptors each.
    pub segments: usize,
    /// Connections of clients.
    pub connections: usize,
}

impl Shares {
    /// Each connection may need `descriptors_each`: a request that copies from another host has a
    /// connection there, too.
    pub fn of(limit: usize, descriptors_each: usize) -> Self {
        let tables = (limit / 8).clamp(16, 256);
        let segments = (limit / 16).clamp(8, 256);
        let taken = tables + 2 * segments + STORE_AT_WORK + OTHERS + LEAVING_MAX;
        // If the limit is not enough for all of that, some of it waits from time to time.
        let connections = limit.saturating_sub(taken).max(limit / 4).max(1) / descriptors_each;
        Self { tables, segments, connections: connections.max(1) }
    }
}

/// Raises the limit of open files to its maximum, and returns it.
pub fn raise_limit() -> io::Result<usize> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    let limit = getrlimit(Resource::Nofile).current;
    Ok(limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fit_into_the_limit() {
        for limit in [1024, 2048, 4096, 65_536, 1_048_576] {
            let Shares { tables, segments, connections } = Shares::of(limit, 1);
            assert!(tables + 2 * segments + STORE_AT_WORK + connections < limit, "{limit}");
            assert!(connections >= limit / 4, "{limit}");
        }
    }

    #[test]
    fn something_can_be_done_with_very_few() {
        for limit in [0, 1, 64, 256] {
            assert!(Shares::of(limit, 2).connections >= 1);
        }
    }

    #[test]
    fn many_files_are_enough_for_the_usual_number_of_connections() {
        assert!(Shares::of(16 * 1024, 1).connections > 10_000);
        assert!(Shares::of(32 * 1024, 2).connections > 10_000);
    }

    #[test]
    fn limit_is_raised_to_the_highest_allowed() {
        let limit = raise_limit().expect("raised");
        let allowed = getrlimit(Resource::Nofile).maximum;
        assert_eq!(limit, allowed.map_or(usize::MAX, |allowed| allowed as usize));
    }
}
