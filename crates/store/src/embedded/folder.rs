//! The data folder as a whole: its format, and the lock that keeps a second process out.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::Fault;

const FORMAT_FILE: &str = "FORMAT";
const FORMAT_DRAFT: &str = "FORMAT.tmp";
const LOCK_FILE: &str = "lock";
const FORMAT_NAME: &str = "holdfast";
/// The newest format this build reads, and the one of a new folder. A folder of format 1 has all rows
/// in one tree, and keeps both.
pub const FORMAT_VERSION: u32 = 2;

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
    /// Opens the folder, or makes one where there is nothing or an empty folder.
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
        if is_new && read_format(&path)?.is_none() {
            write_format(&path)
                .map_err(|why| Fault::because(format!("format {}", path.display()), why))?;
        }
        Ok(Self { path, _lock: Arc::new(lock) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder inside, made durably if it is not there yet.
    pub fn subfolder(&self, name: &str) -> Result<PathBuf, Fault> {
        let path = self.path.join(name);
        create_folder(&path)
            .map_err(|why| Fault::because(format!("create {}", path.display()), why))?;
        Ok(path)
    }
}

/// Makes a directory entry of `folder` survive a power cut.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Replaces the file `name` of `folder` whole: after a crash it is the old one or the new one.
pub(super) fn replace_file(
    folder: &Path,
    name: &str,
    draft: &str,
    content: &[u8],
) -> io::Result<()> {
    let draft = folder.join(draft);
    let mut file = File::create(&draft)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&draft, folder.join(name))?;
    sync_folder(folder)
}

fn create_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    create_folder(parent)?;
    match fs::create_dir(path) {
        Ok(()) => sync_folder(parent),
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(why) => Err(why),
    }
}

fn lock(path: &Path) -> Result<File, OpenError> {
    let file = OpenOptions::new()
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
    replace_file(path, FORMAT_FILE, FORMAT_DRAFT, text.as_bytes())
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
        fs::write(folder.path().join(FORMAT_FILE), "holdfast 3\n").unwrap();
        let refusal = DataFolder::open(folder.path()).err().unwrap();
        assert!(matches!(refusal, OpenError::NewerFormat { found: 3, .. }), "{refusal}");
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [FORMAT_FILE]);
        assert_eq!(fs::read(folder.path().join(FORMAT_FILE)).unwrap(), b"holdfast 3\n");
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

    #[test]
    fn creation_cut_short_is_completed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(LOCK_FILE), "").unwrap();
        fs::write(folder.path().join(FORMAT_DRAFT), "hold").unwrap();
        DataFolder::open(folder.path()).unwrap();
        assert_eq!(read_format(folder.path()).unwrap(), Some(FORMAT_VERSION));
    }
}
