//! Records every change of the files below one folder, by defining the C library's functions in the
//! test binary: the linker prefers these to the library's own. Each does the real system call.
//!
//! Syncs of recorded files are not done, only recorded: what they promise is judged by `trace`, and
//! thousands of them would take minutes.
//!
//! Nothing in here may allocate a file, print or panic while the record is locked: that would come
//! back to these same functions.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use libc::{AT_FDCWD, O_CREAT, O_TRUNC, mode_t, off_t, size_t, ssize_t};

pub type FileId = usize;

#[derive(Clone, Debug)]
pub enum Op {
    MakeFolder {
        path: PathBuf,
    },
    Link {
        path: PathBuf,
        file: FileId,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
        file: FileId,
    },
    Unlink {
        path: PathBuf,
    },
    Write {
        file: FileId,
        offset: u64,
        bytes: Vec<u8>,
    },
    Resize {
        file: FileId,
        length: u64,
    },
    SyncFile {
        file: FileId,
    },
    /// A sync failed: what was written before may be lost in any case.
    SyncFailed {
        file: FileId,
    },
    SyncFolder {
        path: PathBuf,
    },
    /// Something the test wants to find in the record.
    Mark(u64),
}

#[derive(Clone, Debug)]
enum Open {
    File(FileId),
    Folder(PathBuf),
}

struct Record {
    root: Option<PathBuf>,
    ops: Vec<Op>,
    names: Option<HashMap<PathBuf, FileId>>,
    open: Option<HashMap<c_int, Open>>,
    files: FileId,
    /// How many more changes succeed before one fails.
    failure_in: Option<usize>,
    failed: bool,
    /// No sync at all is really done.
    syncs_are_skipped: bool,
}

static RECORD: Mutex<Record> = Mutex::new(Record {
    root: None,
    ops: Vec::new(),
    names: None,
    open: None,
    files: 0,
    failure_in: None,
    failed: false,
    syncs_are_skipped: false,
});

static USER: Mutex<()> = Mutex::new(());

fn record() -> MutexGuard<'static, Record> {
    RECORD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// There is one record: tests take turns.
pub fn exclusive() -> MutexGuard<'static, ()> {
    let turn = USER.lock().unwrap_or_else(PoisonError::into_inner);
    record().syncs_are_skipped = true;
    turn
}

/// Begins to record below `root`, which holds nothing yet or what an earlier crash left. Returns how
/// many operations stand for what it holds.
pub fn start(root: &Path) -> usize {
    let mut existing = Vec::new();
    list(root, &mut existing);
    let mut record = record();
    record.ops.clear();
    record.files = 0;
    record.names = Some(HashMap::new());
    record.open = Some(HashMap::new());
    record.failure_in = None;
    record.failed = false;
    for (path, content) in existing {
        let Some(content) = content else {
            record.ops.push(Op::MakeFolder { path: path.clone() });
            record.synced(&path);
            continue;
        };
        let file = record.new_file(&path);
        record.ops.push(Op::Link { path: path.clone(), file });
        record.ops.push(Op::Write { file, offset: 0, bytes: content });
        record.ops.push(Op::SyncFile { file });
        record.synced(&path);
    }
    record.root = Some(root.to_path_buf());
    record.ops.len()
}

/// From now on, after `changes` more of them, one write, sync or change of a name fails.
pub fn fail_after(changes: usize) {
    record().failure_in = Some(changes);
}

/// Whether that failure has happened.
pub fn has_failed() -> bool {
    record().failed
}

pub fn mark(mark: u64) {
    record().ops.push(Op::Mark(mark));
}

/// Ends recording.
pub fn stop() -> Vec<Op> {
    let mut record = record();
    record.root = None;
    record.failure_in = None;
    std::mem::take(&mut record.ops)
}

/// Folders with `None`, files with their content; a folder before what is in it.
pub fn list(folder: &Path, found: &mut Vec<(PathBuf, Option<Vec<u8>>)>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.push((path.clone(), None));
            list(&path, found);
        } else {
            let content = std::fs::read(&path).unwrap();
            found.push((path, Some(content)));
        }
    }
}

