//! A full disk breaks nothing: batches that need more space are refused, and those that free space
//! are committed, in a reserve that was kept for them. When there is space again the reserve is
//! restored and every batch is accepted as before.
//!
//! File descriptors may run out too. Then batches that need no new file are committed, others are
//! refused, and upkeep tries again until it gets a descriptor.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::folder::own_file;
use super::log::reserve;
use crate::engine::{Fault, is_no_descriptors};

/// How long until free space is checked again.
pub(super) const RETRY: Duration = Duration::from_millis(500);
/// The reserve in segments of the log: two memtables that are to be flushed, a segment to go on in,
/// and one for manifests.
const RESERVE_SEGMENTS: u64 = 4;
const RESERVE_FILE: &str = "reserve";

/// Whether there is space for more.
#[derive(Clone, Debug, Default)]
pub(super) enum DiskSpace {
    #[default]
    Enough,
    /// Upkeep got no descriptor. Only batches that would have to wait for it are refused.
    NoDescriptors(Fault),
    /// The reserve is in use: only batches that free space are committed.
    Reserve(Fault),
    /// The reserve is used up, too. Batches that would have to wait for upkeep are refused.
    None(Fault),
}

impl DiskSpace {
    /// Why batches that need more space are refused.
    pub fn refusal(&self) -> Option<&Fault> {
        match self {
            Self::Enough | Self::NoDescriptors(_) => None,
            Self::Reserve(fault) | Self::None(fault) => Some(fault),
        }
    }

    /// Why waiting for upkeep is pointless.
    pub fn standstill(&self) -> Option<&Fault> {
        match self {
            Self::Enough | Self::Reserve(_) => None,
            Self::NoDescriptors(fault) | Self::None(fault) => Some(fault),
        }
    }

    /// Why some batches are refused.
    pub fn shortage(&self) -> Option<&Fault> {
        self.refusal().or(self.standstill())
    }
}

/// Why upkeep did not do what it tried.
#[derive(Debug)]
pub(super) enum UpkeepError {
    /// Everything is as it was before; it can be tried again.
    NoRoom(Fault),
    /// Likewise.
    NoDescriptors(Fault),
    /// The state on disk is unknown.
    Broken(Fault),
}

impl UpkeepError {
    pub fn because(what: &'static str, why: io::Error) -> Self {
        if is_no_room(&why) {
            Self::NoRoom(Fault::because(what, why))
        } else if is_no_descriptors(&why) {
            Self::NoDescriptors(Fault::because(what, why))
        } else {
            Self::Broken(Fault::because(what, why))
        }
    }
}

pub(super) fn is_no_room(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Space that is taken from the file system so that nobody else can have it.
pub(super) struct Reserve {
    folder: PathBuf,
    bytes: u64,
}

impl Reserve {
    pub fn new(folder: &Path, segment_bytes: u64) -> Self {
        Self { folder: folder.to_path_buf(), bytes: RESERVE_SEGMENTS * segment_bytes }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(RESERVE_FILE)
    }

    /// Takes the space, unless it is taken already. It need not survive a power cut: the next
    /// opening takes what is missing.
    pub fn take(&self) -> io::Result<()> {
        let file = own_file().write(true).create(true).truncate(false).open(self.path())?;
        if file.metadata()?.len() == self.bytes {
            return Ok(());
        }
        let taken = file.set_len(0).and_then(|()| reserve(&file, self.bytes));
        if taken.is_err() {
            fs::remove_file(self.path())?;
        }
        taken
    }

    pub fn spend(&self) -> io::Result<()> {
        match fs::remove_file(self.path()) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// Whether there is space for the reserve, for normal work and for `more`.
    pub fn could_be_taken(&self, more: u64) -> io::Result<bool> {
        Ok(available(&self.folder)? > self.bytes + self.bytes / 2 + more)
    }
}

/// Fails like a full disk if fewer bytes than these are left: better not to begin.
pub(super) fn check_available(folder: &Path, bytes: u64) -> Result<(), UpkeepError> {
    let what = "there is no room to go on";
    let left = available(folder).map_err(|why| UpkeepError::because(what, why))?;
    if left < bytes {
        return Err(UpkeepError::because(what, io::ErrorKind::StorageFull.into()));
    }
    Ok(())
}

pub(super) fn available(folder: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(folder)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserve_is_taken_once_and_spent_once() {
        let folder = tempfile::tempdir().unwrap();
        let reserve = Reserve::new(folder.path(), 4096);
        reserve.take().unwrap();
        reserve.take().unwrap();
        assert_eq!(fs::metadata(reserve.path()).unwrap().len(), RESERVE_SEGMENTS * 4096);
        reserve.spend().unwrap();
        reserve.spend().unwrap();
        assert!(!reserve.path().exists());
    }

    #[test]
    fn more_than_there_is_fails_as_a_full_disk_does() {
        let folder = tempfile::tempdir().unwrap();
        check_available(folder.path(), 1).unwrap();
        let refused = check_available(folder.path(), u64::MAX);
        assert!(matches!(refused, Err(UpkeepError::NoRoom(ref fault)) if fault.is_no_room()));
    }
}
