//! Segment files on the operating system. Everything that reaches the disk goes through the two
//! traits here, so that the crash tests can put a simulated disk in their place.

#![allow(unsafe_code, reason = "direct and vectored calls of the system on those buffers")]

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::BLOCK_BYTES;
use crate::embedded::DataFolder;
use crate::embedded::disk_space::available;
use crate::embedded::folder::{OpenFolder, own_file};
use crate::engine::Fault;

/// Shorter writes go through the page cache: short content is likely to be read soon, and the copy
/// costs little. Longer writes would evict too much and pay for a second copy.
const DIRECT_BYTES_MIN: usize = 512 * 1024;
/// The kernel's limit (`IOV_MAX`) on the pieces of one write.
const SLICES_MAX: usize = 1024;

/// The number of the system call `cachestat` (Linux 6.5), the same on all architectures.
const CACHESTAT: libc::c_long = 451;

#[repr(C)]
struct CacheRange {
    offset: u64,
    bytes: u64,
}

/// In pages.
#[repr(C)]
#[derive(Default)]
struct CacheStatistics {
    cached: u64,
    _dirty: u64,
    _in_writeback: u64,
    _evicted: u64,
    _recently_evicted: u64,
}

pub(super) trait SegmentFolder: Send + Sync {
    /// The segments and their lengths in bytes.
    fn list(&self) -> io::Result<Vec<(u64, u64)>>;
    /// Creates a file of this length with its space allocated, or leaves none behind.
    fn create(&self, number: u64, bytes: u64) -> io::Result<Arc<dyn SegmentFile>>;
    /// Renames a file and gives it this length, all of it allocated; on error the file has its old
    /// name, and takes up no space if the disk is full.
    fn recycle(&self, from: u64, to: u64, bytes: u64) -> io::Result<Arc<dyn SegmentFile>>;
    /// Opens a file for reading and for punching holes.
    fn open(&self, number: u64) -> io::Result<Arc<dyn SegmentFile>>;
    fn delete(&self, number: u64) -> io::Result<()>;
    /// Gives the file the length 0.
    fn truncate(&self, number: u64) -> io::Result<()>;
    /// Bytes that are left on the disk.
    fn available(&self) -> io::Result<u64>;
    /// Makes created, renamed and deleted names durable.
    fn sync(&self) -> io::Result<()>;
}

pub(super) trait SegmentFile: Send + Sync {
    /// Writes the slices one after the other; each is aligned and a whole number of blocks long.
    fn write_at(&self, slices: &[&[u8]], offset: u64) -> io::Result<()>;
    /// Makes everything written durable.
    fn sync(&self) -> io::Result<()>;
    /// Appends to `buffer`, up to its capacity, what the file holds at `offset`. Returns 0 at the
    /// end of the file.
    fn read_at(&self, buffer: &mut Vec<u8>, offset: u64) -> io::Result<usize>;
    /// The same, but only from memory; `WouldBlock` if there is nothing.
    fn read_cached_at(&self, buffer: &mut Vec<u8>, offset: u64) -> io::Result<usize>;
    /// Fills `room`, whole blocks, from the disk itself, and leaves nothing of it in the page cache.
    /// `Unsupported` where the file system cannot.
    fn read_direct_at(&self, room: &mut [u8], offset: u64) -> io::Result<()>;
    /// Whether nothing of a range is in the page cache; false where that is unknown.
    fn is_cold(&self, offset: u64, bytes: u64) -> bool;
    /// Begins to read a range from the disk into the page cache.
    fn will_need(&self, offset: u64, bytes: u64);
    /// Gives a range of blocks back to the file system; the file keeps its length.
    fn punch_hole(&self, offset: u64, bytes: u64) -> io::Result<()>;
}

pub(super) struct OsFolder {
    opened: OpenFolder,
    /// Keeps other processes out for as long as there are segments to write.
    _lock: DataFolder,
}

impl OsFolder {
    pub(super) fn new(folder: &DataFolder) -> Result<Self, Fault> {
        let path = folder.subfolder("segments")?;
        let opened = OpenFolder::open(path)
            .map_err(|why| Fault::because("cannot open the folder of segments", why))?;
        Ok(Self { opened, _lock: folder.clone() })
    }

