//! The data folder as a whole: its format, the lock that keeps a second process out, and the
//! permissions that keep other users out.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::Fault;

const FORMAT_FILE: &str = "FORMAT";
const FORMAT_DRAFT: &str = "FORMAT.tmp";
const LOCK_FILE: &str = "lock";
const FORMAT_NAME: &str = "holdfast";
/// Only the user that the server runs as may access the folder.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// The permissions of the group and of others in a mode.
const OTHER_USERS: u32 = 0o077;
/// The newest format this build reads, and the one of a new folder. A folder of format 1 or 2 gets it when
/// its rows are opened; what was made as format 1 keeps all rows in one tree.
pub const FORMAT_VERSION: u32 = 3;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the data folder {} is in use by another process", path.display())]
    InUse { path: PathBuf },
    #[error(
        "the data folder {} has format version {found}; this build reads up to {FORMAT_VERSION}",
        path.display()
    )]
    NewerFormat { path: PathBuf, found: u32 },
    #[error("the folder {} is not empty and not a data folder of this program", path.display())]
    NotADataFolder { path: PathBuf },
    #[error("the data folder cannot be opened")]
    Fault(#[from] Fault),
}

/// A data folder locked for this process. Clones share the lock; it ends with the last of them.
#[derive(Clone)]
pub struct DataFolder {
    path: PathBuf,
    _lock: Arc<File>,
}

impl DataFolder {
    /// Opens the folder, or makes one where the path is missing or an empty folder.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, OpenError> {
        let path = path.into();
        // Before anything is created: a folder of a newer format is left exactly as it is.
        let is_new = match read_format(&path)? {
            Some(found) if found > FORMAT_VERSION => {
                return Err(OpenError::NewerFormat { path, found });
            }
            Some(_) => false,
            None => {
                refuse_foreign(&path)?;
                create_folder(&path)
                    .map_err(|why| Fault::because(format!("create {}", path.display()), why))?;
                true
            }
        };
        let lock = lock(&path)?;
        keep_others_out(&path)
            .map_err(|why| Fault::because(format!("keep others out of {}", path.display()), why))?;
        if is_new && read_format(&path)?.is_none() {
            write_format(&path)
                .map_err(|why| Fault::because(format!("format {}", path.display()), why))?;
        }
        Ok(Self { path, _lock: Arc::new(lock) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn has_newest_format(&self) -> Result<bool, Fault> {
        let unreadable = |why| Fault::because("read the format of the data folder", why);
        Ok(read_format(&self.path).map_err(unreadable)? == Some(FORMAT_VERSION))
    }

    pub(super) fn set_newest_format(&self) -> Result<(), Fault> {
        let unwritten = |why| Fault::because(format!("format {}", self.path.display()), why);
        write_format(&self.path).map_err(unwritten)
    }

    /// A folder inside, made durably if it is not there yet.
    pub fn subfolder(&self, name: &str) -> Result<PathBuf, Fault> {
        let path = self.path.join(name);
        create_folder(&path)
            .map_err(|why| Fault::because(format!("create {}", path.display()), why))?;
        Ok(path)
    }
}

/// A folder kept open, so that changes in it can be synced even when no descriptors are left.
pub(super) struct OpenFolder {
    path: PathBuf,
    opened: File,
}

impl OpenFolder {
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        Ok(Self { opened: File::open(&path)?, path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the names in the folder survive a power cut.
    pub fn sync(&self) -> io::Result<()> {
        self.opened.sync_all()
    }

    /// Replaces a file whole: after a crash it is the old one or the new one.
    pub fn replace_file(&self, name: &str, draft: &str, content: &[u8]) -> io::Result<()> {
        let draft = self.path.join(draft);
        let mut file = own_file().write(true).create(true).truncate(true).open(&draft)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&draft, self.path.join(name))?;
        self.sync()
    }
}

/// Makes a directory entry of `folder` survive a power cut.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// How a file of the data folder is made.
pub(super) fn own_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// A folder that was made by hand or by an earlier version may be open to others. Its contents need
/// no check: they are reached only through the folder.
fn keep_others_out(path: &Path) -> io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & OTHER_USERS == 0 {
        return Ok(());
    }
    match fs::set_permissions(path, Permissions::from_mode(mode & !OTHER_USERS)) {
        // The folder of another user (such as a mounted volume), whose mode this user may not
        // change.
        Err(why) if why.kind() == io::ErrorKind::PermissionDenied => {
            let mode = format!("{:o}", mode & 0o7777);
            tracing::warn!(
                path = %path.display(), mode,
                "other users may get at the data folder: it does not belong to this user, who cannot \
                 change that"
            );
            Ok(())
        }
        other => other,
    }
}

pub(super) fn create_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    create_folder(parent)?;
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Ok(()) => sync_folder(parent),
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(why) => Err(why),
    }
}