impl Record {
    fn watches(&self, path: &Path) -> bool {
        self.root.as_ref().is_some_and(|root| path.starts_with(root))
    }

    fn synced(&mut self, path: &Path) {
        if let Some(parent) = path.parent() {
            self.ops.push(Op::SyncFolder { path: parent.to_path_buf() });
        }
    }

    fn new_file(&mut self, path: &Path) -> FileId {
        let file = self.files;
        self.files += 1;
        self.names.get_or_insert_default().insert(path.to_path_buf(), file);
        file
    }

    fn file_named(&self, path: &Path) -> Option<FileId> {
        self.names.as_ref()?.get(path).copied()
    }

    fn opened(&self, descriptor: c_int) -> Option<Open> {
        self.root.as_ref()?;
        self.open.as_ref()?.get(&descriptor).cloned()
    }

    fn opened_file(&self, descriptor: c_int) -> Option<FileId> {
        match self.opened(descriptor)? {
            Open::File(file) => Some(file),
            Open::Folder(_) => None,
        }
    }

    /// Whether the change that is about to be made is the one that fails.
    fn fails_now(&mut self) -> bool {
        match &mut self.failure_in {
            Some(0) => {
                self.failure_in = None;
                self.failed = true;
                true
            }
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        }
    }
}

fn input_output_error() -> c_int {
    // SAFETY: the location is this thread's own.
    unsafe { *libc::__errno_location() = libc::EIO };
    -1
}

/// # Safety
/// `path` is a C string.
unsafe fn path_of(path: *const c_char) -> PathBuf {
    // SAFETY: as promised by the caller.
    PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()))
}

/// # Safety
/// As of `openat`.
unsafe fn open_at(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's promise; no lock is held and nothing is touched on the way.
    unsafe {
        let name = path_of(path);
        let mut record = record();
        if folder != AT_FDCWD || !record.watches(&name) {
            drop(record);
            return libc::syscall(libc::SYS_openat, folder, path, flags, mode) as c_int;
        }
        let known = record.file_named(&name);
        if flags & O_CREAT != 0 && known.is_none() && record.fails_now() {
            return input_output_error();
        }
        let descriptor = libc::syscall(libc::SYS_openat, folder, path, flags, mode) as c_int;
        if descriptor < 0 {
            return descriptor;
        }
        let open = match known {
            Some(file) => {
                if flags & O_TRUNC != 0 {
                    record.ops.push(Op::Resize { file, length: 0 });
                }
                Open::File(file)
            }
            None if flags & O_CREAT != 0 => {
                let file = record.new_file(&name);
                record.ops.push(Op::Link { path: name, file });
                Open::File(file)
            }
            None => Open::Folder(name),
        };
        record.open.get_or_insert_default().insert(descriptor, open);
        descriptor
    }
}

/// # Safety
/// As of `pwritev`, with the offset at which the write will land.
unsafe fn recorded_write(
    descriptor: c_int,
    bytes: *const c_void,
    count: size_t,
    offset: Option<off_t>,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe {
        let mut record = record();
        let file = record.opened_file(descriptor);
        let position = match (file, offset) {
            (Some(_), None) => {
                libc::syscall(libc::SYS_lseek, descriptor, 0, libc::SEEK_CUR) as off_t
            }
            (_, offset) => offset.unwrap_or(0),
        };
        if file.is_none() {
            drop(record);
            return match offset {
                None => libc::syscall(libc::SYS_write, descriptor, bytes, count) as ssize_t,
                Some(offset) => {
                    libc::syscall(libc::SYS_pwrite64, descriptor, bytes, count, offset) as ssize_t
                }
            };
        }
        if record.fails_now() {
            return input_output_error() as ssize_t;
        }
        let written = match offset {
            None => libc::syscall(libc::SYS_write, descriptor, bytes, count) as ssize_t,
            Some(offset) => {
                libc::syscall(libc::SYS_pwrite64, descriptor, bytes, count, offset) as ssize_t
            }
        };
        if let (Some(file), Ok(length)) = (file, usize::try_from(written)) {
            let bytes = std::slice::from_raw_parts(bytes.cast::<u8>(), length).to_vec();
            record.ops.push(Op::Write { file, offset: position as u64, bytes });
        }
        written
    }
}