    fn path_of(&self, number: u64) -> PathBuf {
        self.opened.path().join(format!("{number:08}.seg"))
    }

    fn open_both_ways(&self, number: u64) -> io::Result<Arc<dyn SegmentFile>> {
        let path = self.path_of(number);
        let buffered = OpenOptions::new().read(true).write(true).open(&path)?;
        Ok(Arc::new(OsFile::new(buffered, open_direct(&path))))
    }
}

impl SegmentFolder for OsFolder {
    fn list(&self) -> io::Result<Vec<(u64, u64)>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(self.opened.path())? {
            let entry = entry?;
            let name = entry.file_name();
            let number = name.to_str().and_then(number_in);
            match number {
                Some(number) => found.push((number, entry.metadata()?.len())),
                None => tracing::warn!(?name, "not a segment file; left alone"),
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    fn create(&self, number: u64, bytes: u64) -> io::Result<Arc<dyn SegmentFile>> {
        let path = self.path_of(number);
        let file = own_file().write(true).create_new(true).open(&path)?;
        let opened = allocate(&file, bytes).and_then(|()| self.open_both_ways(number));
        if opened.is_err() {
            std::fs::remove_file(&path)?;
        }
        opened
    }

    fn recycle(&self, from: u64, to: u64, bytes: u64) -> io::Result<Arc<dyn SegmentFile>> {
        let file = OpenOptions::new().write(true).open(self.path_of(from))?;
        if file.metadata()?.len() > bytes {
            file.set_len(bytes)?;
        }
        // A partly allocated file must not keep its space.
        allocate(&file, bytes).or_else(|why| file.set_len(0).and(Err(why)))?;
        let file = self.open_both_ways(from)?;
        std::fs::rename(self.path_of(from), self.path_of(to))?;
        Ok(file)
    }

    fn open(&self, number: u64) -> io::Result<Arc<dyn SegmentFile>> {
        self.open_both_ways(number)
    }

    fn delete(&self, number: u64) -> io::Result<()> {
        std::fs::remove_file(self.path_of(number))
    }

    fn truncate(&self, number: u64) -> io::Result<()> {
        OpenOptions::new().write(true).open(self.path_of(number))?.set_len(0)
    }

    fn available(&self) -> io::Result<u64> {
        available(self.opened.path())
    }

    fn sync(&self) -> io::Result<()> {
        self.opened.sync()
    }
}

fn open_direct(path: &Path) -> Option<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(path).ok()
}

/// Only names as [`OsFolder::path_of`] forms them, so that no two files have one number.
fn number_in(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".seg")?.parse().ok()?;
    (format!("{number:08}.seg") == name).then_some(number)
}

/// Gives the file this length and, where the file system can, all its blocks: running out of space
/// is noticed here and not in the middle of a write.
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    match fallocate(file, 0, 0, bytes) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => file.set_len(bytes),
        other => other,
    }
}

fn fallocate(file: &File, mode: c_int, offset: u64, bytes: u64) -> io::Result<()> {
    retrying(|| {
        // SAFETY: the descriptor is open for as long as `file` is borrowed; no memory is passed.
        let done = unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, bytes as i64) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    })
}

fn retrying<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

struct OsFile {
    buffered: File,
    direct: Option<File>,
    /// The file system accepted the flag at opening but not the call.
    direct_refused: AtomicBool,
    /// The file system cannot tell what is cached.
    cached_reads_refused: AtomicBool,
}

impl OsFile {
    fn new(buffered: File, direct: Option<File>) -> Self {
        Self {
            buffered,
            direct,
            direct_refused: AtomicBool::new(false),
            cached_reads_refused: AtomicBool::new(false),
        }
    }

    fn write_some(&self, slices: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        if bytes >= DIRECT_BYTES_MIN && offset.is_multiple_of(BLOCK_BYTES) {
            match self.directly(|direct| write_vectored(direct, slices, offset)) {
                Err(error) if error.kind() == ErrorKind::Unsupported => {}
                other => return other,
            }
        }
        write_vectored(&self.buffered, slices, offset)
    }

