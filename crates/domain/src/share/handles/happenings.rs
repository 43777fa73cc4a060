//! What SMB clients that watch directories hear of.

use crate::names::FilePath;
use crate::share::opens::watch::{ChangeAction, Happening, filter};

fn modified(path: &FilePath, filter: u32) -> Happening {
    Happening { path: path.clone(), action: ChangeAction::Modified, filter }
}

/// It came, went or got another name.
pub(super) fn named(path: &FilePath, is_directory: bool, action: ChangeAction) -> Happening {
    let filter = if is_directory { filter::DIRECTORY_NAME } else { filter::FILE_NAME };
    Happening { path: path.clone(), action, filter }
}

pub(super) fn written(path: &FilePath) -> Happening {
    modified(path, filter::SIZE | filter::LAST_WRITE)
}

pub(super) fn set(path: &FilePath, filter: u32) -> Happening {
    modified(path, filter)
}

pub(super) fn secured(path: &FilePath) -> Happening {
    modified(path, filter::SECURITY)
}