/// # Safety
/// As of `fsync`.
unsafe fn recorded_sync(descriptor: c_int, call: libc::c_long) -> c_int {
    let mut record = record();
    match record.opened(descriptor) {
        Some(Open::File(file)) => {
            if record.fails_now() {
                record.ops.push(Op::SyncFailed { file });
                return input_output_error();
            }
            record.ops.push(Op::SyncFile { file });
            0
        }
        Some(Open::Folder(path)) => {
            if record.fails_now() {
                return input_output_error();
            }
            record.ops.push(Op::SyncFolder { path });
            0
        }
        None if record.syncs_are_skipped => 0,
        None => {
            drop(record);
            // SAFETY: the caller's promise.
            unsafe { libc::syscall(call, descriptor) as c_int }
        }
    }
}

/// # Safety
/// As of `ftruncate`; `real` does it.
unsafe fn recorded_resize(descriptor: c_int, length: off_t, real: impl Fn() -> c_int) -> c_int {
    let mut record = record();
    let Some(file) = record.opened_file(descriptor) else {
        drop(record);
        return real();
    };
    if record.fails_now() {
        return input_output_error();
    }
    let outcome = real();
    if outcome == 0 {
        record.ops.push(Op::Resize { file, length: length as u64 });
    }
    outcome
}

/// # Safety
/// Both are C strings.
unsafe fn recorded_rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let (source, target) = (path_of(from), path_of(to));
        let mut record = record();
        let real = || libc::syscall(libc::SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0) as c_int;
        let Some(file) = record.file_named(&source).filter(|_| record.watches(&source)) else {
            drop(record);
            return real();
        };
        if record.fails_now() {
            return input_output_error();
        }
        let outcome = real();
        if outcome == 0 {
            let names = record.names.get_or_insert_default();
            names.remove(&source);
            names.insert(target.clone(), file);
            record.ops.push(Op::Rename { from: source, to: target, file });
        }
        outcome
    }
}

/// # Safety
/// As of `unlinkat`.
unsafe fn recorded_unlink(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let name = path_of(path);
        let mut record = record();
        let real = || libc::syscall(libc::SYS_unlinkat, folder, path, flags) as c_int;
        if folder != AT_FDCWD || flags != 0 || !record.watches(&name) {
            drop(record);
            return real();
        }
        if record.fails_now() {
            return input_output_error();
        }
        let outcome = real();
        if outcome == 0 {
            record.names.get_or_insert_default().remove(&name);
            record.ops.push(Op::Unlink { path: name });
        }
        outcome
    }
}

/// The functions themselves. Safety is as in the C library throughout.
#[allow(clippy::missing_safety_doc, reason = "they are the C library's")]
mod interposed {
    use super::*;

    macro_rules! interpose {
        ($(fn $name:ident($($argument:ident: $kind:ty),*) -> $result:ty $body:block)*) => {
            $(
                #[unsafe(no_mangle)]
                unsafe extern "C" fn $name($($argument: $kind),*) -> $result {
                    // SAFETY: the caller keeps the C library's contract.
                    unsafe { $body }
                }
            )*
        };
    }