    /// `Unsupported` if the file system cannot.
    fn directly<T>(&self, call: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        let Some(direct) = &self.direct else { return Err(ErrorKind::Unsupported.into()) };
        if self.direct_refused.load(Ordering::Relaxed) {
            return Err(ErrorKind::Unsupported.into());
        }
        call(direct).map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => {
                self.direct_refused.store(true, Ordering::Relaxed);
                ErrorKind::Unsupported.into()
            }
            _ => error,
        })
    }

    fn read_some(&self, buffer: &mut Vec<u8>, offset: u64, flags: c_int) -> io::Result<usize> {
        let spare = buffer.spare_capacity_mut();
        let slice = libc::iovec { iov_base: spare.as_mut_ptr().cast(), iov_len: spare.len() };
        retrying(|| {
            // SAFETY: the one slice is the spare capacity of `buffer`, which is borrowed alone; the
            // kernel writes at most its length and returns how much of it.
            let read = unsafe {
                libc::preadv2(self.buffered.as_raw_fd(), &slice, 1, offset as i64, flags)
            };
            if read < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(read as usize)
        })
        .inspect(|read| {
            // SAFETY: the kernel has initialized these bytes of the spare capacity.
            unsafe { buffer.set_len(buffer.len() + read) }
        })
    }
}

fn write_vectored(file: &File, slices: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
    retrying(|| {
        // SAFETY: `IoSlice` has the layout of `iovec`, and the slices outlive the call, which only
        // reads from them.
        let written = unsafe {
            libc::pwritev(
                file.as_raw_fd(),
                slices.as_ptr().cast(),
                slices.len() as c_int,
                offset as i64,
            )
        };
        match written {
            0 => Err(ErrorKind::WriteZero.into()),
            1.. => Ok(written as usize),
            _ => Err(io::Error::last_os_error()),
        }
    })
}

impl SegmentFile for OsFile {
    fn write_at(&self, slices: &[&[u8]], mut offset: u64) -> io::Result<()> {
        let mut slices: Vec<IoSlice<'_>> = slices.iter().map(|slice| IoSlice::new(slice)).collect();
        let mut rest = slices.as_mut_slice();
        while !rest.is_empty() {
            let at_once = rest.len().min(SLICES_MAX);
            let written = self.write_some(&rest[..at_once], offset)?;
            offset += written as u64;
            IoSlice::advance_slices(&mut rest, written);
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.buffered.sync_data()
    }

    fn read_at(&self, buffer: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        self.read_some(buffer, offset, 0)
    }

    fn read_cached_at(&self, buffer: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        if self.cached_reads_refused.load(Ordering::Relaxed) {
            return Err(ErrorKind::WouldBlock.into());
        }
        let read = self.read_some(buffer, offset, libc::RWF_NOWAIT);
        if read.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EOPNOTSUPP)) {
            self.cached_reads_refused.store(true, Ordering::Relaxed);
            return Err(ErrorKind::WouldBlock.into());
        }
        read
    }

    fn read_direct_at(&self, room: &mut [u8], offset: u64) -> io::Result<()> {
        self.directly(|direct| direct.read_exact_at(room, offset))
    }

    fn is_cold(&self, offset: u64, bytes: u64) -> bool {
        let range = CacheRange { offset, bytes };
        let mut found = CacheStatistics::default();
        // SAFETY: both pointers are to values of this function, laid out as the kernel has them.
        let outcome = unsafe {
            libc::syscall(CACHESTAT, self.buffered.as_raw_fd(), &raw const range, &raw mut found, 0)
        };
        outcome == 0 && found.cached == 0
    }

    fn will_need(&self, offset: u64, bytes: u64) {
        // SAFETY: no memory is passed. It is a hint: errors show when the bytes are read.
        unsafe {
            libc::posix_fadvise(
                self.buffered.as_raw_fd(),
                offset as i64,
                bytes as i64,
                libc::POSIX_FADV_WILLNEED,
            );
        }
    }

    fn punch_hole(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        fallocate(&self.buffered, mode, offset, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_in_their_one_form_are_segments() {
        assert_eq!(number_in("00000007.seg"), Some(7));
        assert_eq!(number_in("123456789.seg"), Some(123_456_789));
        for name in ["7.seg", "+0000007.seg", "00000007.tmp", "000000007.seg", ".seg"] {
            assert_eq!(number_in(name), None, "{name}");
        }
    }
}