fn lock(path: &Path) -> Result<File, OpenError> {
    let file = own_file()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path.join(LOCK_FILE))
        .map_err(|why| Fault::because(format!("open the lock of {}", path.display()), why))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_path_buf() }),
        Err(TryLockError::Error(why)) => {
            Err(Fault::because(format!("lock {}", path.display()), why).into())
        }
    }
}

fn read_format(path: &Path) -> Result<Option<u32>, OpenError> {
    let file = path.join(FORMAT_FILE);
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(Fault::because(format!("read {}", file.display()), why).into()),
    };
    let version = text
        .trim_end()
        .strip_prefix(FORMAT_NAME)
        .and_then(|rest| rest.strip_prefix(' '))
        .and_then(|version| version.parse().ok());
    match version {
        Some(version) => Ok(Some(version)),
        None => Err(OpenError::NotADataFolder { path: path.to_path_buf() }),
    }
}

/// A folder without a format is ours to use only if a crashed creation could have left it so.
fn refuse_foreign(path: &Path) -> Result<(), OpenError> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(Fault::because(format!("list {}", path.display()), why).into()),
    };
    for entry in entries {
        let entry = entry.map_err(|why| Fault::because(format!("list {}", path.display()), why))?;
        if entry.file_name() != LOCK_FILE && entry.file_name() != FORMAT_DRAFT {
            return Err(OpenError::NotADataFolder { path: path.to_path_buf() });
        }
    }
    Ok(())
}

fn write_format(path: &Path) -> io::Result<()> {
    let text = format!("{FORMAT_NAME} {FORMAT_VERSION}\n");
    OpenFolder::open(path)?.replace_file(FORMAT_FILE, FORMAT_DRAFT, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_opening_is_told_which_folder_is_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let first = DataFolder::open(&data).unwrap();
        let refusal = DataFolder::open(&data).err().unwrap().to_string();
        assert!(refusal.contains(data.to_str().unwrap()), "{refusal}");
        drop(first);
        DataFolder::open(&data).unwrap();
    }

    #[test]
    fn newer_format_is_refused_and_nothing_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FORMAT_FILE), "holdfast 4\n").unwrap();
        let refusal = DataFolder::open(folder.path()).err().unwrap();
        assert!(matches!(refusal, OpenError::NewerFormat { found: 4, .. }), "{refusal}");
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [FORMAT_FILE]);
        assert_eq!(fs::read(folder.path().join(FORMAT_FILE)).unwrap(), b"holdfast 4\n");
    }

    #[test]
    fn older_format_is_opened_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FORMAT_FILE), "holdfast 1\n").unwrap();
        DataFolder::open(folder.path()).unwrap();
        assert_eq!(read_format(folder.path()).unwrap(), Some(1));
    }

    #[test]
    fn folder_with_files_of_others_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.txt"), "mine").unwrap();
        let refusal = DataFolder::open(folder.path()).err().unwrap();
        assert!(matches!(refusal, OpenError::NotADataFolder { .. }), "{refusal}");
        assert!(!folder.path().join(LOCK_FILE).exists());
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn folder_and_files_are_for_their_user_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let data = DataFolder::open(&path).unwrap();
        let inside = data.subfolder("inside").unwrap();
        let draft = OpenFolder::open(&inside).unwrap();
        draft.replace_file("file", "file.tmp", b"content").unwrap();
        assert_eq!([mode(&path), mode(&inside)], [FOLDER_MODE; 2]);
        let files = [path.join(FORMAT_FILE), path.join(LOCK_FILE), inside.join("file")];
        assert_eq!(files.map(|file| mode(&file)), [FILE_MODE; 3]);
    }

    #[test]
    fn folder_that_was_open_to_others_is_closed_to_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        drop(DataFolder::open(&path).unwrap());
        for open in [0o755, 0o770, 0o2775] {
            fs::set_permissions(&path, Permissions::from_mode(open)).unwrap();
            drop(DataFolder::open(&path).unwrap());
            assert_eq!(mode(&path), open & !OTHER_USERS);
        }
    }

    #[test]
    fn creation_cut_short_is_completed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(LOCK_FILE), "").unwrap();
        fs::write(folder.path().join(FORMAT_DRAFT), "hold").unwrap();
        DataFolder::open(folder.path()).unwrap();
        assert_eq!(read_format(folder.path()).unwrap(), Some(FORMAT_VERSION));
    }
}