    interpose! {
        fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            open_at(AT_FDCWD, path, flags, mode)
        }
        fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            open_at(AT_FDCWD, path, flags, mode)
        }
        fn openat(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            open_at(folder, path, flags, mode)
        }
        fn openat64(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            open_at(folder, path, flags, mode)
        }
        fn close(descriptor: c_int) -> c_int {
            let mut record = record();
            if let Some(open) = &mut record.open {
                open.remove(&descriptor);
            }
            libc::syscall(libc::SYS_close, descriptor) as c_int
        }
        fn write(descriptor: c_int, bytes: *const c_void, count: size_t) -> ssize_t {
            recorded_write(descriptor, bytes, count, None)
        }
        fn pwrite(descriptor: c_int, bytes: *const c_void, count: size_t, at: off_t) -> ssize_t {
            recorded_write(descriptor, bytes, count, Some(at))
        }
        fn pwrite64(descriptor: c_int, bytes: *const c_void, count: size_t, at: off_t) -> ssize_t {
            recorded_write(descriptor, bytes, count, Some(at))
        }
        // A short count is allowed, and the caller then writes the rest: the first part is enough.
        fn writev(descriptor: c_int, parts: *const libc::iovec, count: c_int) -> ssize_t {
            match first_part(parts, count) {
                Some(part) => recorded_write(descriptor, part.iov_base, part.iov_len, None),
                None => 0,
            }
        }
        fn pwritev(descriptor: c_int, parts: *const libc::iovec, count: c_int, at: off_t) -> ssize_t {
            match first_part(parts, count) {
                Some(part) => recorded_write(descriptor, part.iov_base, part.iov_len, Some(at)),
                None => 0,
            }
        }
        fn pwritev64(descriptor: c_int, parts: *const libc::iovec, count: c_int, at: off_t) -> ssize_t {
            match first_part(parts, count) {
                Some(part) => recorded_write(descriptor, part.iov_base, part.iov_len, Some(at)),
                None => 0,
            }
        }
        fn fsync(descriptor: c_int) -> c_int {
            recorded_sync(descriptor, libc::SYS_fsync)
        }
        fn fdatasync(descriptor: c_int) -> c_int {
            recorded_sync(descriptor, libc::SYS_fdatasync)
        }
        fn ftruncate(descriptor: c_int, length: off_t) -> c_int {
            recorded_resize(descriptor, length, || {
                libc::syscall(libc::SYS_ftruncate, descriptor, length) as c_int
            })
        }
        fn ftruncate64(descriptor: c_int, length: off_t) -> c_int {
            recorded_resize(descriptor, length, || {
                libc::syscall(libc::SYS_ftruncate, descriptor, length) as c_int
            })
        }
        // Only whole new files are reserved here, so it is a change of length.
        fn fallocate(descriptor: c_int, mode: c_int, from: off_t, length: off_t) -> c_int {
            recorded_resize(descriptor, from + length, || {
                libc::syscall(libc::SYS_fallocate, descriptor, mode, from, length) as c_int
            })
        }
        fn fallocate64(descriptor: c_int, mode: c_int, from: off_t, length: off_t) -> c_int {
            recorded_resize(descriptor, from + length, || {
                libc::syscall(libc::SYS_fallocate, descriptor, mode, from, length) as c_int
            })
        }
        fn rename(from: *const c_char, to: *const c_char) -> c_int {
            recorded_rename(from, to)
        }
        fn renameat(from_folder: c_int, from: *const c_char, to_folder: c_int, to: *const c_char) -> c_int {
            if from_folder == AT_FDCWD && to_folder == AT_FDCWD {
                recorded_rename(from, to)
            } else {
                libc::syscall(libc::SYS_renameat2, from_folder, from, to_folder, to, 0) as c_int
            }
        }
        fn unlink(path: *const c_char) -> c_int {
            recorded_unlink(AT_FDCWD, path, 0)
        }
        fn unlinkat(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
            recorded_unlink(folder, path, flags)
        }
        fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
            let name = path_of(path);
            let mut record = record();
            if record.watches(&name) && record.fails_now() {
                return input_output_error();
            }
            let outcome = libc::syscall(libc::SYS_mkdirat, AT_FDCWD, path, mode) as c_int;
            if outcome == 0 && record.watches(&name) {
                record.ops.push(Op::MakeFolder { path: name });
            }
            outcome
        }
    }

    /// # Safety
    /// As of `writev`.
    unsafe fn first_part(parts: *const libc::iovec, count: c_int) -> Option<libc::iovec> {
        // SAFETY: the caller's promise.
        let parts = unsafe { std::slice::from_raw_parts(parts, usize::try_from(count).ok()?) };
        parts.iter().find(|part| part.iov_len > 0).copied()
    }
}
